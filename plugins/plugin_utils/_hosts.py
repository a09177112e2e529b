# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which nodes take part: small, since each process of a run that has a filter imports it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.options import truth
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.vendors import gpu_vendor


def hosts_with(
    hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]], key: str | None = None
) -> list[str]:
    """Return the hosts whose variable ``key`` is true; without one, those whose node was read."""
    known = [host for host in hosts if host in hostvars]
    if key is None:
        return [host for host in known if "gpu_node" in hostvars[host].get("ansible_facts", ())]
    return [host for host in known if hostvars[host].get(key) is True]


def gpu_groups(
    hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the groups of the hosts whose node was read: by vendor, and those of a cluster.

    One with a wrong value of a variable that counts for it is in ``kubegpu_refused`` alone, so that
    no other play runs on it.
    """
    found = []
    for host in hosts_with(hosts, hostvars):
        variables = hostvars[host]
        vendor = gpu_vendor(variables["ansible_facts"]["gpu_node"]["gpus"])
        in_cluster = bool(variables.get("kubegpu_kubeconfig") or variables.get("kubegpu_kube_host"))
        groups = [f"kubegpu_{vendor}", *(["kubegpu_cluster"] if in_cluster else [])]
        if wrong_values(host, variables, vendor, in_cluster):
            groups = ["kubegpu_refused"]
        found.append({"host": host, "groups": groups})
    return found


def wrong_values(
    host: str, variables: Mapping[str, Any], vendor: str, in_cluster: bool
) -> list[Mapping[str, Any]]:
    """Return the wrong values that count for a host: those of parts that it takes part in.

    :param variables: the host's; ``fleet_variables`` has left there what it found.
    """
    looked_at = variables.get("__kubegpu_variables") or {}
    found: Sequence[Mapping[str, Any]] = (looked_at.get("wrong") or {}).get(host) or ()
    return [one for one in found if (in_cluster if one["cluster"] else vendor == "nvidia")]


def hosts_to_verify(
    hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]], every: bool = False
) -> list[str]:
    """Return the hosts that a run changed, and whose driver is there to be verified.

    :param every: whether those that were not changed are to be verified too.
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
            # Where somebody else brings the driver later, there is nothing to verify yet.
            and variables["ansible_facts"]["gpu_node"]["driver"]["loaded"] is not None
            and (every or any(changed) or truth(variables.get("gpu_verify_all", False)))
        ):
            found.append(host)
    return found
