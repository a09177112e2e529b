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
  - V(plan) returns what is done with each host, which pods leave, the batches, and all refusals;
    V(draft) the same before packages and drains were tried. V(plan_rows) returns its table.
  - V(hosts) returns the hosts of the rolling play in the order of the batches, and V(serial) the
    sizes of these batches.
  - V(select) returns the hosts of a batch with one of O(outcomes).
  - V(stop) returns why the batch is not started.
  - V(drained), V(judged), V(not_restored), V(released), V(failed) and V(ended) return the result of
    a host after a stage of its upgrade, and V(rollback) whether the earlier versions could help.
  - V(row) returns what a host without Kubernetes is.
  - V(software) returns the packages that are saved of a node, and those that a rollback installs.
  - V(lease) returns after how many seconds another run may take over the Lease.
  - V(not_saved) returns what is noted of a node whose packages were to be saved.
  - V(restored) returns the findings for what the rollback did not restore.
  - V(report) returns the content of the report, and V(report_rows) its table.
positional: _input, what, hostvars
options:
  _input:
    description: >-
      The hosts of the play; with V(select) and V(stop) those of the batch, with V(plan_rows) the
      plan, with V(report_rows) the report, with V(rollback) findings, with V(restored) the record
      of the node, with V(not_saved) the result of M(kubegpu.nodes.package_set), with V(row) that of
      M(kubegpu.nodes.gpu_host_maintenance), with V(software) the fact C(gpu_node), with V(lease)
      the limits of the role; with a stage the result of the host.
    type: raw
    required: true
  what:
    description: What is returned.
    type: str
    choices:
      [plan, draft, plan_rows, hosts, serial, select, stop, drained, judged, not_restored, released,
      failed, ended, row, software, lease, not_saved, rollback, restored, report, report_rows]
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
  registered:
    description: >-
      The names under which each host has registered its C(rollbacks), the result of
      M(kubegpu.nodes.package_set) with C(state=available), its C(savable), that with C(state=saved)
      in check mode, and, without a cluster, its C(drains). With V(plan).
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
  host:
    description: The host, with the stages and V(row).
    type: str
  answers:
    description: >-
      Results of M(kubegpu.nodes.gpu_node_maintenance), or of M(kubegpu.nodes.gpu_host_maintenance)
      with O(without_cluster), with V(drained).
    type: list
    elements: dict
  without_cluster:
    description: Whether the host is no node of a cluster, with V(drained).
    type: bool
    default: false
  answer:
    description: >-
      The result of a module: of a failed task, with V(failed), of
      M(kubegpu.nodes.runtime_configuration), with V(not_restored), or of the release, with
      V(released).
    type: dict
  task:
    description: The failed task, with V(failed).
    type: dict
  code:
    description: The code of the finding, with V(failed).
    type: str
    default: task_failed
  good:
    description: The outcome of a node that passes, with V(judged).
    type: str
  to:
    description: The versions that are installed now, with V(judged).
    type: dict
  seen:
    description: >-
      What is judged, with V(judged): C(gates) of V(layers), V(health), V(pod) and V(dcgm), C(rows)
      of the verification, C(row) of the maintenance, C(boot), C(health), C(diag), and results of
      roles as C(changes).
    type: dict
  report:
    description: The content of the report, with V(ended).
    type: dict
  plans:
    description: The plans of the node, with V(software).
    type: dict
  batches:
    description: The batches of the plan, with V(lease).
    type: list
    elements: list
  row:
    description: What is installed now, with V(restored).
    type: dict
  packages:
    description: The packages that a rollback would install, with their versions, with V(not_saved).
    type: dict
    default: {}
  rollback:
    description: The variable of the role, with V(not_saved).
    type: str
    default: try
  began:
    description: When the run began, with V(plan).
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
    With V(plan), V(report), V(row), V(software), V(not_saved) and the stages a dictionary, with
    V(stop) a text, which is empty if the batch may be started, with V(rollback) a boolean, with
    V(lease) a number, otherwise a list.
  type: raw
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

_OF_HOSTS = ("plan", "draft", "hosts", "serial", "select", "stop", "report")
_STAGES = ("drained", "judged", "not_restored", "released", "failed", "ended")
_OF_RESULTS = (
    "plan_rows", "row", "software", "lease", "not_saved", "rollback", "restored", "report_rows",
)  # fmt: skip
Hostvars = Mapping[str, Mapping[str, Any]]


def gpu_upgrade(value: Any, what: str, hostvars: Hostvars | None = None, **given: Any) -> Any:
    """Return what the role asks for."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError

    known = (*_OF_HOSTS, *_STAGES, *_OF_RESULTS)
    if what not in known:
        raise AnsibleFilterError(f"gpu_upgrade: {what!r} is none of {', '.join(known)}.")
    try:
        if what in _OF_HOSTS:
            return _of_hosts(what, value, hostvars or {}, given)
        if what in _STAGES:
            return _stage(what, value, given)
        return _of_results(what, value, given)
    except InputError as error:
        raise AnsibleFilterError(f"gpu_upgrade: {error}") from error


def _of_hosts(what: str, hosts: Sequence[str], hostvars: Hostvars, given: Mapping[str, Any]) -> Any:
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _upgrade

    if what in ("plan", "draft"):
        tried = _upgrade.tried(hosts, hostvars, given) if what == "plan" else {}
        cluster = given.get("cluster") or {}
        return _upgrade.plan_hosts(hosts, hostvars, given["options"], cluster, **tried)
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
        ended=given.get("ended") or "",
        checked=bool(given.get("checked")),
    )


def _stage(what: str, result: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade import stages
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._upgrade import failed

    if what == "drained":
        without = bool(given.get("without_cluster"))
        return stages.drained(result, given["answers"], given["host"], without_cluster=without)
    if what == "judged":
        return stages.judged(result, given["host"], given["good"], given["to"], given["seen"])
    if what == "not_restored":
        return stages.not_restored(result, given["answer"])
    if what == "released":
        return stages.released(result, given["answer"], given["host"])
    if what == "failed":
        return failed(result, given.get("task"), given.get("answer"), given.get("code"))
    return stages.ended(result, given["report"], given["host"])


def _of_results(what: str, value: Any, given: Mapping[str, Any]) -> Any:
    from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade import (
        gate,
        result,
        stages,
    )

    if what == "row":
        return stages.row_of(value, given["host"])
    if what == "software":
        return stages.software(value, given["plans"])
    if what == "lease":
        return stages.lease_duration(value, given["batches"])
    if what == "restored":
        missed = gate.judge_restored(value, given.get("row") or {})
        return [finding.as_problem() for finding in missed]
    if what == "rollback":
        return gate.calls_for_rollback(value)
    if what == "not_saved":
        required = given.get("rollback") == "require"
        return result.not_saved(value, given.get("packages") or {}, required=required)
    return result.plan_rows(value) if what == "plan_rows" else result.rows(value)


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_upgrade": gpu_upgrade}
