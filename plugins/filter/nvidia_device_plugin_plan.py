# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: nvidia_device_plugin_plan
short_description: Plan NVIDIA's device plugin for a whole cluster
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes the options of P(kubegpu.nodes.nvidia_device_plugin#role) and what is known of the hosts,
    and returns the objects that are applied and removed, and what each node has to show then.
  - Nothing is read and nothing is changed. A refusal is a value, not an error; with one there is
    nothing to apply.
positional: _input, hosts
options:
  _input:
    description: The options of the role, without its prefix.
    type: dict
    required: true
  hosts:
    description: >-
      By name of the host: C(gpu_node), the facts of M(kubegpu.nodes.gpu_node_facts); C(config), the
      config that it chooses, or empty; C(wishes), how this host sees the options, which has to be
      the same for all; C(default_runtime), where this run knows newer than the facts, the default
      runtimes of C(containerd) and C(docker); C(planned), whether this run is about to set up the
      runtime.
    type: dict
    required: true
  method:
    description: How it is installed.
    type: str
    choices: [manifest, helm]
    default: manifest
  existing:
    description: >-
      Objects that the cluster has, of the kinds Namespace, RuntimeClass and DaemonSet.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Plan for the hosts of this play
  ansible.builtin.set_fact:
    plan: >-
      {{ {'configs': nvidia_device_plugin_configs}
         | kubegpu.nodes.nvidia_device_plugin_plan(
             {inventory_hostname: {'gpu_node': ansible_facts['gpu_node'], 'config': ''}}) }}
"""

RETURN = r"""
_value:
  description: >-
    C(action) (apply or refuse), C(objects) and C(absent) (what is applied and removed), C(values)
    (those of the chart), C(runtime_class), C(expected) (by host, C(machine_id) and C(resources)),
    C(unknown) (hosts of which that cannot be told, and why), C(refusals) (C(host), C(cause),
    C(evidence), C(next_step)), C(text) (the same as text), C(warnings) and C(reasons).
  type: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin_plan import plan


def nvidia_device_plugin_plan(
    wishes: Mapping[str, Any],
    hosts: Mapping[str, Mapping[str, Any]],
    method: str = "manifest",
    existing: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the plan as JSON values."""
    return plan(wishes, hosts, method=method, existing=existing)


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"nvidia_device_plugin_plan": nvidia_device_plugin_plan}
