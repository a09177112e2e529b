# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: driver_required_by
short_description: Which NVIDIA driver a CUDA version needs
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes a CUDA version, of a toolkit or an image, and returns the driver that it is paired with
    and the oldest that runs it.
  - The table is that of NVIDIA's CUDA release notes, gathered 2026-11-23, for drivers of Linux on
    x86_64 and arm64 servers.
positional: _input
options:
  _input:
    description: >-
      The CUDA version, such as V(12.9) or V(12.4.1), in quotes; or the condition of an image, such
      as V(cuda>=12.3), which the container toolkit reports if it is not met. A condition is
      compared with the CUDA version of the driver, without minor-version compatibility.
    type: str
    required: true
  data:
    description: >-
      Entries that are merged over the built-in tables, such as C({releases: {'13.6.0': '620.10'}}).
      The tables are C(releases) (CUDA to paired driver), C(compatible_since) (major CUDA to the
      oldest driver), C(first), C(last) and C(architectures) (by generation), C(distributions)
      (the CUDA that a distribution has itself, by C(os.id) and C(os.version) in one word).
    type: dict
    default: {}
seealso:
  - plugin: kubegpu.nodes.cuda_supported_by
    plugin_type: filter
"""

EXAMPLES = r"""
# {cuda: '12.3', release: 12.3.0, paired: 545.23.06, branch: '545', minimum: 525.60.13,
#  minimum_branch: '525', verified: true, dropped: [kepler], limit: ...}
- name: What an image with CUDA 12.3 needs
  ansible.builtin.debug:
    msg: "{{ '12.3' | kubegpu.nodes.driver_required_by }}"

# Such an image says "unsatisfied condition: cuda>=12.3".
- name: Stop if the node's driver is too old for the image
  ansible.builtin.assert:
    that: >-
      ansible_facts['gpu_node']['driver']['loaded'] is version(
        ('cuda>=12.3' | kubegpu.nodes.driver_required_by).minimum, '>=')
"""

RETURN = r"""
_value:
  description: >-
    C(cuda), as given, and C(release), the entry of the table for it. C(paired), the
    oldest driver with all its features, and C(branch), the branch of that driver. C(minimum) and
    C(minimum_branch), the oldest driver that runs it, by minor-version compatibility; for a
    condition of an image, C(paired). C(verified) is false if no document pairs the release
    with an exact driver. C(dropped), the GPU generations that are too old for this CUDA. C(limit),
    the features that minor-version compatibility lacks; empty if C(paired) is the oldest driver.
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError


def driver_required_by(cuda: Any, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the result of :func:`required_by`."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.compatibility import (
        required_by,
    )
    from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.cuda_releases import (
        cuda_data,
    )
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError

    try:
        return required_by(cuda, cuda_data(data))
    except KubegpuError as error:
        raise AnsibleFilterError(f"driver_required_by: {error}") from error


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"driver_required_by": driver_required_by}
