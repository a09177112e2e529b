# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_acceptance
short_description: Plan and judge the acceptance of GPU nodes
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - The decisions of the role P(kubegpu.nodes.gpu_acceptance#role), which needs no node for them.
  - V(plan) returns what is done with a host, and why. V(plan_rows) returns the table of all hosts.
  - V(hosts) returns the hosts that are tested, V(leaving) those that are drained, V(released) those
    that are released.
  - V(drained), V(judged), V(after_release) and V(failed) return the result of a host after a stage
    of its acceptance.
  - V(before_tests) returns what blocks a host that was drained, V(begun) what its record
    has while its tests run.
  - V(record) returns what the record of a host keeps of its result.
  - V(marks) returns labels, annotations and taints of the node of a host, and the keys of taints
    that go.
  - V(report) returns the content of the report, V(report_rows) its table.
positional: _input, what, hostvars
options:
  _input:
    description: >-
      The hosts of the play; with V(plan), V(begun) and V(marks) the fact C(gpu_node), with
      V(before_tests) the result of M(kubegpu.nodes.gpu_node_acceptance) with C(step=look), with
      V(record) and the stages the result of a host, with V(report_rows) the report.
    type: raw
    required: true
  what:
    description: What is returned.
    type: str
    choices:
      - plan
      - plan_rows
      - hosts
      - leaving
      - released
      - drained
      - judged
      - after_release
      - failed
      - before_tests
      - begun
      - record
      - marks
      - report
      - report_rows
    required: true
  hostvars:
    description: Ansible's C(hostvars).
    type: dict
    default: {}
  host:
    description: The host, with V(plan) and the stages.
    type: str
  options:
    description: The variables of the role without their prefix, with V(plan) and V(judged).
    type: dict
    default: {}
  looked:
    description: >-
      The result of M(kubegpu.nodes.gpu_node_acceptance) with C(step=look), with V(plan).
    type: dict
    default: {}
  cluster:
    description: The result of a maintenance module in check mode, with V(plan).
    type: dict
    default: {}
  plan:
    description: The plan of the host, with V(begun), V(judged) and V(after_release).
    type: dict
  gpu_node:
    description: The fact of the host, with V(judged).
    type: dict
  rows:
    description: The rows of the verification, with V(judged).
    type: list
    elements: dict
    default: []
  answers:
    description: Results of a maintenance module, the cordon first, with V(drained).
    type: list
    elements: dict
  answer:
    description: >-
      The result of a maintenance module, with V(after_release), or of a failed task, with
      V(failed).
    type: dict
  task:
    description: The failed task, with V(failed).
    type: dict
  health:
    description: >-
      Results of M(kubegpu.nodes.gpu_node_health) before the tests and after them, with V(judged).
    type: list
    elements: dict
    default: []
  tests:
    description: >-
      Results of M(kubegpu.nodes.gpu_node_acceptance) with C(step=test), with V(judged).
    type: list
    elements: dict
    default: []
  required:
    description: Whether a node takes no pods before it is accepted, with V(marks) and V(released).
    type: bool
    default: false
  at:
    description: The time, with V(begun), V(judged) and V(report).
    type: str
    default: ""
  checked:
    description: Whether the run was in check mode, with V(report).
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Show what marks a node by its acceptance
  ansible.builtin.debug:
    msg: "{{ ansible_facts['gpu_node'] | kubegpu.nodes.gpu_acceptance('marks', required=true) }}"
"""

RETURN = r"""
_value:
  description: >-
    With V(hosts), V(leaving), V(released), V(plan_rows) and V(report_rows) a list, otherwise a
    dictionary.
  type: raw
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

_OF_HOSTS = ("plan_rows", "hosts", "leaving", "released", "report")
_OF_ONE = (
    *("plan", "before_tests", "begun", "drained", "judged", "after_release", "failed"),
    *("record", "marks", "report_rows"),
)
Hostvars = Mapping[str, Mapping[str, Any]]


def gpu_acceptance(value: Any, what: str, hostvars: Hostvars | None = None, **given: Any) -> Any:
    """Return what the role asks for."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError

    if what not in (*_OF_HOSTS, *_OF_ONE):
        raise AnsibleFilterError(
            f"gpu_acceptance: {what!r} is none of {', '.join((*_OF_HOSTS, *_OF_ONE))}."
        )
    try:
        if what in _OF_HOSTS:
            return _of_hosts(what, value, hostvars or {}, given)
        return _of_one(what, value, given)
    except InputError as error:
        raise AnsibleFilterError(f"gpu_acceptance: {error}") from error


def _of_hosts(what: str, hosts: Sequence[str], hostvars: Hostvars, given: Mapping[str, Any]) -> Any:
    from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance import result
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _acceptance

    if what == "plan_rows":
        return result.plan_rows(_acceptance.plans(hosts, hostvars))
    if what == "hosts":
        return _acceptance.tested_hosts(hosts, hostvars)
    if what == "leaving":
        return _acceptance.leaving_hosts(hosts, hostvars)
    if what == "released":
        return _acceptance.released(hosts, hostvars, tainted=bool(given.get("required")))
    return _acceptance.report_hosts(
        hosts, hostvars, ended=given.get("at") or "", checked=bool(given.get("checked"))
    )


def _of_one(what: str, value: Any, given: Mapping[str, Any]) -> Any:
    from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance import (
        marks,
        result,
        stages,
    )
    from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.result import taken
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _acceptance

    if what == "plan":
        return _acceptance.plan(
            given["host"],
            value,
            given["options"],
            given.get("looked") or {},
            given.get("cluster") or {},
        )
    if what == "drained":
        return _acceptance.drained(value, given["answers"], given["host"])
    if what == "after_release":
        findings = taken([given["answer"]], given["host"])["findings"]
        return stages.released(value, findings, given["plan"])
    if what == "failed":
        return _acceptance.failed(value, given["task"], given["answer"])
    if what == "before_tests":
        return result.before_tests(value)
    if what == "begun":
        return result.begun(given["plan"], value, at=given["at"])
    if what == "judged":
        return _acceptance.judged(value, given["host"], given)
    if what == "record":
        return result.record(value)
    if what == "marks":
        return marks.marks(value, required=bool(given.get("required")))
    return result.rows(value)


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_acceptance": gpu_acceptance}
