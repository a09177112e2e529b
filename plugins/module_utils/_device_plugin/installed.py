# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the objects of this collection's device plugin from a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._kube.api import Cluster
from .names import DISCOVERY_NAME, HANDLER, LABELLER_NAME, MPS_NAME, PLUGINS, PREFIX

#: DaemonSets besides a vendor's plugin.
_MORE = {"nvidia": (MPS_NAME, DISCOVERY_NAME), "amd": (LABELLER_NAME,), "intel": ()}
#: Kinds of unmanaged objects that keep the namespace from being removed.
_KINDS = {
    "Pod": "pods",
    "ConfigMap": "configmaps",
    "Secret": "secrets",
    "Service": "services",
    "PersistentVolumeClaim": "persistentvolumeclaims",
}
#: Values of the option ``plugin_content``.
CONTENT = ("none", "pods", "all")


def plugin_objects(
    cluster: Cluster, namespace: str, content: str = CONTENT[0], vendor: str = "nvidia"
) -> list[dict[str, Any]]:
    """Return the namespace, the RuntimeClass and the plugin's DaemonSet, as far as they exist.

    Only NVIDIA's plugin has a RuntimeClass.

    :param content: further objects of the namespace. ``pods``: the plugin's pods, reduced to name,
        node and start time, because each node has one. ``all``: objects of several kinds, of any
        owner, reduced to name, labels and type, because Secrets are among them.
    """
    inside = f"/api/v1/namespaces/{namespace}"
    sets = f"/apis/apps/v1/namespaces/{namespace}/daemonsets"
    classes = "/apis/node.k8s.io/v1/runtimeclasses"
    found = [_named("v1", "Namespace", cluster.get(inside))]
    if vendor == "nvidia":
        found.append(_named("node.k8s.io/v1", "RuntimeClass", cluster.get(f"{classes}/{HANDLER}")))
    found.append(_named("apps/v1", "DaemonSet", cluster.get(f"{sets}/{PLUGINS[vendor]}")))
    if content == "pods":
        apps = [name.removeprefix(PREFIX) for name in (PLUGINS[vendor], *_MORE[vendor])]
        chosen = f"app.kubernetes.io/name in ({','.join(apps)})"
        for item in cluster.list(f"{inside}/pods", labelSelector=chosen):
            found.append(_named("v1", "Pod", _placed(item)))
    elif content == "all":
        for kind, plural in _KINDS.items():
            for item in cluster.list(f"{inside}/{plural}"):
                found.append(_named("v1", kind, _outside(item)))
        # A plugin of another vendor may have no pod, and needs the namespace nevertheless.
        for item in cluster.list(sets):
            found.append(_named("apps/v1", "DaemonSet", _outside(item)))
    return [item for item in found if item]


def _named(version: str, kind: str, item: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return an object with the fields that the API server omits in lists."""
    return {**item, "apiVersion": version, "kind": kind} if item else {}


def _placed(pod: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "metadata": _kept(pod["metadata"], "name", "namespace"),
        "spec": _kept(pod.get("spec") or {}, "nodeName"),
        "status": _kept(pod.get("status") or {}, "startTime"),
    }


def _outside(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "metadata": _kept(item["metadata"], "name", "namespace", "labels"),
        **_kept(item, "type"),
    }


def _kept(data: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: data[name] for name in names if name in data}
