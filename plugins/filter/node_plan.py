# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: node_plan
short_description: Describe one node and what would change on it
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Makes the row of a plan table from the facts of M(kubegpu.nodes.gpu_node_facts) and the plans of
    P(kubegpu.nodes.nvidia_driver_plan#filter), P(kubegpu.nodes.cuda_toolkit_plan#filter) and
    P(kubegpu.nodes.container_toolkit_plan#filter). See M(kubegpu.nodes.fleet_table) for showing it.
  - A refusal of one part does not hide what the others decided.
positional: _input
options:
  _input:
    description: The fact C(gpu_node); empty where the node could not be read.
    type: dict
    required: true
  name:
    description: The node's name in the inventory.
    type: str
    required: true
  driver:
    description: The plan for the driver. Empty where the driver takes no part.
    type: dict
  cuda:
    description: The plan for the CUDA toolkit. Empty where it takes no part.
    type: dict
  toolkit:
    description: The plan for container toolkit and runtimes.
    type: dict
  containerd:
    description: Answer of M(kubegpu.nodes.containerd_runtime) in check mode, where there is one.
      It replaces what the plan says of that engine.
    type: dict
  docker:
    description: The same of M(kubegpu.nodes.docker_runtime).
    type: dict
  crio:
    description: The same of M(kubegpu.nodes.crio_runtime).
    type: dict
  run_tags:
    description: The tags that the run is told, as in C(ansible_run_tags). Steps that a run of
      the playbook C(site) with these tags does not do are left out, and named in
      C(warnings).
    type: list
    elements: str
    default: [all]
  skip_tags:
    description: The tags that it is told to skip, as in C(ansible_skip_tags).
    type: list
    elements: str
    default: []
  wrong:
    description: Wrong values of the node's variables, as M(kubegpu.nodes.fleet_variables) returns
      them for it. The node is refused then, and nothing is planned for it.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Keep the node's row
  ansible.builtin.set_fact:
    plan_row: "{{ ansible_facts['gpu_node'] | kubegpu.nodes.node_plan(name=inventory_hostname) }}"
"""

RETURN = r"""
_value:
  description: >-
    C(node), C(os), C(gpus), C(present), C(action) (none, change, refuse or unknown), C(steps),
    C(changes), C(why) and C(warnings); and the plans as they were given, in C(driver), C(cuda) and
    C(toolkit).
  type: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def node_plan(
    gpu_node: Mapping[str, Any] | None,
    name: str,
    driver: Mapping[str, Any] | None = None,
    cuda: Mapping[str, Any] | None = None,
    toolkit: Mapping[str, Any] | None = None,
    containerd: Mapping[str, Any] | None = None,
    docker: Mapping[str, Any] | None = None,
    crio: Mapping[str, Any] | None = None,
    run_tags: Sequence[str] = ("all",),
    skip_tags: Sequence[str] = (),
    *,
    wrong: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the row of one node."""
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.nodes import (
        node_plan as _node_plan,
    )

    results = {
        engine: answer
        for engine, answer in (("containerd", containerd), ("docker", docker), ("crio", crio))
        if answer and not answer.get("skipped")
    }
    plans = {"driver": driver or {}, "cuda": cuda or {}, "toolkit": toolkit or {}}
    return _node_plan(name, gpu_node or None, plans, results, run_tags, skip_tags, wrong)


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"node_plan": node_plan}
