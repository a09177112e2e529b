# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: cuda_supported_by
short_description: Return the CUDA versions that an NVIDIA driver supports
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes the version of a driver and returns the newest CUDA version that it fully supports, and
    the one that it supports by minor-version compatibility.
  - The table is that of NVIDIA's CUDA release notes of 2026-11-23, for Linux drivers on x86_64 and
    arm64 servers. For the CUDA versions that support a GPU, see
    P(kubegpu.nodes.driver_required_by#filter).
positional: _input
options:
  _input:
    description: >-
      The driver's version, such as V(535.104.05), or a branch, such as V(535), which means its
      newest driver. Put it in quotes.
    type: str
    required: true
  data:
    description: >-
      Rows to merge over the built-in tables, such as C({releases: {'13.6.0': '620.10'}}).
      The tables are C(releases) (CUDA release to its driver), C(compatible_since) (major CUDA
      version to its oldest driver), C(first), C(last) and C(architectures) (by GPU generation),
      C(distributions) (the CUDA version that a distribution packages, by C(os.id) and
      C(os.version) without a space between them).
    type: dict
    default: {}
seealso:
  - plugin: kubegpu.nodes.driver_required_by
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show the newest CUDA image that the node can run
  ansible.builtin.debug:
    msg: >-
      {{ (ansible_facts['gpu_node']['driver']['loaded'] | kubegpu.nodes.cuda_supported_by).native }}

# Result for a driver of branch 535:
# {driver: 535.104.05, native: '12.2', native_release: 12.2.2, minor: 12.x, newest: '12.9', ...}
- name: Show the whole result
  ansible.builtin.debug:
    msg: "{{ '535.104.05' | kubegpu.nodes.cuda_supported_by }}"
"""

RETURN = r"""
_value:
  description: >-
    C(driver), the input. C(native), the newest CUDA version that the driver fully supports, and
    C(native_release), the same with its update; null if the driver is older than the table.
    C(minor), the major version whose releases all run by minor-version compatibility (V(12.x)), or
    null. C(newest), the newest CUDA version in the table that runs either way. C(limit), what
    minor-version compatibility does not cover; empty if it is not needed.
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError


def cuda_supported_by(driver: Any, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the result of :func:`supported_by`."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.compatibility import (
        supported_by,
    )
    from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.cuda_releases import (
        cuda_data,
    )
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError

    try:
        return supported_by(driver, cuda_data(data))
    except KubegpuError as error:
        raise AnsibleFilterError(f"cuda_supported_by: {error}") from error


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cuda_supported_by": cuda_supported_by}
