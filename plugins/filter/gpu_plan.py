# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_plan
short_description: Plan the parts of a node without the node
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes the facts of M(kubegpu.nodes.gpu_node_facts) and variables of the roles, and returns what
    the roles would do, with a reason for each step. The playbooks plan in the same way
    (M(kubegpu.nodes.fleet_plan)).
  - Reads and changes nothing. A request that cannot be met, such as a wrong value, is a plan whose
    C(action) is V(refuse), and not an error.
  - The parts that O(parts) names are planned together. The container toolkit, for example, is
    planned for the driver that the plan of the driver loads.
positional: _input, variables, parts, cluster
options:
  _input:
    description: The fact C(gpu_node).
    type: dict
    required: true
  variables:
    description: Variables of the roles by their full names, such as C(nvidia_driver_branch). A
      variable that is not given has its default. Others are ignored.
    type: dict
    default: {}
  parts:
    description: The names of the roles whose parts are planned, or V(gpu_exporter), the exporter
      of a host without Kubernetes (P(kubegpu.nodes.gpu_monitoring#role)), or V(gpu_verify), the
      resources that the node should offer with the device plugins of NVIDIA, AMD and Intel. If it
      is not given, these are the parts of which the playbook C(kubegpu.nodes.site) would show the
      plan of the node.
    type: list
    elements: str
    choices: [nvidia_driver, nvidia_mig, cuda_toolkit, nvidia_container_toolkit, amd_driver,
      amd_container_toolkit, gpu_exporter, nvidia_dra_driver, nvidia_device_plugin,
      amd_device_plugin, intel_device_plugin, gpu_monitoring, gpu_verify]
  cluster:
    description: The result of M(kubegpu.nodes.gpu_cluster_info), for a part that a cluster has
      once, such as C(gpu_monitoring). Such a part is planned for this node alone, or for no node if
      the fact is empty; its plan has the objects.
    type: dict
    default: {}
seealso:
  - plugin: kubegpu.nodes.nvidia_driver_plan
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show what the collection would do with its defaults, and why
  ansible.builtin.debug:
    msg: "{{ ansible_facts['gpu_node'] | kubegpu.nodes.gpu_plan }}"

- name: Show the steps for a MIG layout
  ansible.builtin.debug:
    msg: >-
      {{ (ansible_facts['gpu_node']
          | kubegpu.nodes.gpu_plan({'nvidia_mig_config': 'all-balanced'})).nvidia_mig.steps }}

- name: Show why two CUDA toolkits side by side are refused
  ansible.builtin.debug:
    msg: >-
      {{ (ansible_facts['gpu_node']
          | kubegpu.nodes.gpu_plan({'cuda_toolkit_versions': ['12.9', '13.0']},
                                   parts=['cuda_toolkit'])).cuda_toolkit.reasons }}

- name: Show what a pod can ask for on this node
  ansible.builtin.debug:
    msg: >-
      {{ (ansible_facts['gpu_node']
          | kubegpu.nodes.gpu_plan({'intel_device_plugin_shared': 2},
                                   parts=['gpu_verify'])).gpu_verify.resources }}

- name: Write the objects of NVIDIA's device plugin into a file, for GitOps
  ansible.builtin.copy:
    content: "{{ plans.nvidia_device_plugin.objects | to_nice_yaml }}"
    dest: device-plugin.yml
    mode: "0644"
  vars:
    asked: {nvidia_device_plugin_version: v0.20.1}
    plans: "{{ {} | kubegpu.nodes.gpu_plan(asked, ['nvidia_device_plugin']) }}"

- name: Write alert rules for a Prometheus that is set up by other means
  ansible.builtin.copy:
    content: "{{ plans.gpu_monitoring.rules | to_nice_yaml }}"
    dest: /etc/prometheus/rules/kubegpu.yml
    mode: "0644"
  vars:
    asked: {gpu_monitoring_temperature: 85}
    plans: "{{ {} | kubegpu.nodes.gpu_plan(asked, ['gpu_monitoring']) }}"
"""

RETURN = r"""
_value:
  description: >-
    The plan of each part by the name of its role. Each has C(action), C(work) (whether the role has
    something to do), C(steps), C(reasons), C(refusals) and C(warnings); the READMEs of the roles
    describe the other keys. The plan of a driver that is not managed is empty. V(gpu_verify) has
    C(resources), the number of each resource, such as C({'amd.com/gpu': 8}), and C(some_of).
    Without MIG devices, the GPUs of NVIDIA on the PCI bus are counted, except those bound to vfio;
    with a MIG strategy, the facts must come from a node with a running driver. A vendor whose
    number the facts do not determine is in C(some_of) instead, as the node should offer at least
    one of its GPUs; C(resources) is null if the facts determine none of them.
  type: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.release import __version__

# The role that verifies it.
_OFFERS = "gpu_verify"


def gpu_plan(
    gpu_node: Mapping[str, Any],
    variables: Mapping[str, Any] | None = None,
    parts: Sequence[str] | None = None,
    cluster: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the plans of :func:`plan_node`, and of :func:`plan_cluster`."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.parts import PARTS
    from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.plan import plan_node
    from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.types import CLUSTER_PARTS
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._hosts import planned_parts
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._plan_filters import check_call
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._runs import this_run

    given = variables or {}
    of_cluster = [part for part in parts or () if part in CLUSTER_PARTS]
    if not of_cluster or gpu_node or len(of_cluster) < len(parts or ()):
        check_call("gpu_plan", gpu_node, parts or (), (*PARTS, *CLUSTER_PARTS, _OFFERS))
    if not isinstance(given, Mapping):
        raise AnsibleFilterError("gpu_plan: variables has to be a mapping of variables to values.")
    if parts is None:
        parts = planned_parts({**given, "ansible_facts": {"gpu_node": gpu_node}})
    plans = plan_node(gpu_node, given, parts, this_run(__version__))
    if _OFFERS in parts:
        plans[_OFFERS] = _offered(gpu_node, given)
    return {
        **plans,
        **{part: _of_cluster(part, gpu_node, given, cluster or {}) for part in of_cluster},
    }


def _offered(gpu_node: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the node should offer."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
    from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.resources import (
        offered,
    )

    try:
        return offered(gpu_node, variables)
    except InputError as error:
        raise AnsibleFilterError(f"gpu_plan: {error}") from error


def _of_cluster(
    part: str, gpu_node: Mapping[str, Any], variables: Mapping[str, Any], cluster: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the plan of a part of a cluster, for this node if there is one."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
    from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.cluster import (
        host_row,
        plan_cluster,
    )
    from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.types import Node, Run

    try:
        row = host_row(part, "node", Node(gpu_node, variables, Run(), {}, ()))
    except InputError as error:
        raise AnsibleFilterError(f"gpu_plan: {error}") from error
    rows = {"node": {**row, "gpu_node": gpu_node}} if gpu_node else {}
    return dict(plan_cluster(part, row, rows, cluster))


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_plan": gpu_plan}
