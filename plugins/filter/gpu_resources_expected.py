# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_resources_expected
short_description: Calculate the GPU resources of all vendors that a node should offer
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Returns the expected allocatable resources of a node with the device plugins of NVIDIA, AMD and
    Intel, from M(kubegpu.nodes.gpu_node_facts). A node without a GPU should offer none.
  - Without MIG devices, the GPUs of NVIDIA on the PCI bus are counted, except those bound to vfio.
    With a MIG strategy, the facts must come from a node with a running driver.
  - A vendor whose number the facts do not determine is left out, if the node has another one.
    O(unknown) returns these vendors, of which the node should offer at least one GPU each.
positional: _input
options:
  _input:
    description: The fact C(gpu_node).
    type: dict
    required: true
  nvidia:
    description: The options of P(kubegpu.nodes.nvidia_device_plugin#role), without its prefix.
    type: dict
    default: {}
  config:
    description: The node's config of NVIDIA's plugin; empty for the default one.
    type: str
    default: ""
  amd:
    description: The options of P(kubegpu.nodes.amd_device_plugin#role), without its prefix.
    type: dict
    default: {}
  intel:
    description: The options of P(kubegpu.nodes.intel_device_plugin#role), without its prefix.
    type: dict
    default: {}
  unknown:
    description: Whether to return the vendors whose number the facts do not determine instead.
    type: bool
    default: false
seealso:
  - plugin: kubegpu.nodes.gpu_plan
    plugin_type: filter
"""

EXAMPLES = r"""
- name: See what a pod can ask for on this node
  ansible.builtin.debug:
    msg: >-
      {{ ansible_facts['gpu_node'] | kubegpu.nodes.gpu_resources_expected(intel={'shared': 2}) }}
"""

RETURN = r"""
_value:
  description: >-
    The number of each resource, such as C({'amd.com/gpu': 8}). Null if the facts determine none of
    them. With O(unknown) a list, such as C([amd]).
  type: raw
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError


def gpu_resources_expected(
    gpu_node: Mapping[str, Any],
    nvidia: Mapping[str, Any] | None = None,
    config: str = "",
    amd: Mapping[str, Any] | None = None,
    intel: Mapping[str, Any] | None = None,
    unknown: bool = False,
) -> dict[str, int] | list[str] | None:
    """Return the number of each resource, or the vendors without a number."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
    from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.resources import (
        expected_resources,
        unknown_vendors,
    )
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._plan_filters import check_call

    check_call("gpu_resources_expected", gpu_node)
    given = {"nvidia": nvidia or {}, "amd": amd or {}, "intel": intel or {}}
    try:
        if unknown:
            return unknown_vendors(gpu_node, given, config)
        return expected_resources(gpu_node, given, config)
    except KubegpuError as error:
        raise AnsibleFilterError(f"gpu_resources_expected: {error}") from error


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_resources_expected": gpu_resources_expected}
