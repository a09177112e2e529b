# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_device_plugin_plan
short_description: Plan the device plugin of AMD or Intel for a whole cluster
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes the options of P(kubegpu.nodes.amd_device_plugin#role) or
    P(kubegpu.nodes.intel_device_plugin#role) and the facts of the hosts, and returns the objects to
    apply and to remove, and the resources that each node should offer.
  - The filter reads and changes nothing. A refusal is a value, not an error; with a refusal, no
    objects are returned.
positional: _input, vendor, hosts
options:
  _input:
    description: The options of the role, without its prefix.
    type: dict
    required: true
  vendor:
    description: Whose plugin it is.
    type: str
    choices: [amd, intel]
    required: true
  hosts:
    description: >-
      By host name, C(gpu_node) (the facts of M(kubegpu.nodes.gpu_node_facts)); C(node) (its name in
      Kubernetes); C(match) (V(name) if it is not found by machine ID); and C(options) (as this host
      sees them, which must be equal on all hosts).
    type: dict
    required: true
  facts:
    description: The fact C(gpu_node) by host name, if it is not in O(hosts).
    type: dict
    default: {}
  existing:
    description: >-
      Existing objects of the kinds Namespace and DaemonSet. An unmanaged namespace is kept
      unchanged.
    type: list
    elements: dict
    default: []
  others:
    description: >-
      Descriptions of unmanaged operators and device plugins of the vendor. If there is one, nothing
      is applied.
    type: list
    elements: str
    default: []
  teardown:
    description: Whether to remove everything.
    type: bool
    default: false
seealso:
  - plugin: kubegpu.nodes.nvidia_device_plugin_plan
    plugin_type: filter
"""

EXAMPLES = r"""
- name: See how many GPUs a pod can ask for on this node
  ansible.builtin.debug:
    msg: >-
      {{ ({'shared': 2} | kubegpu.nodes.gpu_device_plugin_plan(
            'intel', {inventory_hostname: {'gpu_node': ansible_facts['gpu_node']}})).expected }}
"""

RETURN = r"""
_value:
  description: >-
    C(action) (apply, refuse, or leave to C(others)), C(namespace), C(objects) and C(absent) (the
    objects to apply and to remove), C(expected) (by host, in the format of
    M(kubegpu.nodes.gpu_cluster_info)), C(unknown) (hosts without known resources, and why),
    C(refusals) (C(host), C(cause), C(evidence), C(next_step)), C(text) (the same as text),
    C(warnings) and C(reasons).
  type: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError


def gpu_device_plugin_plan(
    options: Mapping[str, Any],
    vendor: str,
    hosts: Mapping[str, Mapping[str, Any]],
    facts: Mapping[str, Mapping[str, Any]] | None = None,
    existing: Sequence[Mapping[str, Any]] = (),
    others: Sequence[str] = (),
    teardown: bool = False,
) -> dict[str, Any]:
    """Return the plan as JSON values."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.vendor_plan import (
        plan,
    )
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._plan_filters import (
        with_facts,
    )

    complete = with_facts("gpu_device_plugin_plan", hosts, facts or {})
    if vendor not in ("amd", "intel"):
        raise AnsibleFilterError(f"gpu_device_plugin_plan: {vendor!r} is neither amd nor intel.")
    return plan(
        vendor, options, complete, existing=existing, others=others, teardown=bool(teardown)
    )


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_device_plugin_plan": gpu_device_plugin_plan}
