# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: cluster_plan
short_description: Describe what would change in a Kubernetes cluster
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Builds rows of a table from the result of M(kubegpu.nodes.node_gpu_label) in check mode and the
    plan of P(kubegpu.nodes.nvidia_device_plugin_plan#filter). M(kubegpu.nodes.fleet_table) shows
    them.
positional: _input
options:
  _input:
    description: The result of M(kubegpu.nodes.node_gpu_label).
    type: dict
    required: true
  plugin:
    description: The plan of the device plugin.
    type: dict
  plugin_changed:
    description: Whether the API server would change any of its objects.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Show it
  kubegpu.nodes.fleet_table:
    columns:
      - {key: node, title: Node, below: [kubernetes]}
      - {key: changes, title: Change, paired: true}
      - {key: why, title: Why, paired: true}
    rows: "{{ labels_answer | kubegpu.nodes.cluster_plan(plugin_plan) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: >-
    One row a host that the cluster has or should have, and one for the device plugin: C(node),
    C(kubernetes) (the node's name there), C(changes), C(why).
  type: list
  elements: dict
"""

from collections.abc import Callable, Mapping
from typing import Any


def cluster_plan(
    labels: Mapping[str, Any],
    plugin: Mapping[str, Any] | None = None,
    plugin_changed: bool = False,
) -> list[dict[str, Any]]:
    """Return the rows."""
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.cluster import (
        cluster_plan as _cluster_plan,
    )

    return _cluster_plan(labels, plugin or {}, plugin_changed)


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cluster_plan": cluster_plan}
