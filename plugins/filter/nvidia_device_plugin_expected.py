# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: nvidia_device_plugin_expected
short_description: Calculate the GPU resources that a node should offer
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Returns the expected allocatable resources of a node with NVIDIA's device plugin, which are its
    GPUs from M(kubegpu.nodes.gpu_node_facts), multiplied by the replicas of its config.
  - Without MIG devices, the GPUs on the PCI bus are counted, except those bound to vfio. With a MIG
    strategy, the facts must come from a node with a running driver.
positional: _input
options:
  _input:
    description: The fact C(gpu_node).
    type: dict
    required: true
  options:
    description: The options of P(kubegpu.nodes.nvidia_device_plugin#role), without its prefix.
    type: dict
    default: {}
  config:
    description: The config of the node; empty for the default one.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: See how many GPUs a pod can ask for on this node
  ansible.builtin.debug:
    msg: >-
      {{ ansible_facts['gpu_node'] | kubegpu.nodes.nvidia_device_plugin_expected(
           options={'configs': nvidia_device_plugin_configs}, config='shared4') }}
"""

RETURN = r"""
_value:
  description: >-
    The number of each resource, such as C({'nvidia.com/gpu': 8}). Null if the facts do not
    determine it.
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError


def nvidia_device_plugin_expected(
    gpu_node: Mapping[str, Any], options: Mapping[str, Any] | None = None, config: str = ""
) -> dict[str, int] | None:
    """Return the number of each resource."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
    from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.resources import (
        expected_nvidia,
    )
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._plan_filters import check_call

    check_call("nvidia_device_plugin_expected", gpu_node)
    try:
        return expected_nvidia(gpu_node, options or {}, config)
    except KubegpuError as error:
        raise AnsibleFilterError(f"nvidia_device_plugin_expected: {error}") from error


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"nvidia_device_plugin_expected": nvidia_device_plugin_expected}
