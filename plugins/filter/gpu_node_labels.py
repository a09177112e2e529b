# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_node_labels
short_description: Build the labels of a Kubernetes node from its hardware facts
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Returns the labels of a node with valid values; an empty mapping for a machine without a GPU.
  - C(kubegpu.nodes/gpu) is the vendor, and selects the nodes for the device plugin.
  - C(accelerator) is the model, such as V(nvidia-tesla-p100), without form factor and memory. A
    machine with several models has no such label, because a pod may get any of them.
  - The details are C(kubegpu.nodes/gpu.count), C(gpu.product), C(gpu.generation), C(gpu.memory) (in
    MiB, of the smallest GPU), C(driver.version), C(cuda.version) (the newest that the driver runs),
    C(mig) (V(enabled), V(disabled) or V(mixed), if the GPUs support it) and C(mig.devices).
    Unknown values, such as the memory without a driver, have no label.
  - The names that GPU feature discovery owns are C(nvidia.com/gpu.product), C(gpu.count),
    C(gpu.memory), C(gpu.family), C(mig.capable), C(cuda.driver.*), C(cuda.driver-version.*),
    C(cuda.runtime.*) and C(cuda.runtime-version.*).
    M(kubegpu.nodes.node_gpu_label) omits them if feature discovery is deployed.
positional: _input, accelerator_key
options:
  _input:
    description: The facts C(gpu_node) of M(kubegpu.nodes.gpu_node_facts).
    type: dict
    required: true
  accelerator_key:
    description: Name of the label with the model; empty for none.
    type: str
    default: accelerator
  details:
    description: Whether to add labels with details such as count, product, memory and driver.
    type: bool
    default: true
  discovery_names:
    description: Whether to add labels with the names of GPU feature discovery as well.
    type: bool
    default: true
  device_plugin_config:
    description: >-
      Name of the configuration of NVIDIA's device plugin for this node, for the label
      C(nvidia.com/device-plugin.config); empty for none.
    type: str
    default: ''
  extra:
    description: Further labels for a machine with a GPU, by name. They override the others.
    type: dict
    default: {}
  mig:
    description: >-
      Mode and MIG devices that GPUs will have when the labels are set, C(devices) as
      P(kubegpu.nodes.gpu_plan#filter) has them. GPUs that are not there have those of the facts.
    type: list
    elements: dict
    default: []
seealso:
  - module: kubegpu.nodes.node_gpu_label
"""

EXAMPLES = r"""
- name: Show the labels of this machine
  ansible.builtin.debug:
    msg: "{{ ansible_facts['gpu_node'] | kubegpu.nodes.gpu_node_labels }}"

- name: Show only the vendor label and the model under another name
  ansible.builtin.debug:
    msg: >-
      {{
        ansible_facts['gpu_node'] | kubegpu.nodes.gpu_node_labels(
          'cloud.example.com/gke-accelerator', details=false, discovery_names=false)
      }}
"""

RETURN = r"""
_value:
  description: The labels.
  type: dict
  sample:
    accelerator: nvidia-tesla-t4
    kubegpu.nodes/gpu: nvidia
    kubegpu.nodes/gpu.count: '4'
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError


def gpu_node_labels(
    gpu_node: Mapping[str, Any],
    accelerator_key: str | None = "accelerator",
    details: bool = True,
    discovery_names: bool = True,
    device_plugin_config: str | None = "",
    extra: Mapping[str, Any] | None = None,
    mig: Sequence[Mapping[str, Any]] | None = None,
) -> dict[str, str]:
    """Return the labels of :func:`node_labels`."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.options import read_arguments
    from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.desired import node_labels
    from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.options import (
        LABEL_ARGUMENTS,
    )
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._plan_filters import check_call

    check_call("gpu_node_labels", gpu_node)
    given = {
        "accelerator_key": accelerator_key or "",
        "details": details,
        "discovery_names": discovery_names,
        "device_plugin_config": device_plugin_config,
        "extra": extra,
        "mig": mig,
    }
    try:
        return node_labels(gpu_node, **read_arguments(LABEL_ARGUMENTS, given, "gpu_node_labels_"))
    except InputError as error:
        raise AnsibleFilterError(f"gpu_node_labels: {error}") from error


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_node_labels": gpu_node_labels}
