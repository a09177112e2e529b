# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: rollout
short_description: What becomes of the hosts of a play in batches
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - The playbooks and roles of this collection use it. Of its values only V(serial), V(failure),
    V(stop) and V(message) are for other playbooks; the others can change in any release.
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
  - Values that begin with C(upgrade) are those of P(kubegpu.nodes.gpu_upgrade#role).
    V(upgrade_hosts) returns the hosts that are upgraded in the order of their batches,
    V(upgrade_serial) the sizes of these batches, V(upgrading) and V(upgrade_ended) the hosts of a
    batch that are in work and those that are released. The others return the result of a host after
    a stage, or what a stage needs of a host.
  - Values that begin with C(acceptance) are those of P(kubegpu.nodes.gpu_acceptance#role) in the
    same way. V(acceptance_hosts) returns the hosts that are tested, V(acceptance_leaving) those
    that are drained, V(acceptance_back) those that are released, and V(acceptance_marks) labels,
    annotations and taints of the node of a host.
  - V(diagnosis_failures) returns the hosts that P(kubegpu.nodes.gpu_diagnose#role) fails, and
    V(diagnosis_baselines) the GPUs of each host in an earlier result.
positional: _input, what, hostvars
options:
  _input:
    description: >-
      With V(serial) the hosts of the play, with V(stop) those of the batch
      (C(ansible_play_batch)), with V(failure) and V(finding) C(ansible_failed_task), with
      V(refusal) what C(kubegpu.nodes.gpu_hosts('wrong')) returns, with V(message) the stored
      failures of a host, with V(left_out) all hosts of the play, with V(tags) tags, with
      V(roles) the host. With the stages of a role hosts, or the result of a host.
    type: raw
    required: true
  what:
    description: What is returned.
    type: str
    choices:
      - serial
      - stop
      - failure
      - finding
      - refusal
      - message
      - tags
      - roles
      - left_out
      - upgrade_hosts
      - upgrade_serial
      - upgrading
      - upgrade_ended
      - upgrade_row
      - upgrade_software
      - upgrade_lease
      - upgrade_not_saved
      - upgrade_drained
      - upgrade_judged
      - upgrade_rollback
      - upgrade_restored
      - upgrade_not_restored
      - upgrade_released
      - upgrade_failed
      - upgrade_end
      - acceptance_hosts
      - acceptance_leaving
      - acceptance_back
      - acceptance_plan
      - acceptance_before_tests
      - acceptance_begun
      - acceptance_drained
      - acceptance_judged
      - acceptance_failed
      - acceptance_released
      - acceptance_record
      - acceptance_marks
      - diagnosis_baselines
      - diagnosis_failures
    required: true
  hostvars:
    description: >-
      Ansible's C(hostvars), where hosts are given. A host that failed has the fact
      C(kubegpu_failure), and a host whose batch was started C(kubegpu_begun).
    type: dict
  hosts:
    description: >-
      All hosts of the play (C(ansible_play_hosts)), with V(stop). The host, with V(message), and
      with V(failure), where a role that has changed it counts like O(changed).
    type: list
    elements: str
  select:
    description: >-
      Which of the hosts are those of the play, with V(serial), as in
      P(kubegpu.nodes.gpu_hosts#filter). By default all.
    type: str
  result:
    description: C(ansible_failed_result), with V(failure) and V(finding).
    type: dict
  task:
    description: With V(refusal), the name of the task that found it.
    type: str
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
  skip_tags:
    description: C(ansible_skip_tags), with V(tags) and V(roles).
    type: list
    elements: str
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
    - With the stages of a role a list of hosts, a dictionary, a number or a boolean.
    - With V(stop) the message for the hosts that wait; empty if the next batch may start.
  type: raw
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError


def rollout(
    value: Any,
    what: str,
    hostvars: Mapping[str, Mapping[str, Any]] | None = None,
    hosts: Any = None,
    **given: Any,
) -> Any:
    """Return what a play in batches, or a stage of a role, asks for."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._rollout import BATCHES

    known = BATCHES
    if what not in known:
        # They import much more.
        from ansible_collections.kubegpu.nodes.plugins.plugin_utils._stages import STAGES

        known = STAGES
    if what not in known:
        names = ", ".join((*BATCHES, *known))
        raise AnsibleFilterError(f"rollout: {what!r} is none of {names}.")
    named = {"hostvars": hostvars, "hosts": hosts}
    given.update({name: one for name, one in named.items() if one is not None})
    try:
        return known[what](value, **given)
    except InputError as error:
        raise AnsibleFilterError(f"rollout: {error}") from error


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"rollout": rollout}
