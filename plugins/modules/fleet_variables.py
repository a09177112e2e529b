# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fleet_variables
short_description: Check the variables of all hosts of a play (internal)
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - The playbooks and roles of this collection use it. Its options can change in any release.
  - Reports variables with the prefix of a role or of the playbooks of this collection that nothing
    reads. Each is reported once for all hosts, with the most similar known name.
  - Checks values, and the keys of mappings such as C(kubegpu_kube), against the argument
    specifications of the roles, so that the plan can refuse the hosts that have a wrong value. A
    wrong value of a variable of the playbooks fails the task, because it affects the whole run.
  - Use it with C(run_once). It runs on the controller and connects to no node.
options:
  hosts:
    description: The hosts whose variables are checked.
    type: list
    elements: str
    required: true
  reads:
    description: Whether files of the controller that variables name (keys, the licence token,
      runfiles) have to be there. A host without one of its files has a wrong value.
    type: bool
    default: false
  plans_cluster:
    description: Whether the playbook plans what a cluster gets. If so, a warning names variables
      of clusters where no host has C(kubegpu_kube); addresses of images are left out.
    type: bool
    default: false
  writes:
    description:
      - Variables of the files and folders that the playbook writes on the controller, each with
        its default. What is there has to be missing or of the form that this collection writes. If
        it is not, the task fails.
    type: dict
    default: {}
    suboptions:
      kubegpu_plan_file:
        description: The rows of a plan.
        type: str
      gpu_verify_file:
        description: The result of a verification.
        type: str
      gpu_report_dir:
        description: The folder of a report.
        type: str
      gpu_upgrade_file:
        description: The report of an upgrade. Files of hooks are checked as well.
        type: str
      gpu_acceptance_file:
        description: The report of an acceptance.
        type: str
      gpu_diagnose_file:
        description: The result of a diagnosis.
        type: str
      gpu_diagnose_bundle_file:
        description: The support bundle.
        type: str
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
notes:
  - The variable C(kubegpu_unknown_variables) of the hosts or the play determines what happens with
    unknown names. V(warn), the default, warns, V(fail) fails, and V(ignore) does nothing. If hosts
    have different values, the strictest one applies.
  - A name that was meant as C(kubegpu_kube) fails as well, unless it is ignored, if a host that has
    it names no cluster.
  - Secrets are not checked. A value that depends on a variable which is not defined yet is left to
    its role.
"""

EXAMPLES = r"""
- name: Check the variables of all hosts
  kubegpu.nodes.fleet_variables:
    hosts: "{{ ansible_play_hosts }}"
  run_once: true
  register: variables
"""

RETURN = r"""
unknown:
  description: The names that are not variables of this collection, each with the most similar known
    name, or null.
  returned: always
  type: list
  elements: dict
  sample: [{"name": "nvidia_driver_kernel_modules", "nearest": "nvidia_driver_kernel_module"}]
wrong:
  description:
    - Wrong values by host, each with C(variable), C(part) (of the plan's table), C(message) (the
      message), and C(cluster), which is true if the value applies to nodes of a cluster only. A
      file that is missing has C(why). C(cause), C(evidence) and C(next_step) are the parts of the
      message. Hosts without wrong values are left out.
  returned: always
  type: dict
  sample:
    gpu1:
      - variable: nvidia_driver_source
        part: driver
        message: "nvidia_driver_source has to be one of auto, distro, nvidia, runfile."
        cause: "nvidia_driver_source has to be one of auto, distro, nvidia, runfile."
        evidence: "nvidia_driver_source: 'nvida'"
        next_step: ""
        names: {variable: nvidia_driver_source}
        cluster: false
outputs:
  description:
    - The absolute path of each file and folder that is written, by variable. The first host that
      sets it decides. Later tasks use it, because a node may return facts that override variables.
      A path that depends on a variable which is defined later is left out.
  returned: success
  type: dict
  sample: {"gpu_upgrade_file": "/home/me/kubegpu-upgrade.json"}
connections:
  description:
    - The variables of each host that name a cluster, such as C(kubegpu_kube), without tokens. Later
      tasks use them, as P(kubegpu.nodes.cluster_connection#filter) says.
  returned: success
  type: dict
  sample: {"gpu1": {"kubegpu_kube": {"kubeconfig": "/home/me/.kube/config"}}}
serials:
  description: The value of C(kubegpu_serial) of each host that sets it. From these,
    P(kubegpu.nodes.rollout#filter) selects the smallest batches for the hosts of a play.
  returned: success
  type: dict
  sample: {"gpu1": 4, "gpu2": "25%"}
max_fail_percentage:
  description: The smallest C(kubegpu_max_fail_percentage), 0 if no host sets it.
  returned: success
  type: float
  sample: 0.0
"""
