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
  crio:
    description: Answer of M(kubegpu.nodes.crio_runtime), where it ran. Where nothing differed, the
      facts tell what CRI-O has.
    type: dict
  gpu_node:
    description: The fact C(gpu_node) after the run, for what is there of driver and CUDA.
    type: dict
  driver:
    description: The driver's plan from these facts. Empty where the driver takes no part.
    type: dict
  driver_answer:
    description: Answer of M(kubegpu.nodes.nvidia_driver), where it ran.
    type: dict
  cuda:
    description: The plan of the CUDA toolkits that was carried out.
    type: dict
  predicted:
    description: Whether the run was one in check mode, so that driver and CUDA are those of the
      plans and not those of the facts.
    type: bool
    default: false
  toolkit_done:
    description: Whether the part of the container toolkit ran; without it the facts tell its
      version.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Keep the node's result
  ansible.builtin.set_fact:
    result_row: "{{ toolkit_plan | kubegpu.nodes.node_result(name=inventory_hostname) }}"
"""

RETURN = r"""
_value:
  description: C(node), C(driver), C(cuda), C(toolkit), C(containerd), C(docker), C(crio) and
    C(open), what is still to be done.
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any


def node_result(
    toolkit: Mapping[str, Any],
    name: str,
    containerd: Mapping[str, Any] | None = None,
    docker: Mapping[str, Any] | None = None,
    gpu_node: Mapping[str, Any] | None = None,
    *,
    driver: Mapping[str, Any] | None = None,
    driver_answer: Mapping[str, Any] | None = None,
    cuda: Mapping[str, Any] | None = None,
    crio: Mapping[str, Any] | None = None,
    predicted: bool = False,
    toolkit_done: bool = True,
) -> dict[str, Any]:
    """Return the row of one node."""
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.nodes import (
        node_result as _node_result,
    )

    results = {
        part: answer
        for part, answer in (
            ("driver", driver_answer),
            ("containerd", containerd),
            ("docker", docker),
            ("crio", crio),
        )
        if answer and not answer.get("skipped")
    }
    plans = {"driver": driver or {}, "cuda": cuda or {}, "toolkit": toolkit}
    return _node_result(
        name, plans, results, gpu_node or None, predicted=predicted, toolkit_done=toolkit_done
    )


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"node_result": node_result}
