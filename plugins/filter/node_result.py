# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: node_result
short_description: Describe one node after a run
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Makes the row of a report from the plan of P(kubegpu.nodes.container_toolkit_plan#filter) and
    the answers of the runtime modules. See M(kubegpu.nodes.fleet_table) for showing it.
positional: _input
options:
  _input:
    description: The plan that was carried out.
    type: dict
    required: true
  name:
    description: The node's name in the inventory.
    type: str
    required: true
  containerd:
    description: Answer of M(kubegpu.nodes.containerd_runtime), where it ran.
    type: dict
  docker:
    description: Answer of M(kubegpu.nodes.docker_runtime), where it ran.
    type: dict
"""

EXAMPLES = r"""
- name: Keep the node's result
  ansible.builtin.set_fact:
    result_row: "{{ toolkit_plan | kubegpu.nodes.node_result(name=inventory_hostname) }}"
"""

RETURN = r"""
_value:
  description: C(node), C(toolkit), C(containerd), C(docker) and C(open), what is still to be done.
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._node_plan import (
    node_result as _node_result,
)


def node_result(
    toolkit: Mapping[str, Any],
    name: str,
    containerd: Mapping[str, Any] | None = None,
    docker: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the row of one node."""
    results = {
        engine: answer
        for engine, answer in (("containerd", containerd), ("docker", docker))
        if answer and not answer.get("skipped")
    }
    return _node_result(name, toolkit, results)


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"node_result": node_result}
