# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: nvidia_mig_plan
short_description: Decide the MIG layout of a node
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes the facts of M(kubegpu.nodes.gpu_node_facts) and the requested configuration, and returns
    the layout of each GPU before and after, with the necessary changes and their reasons.
  - Reads and changes nothing. An unsatisfiable request and an invalid value of an option are
    returned as refusals; only an unknown option is an error. Programs that use a GPU are found by
    M(kubegpu.nodes.nvidia_mig) only.
  - The card's own list of profiles decides. Before its driver is loaded, a table of known cards
    predicts it.
  - The keyword arguments are the variables of the role P(kubegpu.nodes.nvidia_mig#role), without
    its prefix.
positional: _input
options:
  _input:
    description: The fact C(gpu_node).
    type: dict
    required: true
  config:
    description: The configuration, a name in O(configs) or a built-in one, see
      M(kubegpu.nodes.nvidia_mig); empty changes nothing.
    type: str
    default: ""
  configs:
    description: Configurations by name, in mig-parted's schema.
    type: dict
    default: {}
  driver_version:
    description: >-
      Version or branch of the driver that the same run installs first. If empty, the loaded driver.
    type: str
    default: ""
  reset:
    description: Whether a GPU may be reset whose mode is pending.
    type: bool
    default: true
  services:
    description: Units that are stopped during the change if they hold a GPU.
    type: list
    elements: str
    default:
      - nvidia-persistenced
      - nvsm
      - nvidia-dcgm
      - nvidia-dcgm-exporter
      - dcgm-exporter
      - kubegpu-dcgm-exporter
  at_boot:
    description: Whether a unit makes the layout at boot.
    type: bool
    default: true
  cluster:
    description:
      - The node as M(kubegpu.nodes.gpu_cluster_info) returns it in C(nodes). Pods on it that use
        GPUs are a reason to refuse a change that interrupts them, and the label
        C(nvidia.com/mig.config) one to refuse any change.
      - A mapping with C(error) alone is a cluster that could not be asked.
    type: dict
  beside_others:
    description: Change the node although NVIDIA's MIG manager is enabled on it.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Show the layout of each GPU before and after
  ansible.builtin.debug:
    msg: >-
      {{ (ansible_facts['gpu_node']
          | kubegpu.nodes.nvidia_mig_plan(config='all-balanced')).devices }}
"""

RETURN = r"""
_value:
  description: >-
    C(action) (none, change or refuse), C(change), C(partitions) (whether the layout of a GPU
    changes), C(interrupts) (whether a mode changes or an instance is destroyed), C(reboot_reason)
    (the GPUs whose mode an earlier run set, and that wait for a reboot), C(devices) (for each GPU
    C(index), C(address), C(uuid), C(mode), C(before), C(after), C(destroy), C(create) and C(keep)
    with instances as profile and first memory slice, C(reboot_reason), and C(mig_mode) and
    C(mig_devices) as they are after the change, before any reboot), C(files) (written for the
    boot), C(stop) (services), C(steps), C(reasons), C(warnings) and C(notes) (what is left out,
    such as numbers of GPUs that the node does not have).
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any


def nvidia_mig_plan(gpu_node: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """Return the plan of :func:`plan_mig` as JSON values."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
    from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.options import (
        ARGUMENTS,
        read_options,
    )
    from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.plan import plan_mig
    from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.types import Plan
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._plan_filters import check_call

    cluster = options.pop("cluster", None)
    check_call("nvidia_mig_plan", gpu_node, options, ARGUMENTS)
    try:
        return plan_mig(gpu_node, read_options(options), cluster=cluster).to_json()
    except InputError as error:
        return Plan("refuse", reasons=tuple(str(error).splitlines())).to_json()


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"nvidia_mig_plan": nvidia_mig_plan}
