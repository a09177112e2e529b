# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: hosts_with
short_description: Select the hosts whose node was read, or of which a variable is true
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes names of hosts and returns those whose node was read, or, with a name, whose variable is
    true. A host that has none, since it failed before, is left out.
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
    description: Name of the variable. Without it the fact C(gpu_node) is looked for.
    type: str
"""

EXAMPLES = r"""
- name: Nodes on which something is to be done
  # ansible-playbook --syntax-check knows neither groups of a run nor hostvars.
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
    """Return the hosts, and import what plans of theirs need.

    A play's hosts are worked out before Ansible forks a process for each task and host. What is
    imported here is so once; each of those would compile it anew.
    """
    found = _hosts_with(hosts, hostvars, key)
    for name in _FOR_PLANS if found else ():
        importlib.import_module(f"{_PLUGINS}.{name}")
    return found


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"hosts_with": hosts_with}
