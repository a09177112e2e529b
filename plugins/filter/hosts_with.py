# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: hosts_with
short_description: Select the hosts of which a variable is true
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes names of hosts and returns those whose variable is true. A host that has none, since it
    failed before, is left out.
  - It lets a play run on the hosts that need it, where a condition on each task would be skipped
    one by one.
positional: _input, hostvars, key
options:
  _input:
    description: Names of hosts.
    type: list
    elements: str
    required: true
  hostvars:
    description: Ansible's C(hostvars).
    type: dict
    required: true
  key:
    description: Name of the variable.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Nodes on which something is to be done
  hosts: "{{ groups['kubegpu_nvidia'] | kubegpu.nodes.hosts_with(hostvars, 'kubegpu_work') }}"
  roles:
    - kubegpu.nodes.nvidia_driver
"""

RETURN = r"""
_value:
  description: The hosts, in their order.
  type: list
  elements: str
"""

from collections.abc import Callable
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._node_plan import hosts_with


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"hosts_with": hosts_with}
