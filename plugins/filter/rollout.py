# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: rollout
short_description: Run a play in batches of hosts
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - V(serial) returns C(kubegpu_serial) for the keyword C(serial) of a play. Ansible evaluates that
    keyword without a host, so that it sees neither C(group_vars) nor C(host_vars). The value comes
    from M(kubegpu.nodes.fleet_variables). If hosts have different values, the one with the smallest
    largest batch is used. Percentages refer to the given hosts, which must be those of the play.
  - V(failure) returns from Ansible's C(ansible_failed_task) and C(ansible_failed_result) what is
    stored in C(kubegpu_failure) until the end of the run.
  - V(finding) returns the same as a finding of a report.
  - V(refusal) returns what is stored of a host that is refused before any change.
  - V(stop) returns why no further batch is started, if hosts of the play wait and more hosts of
    the batch failed than C(kubegpu_max_fail_percentage) allows. A host that was refused before any
    change does not count. Ansible's own C(max_fail_percentage) ends the whole run, with the plays
    that would have reported it.
  - V(message) returns what the last play of a run says of a host whose failures were only stored.
  - V(tags) returns those of the tags that a run selects, and V(roles) the roles of a host that the
    playbook C(site) runs with the tags of the run.
  - V(left_out) returns the refusal for a role whose condition leaves out the first host of the
    play, and with it all tasks that run once.
positional: _input, what, hostvars
options:
  _input:
    description: >-
      With V(serial) the hosts of the play, with V(stop) those of the batch
      (C(ansible_play_batch)), with V(failure) and V(finding) C(ansible_failed_task), with
      V(refusal) what C(kubegpu.nodes.gpu_hosts('wrong')) returns, with V(message) the stored
      failures of a host, with V(left_out) all hosts of the play, with V(tags) tags, with
      V(roles) the host.
    type: raw
    required: true
  what:
    description: What is returned.
    type: str
    choices: [serial, failure, finding, refusal, message, stop, left_out, tags, roles]
    required: true
  hostvars:
    description: >-
      Ansible's C(hostvars), with V(serial), V(stop) and V(roles). A host that failed has the fact
      C(kubegpu_failure), and a host whose batch was started C(kubegpu_begun).
    type: dict
    default: {}
  hosts:
    description: >-
      All hosts of the play (C(ansible_play_hosts)), with V(stop). The host, with V(message).
    type: list
    elements: str
    default: []
  select:
    description: >-
      Which of the hosts are those of the play, with V(serial), as in
      P(kubegpu.nodes.gpu_hosts#filter). By default all.
    type: str
  result:
    description: C(ansible_failed_result), with V(failure) and V(finding).
    type: dict
    default: {}
  task:
    description: With V(refusal), the name of the task that found it.
    type: str
    default: ''
  again:
    description: With V(finding), the end of its next step.
    type: str
    default: run again.
  changed:
    description: >-
      With V(failure), whether the node was changed before the task. A refused plan or value is then
      a failure like any other.
    type: bool
    default: false
  run_tags:
    description: C(ansible_run_tags), with V(tags) and V(roles).
    type: list
    elements: str
    default: [all]
  skip_tags:
    description: C(ansible_skip_tags), with V(tags) and V(roles).
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Work in batches
  hosts: gpus
  # ansible-playbook --syntax-check has no hostvars.
  serial: "{{ groups['gpus'] | kubegpu.nodes.rollout('serial', hostvars | default({})) }}"
  tasks:
    - name: Install the driver
      block:
        - name: Apply the plan
          ansible.builtin.import_role:
            name: kubegpu.nodes.nvidia_driver
      rescue:
        - name: Store the failure
          ansible.builtin.set_fact:
            kubegpu_failure: >-
              {{
                ansible_failed_task
                | kubegpu.nodes.rollout('failure', result=ansible_failed_result)
              }}
"""

RETURN = r"""
_value:
  description:
    - With V(serial) a number, a percentage or a list of these; V(100%) if no host has a value.
    - With V(failure) a dictionary of C(task), C(message), C(changed), which is true if the
      node was changed before the failure, and C(refused), which is true if the plan or a value is
      refused and nothing was changed, C(cause), and where they have a value C(evidence),
      C(next_step), C(code) and C(names). The cause of a message without these parts is its first
      line, and the other lines are the evidence.
    - With V(refusal) the same, and C(refusals), the list of what is refused.
    - With V(finding) a dictionary of C(code), C(severity), C(subject), C(cause), C(evidence) and
      C(next_step).
    - With V(message) a line for each failure.
    - With V(left_out) a dictionary of C(action), which is C(refuse), C(text) and C(refusals).
    - With V(tags) and V(roles) a list, which may be empty.
    - With V(stop) the message for the hosts that wait; empty if the next batch may start.
  type: raw
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

Hostvars = Mapping[str, Mapping[str, Any]]


def rollout(
    value: Any,
    what: str,
    hostvars: Hostvars | None = None,
    hosts: Sequence[str] = (),
    *,
    select: str | None = None,
    result: Mapping[str, Any] | None = None,
    changed: bool = False,
    task: str = "",
    again: str = "run again.",
    run_tags: Sequence[str] = ("all",),
    skip_tags: Sequence[str] = (),
) -> Any:
    """Return what a play in batches asks for."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import parts
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._reading import role_left_out
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._rollout import (
        failed_finding,
        failure,
        hosts_serial,
        hosts_stop,
        last_message,
        refusal,
        roles_to_run,
        selected,
    )

    if what == "serial":
        return hosts_serial(value, hostvars or {}, select)
    if what == "stop":
        return hosts_stop(value, hostvars or {}, hosts)
    if what == "failure":
        return failure(value, result or {}, changed)
    if what == "finding":
        return failed_finding(failure(value, result or {}), again)
    if what == "refusal":
        return refusal(task, value)
    if what == "message":
        return last_message(hosts[0], value)
    if what == "tags":
        return [tag for tag in value if selected(tag, run_tags, skip_tags)]
    if what == "roles":
        return roles_to_run((hostvars or {})[value[0]], run_tags, skip_tags)
    if what == "left_out":
        error = role_left_out(value)
        return {"action": "refuse", "text": str(error), "refusals": [parts(error)]}
    raise AnsibleFilterError(
        f"rollout: {what!r} is none of serial, failure, finding, refusal, message, stop, "
        "left_out, tags, roles."
    )


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"rollout": rollout}
