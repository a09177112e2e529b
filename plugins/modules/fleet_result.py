# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fleet_result
short_description: Compute a result from the variables of several hosts (internal)
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - The playbooks and roles of this collection use it. Its options can change in any release.
  - Reads variables of the hosts on the controller. It connects to no node and changes nothing.
options:
  of:
    description:
      - V(cluster) checks that all hosts belong to the same Kubernetes cluster. It fails if
        C(kubeconfig), C(context), C(host) or C(delegate) in the variable C(kubegpu_kube), or the
        variable C(kubegpu_kube_namespace), of two hosts differ, or if C(kubegpu_kube.delegate) is a
        host that is not in the inventory. With C(deployed) it also fails if
        C(gpu_monitoring_enabled) of two hosts with GPUs, or C(nvidia_dra_driver_enabled) of two
        hosts with NVIDIA GPUs differ. The result has C(variables), and the hosts and vendors that
        decide on what is deployed.
      - V(verification) returns the rows of C(gpu_verify_result).
      - V(diagnosis) returns C(gpu_diagnose_result).
      - V(upgrade_draft) returns the plan of an upgrade before packages and drains were tried, with
        the nodes whose drain is tried, and V(upgrade_plan) C(gpu_upgrade_plan). V(upgrade_stop)
        returns why a batch is not started; the text is empty if it may be.
    type: str
    choices: [cluster, diagnosis, upgrade_draft, upgrade_plan, upgrade_stop, verification]
    required: true
  hosts:
    description: The hosts whose variables are read.
    type: list
    elements: str
    required: true
  given:
    description: What was read elsewhere, such as the answer of the cluster.
    type: dict
    default: {}
attributes:
  check_mode:
    description: Changes nothing.
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
- name: Check that all hosts belong to one cluster
  kubegpu.nodes.fleet_result:
    of: cluster
    hosts: "{{ ansible_play_hosts }}"
  register: cluster
  run_once: true
"""

RETURN = r"""
result:
  description: What O(of) names.
  returned: success
  type: raw
cause:
  description: What is wrong, with the name of the option or variable.
  returned: failure
  type: str
evidence:
  description: What shows it; may be empty.
  returned: failure
  type: str
next_step:
  description: What you can do; may be empty.
  returned: failure
  type: str
"""
