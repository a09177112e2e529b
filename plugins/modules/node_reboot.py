#!/usr/bin/python
# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_reboot
short_description: Reboot a node, and report that it is waited for (internal)
version_added: 0.1.0
description:
  - The playbooks and roles of this collection use it. Its options can change in any release.
  - Reboots the node with the action of M(ansible.builtin.reboot). While it waits, it prints a line
    after 30 seconds and then once a minute, which M(ansible.builtin.reboot) does not.
author:
  - kubegpu.nodes contributors (@kubegpu)
extends_documentation_fragment:
  - kubegpu.nodes.attributes
options:
  msg:
    description: Message for the users of the node. It is put into a command line of root.
    type: str
    default: Reboot initiated by Ansible
  reboot_timeout:
    description: >-
      Seconds to wait until the node has rebooted, and the same again until it answers
      O(test_command).
    type: int
    default: 600
  connect_timeout:
    description: Seconds to wait for a connection, instead of the connection's own limit.
    type: int
  pre_reboot_delay:
    description: Seconds between the command and the reboot; less than a minute is none.
    type: int
    default: 0
  post_reboot_delay:
    description: Seconds to wait before the node is asked whether it has rebooted.
    type: int
    default: 0
  test_command:
    description: Command that the node answers when it has rebooted.
    type: str
    default: whoami
  boot_time_command:
    description: Command whose output differs after a reboot.
    type: str
    default: cat /proc/sys/kernel/random/boot_id
  reboot_command:
    description: Command that reboots the node. The default is C(shutdown) with its arguments.
    type: str
  search_paths:
    description: Where the command C(shutdown) is searched.
    type: list
    elements: str
    default: [/sbin, /bin, /usr/sbin, /usr/bin, /usr/local/sbin]
attributes:
  check_mode:
    description: Reports a change, and does not reboot.
    support: full
  diff_mode:
    description: A reboot has no diff.
    support: none
  idempotent:
    description: Each call is a reboot.
    support: none
seealso:
  - module: ansible.builtin.reboot
"""

EXAMPLES = r"""
- name: Reboot for the driver
  kubegpu.nodes.node_reboot:
    reboot_timeout: 1200
  become: true
"""

RETURN = r"""
rebooted:
  description: Whether the node has rebooted.
  returned: always
  type: bool
  sample: true
elapsed:
  description: Seconds that the reboot took.
  returned: always
  type: int
  sample: 93
"""
