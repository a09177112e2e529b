#!/usr/bin/python
# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_builtin
short_description: Run a module of Ansible's own on a node, and take no facts from it (internal)
version_added: 0.1.0
description:
  - Runs one of five modules of Ansible's own on the node. The root user of a node can add facts to
    the result of any module, which are variables with C(inject_facts_as_vars). This action drops
    them.
  - Control characters in the messages and the output are escaped. A connection that is lost is a
    failure in the playbooks that work in batches, so that the other nodes are reported.
author:
  - kubegpu.nodes contributors (@kubegpu)
extends_documentation_fragment:
  - kubegpu.nodes.attributes
options:
  module:
    description: Name of the module, without C(ansible.builtin).
    type: str
    choices: [command, copy, file, slurp, stat]
    required: true
  arguments:
    description: Options of the module.
    type: dict
    required: true
attributes:
  check_mode:
    description: That of the module.
    support: full
  diff_mode:
    description: That of the module.
    support: full
  idempotent:
    description: As the module is.
    support: partial
seealso:
  - module: ansible.builtin.command
  - module: ansible.builtin.copy
  - module: ansible.builtin.file
  - module: ansible.builtin.slurp
  - module: ansible.builtin.stat
"""

EXAMPLES = r"""
- name: Find the record of an unfinished upgrade
  kubegpu.nodes.node_builtin:
    module: stat
    arguments:
      path: /var/lib/kubegpu/upgrade.json
"""

RETURN = r"""
stat:
  description: What V(stat) found.
  returned: with O(module=stat)
  type: dict
content:
  description: The content of a file in base64.
  returned: with O(module=slurp)
  type: str
rc:
  description: Exit status of a command.
  returned: with O(module=command)
  type: int
stdout:
  description: Output of a command.
  returned: with O(module=command)
  type: str
stderr:
  description: Error output of a command.
  returned: with O(module=command)
  type: str
"""
