# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Select the hosts of a play.

This file imports little, because each process that runs a filter imports it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.options import truth
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.vendors import gpu_vendor


def hosts_with(
    hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]], key: str | None = None
) -> list[str]:
    """Return the hosts whose variable ``key`` is true; without a key, the hosts that have facts."""
    known = [host for host in hosts if host in hostvars]
    if key is None:
        return [host for host in known if "gpu_node" in hostvars[host].get("ansible_facts", ())]
    return [host for host in known if hostvars[host].get(key) is True]


def connection(variables: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``kubegpu_kube`` of a host, empty if the host has none.

    Only ``fleet_variables`` says what is wrong with it.
    """
    found = variables.get("kubegpu_kube")
    return found if isinstance(found, Mapping) else {}


def gpu_groups(
    hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the groups of the hosts that have facts: by vendor of the GPUs, and of a cluster.

    A host with a wrong value that applies to it is in ``kubegpu_refused`` only, so that no other
    play runs on it.
    """
    found = []
    for host in hosts_with(hosts, hostvars):
        variables = hostvars[host]
        vendor = gpu_vendor(variables["ansible_facts"]["gpu_node"]["gpus"])
        kube = connection(variables)
        in_cluster = bool(kube.get("kubeconfig") or kube.get("host"))
        groups = [f"kubegpu_{vendor}", *(["kubegpu_cluster"] if in_cluster else [])]
        if wrong_values(host, variables, vendor, in_cluster):
            groups = ["kubegpu_refused"]
        found.append({"host": host, "groups": groups})
    return found


def wrong_values(
    host: str, variables: Mapping[str, Any], vendor: str, in_cluster: bool
) -> list[Mapping[str, Any]]:
    """Return the wrong values of a host, without those of parts that do not apply to it.

    :param variables: the host's variables, with the result of ``fleet_variables``.
    """
    checked = variables.get("__kubegpu_variables") or {}
    found: Sequence[Mapping[str, Any]] = (checked.get("wrong") or {}).get(host) or ()
    return [one for one in found if (in_cluster if one["cluster"] else vendor == "nvidia")]


def hosts_to_verify(
    hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]], every: bool = False
) -> list[str]:
    """Return the hosts that a run changed and that have a loaded driver.

    :param every: include the hosts that were not changed.
    """
    found = []
    for host in hosts_with(hosts, hostvars):
        variables = hostvars[host]
        labels = (variables.get("__gpu_node_labels_result") or {}).get("nodes") or {}
        plugin = variables.get("__nvidia_device_plugin_result") or {}
        changed = (
            variables.get("kubegpu_changed"),
            (labels.get(host) or {}).get("changed"),
            plugin.get("changed"),
        )
        if (
            truth(variables.get("gpu_verify_enabled", True))
            and variables.get("kubegpu_failed") is not True
            # A driver that is not managed here may be installed later: nothing to verify yet.
            and variables["ansible_facts"]["gpu_node"]["driver"]["loaded"] is not None
            and (every or any(changed) or truth(variables.get("gpu_verify_all", False)))
        ):
            found.append(host)
    return found
