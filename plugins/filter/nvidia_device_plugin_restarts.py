# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: nvidia_device_plugin_restarts
short_description: Find the device plugin's pods that are older than their container runtime
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - A pod keeps the runtime of its creation, even if its containers restart. After a change of the
    runtime or the driver, it must be replaced.
  - Returns the pods that are older than their node's runtime, or whose node this run changed.
positional: _input, hosts, node_of
options:
  _input:
    description: The plugin's pods, as M(kubegpu.nodes.gpu_cluster_info) returns them.
    type: list
    elements: dict
    required: true
  hosts:
    description: >-
      By host name, C(started) (start time of its container runtime in the API server's format),
      C(changed) (what this run changed on it, or empty) and C(new) (whether the node got its label,
      and with it the pod, only after that change).
    type: dict
    required: true
  node_of:
    description: The Kubernetes node of each host.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the pods to replace
  ansible.builtin.debug:
    msg: "{{ pods.resources | kubegpu.nodes.nvidia_device_plugin_restarts(hosts, node_of) }}"
  vars:
    hosts: {gpu1: {started: "2026-11-21T11:00:00Z", changed: ""}}
    node_of: {gpu1: node-1}
"""

RETURN = r"""
_value:
  description: >-
    C(name), C(node), C(reason) and C(definition) of each pod to delete.
  type: list
  elements: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def nvidia_device_plugin_restarts(
    pods: Sequence[Mapping[str, Any]],
    hosts: Mapping[str, Mapping[str, Any]],
    node_of: Mapping[str, str | None],
) -> list[dict[str, Any]]:
    """Return the pods to replace."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.plan import (
        restarts as found,
    )

    return found(pods, hosts, node_of)


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"nvidia_device_plugin_restarts": nvidia_device_plugin_restarts}
