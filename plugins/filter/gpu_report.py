# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_report
short_description: Build the rows of a table about the hosts of a play
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Builds rows for M(kubegpu.nodes.fleet_table) from the fact C(gpu_node) of
    M(kubegpu.nodes.gpu_node_facts) the plans of M(kubegpu.nodes.fleet_plan) and the public facts of
    the roles, such as C(nvidia_driver_result).
  - V(plan) returns what would change on each host and why. A refusal of one part does not hide the
    changes of the others. A host with wrong values of variables is refused.
  - V(plan_failures) returns the hosts that the variable C(kubegpu_plan_fail_on) lets fail.
  - V(result) returns what is on the hosts of O(batch) after a run, and why hosts failed or wait.
  - V(teardown) returns what was restored on the hosts of O(batch), or in check mode would be, and
    what is not.
  - V(cluster) returns what would change in Kubernetes, V(cluster_teardown) what was removed there.
    V(dra) returns what NVIDIA's DRA driver needs, and what is there.
  - V(verification) returns the results of M(kubegpu.nodes.gpu_node_verify) and of the cluster, and
    V(unverified) why hosts are not verified that P(kubegpu.nodes.gpu_hosts#filter) returns with
    V(unverified).
positional: _input, what, hostvars
options:
  _input:
    description: Names of hosts.
    type: list
    elements: str
    required: true
  what:
    description: The table.
    type: str
    choices:
      [plan, plan_failures, result, teardown, cluster, cluster_teardown, dra, verification,
      unverified]
    required: true
  hostvars:
    description: Ansible's C(hostvars).
    type: dict
    required: true
  run_tags:
    description: >-
      The tags of the run (C(ansible_run_tags)), with V(plan) and V(result). Steps that the playbook
      C(kubegpu.nodes.site) omits with these tags are left out, and named in C(warnings).
    type: list
    elements: str
    default: [all]
  skip_tags:
    description: The tags that the run skips (C(ansible_skip_tags)), with V(plan) and V(result).
    type: list
    elements: str
    default: []
  batch:
    description: The hosts of the batch (C(ansible_play_batch)), with V(result) and V(teardown).
    type: list
    elements: str
    default: []
  alive:
    description: >-
      The hosts that Ansible has not lost (C(ansible_play_hosts)), with V(result) and V(teardown).
      By default all hosts.
    type: list
    elements: str
  stop:
    description: >-
      Message of P(kubegpu.nodes.rollout#filter), with V(result) and V(teardown). If it is not
      empty, each host whose batch was not started has a row with it.
    type: str
    default: ''
  predicted:
    description: >-
      Whether the run was in check mode, with V(result). Driver and CUDA are then taken from the
      plans instead of the facts.
    type: bool
    default: false
  key:
    description: Variable in which each host has its list of layers, with V(verification).
    type: str
  more:
    description: >-
      Layers that were verified elsewhere, such as C(allocatable) and C(pod), with C(node) (a host's
      name; another name gets a separate row), C(layer), C(ok), C(cause), C(evidence), C(next_step)
      and C(proof). With V(verification).
    type: list
    elements: dict
    default: []
  layers:
    description: The columns, in order, with V(verification).
    type: list
    elements: str
    default: [pci, module, nvml, toolkit, runtime, allocatable, pod]
  missing:
    description: The text for a host without layers, with V(verification).
    type: str
    default: the node could not be read
seealso:
  - module: kubegpu.nodes.fleet_table
"""

EXAMPLES = r"""
- name: Show what would be done
  kubegpu.nodes.fleet_table:
    columns: [{key: node, title: Node}, {key: changes, title: Change}, {key: why, title: Why}]
    rows: "{{ ansible_play_hosts_all | kubegpu.nodes.gpu_report('plan', hostvars) }}"
  run_once: true

- name: Verify each node
  kubegpu.nodes.gpu_node_verify:
  register: seen

- name: Store the layers
  ansible.builtin.set_fact:
    verified: "{{ seen.layers }}"

- name: Show them
  kubegpu.nodes.fleet_table:
    title: Verification
    columns:
      - {key: node, title: Node}
      - {key: nvml, title: NVML}
      - {key: runtime, title: Runtime}
    rows: >-
      {{
        ansible_play_hosts_all
        | kubegpu.nodes.gpu_report('verification', hostvars, key='verified')
      }}
    notes: causes
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - With V(plan) C(node), C(os), C(gpus), C(present), C(action) (none, change, refuse or unknown),
      C(steps), C(changes), C(why) and C(warnings) of each host; and the plans of the roles, in
      C(driver), C(cuda) and C(toolkit).
    - With V(plan_failures) C(node) and C(message).
    - With V(result) C(node), C(driver), C(cuda), C(toolkit), C(containerd), C(docker), C(crio) and
      C(open), what is still to be done.
    - With V(teardown) C(node), C(gpus), C(steps), C(changes), C(why) and C(open), what is still to
      be done.
    - With V(cluster) one row for each host that the cluster has or should have, and one for the
      device plugin, with C(node), C(kubernetes) (the node's name there), C(changes) and C(why).
      V(cluster_teardown) has the same keys.
      With an enabled DRA driver, or V(dra), one row for it, and one for the preconditions of the
      cluster and of each node.
    - With V(unverified) C(node), C(why) and C(next_step).
    - With V(verification) C(node); the name of each layer with V(ok), V(failed), V(not tried) or
      V(null) (nothing is known of it); C(result), the same for all of them; C(failed); C(causes), a
      sentence with evidence and next step for each failure; C(not_tried), why; C(proof), what was
      shown and how; and C(layers), all that was given. Of a host without a GPU C(pci) is V(no GPU),
      and so is C(result) if nothing else is known of it.
  type: list
  elements: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError


def gpu_report(
    hosts: Sequence[str], what: str, hostvars: Mapping[str, Mapping[str, Any]], **options: Any
) -> list[dict[str, Any]]:
    """Return the rows of a table."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import LAYERS
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.hosts import TABLES

    if what not in TABLES:
        raise AnsibleFilterError(f"gpu_report: {what!r} is none of {', '.join(TABLES)}.")
    unknown = [layer for layer in options.get("layers") or () if layer not in LAYERS]
    if unknown:
        raise AnsibleFilterError(
            f"gpu_report: unknown layer {', '.join(unknown)}. Next step: name some of "
            f"{', '.join(LAYERS)}."
        )
    return TABLES[what](hosts, hostvars, **options)


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_report": gpu_report}
