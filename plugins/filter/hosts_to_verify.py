# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: hosts_to_verify
short_description: Select the hosts to verify after a run
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes host names and returns those whose node, labels or device plugin this run changed, or all
    of them with C(gpu_verify_all) or O(every).
  - Hosts with C(gpu_verify_enabled=false), without a loaded driver or without facts are omitted.
positional: _input, hostvars
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
  every:
    description: Whether to return unchanged hosts as well.
    type: bool
    default: false
seealso:
  - plugin: kubegpu.nodes.hosts_with
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Verify what was changed
  hosts: >-
    {{
      groups['kubegpu_nvidia'] | default([])
      | kubegpu.nodes.hosts_to_verify(hostvars | default({}))
    }}
  roles:
    - kubegpu.nodes.gpu_verify
"""

RETURN = r"""
_value:
  description: The hosts, in their order.
  type: list
  elements: str
"""

from collections.abc import Callable
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._hosts import hosts_to_verify


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"hosts_to_verify": hosts_to_verify}
