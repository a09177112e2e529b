# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: nvidia_dra_driver_plan
short_description: Plan NVIDIA's DRA driver for a whole cluster
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes the options of P(kubegpu.nodes.nvidia_dra_driver#role), the facts of the hosts and what a
    cluster serves, and returns the preconditions of the cluster and of each node, and the objects
    to apply and to remove.
  - The filter reads and changes nothing. A refusal is a value, not an error; with a refusal, no
    objects are returned.
positional: _input, hosts, cluster
options:
  _input:
    description: The options of the role, without its prefix. Missing options have its defaults.
    type: dict
    required: true
  hosts:
    description: >-
      By host name, C(gpu_node) (the facts of M(kubegpu.nodes.gpu_node_facts)); C(node) (its name in
      Kubernetes); C(match) (V(name) if it is not found by machine ID); C(driver) (the version of
      the driver that this run loads, or empty); C(cdi) (whether this run enables CDI in
      containerd); C(mig) (its MIG configuration); and C(options) (the options as this host sees
      them, which must be equal on all hosts).
    type: dict
    required: true
  cluster:
    description: >-
      The result of M(kubegpu.nodes.gpu_cluster_info) with its option C(dra_namespace). For the
      objects alone, C({'kubernetes': 'v1.34.2', 'dra': {'served': ['v1']}}) is enough.
    type: dict
    required: true
  facts:
    description: The fact C(gpu_node) by host name, if it is not in O(hosts).
    type: dict
    default: {}
  teardown:
    description: Whether to remove everything of this collection but the namespace.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Write the objects for Kubernetes 1.34 into a file
  ansible.builtin.copy:
    content: "{{ planned.objects | to_nice_yaml }}"
    dest: dra-driver.yml
    mode: "0644"
  vars:
    planned: >-
      {{ {'compute_domains': false} | kubegpu.nodes.nvidia_dra_driver_plan(
           {}, {'kubernetes': 'v1.34.2', 'dra': {'served': ['v1']}}) }}
"""

RETURN = r"""
_value:
  description: >-
    C(action) (apply or refuse), C(preconditions) (C(node), null for the cluster, C(name), C(value),
    C(verdict), which is met, missing or unknown, C(evidence) and C(next_step)), C(api) (the version
    of C(resource.k8s.io)), C(compute_domains), C(objects) (to apply), C(replaced) (the objects of
    this collection's device plugin, to remove first), C(absent) (to remove last), C(expected) (by
    host, in the format of M(kubegpu.nodes.gpu_cluster_info)), C(nodes) (the same for any GPUs, to
    find the nodes of the hosts), C(refusals) (C(host), C(cause),
    C(evidence), C(next_step)), C(text) (the same as text), C(warnings) and C(reasons).
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError


def nvidia_dra_driver_plan(
    options: Mapping[str, Any],
    hosts: Mapping[str, Mapping[str, Any]],
    cluster: Mapping[str, Any],
    facts: Mapping[str, Mapping[str, Any]] | None = None,
    teardown: bool = False,
) -> dict[str, Any]:
    """Return the plan as JSON values."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._dra import plan

    if teardown:
        return plan.teardown(list(cluster.get("dra_objects") or ()))
    known = facts or {}
    complete = {
        name: {"gpu_node": known.get(name), **host} if name in known else host
        for name, host in hosts.items()
    }
    missing = [name for name, host in complete.items() if not host.get("gpu_node")]
    if missing:
        raise AnsibleFilterError(
            f"nvidia_dra_driver_plan needs the fact gpu_node of {', '.join(missing)}. Next step: "
            "run kubegpu.nodes.gpu_node_facts on the hosts first."
        )
    return plan.plan(options, complete, cluster)


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"nvidia_dra_driver_plan": nvidia_dra_driver_plan}
