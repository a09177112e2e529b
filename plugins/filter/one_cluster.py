# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: one_cluster
short_description: Check that all hosts belong to the same Kubernetes cluster
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - A run makes one call for a whole cluster, so that it can serve only one. The filter fails if
    C(kubeconfig), C(context), C(host) or C(delegate) in the variable C(kubegpu_kube), or the
    variable C(kubegpu_kube_namespace), of two hosts differ, and names the hosts.
  - With O(deployed), it also fails if C(gpu_monitoring_enabled) of two hosts with GPUs, or
    C(nvidia_dra_driver_enabled) of two hosts with NVIDIA GPUs differ, because the cluster has one
    exporter and one driver for all of its nodes.
  - It also fails if C(kubegpu_kube.delegate) is a host that is not in the inventory, for example in
    a slice of a job.
positional: _input, hostvars
options:
  _input:
    description: The hosts' names.
    type: list
    elements: str
    required: true
  hostvars:
    description: Ansible's C(hostvars).
    type: dict
    required: true
  deployed:
    description: Whether the hosts also have to agree on the parts that are deployed.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Check that all hosts belong to one cluster
  ansible.builtin.set_fact:
    cluster: "{{ ansible_play_hosts | kubegpu.nodes.one_cluster(hostvars) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: The common values, by name, such as C(kubegpu_kube.host). They contain no secret.
  type: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError


def one_cluster(
    hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]], deployed: bool = False
) -> dict[str, str]:
    """Return the cluster's variables, which are equal for all hosts."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._deployed import check_deployed
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._hosts import one_cluster as found

    try:
        cluster = found(hosts, hostvars)
        if deployed:
            check_deployed(hosts, hostvars)
    except KubegpuError as error:
        raise AnsibleFilterError(str(error)) from error
    return cluster


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"one_cluster": one_cluster}
