# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: hosts_with
short_description: Select the hosts that have facts, or for which a variable is true
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes host names and returns those with the fact C(gpu_node), or those for which the variable
    O(key) is true. A host without the variable, for example because it failed before, is omitted.
  - A play for the selected hosts avoids conditions on each of its tasks, which would be skipped one
    by one.
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
    description: Name of the variable. By default, the fact C(gpu_node) decides.
    type: str
"""

EXAMPLES = r"""
- name: Change the nodes that differ
  # ansible-playbook --syntax-check has neither the groups of a run nor hostvars.
  hosts: >-
    {{
      groups['kubegpu_nvidia'] | default([])
      | kubegpu.nodes.hosts_with(hostvars | default({}), 'kubegpu_work')
    }}
  roles:
    - kubegpu.nodes.nvidia_driver
"""

RETURN = r"""
_value:
  description: The hosts, in their order.
  type: list
  elements: str
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._hosts import (
    hosts_with as _hosts_with,
)

_PLUGINS = "ansible_collections.kubegpu.nodes.plugins"
_FOR_PLANS = (
    "module_utils._cuda.options",
    "module_utils._cuda.plan",
    "module_utils._driver.options",
    "module_utils._driver.plan.plan",
    "module_utils._toolkit.options",
    "module_utils._toolkit.plan",
    "plugin_utils._report.nodes",
)


def hosts_with(
    hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]], key: str | None = None
) -> list[str]:
    """Return the hosts, and preload the modules that their plans need.

    Ansible evaluates a play's hosts before it forks a process for each task and host. A module
    imported here is loaded once, instead of once in each process.
    """
    found = _hosts_with(hosts, hostvars, key)
    for name in _FOR_PLANS if found else ():
        importlib.import_module(f"{_PLUGINS}.{name}")
    return found


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"hosts_with": hosts_with}
