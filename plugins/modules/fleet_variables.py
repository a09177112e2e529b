# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fleet_variables
short_description: Look at the variables of all hosts of a play at once
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Names the variables that begin as those of a role of this collection, or of its playbooks, do
    and that nothing reads, each once for all hosts, with the nearest name that there is.
  - Checks the values that are set against the roles' argument specifications, so that a wrong one
    can be told as a refusal of the hosts that have it. One of the playbooks' own variables fails
    the task, since it counts for the whole run.
  - Use it with C(run_once). It runs on the controller, and no connection to a node is made.
options:
  hosts:
    description: The hosts whose variables are looked at.
    type: list
    elements: str
    required: true
attributes:
  check_mode:
    description: Looks in check mode as otherwise.
    support: full
  diff_mode:
    description: There is nothing to compare.
    support: none
  idempotent:
    description: A second run does the same.
    support: full
  platform:
    description: Runs on the controller.
    platforms: posix
    support: full
notes:
  - What is done about unknown names is said by the variable C(kubegpu_unknown_variables) of the
    hosts or of the play. V(warn), the default, warns, V(fail) fails and V(ignore) says nothing.
    Where hosts say different things, the strictest counts.
  - Secrets are not looked at. A value that is made of what is known only later is left to its role.
"""

EXAMPLES = r"""
- name: Look at the variables of all hosts
  kubegpu.nodes.fleet_variables:
    hosts: "{{ ansible_play_hosts }}"
  run_once: true
  register: variables
"""

RETURN = r"""
unknown:
  description: The names that nothing reads, with the nearest known one, or null.
  returned: always
  type: list
  elements: dict
  sample: [{"name": "nvidia_driver_kernel_modules", "nearest": "nvidia_driver_kernel_module"}]
wrong:
  description:
    - What is wrong, by host. C(variable), C(part) (of the plan's table), C(words), and C(cluster),
      which is whether it counts for nodes of a cluster only. Hosts of which all is right are left
      out.
  returned: always
  type: dict
  sample:
    gpu1:
      - variable: nvidia_driver_source
        part: driver
        words: "nvidia_driver_source has to be one of auto, distro, nvidia, runfile."
        cluster: false
serials:
  description: What C(kubegpu_serial) is for each host that says one. A play of a part of these
    hosts finds its own smallest batches in it, by P(kubegpu.nodes.rollout_serial#filter).
  returned: success
  type: dict
  sample: {"gpu1": 4, "gpu2": "25%"}
max_fail_percentage:
  description: The smallest C(kubegpu_max_fail_percentage), 0 where nobody says one.
  returned: success
  type: float
  sample: 0.0
"""
