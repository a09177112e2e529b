# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: nvidia_device_plugin_restarts
short_description: Find the device plugin's pods whose runtime changed under them
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - A pod keeps the runtime with which it was made, however often its containers start again. After
    a change of the runtime or the driver only a new pod helps.
  - Returns the pods that are older than their node's runtime, or whose node this run changed.
positional: _input, hosts
options:
  _input:
    description: >-
      The plugin's pods, each with C(name), C(namespace), C(node) and C(started), the time as the
      API server writes it.
    type: list
    elements: dict
    required: true
  hosts:
    description: >-
      By name of the host: C(node), its name in Kubernetes; C(started), when its container runtime
      was started, in the same form; C(changed), what this run changed on it, or empty.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Pods that have to be made again
  ansible.builtin.debug:
    msg: "{{ pods | kubegpu.nodes.nvidia_device_plugin_restarts(hosts) }}"
  vars:
    pods: [{name: p-1, namespace: kubegpu, node: n1, started: "2026-11-21T10:00:00Z"}]
    hosts: {gpu1: {node: n1, started: "2026-11-21T11:00:00Z", changed: ""}}
"""

RETURN = r"""
_value:
  description: C(name), C(namespace), C(node) and C(reason) of each pod that is to be deleted.
  type: list
  elements: dict
"""

from collections.abc import Callable
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin_plan import restarts


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"nvidia_device_plugin_restarts": restarts}
