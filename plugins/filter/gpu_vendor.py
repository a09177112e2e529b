# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_vendor
short_description: Return the vendor of a node's GPUs
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Returns V(nvidia), V(amd), V(intel) or V(none) for the list of GPUs of
    M(kubegpu.nodes.gpu_node_facts). For a node with several vendors, the first in this order is
    returned.
positional: _input
options:
  _input:
    description: The list C(gpu_node.gpus).
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Group the hosts by what is in them
  ansible.builtin.group_by:
    key: "kubegpu_{{ ansible_facts['gpu_node']['gpus'] | kubegpu.nodes.gpu_vendor }}"
"""

RETURN = r"""
_value:
  description: The vendor.
  type: str
"""

from collections.abc import Callable
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.vendors import gpu_vendor


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_vendor": gpu_vendor}
