# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: fleet_rows
short_description: Collect the rows that the hosts keep
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Returns one row a host for M(kubegpu.nodes.fleet_table). A host that failed before it had a row
    gets one that says so.
positional: _input, hostvars, key, missing
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
  key:
    description: Name of the variable in which each host keeps its row.
    type: str
    required: true
  missing:
    description: What is said of a host that has no row.
    type: str
    default: the node could not be read
"""

EXAMPLES = r"""
- name: Show what is there
  kubegpu.nodes.fleet_table:
    columns: [{key: node, title: Node}, {key: gpus, title: GPUs}]
    rows: "{{ ansible_play_hosts_all | kubegpu.nodes.fleet_rows(hostvars, 'kubegpu_plan') }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: The rows, in the order of the hosts.
  type: list
  elements: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def fleet_rows(
    hosts: Sequence[str],
    hostvars: Mapping[str, Mapping[str, Any]],
    key: str,
    missing: str | None = None,
) -> list[dict[str, Any]]:
    """Return each host's row; ``missing`` is what one says that failed before."""
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.nodes import (
        fleet_rows as found,
    )

    return found(hosts, hostvars, key, *([missing] if missing else []))


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"fleet_rows": fleet_rows}
