# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: amd_device_plugin_manifests
short_description: Make the Kubernetes objects of AMD's device plugin
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Returns the objects that the role P(kubegpu.nodes.amd_device_plugin#role) applies, for
    deployment by other means, such as a GitOps repository.
  - The filter reads and changes nothing. An invalid option is an error.
  - The pods run on nodes with the label C(kubegpu.nodes/gpu-amd=true).
positional: _input
options:
  _input:
    description: >-
      The options of the role, without its prefix. Missing options have the role's default.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Write the objects into a file
  ansible.builtin.copy:
    content: "{{ options | kubegpu.nodes.amd_device_plugin_manifests | to_nice_yaml }}"
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


def amd_device_plugin_manifests(options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the objects for these options."""
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._vendor_manifests import (
        vendor_manifests,
    )

    return vendor_manifests("amd", options)


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"amd_device_plugin_manifests": amd_device_plugin_manifests}
