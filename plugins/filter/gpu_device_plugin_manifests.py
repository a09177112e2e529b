# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_device_plugin_manifests
short_description: Make the Kubernetes objects of the device plugin of AMD or Intel
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Returns the objects that the role P(kubegpu.nodes.amd_device_plugin#role) or
    P(kubegpu.nodes.intel_device_plugin#role) applies, for deployment by other means, such as a
    GitOps repository.
  - The filter reads and changes nothing. An invalid option is an error.
  - The pods run on nodes with the label C(kubegpu.nodes/gpu-amd=true) or
    C(kubegpu.nodes/gpu-intel=true).
positional: _input, vendor
options:
  _input:
    description: >-
      The options of the role, without its prefix. Missing options have the role's default.
    type: dict
    required: true
  vendor:
    description: Whose plugin it is.
    type: str
    choices: [amd, intel]
    required: true
seealso:
  - plugin: kubegpu.nodes.gpu_plan
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Write the objects into a file
  ansible.builtin.copy:
    content: "{{ options | kubegpu.nodes.gpu_device_plugin_manifests('amd') | to_nice_yaml }}"
    dest: amd-device-plugin.yml
    mode: "0644"
  vars:
    options:
      labeller: true
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


def gpu_device_plugin_manifests(options: Mapping[str, Any], vendor: str) -> list[dict[str, Any]]:
    """Return the objects for these options."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
    from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin import (
        vendor_manifests,
        vendor_options,
    )

    try:
        return vendor_manifests.manifests(vendor_options.read_request(vendor, options))
    except KubegpuError as error:
        raise AnsibleFilterError(f"gpu_device_plugin_manifests: {error}") from error


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_device_plugin_manifests": gpu_device_plugin_manifests}
