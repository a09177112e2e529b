# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fleet_explain
short_description: Explain a log or an error in a file of the controller (internal)
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - The playbooks and roles of this collection use it. Its options can change in any release. In
    your own playbooks use the filter P(kubegpu.nodes.gpu_explain#filter).
  - The role P(kubegpu.nodes.gpu_diagnose#role) calls it. It connects to no node and changes
    nothing.
options:
  file:
    description: The file on the controller, of 64 MiB at most. A relative path begins at the folder
      of the inventory, then at the current folder.
    type: str
    required: true
  variable:
    description: The variable that names the file, for messages.
    type: str
    default: file
  facts:
    description: The fact C(gpu_node) of the node of the text.
    type: dict
  host:
    description: The name of that node.
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
- name: Explain a log
  kubegpu.nodes.fleet_explain:
    file: log.txt
  register: explained
  run_once: true
"""

RETURN = r"""
findings:
  description: The known faults, as the filter P(kubegpu.nodes.gpu_explain#filter) returns them.
  returned: success
  type: list
  elements: dict
rows:
  description: A row of a table for each of them.
  returned: success
  type: list
  elements: dict
otherwise:
  description: What to do if there is no fault that this collection knows; empty if there is one.
  returned: success
  type: str
cause:
  description: What is wrong, with the name of the file, option or package.
  returned: failure
  type: str
evidence:
  description: What shows it, such as a line of a log; may be empty.
  returned: failure
  type: str
next_step:
  description: What you can do; may be empty.
  returned: failure
  type: str
"""
