# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_upgrade
short_description: Plan, order and judge a rolling upgrade of GPU nodes
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - The decisions of the role P(kubegpu.nodes.gpu_upgrade#role), which needs no node for them.
  - V(plan) returns what is done with each host, which pods leave, the batches, and all refusals.
    V(plan_rows) returns its table.
  - V(hosts) returns the hosts of the rolling play in the order of the batches, and V(serial) the
    sizes of these batches.
  - V(select) returns the hosts of a batch with one of O(outcomes).
  - V(stop) returns why the batch is not started.
  - V(taken) returns which pods left a node (C(evicted)) and what is wrong (C(findings)), and
    V(problem) the finding of a call that failed as a whole.
  - V(gate) returns the findings that keep a node from taking pods again, and V(rollback) whether
    the earlier versions could help.
  - V(not_saved) returns what is noted of a node whose packages were to be saved.
  - V(restored) returns the findings for what the rollback did not restore.
  - V(report) returns the content of the report, and V(report_rows) its table.
positional: _input, what, hostvars
options:
  _input:
    description: >-
      The hosts of the play; with V(select) and V(stop) those of the batch, with V(plan_rows) the
      plan, with V(report_rows) the report, with V(gate) the layers of the verification, with
      V(rollback) findings, with V(restored) the record of the node, with V(taken)
      results of M(kubegpu.nodes.gpu_node_maintenance), with V(problem) one of them, with
      V(not_saved) the result of M(kubegpu.nodes.package_set).
    type: raw
    required: true
  what:
    description: What is returned.
    type: str
    choices:
      [plan, plan_rows, hosts, serial, select, stop, taken, problem, not_saved, gate, rollback,
      restored, report, report_rows]
    required: true
  hostvars:
    description: Ansible's C(hostvars).
    type: dict
    default: {}
  options:
    description: The variables of the role without their prefix, with V(plan) and V(stop).
    type: dict
    default: {}
  cluster:
    description: >-
      The result of M(kubegpu.nodes.gpu_node_maintenance) for the hosts, with V(plan) and V(stop).
    type: dict
    default: {}
  nodes:
    description: >-
      All nodes of the cluster as M(kubegpu.nodes.gpu_cluster_info) returns them, with V(plan) and
      V(stop).
    type: dict
    default: {}
  drains:
    description: >-
      Results of M(kubegpu.nodes.gpu_node_maintenance) in check mode for drains, with V(plan).
    type: list
    elements: dict
    default: []
  rollbacks:
    description: >-
      Results of M(kubegpu.nodes.package_set) with C(state=available) by host, with V(plan).
    type: dict
    default: {}
  savable:
    description: >-
      Results of M(kubegpu.nodes.package_set) with C(state=saved) in check mode, for those that no
      repository has, by host, with V(plan).
    type: dict
    default: {}
  not_read:
    description: >-
      The hosts that were unreachable, or could not be read, when the run began, with V(plan).
    type: list
    elements: str
    default: []
  outcomes:
    description: Outcomes to select; an empty text is a host in work. With V(select).
    type: list
    elements: str
    default: ['']
  pods:
    description: Which pods leave the nodes to select, with V(select). By default any.
    type: list
    elements: str
  gates:
    description: What is judged, V(layers), V(health), V(pod) and V(dcgm), with V(gate).
    type: list
    elements: str
    default: [layers, health, pod]
  row:
    description: >-
      The node's row of M(kubegpu.nodes.gpu_node_maintenance), with V(gate). What is installed now,
      with V(restored).
    type: dict
  health:
    description: >-
      Results of M(kubegpu.nodes.gpu_node_health) after the change, with V(gate).
    type: list
    elements: dict
    default: []
  reboot:
    description: Why the node needs a reboot, with V(gate).
    type: str
    default: ""
  diag:
    description: >-
      The result of C(dcgmi diag) by M(ansible.builtin.command), with V(gate).
    type: dict
  boot:
    description: The boot of the node, which its kubelet has to report, with V(gate).
    type: str
    default: ""
  stay:
    description: The pods that stayed on the node, as V(taken) returns them, with V(gate).
    type: dict
  host:
    description: The host, with V(taken).
    type: str
  packages:
    description: The packages that a rollback would install, with their versions, with V(not_saved).
    type: dict
    default: {}
  rollback:
    description: The variable of the role, with V(not_saved).
    type: str
    default: try
  began:
    description: When the run began, with V(report).
    type: str
    default: ""
  ended:
    description: When the run ended, with V(report).
    type: str
    default: ""
  checked:
    description: Whether the run was in check mode, with V(report).
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Upgrade in batches
  hosts: "{{ groups['kubegpu_nvidia'] | kubegpu.nodes.gpu_upgrade('hosts', hostvars) }}"
  serial: "{{ groups['kubegpu_nvidia'] | kubegpu.nodes.gpu_upgrade('serial', hostvars) }}"
  roles:
    - kubegpu.nodes.gpu_upgrade
"""

RETURN = r"""
_value:
  description: >-
    With V(plan), V(report), V(taken), V(problem) and V(not_saved) a dictionary, with V(stop) a
    text, which is empty if the batch may be started, with V(rollback) a boolean, otherwise a list.
  type: raw
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

_OF_HOSTS = ("plan", "hosts", "serial", "select", "stop", "report")
_OF_RESULTS = (
    "plan_rows", "taken", "problem", "not_saved", "gate", "rollback", "restored", "report_rows",
)  # fmt: skip
Hostvars = Mapping[str, Mapping[str, Any]]


def gpu_upgrade(value: Any, what: str, hostvars: Hostvars | None = None, **given: Any) -> Any:
    """Return what the role asks for."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError

    if what not in (*_OF_HOSTS, *_OF_RESULTS):
        raise AnsibleFilterError(
            f"gpu_upgrade: {what!r} is none of {', '.join((*_OF_HOSTS, *_OF_RESULTS))}."
        )
    try:
        if what in _OF_HOSTS:
            return _of_hosts(what, value, hostvars or {}, given)
        return _of_results(what, value, given)
    except InputError as error:
        raise AnsibleFilterError(f"gpu_upgrade: {error}") from error


def _of_hosts(what: str, hosts: Sequence[str], hostvars: Hostvars, given: Mapping[str, Any]) -> Any:
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _upgrade

    if what == "plan":
        return _upgrade.plan_hosts(
            hosts,
            hostvars,
            given["options"],
            given.get("cluster") or {},
            given.get("nodes") or {},
            given.get("drains") or (),
            given.get("rollbacks") or {},
            given.get("savable") or {},
            given.get("not_read") or (),
        )
    if what == "hosts":
        return _upgrade.rolling_hosts(hosts, hostvars)
    if what == "serial":
        return _upgrade.rolling_sizes(hosts, hostvars)
    if what == "select":
        outcomes = given.get("outcomes", ("",))
        return _upgrade.select_hosts(hosts, hostvars, outcomes, given.get("pods"))
    if what == "stop":
        return _upgrade.stop_batch(
            hosts,
            hostvars,
            given["options"],
            given.get("cluster") or {},
            given.get("nodes") or {},
        )
    return _upgrade.report_hosts(
        hosts,
        hostvars,
        began=given.get("began") or "",
        ended=given.get("ended") or "",
        checked=bool(given.get("checked")),
    )


def _of_results(what: str, value: Any, given: Mapping[str, Any]) -> Any:
    from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade import gate, result

    if what == "gate":
        findings = gate.judge(
            given.get("gates", gate.GATES),
            row=given.get("row"),
            layers=value,
            health=given.get("health") or (),
            reboot=given.get("reboot") or "",
            diag=given.get("diag"),
            boot=given.get("boot") or "",
            stay=given.get("stay"),
        )
        return [finding.as_problem() for finding in findings]
    if what == "restored":
        missed = gate.judge_restored(value, given.get("row") or {})
        return [finding.as_problem() for finding in missed]
    if what == "rollback":
        return gate.calls_for_rollback(value)
    if what == "taken":
        return result.taken(value, given["host"])
    if what == "problem":
        return result.problem(value)
    if what == "not_saved":
        required = given.get("rollback") == "require"
        return result.not_saved(value, given.get("packages") or {}, required=required)
    return result.plan_rows(value) if what == "plan_rows" else result.rows(value)


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_upgrade": gpu_upgrade}
