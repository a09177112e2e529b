# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read what a cluster has of this collection's device plugin, in one go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._device_plugin_names import DISCOVERY_NAME, HANDLER, MPS_NAME, NAME, PREFIX
from ._kube import Cluster

#: The label ``app.kubernetes.io/name`` of the pods that the plugin consists of.
_APPS = tuple(name.removeprefix(PREFIX) for name in (NAME, MPS_NAME, DISCOVERY_NAME))
#: What a namespace of ours may hold of others; it is not removed then.
_CONTENT = {
    "Pod": "pods",
    "ConfigMap": "configmaps",
    "Secret": "secrets",
    "Service": "services",
    "PersistentVolumeClaim": "persistentvolumeclaims",
}


def plugin_objects(
    cluster: Cluster, namespace: str, *, content: bool = False
) -> list[dict[str, Any]]:
    """Return the namespace, the RuntimeClass, and the plugin's DaemonSet and pods that are there.

    :param content: instead of the pods, all that lies in the namespace, but by kind, name, labels
        and type alone: there are secrets among it.
    """
    inside = f"/api/v1/namespaces/{namespace}"
    sets = f"/apis/apps/v1/namespaces/{namespace}/daemonsets"
    classes = "/apis/node.k8s.io/v1/runtimeclasses"
    found = [
        _named("v1", "Namespace", cluster.get(inside)),
        _named("node.k8s.io/v1", "RuntimeClass", cluster.get(f"{classes}/{HANDLER}")),
        _named("apps/v1", "DaemonSet", cluster.get(f"{sets}/{NAME}")),
    ]
    if content:
        for kind, plural in _CONTENT.items():
            for item in cluster.list(f"{inside}/{plural}"):
                found.append(_named("v1", kind, _outside(item)))
    else:
        chosen = f"app.kubernetes.io/name in ({','.join(_APPS)})"
        for item in cluster.list(f"{inside}/pods", labelSelector=chosen):
            found.append(_named("v1", "Pod", item))
    return [item for item in found if item]


def _named(version: str, kind: str, item: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return an object with what the API server leaves out in lists."""
    return {**item, "apiVersion": version, "kind": kind} if item else {}


def _outside(item: Mapping[str, Any]) -> dict[str, Any]:
    metadata = item["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace", "labels") if key in metadata}
    return {"metadata": kept, **({"type": item["type"]} if "type" in item else {})}
