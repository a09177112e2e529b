# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fleet_fail
short_description: Fail a host with findings (internal)
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - The playbooks and roles of this collection use it. Its options can change in any release. In
    your own playbooks use M(ansible.builtin.fail).
  - The result has the parts of the first finding, which reports and tables show. It connects to no
    node and changes nothing.
options:
  findings:
    description: What is wrong, each with C(cause), C(evidence), C(next_step), C(code) and C(names),
      of which only the cause is required. With an empty list O(msg) is the cause.
    type: list
    elements: dict
    required: true
  msg:
    description: The message of the task instead of that of the findings.
    type: str
    default: ""
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
- name: Stop where the GPUs are not offered
  kubegpu.nodes.fleet_fail:
    findings:
      - cause: The device plugin does not run on the node.
        evidence: CrashLoopBackOff
        next_step: See its log.
"""

RETURN = r"""
cause:
  description: What is wrong, of the first finding.
  returned: always
  type: str
evidence:
  description: What shows it.
  returned: if the finding has it
  type: str
next_step:
  description: What you can do.
  returned: if the finding has it
  type: str
code:
  description: The code of the finding.
  returned: if the finding has it
  type: str
names:
  description: The names that were put into its texts.
  returned: if the finding has it
  type: dict
"""
