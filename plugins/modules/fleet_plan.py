# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fleet_plan
short_description: Plan the parts of nodes (internal)
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - The playbooks and roles of this collection use it. Its options can change in any release. For
    your own playbooks there is P(kubegpu.nodes.gpu_plan#filter).
  - Plans what the roles would change, from the fact C(gpu_node) and the variables of each host. It
    runs on the controller and connects to no node.
options:
  hosts:
    description:
      - The hosts to plan, once for all of them, with C(run_once). A host without facts is left out.
      - If it is not given, the host of the task is planned, with the variables of the task and of
        its role.
    type: list
    elements: str
  parts:
    description: The names of the roles whose parts are planned together, or V(gpu_exporter), the
      exporter of a host without Kubernetes (P(kubegpu.nodes.gpu_monitoring#role)). If it is not
      given, the roles that apply to each host. A part that a cluster has once, such as
      C(nvidia_device_plugin), is named alone. Without O(hosts) the result is then what this host
      says of it, which its role registers; with them, the plan of the part for the hosts that said
      something.
    type: list
    elements: str
    choices: [nvidia_driver, nvidia_mig, cuda_toolkit, nvidia_container_toolkit, amd_driver,
      amd_container_toolkit, gpu_exporter, gpu_node_labels, nvidia_dra_driver, nvidia_device_plugin,
      amd_device_plugin, intel_device_plugin, gpu_monitoring]
  cluster:
    description: The result of M(kubegpu.nodes.gpu_cluster_info) for the hosts. Pods that use GPUs
      are a reason to refuse a MIG layout that interrupts them.
    type: dict
    default: {}
  state:
    description: Whether a part of a cluster is there or removed.
    type: str
    choices: [present, absent]
    default: present
attributes:
  check_mode:
    description: Does the same in check mode.
    support: full
  diff_mode:
    description: The module changes nothing.
    support: none
  idempotent:
    description: A second run does the same.
    support: full
  platform:
    description: Runs on the controller.
    platforms: posix
    support: full
"""

EXAMPLES = r"""
- name: Plan all hosts of the play
  kubegpu.nodes.fleet_plan:
    hosts: "{{ ansible_play_hosts }}"
  register: kubegpu_plans
  run_once: true
"""

RETURN = r"""
plan:
  description: The plan of a part of the cluster, which its role publishes.
  returned: if O(hosts) are given, or O(state=absent), for a part that a cluster has once
  type: dict
plans:
  description: By host and role, what P(kubegpu.nodes.gpu_plan#filter) returns. What is wrong with a
    host, such as a variable without a value, is a plan that refuses it.
  returned: success
  type: dict
"""
