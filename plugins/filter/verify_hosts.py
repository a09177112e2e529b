# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: verify_hosts
short_description: Select the hosts that a verification covers
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Returns the hosts that have an NVIDIA GPU according to their facts, and hosts without facts.
    Hosts with C(gpu_verify_enabled=false) are omitted.
positional: _input, hostvars
options:
  _input:
    description: The hosts' names.
    type: list
    elements: str
    required: true
  hostvars:
    description: Ansible's C(hostvars).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the hosts
  ansible.builtin.debug:
    msg: "{{ ansible_play_hosts_all | kubegpu.nodes.verify_hosts(hostvars) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: Their names, in the same order.
  type: list
  elements: str
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean


def verify_hosts(hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the hosts with an NVIDIA GPU or without facts."""
    return [host for host in hosts if _counts(hostvars[host])]


def _counts(variables: Mapping[str, Any]) -> bool:
    if not boolean(variables.get("gpu_verify_enabled", True), strict=False):
        return False
    node = (variables.get("ansible_facts") or {}).get("gpu_node")
    return node is None or any(gpu["vendor"] == "nvidia" for gpu in node["gpus"])


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"verify_hosts": verify_hosts}
