# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The SELinux types of pods that use kubelet's sockets and the devices of GPUs. Pure.

From containers/container-selinux container.te, read 2026-11-28 (commit of 2026-07-02): the type of
ordinary containers, container_t, may use neither, and a privileged container has spc_t, which may.
A node without SELinux ignores the type; no node with SELinux enforcing was available to run it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# Devices, and the sockets of kubelet (device-plugins, pod-resources).
DEVICE_PLUGIN = "container_device_plugin_t"
# Devices, and files in /etc/kubernetes (node-feature-discovery/features.d).
WRITES_FEATURES = "container_device_plugin_init_t"
# Devices alone.
DEVICE = "container_device_t"

_OPTIONS = "seLinuxOptions"


def enforcing(hosts: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether SELinux is enforcing on one of the hosts, by their facts."""
    facts = (host.get("gpu_node") or {} for host in hosts.values())
    return any((node.get("selinux") or {}).get("mode") == "enforcing" for node in facts)


def with_types(
    objects: Iterable[Mapping[str, Any]],
    types: Mapping[str, str],
    hosts: Mapping[str, Mapping[str, Any]],
    existing: Iterable[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return the objects, with the types where SELinux is enforcing on one of the hosts.

    A run may cover some nodes only: where one of the DaemonSets has a type, all keep theirs.

    :param types: by the name of the DaemonSet.
    """
    wanted = enforcing(hosts) or any(
        one["metadata"]["name"] in types and selinux_part(one) for one in existing
    )
    found = []
    for one in objects:
        name = str(one["metadata"]["name"])
        typed = wanted and one["kind"] == "DaemonSet" and name in types
        found.append(_typed(one, types[name]) if typed else dict(one))
    return found


def selinux_part(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a DaemonSet that shows its types; empty if it has none."""
    if item.get("kind") != "DaemonSet":
        return {}
    contexts = (one.get("securityContext") or {} for one in _containers(_pod(item)))
    typed = [
        {"securityContext": {_OPTIONS: {"type": context[_OPTIONS]["type"]}}}
        for context in contexts
        if (context.get(_OPTIONS) or {}).get("type")
    ]
    return {"spec": {"template": {"spec": {"containers": typed}}}} if typed else {}


def _pod(item: Mapping[str, Any]) -> Mapping[str, Any]:
    template = (item.get("spec") or {}).get("template") or {}
    return template.get("spec") or {}


def _containers(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]


def _typed(item: Mapping[str, Any], name: str) -> dict[str, Any]:
    pod = dict(_pod(item))
    for part in ("initContainers", "containers"):
        if pod.get(part):
            pod[part] = [_container(one, name) for one in pod[part]]
    spec = item["spec"]
    return {**item, "spec": {**spec, "template": {**spec["template"], "spec": pod}}}


def _container(container: Mapping[str, Any], name: str) -> dict[str, Any]:
    context = container.get("securityContext") or {}
    if context.get("privileged") or context.get(_OPTIONS):
        return dict(container)
    return {**container, "securityContext": {**context, _OPTIONS: {"type": name}}}
