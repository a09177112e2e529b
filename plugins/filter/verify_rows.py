# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: verify_rows
short_description: Build table rows from the results of a verification
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Builds one row per node for M(kubegpu.nodes.fleet_table) from the layers that
    M(kubegpu.nodes.gpu_node_verify) verified and from the results in the cluster.
  - A host that failed before its verification has a row with this failure.
positional: _input, hostvars, key
options:
  _input:
    description: The host names. Each has a row.
    type: list
    elements: str
    required: true
  hostvars:
    description: Ansible's C(hostvars).
    type: dict
    required: true
  key:
    description: Name of the variable in which each host keeps its list of layers.
    type: str
    required: true
  more:
    description: >-
      Layers that were verified elsewhere, such as C(allocatable) and C(pod), with C(node) (a host's
      name; another name gets a separate row), C(layer), C(ok), C(cause), C(evidence), C(next_step)
      and C(proof).
    type: list
    elements: dict
    default: []
  layers:
    description: The columns, in order.
    type: list
    elements: str
    default: [pci, module, nvml, toolkit, runtime, allocatable, pod]
  missing:
    description: The text for a host without layers.
    type: str
    default: the node could not be read
"""

EXAMPLES = r"""
- name: Look at each node
  kubegpu.nodes.gpu_node_verify:
  register: seen

- name: Keep it
  ansible.builtin.set_fact:
    verified: "{{ seen.layers }}"

- name: Show it
  kubegpu.nodes.fleet_table:
    title: Verification
    columns:
      - {key: node, title: Node}
      - {key: pci, title: PCI}
      - {key: module, title: Module}
      - {key: nvml, title: NVML}
      - {key: toolkit, title: Toolkit}
      - {key: runtime, title: Runtime}
    rows: "{{ ansible_play_hosts_all | kubegpu.nodes.verify_rows(hostvars, 'verified') }}"
    notes: causes
  run_once: true
"""

RETURN = r"""
_value:
  description: >-
    One entry for each node: C(node); the name of each layer with V(ok), V(failed), V(not tried) or
    V(null) (nothing is known of it); C(result), the same for all of them; C(failed); C(causes), a
    sentence with evidence and next step for each failure; C(not_tried), why; C(proof), what was
    shown and how; and C(layers), all that was given.
  type: list
  elements: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError


def verify_rows(
    hosts: Sequence[str],
    hostvars: Mapping[str, Mapping[str, Any]],
    key: str,
    more: Sequence[Mapping[str, Any]] = (),
    layers: Sequence[str] | None = None,
    missing: str = "the node could not be read",
) -> list[dict[str, Any]]:
    """Return the rows."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import LAYERS
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.verification import rows

    layers = LAYERS if layers is None else layers
    unknown = [layer for layer in layers if layer not in LAYERS]
    if unknown:
        raise AnsibleFilterError(
            f"verify_rows: there is no layer {', '.join(unknown)}. Next step: name some of "
            f"{', '.join(LAYERS)}."
        )
    entries: list[Mapping[str, Any]] = []
    for host in hosts:
        # The name in the inventory counts, whatever the node calls itself.
        entries.extend({**entry, "node": host} for entry in hostvars[host].get(key) or ())
    return rows([*entries, *more], hosts, layers, missing)


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"verify_rows": verify_rows}
