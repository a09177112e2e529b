# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_hosts
short_description: Select hosts by their GPUs, and by what the roles planned and changed
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes host names and returns those that O(select) names. It reads the fact C(gpu_node) of
    M(kubegpu.nodes.gpu_node_facts), the plans of M(kubegpu.nodes.fleet_plan) and the public facts
    of the roles, such as C(nvidia_driver_result).
  - A play for the selected hosts avoids conditions on each of its tasks, which would be skipped one
    by one. A host that is missing in O(hostvars) is omitted.
positional: _input, hostvars, select, fact
options:
  _input:
    description: Names of hosts.
    type: list
    elements: str
    required: true
  hostvars:
    description: Ansible's C(hostvars). C(ansible-playbook --syntax-check) has none.
    type: dict
    required: true
  select:
    description:
      - V(any) selects all hosts, and V(unread) those without facts of this collection, or with
        facts that are refused, which are named like variables of this collection or functions of
        templates. Whatever is selected, hosts with facts that are refused are the last ones.
      - V(facts) selects hosts with facts; V(nvidia) those with an NVIDIA GPU, V(amd) and V(intel)
        those with a GPU of that vendor that is not passed through to a virtual machine, V(gpu)
        those with any GPU, and V(none) those without one.
      - V(work) selects hosts on which the roles P(kubegpu.nodes.nvidia_driver#role),
        P(kubegpu.nodes.cuda_toolkit#role) or P(kubegpu.nodes.nvidia_container_toolkit#role) have
        something to do according to their plans; V(runtimes) those on which the modules of
        container runtimes have to be called for it; V(partitions) those of a cluster with a MIG
        layout to change, and V(mig_teardown) those whose record has a MIG layout to restore;
        V(waiting) those whose batch was not started.
      - V(amd_enabled) selects hosts with AMD GPUs for which AMD's driver or container toolkit is
        requested, V(amd_work) those on which the plan of P(kubegpu.nodes.amd_driver#role) or
        P(kubegpu.nodes.amd_container_toolkit#role) changes something, and V(amd_teardown) those
        that have a part of them.
      - V(failed) selects hosts with the fact C(kubegpu_failure), which the playbooks set, and
        V(not_failed) the others. V(not_kept) selects all but those that a teardown leaves as they
        are, because their MIG layout cannot be restored.
      - V(driver) selects hosts with a loaded driver that did not fail, and V(changed) those of them
        whose node, labels or device plugin this run changed, so that no reboot or restart is left
        to do; with C(gpu_verify_all), unchanged ones as well. V(unverified) selects the hosts that
        this run changed, and that wait for a reboot or the restart of a runtime. V(verified)
        selects the hosts of the table of a verification. These four omit hosts with
        C(gpu_verify_enabled=false). V(due) selects the hosts whose record has the mark that they
        have to be verified, which count as changed, V(begins) those without it that the steps of
        their plans change, and V(not_due) those with it whose driver is removed on request.
      - V(monitored) selects hosts with a GPU of any vendor that get an exporter of their own
        (C(gpu_monitoring_enabled)), V(monitoring_work) those on which the plan of
        P(kubegpu.nodes.gpu_monitoring#role) changes something, V(scraped) those whose plan is no
        refusal, and V(exporter) those on which this collection has set one up.
      - V(dra_enabled) selects hosts for which the DRA driver is requested
        (C(nvidia_dra_driver_enabled)), and V(cluster_parts) those for which a cluster gets
        monitoring (C(gpu_monitoring_enabled)) or the device plugin of AMD or Intel.
      - V(groups) returns the inventory groups of the hosts with facts, which are C(kubegpu_) with
        each vendor of the GPUs (C(kubegpu_nvidia), C(kubegpu_amd), C(kubegpu_intel),
        C(kubegpu_none)), C(kubegpu_gpu) for any of these vendors, C(kubegpu_cluster) if its
        variable C(kubegpu_kube) has C(kubeconfig) or C(host), and C(kubegpu_monitored) if it gets
        its own exporter. A host with a wrong value of a variable, as
        M(kubegpu.nodes.fleet_variables) found it and the playbook C(kubegpu.nodes.groups) keeps it,
        is in C(kubegpu_refused) and C(kubegpu_failed) instead. A host with a folder for reports
        (C(kubegpu_report_dir)) is in C(kubegpu_reported) as well. A host is in C(kubegpu_monitored)
        and C(kubegpu_reported) also if this depends on a variable that is not defined yet. A host
        that the playbook C(kubegpu.nodes.groups) could not read is in C(kubegpu_not_read) alone,
        and the first of those that it read is in C(kubegpu_first_read) as well then.
      - V(lost) selects the hosts that this playbook could not read, and V(endings) returns how the
        reads ended that failed or were left out, by host. V(refusals) returns the hosts
        that are refused for what it read of them, with C(host) and C(refusals), as it was not root
        that read them, or as two names of the inventory are one machine.
      - V(plan_failures) returns C(host) and C(message) of the hosts that the variable
        C(kubegpu_plan_fail_on) lets fail.
      - V(wrong) returns the entries of the hosts that are refused, as C(wrong) of
        M(kubegpu.nodes.fleet_variables) has them.
    type: str
    choices:
      [any, unread, facts, lost, refusals, nvidia, amd, intel, gpu, none, work, runtimes,
       partitions, mig_teardown, amd_enabled, amd_work, amd_teardown, waiting, failed, not_failed,
       not_kept, driver, changed, unverified, verified, groups, endings, wrong, monitored,
       monitoring_work, scraped, exporter, dra_enabled, cluster_parts, due, begins, not_due,
       plan_failures]
    default: facts
  fact:
    description: Return this variable of each selected host that has it, by host.
    type: str
    default: ""
seealso:
  - module: kubegpu.nodes.fleet_plan
"""

EXAMPLES = r"""
- name: Change the nodes that differ
  # ansible-playbook --syntax-check has neither the groups of a run nor hostvars.
  hosts: >-
    {{
      groups['kubegpu_nvidia'] | default([])
      | kubegpu.nodes.gpu_hosts(hostvars | default({}), 'work')
    }}
  roles:
    - kubegpu.nodes.nvidia_driver

- name: Group all hosts of the play
  hosts: all
  tasks:
    - name: Add the host to its groups
      ansible.builtin.add_host:
        name: "{{ item.host }}"
        groups: "{{ item.groups }}"
      loop: "{{ ansible_play_hosts | kubegpu.nodes.gpu_hosts(hostvars, 'groups') }}"
      changed_when: false
"""

RETURN = r"""
_value:
  description: >-
    The hosts, in their order, but for those whose facts are refused; with V(groups) C(host) and
    C(groups) of each, with V(refusals) C(host) and C(refusals); with V(endings) a mapping.
  type: list
  elements: raw
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError


def gpu_hosts(
    hosts: Sequence[str],
    hostvars: Mapping[str, Mapping[str, Any]],
    select: str = "facts",
    fact: str = "",
) -> list[Any] | dict[str, Any]:
    """Return the selected hosts, or a variable of each; preload what their plans need."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._host_variables import fact_of_hosts
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._hosts import (
        host_groups,
        select_hosts,
        wrong_values,
    )
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._preload import preload_plans

    if select == "groups":
        return host_groups(hosts, hostvars)
    if select in ("endings", "refusals"):
        from ansible_collections.kubegpu.nodes.plugins.plugin_utils._reading import (
            endings,
            refusals,
        )

        return endings(hosts, hostvars) if select == "endings" else refusals(hosts, hostvars)
    if select == "wrong":
        return [
            one for host in hosts if host in hostvars for one in wrong_values(host, hostvars[host])
        ]
    if select in ("changed", "unverified", "plan_failures"):
        from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report import hosts as report

        selects: Mapping[str, Callable[..., list[Any]]] = {
            "changed": report.changed_hosts,
            "unverified": report.unverified_hosts,
            "plan_failures": report.plan_failures,
        }
        return selects[select](hosts, hostvars)
    try:
        selected = select_hosts(hosts, hostvars, select)
    except InputError as error:
        raise AnsibleFilterError(f"gpu_hosts: {error}") from error
    if fact:
        return fact_of_hosts(selected, hostvars, fact)
    if selected:
        preload_plans(select)
    return selected


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_hosts": gpu_hosts}
