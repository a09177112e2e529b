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
      config that it chooses, or empty; C(node), its name in Kubernetes; C(match), V(name) where it
      is not found by machine id; C(wishes), how this host sees the options, which has to be the
      same for all; C(default_runtime), where this run knows newer than the facts, the default
      runtimes of C(containerd) and C(docker); C(planned), whether this run is about to set up the
      runtime; C(cdi), whether the role P(kubegpu.nodes.nvidia_container_toolkit#role) switches CDI
      on there.
    type: dict
    required: true
  method:
    description: How it is installed.
    type: str
    choices: [manifest, helm]
    default: manifest
  chart_version:
    description: The chart's version, by which it is known what its values can say; with V(helm).
    type: str
    default: ''
  facts:
    description: The fact C(gpu_node) by name of the host, where it is not in O(hosts).
    type: dict
    default: {}
  existing:
    description: >-
      Objects that the cluster has, of the kinds Namespace, RuntimeClass and DaemonSet. A namespace
      and a RuntimeClass of somebody else are left as they are.
    type: list
    elements: dict
    default: []
  others:
    description: >-
      Operators and device plugins of somebody else that the cluster has, in words. With one,
      nothing is applied.
    type: list
    elements: str
    default: []
  login:
    description: >-
      What the login for the image has, by name (C(registry), C(username), C(password)) and without
      the values; empty where there is none.
    type: list
    elements: str
    default: []
  teardown:
    description: Whether all of it goes.
    type: bool
    default: false
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
    C(action) (apply, refuse, or leave to C(others)), C(objects) and C(absent) (what is applied and
    removed), C(values) (those of the chart), C(runtime_class), C(expected) (by host, as
    M(kubegpu.nodes.gpu_cluster_info) takes it), C(unknown) (hosts of which that cannot be told, and
    why), C(refusals) (C(host), C(cause), C(evidence), C(next_step)), C(text) (the same as text),
    C(warnings) and C(reasons).
  type: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError


def nvidia_device_plugin_plan(
    wishes: Mapping[str, Any],
    hosts: Mapping[str, Mapping[str, Any]],
    method: str = "manifest",
    chart_version: str = "",
    facts: Mapping[str, Mapping[str, Any]] | None = None,
    existing: Sequence[Mapping[str, Any]] = (),
    others: Sequence[str] = (),
    login: Sequence[str] = (),
    teardown: bool = False,
) -> dict[str, Any]:
    """Return the plan as JSON values."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.plan import plan

    known = facts or {}
    rows = {
        name: {"gpu_node": known.get(name), **row} if name in known else row
        for name, row in hosts.items()
    }
    lost = [name for name, row in rows.items() if not row.get("gpu_node")]
    if lost:
        raise AnsibleFilterError(
            f"nvidia_device_plugin_plan needs the fact gpu_node of {', '.join(lost)}. Next step: "
            "run kubegpu.nodes.gpu_node_facts on the hosts first."
        )
    return plan(
        wishes,
        rows,
        method=method,
        chart_version=str(chart_version),
        existing=existing,
        others=others,
        login=login,
        teardown=teardown,
    )


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"nvidia_device_plugin_plan": nvidia_device_plugin_plan}
