# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: nvidia_device_plugin_manifests
short_description: Make the Kubernetes objects of NVIDIA's device plugin
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Returns the objects that the role P(kubegpu.nodes.nvidia_device_plugin#role) applies, for
    deployment by other means, such as a GitOps repository.
  - The filter reads and changes nothing. An invalid option is an error. A setting that only a newer
    release of the plugin may know causes a warning.
  - The pods run on nodes with the label C(kubegpu.nodes/gpu=nvidia).
positional: _input
options:
  _input:
    description: >-
      The options of the role, without its prefix. Missing options have the role's default;
      C(runtime_class=auto) means C(nvidia) here, because no node is read.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Write the objects into a file
  ansible.builtin.copy:
    content: "{{ plugin | kubegpu.nodes.nvidia_device_plugin_manifests | to_nice_yaml }}"
    dest: device-plugin.yml
    mode: "0644"
  vars:
    plugin:
      version: v0.20.1
      configs:
        shared4:
          sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
"""

RETURN = r"""
_value:
  description: The objects in the order of application.
  type: list
  elements: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.utils.display import Display


def nvidia_device_plugin_manifests(options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the objects for these options."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.plan import (
        object_list,
    )
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError

    try:
        return object_list(options, Display().warning)
    except KubegpuError as error:
        raise AnsibleFilterError(f"nvidia_device_plugin_manifests: {error}") from error


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"nvidia_device_plugin_manifests": nvidia_device_plugin_manifests}
