# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: nvidia_device_plugin_plan
short_description: Plan NVIDIA's device plugin for a whole cluster
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes the options of P(kubegpu.nodes.nvidia_device_plugin#role) and the facts of the hosts, and
    returns the objects to apply and to remove, and the resources that each node should offer.
  - The filter reads and changes nothing. A refusal is a value, not an error; with a refusal, no
    objects are returned.
positional: _input, hosts
options:
  _input:
    description: The options of the role, without its prefix.
    type: dict
    required: true
  hosts:
    description: >-
      By host name, C(gpu_node) (the facts of M(kubegpu.nodes.gpu_node_facts)); C(config) (the
      selected config, or empty); C(node) (its name in Kubernetes); C(match) (V(name) if it is not
      found by machine ID); C(options) (the options as this host sees them, which must be equal on
      all hosts); C(default_runtime) (default runtimes of C(containerd) and C(docker) that are newer
      than the facts); C(planned) (whether this run sets up the runtime later); C(cdi) (whether the
      role P(kubegpu.nodes.nvidia_container_toolkit#role) enables CDI there); C(mig) (the C(devices)
      of a layout that is not made yet, as P(kubegpu.nodes.gpu_plan#filter) has them); and for
      C(restarts) C(started) (start time of its runtime in the API server's format), C(changed)
      (what this run changed on it, or empty) and C(new) (whether this run's label brought the pod
      to it).
    type: dict
    required: true
  method:
    description: The installation method.
    type: str
    choices: [manifest, helm]
    default: manifest
  chart_version:
    description: Version of the chart, which decides its available values; with V(helm).
    type: str
    default: ''
  facts:
    description: The fact C(gpu_node) by host name, if it is not in O(hosts).
    type: dict
    default: {}
  existing:
    description: >-
      Existing objects of the kinds Namespace, RuntimeClass and DaemonSet, and the pods of the
      device plugin. An unmanaged namespace or RuntimeClass is kept unchanged.
    type: list
    elements: dict
    default: []
  others:
    description: >-
      Descriptions of unmanaged operators and device plugins of the cluster. If there is one,
      nothing is applied.
    type: list
    elements: str
    default: []
  login:
    description: >-
      Names of the keys of the image registry login (C(registry), C(username), C(password)), without
      the values; empty for none.
    type: list
    elements: str
    default: []
  node_of:
    description: The Kubernetes node of each host, for C(restarts).
    type: dict
    default: {}
  teardown:
    description: Whether to remove everything.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Plan for the hosts of this play
  ansible.builtin.set_fact:
    plan: >-
      {{ {'configs': nvidia_device_plugin_configs}
         | kubegpu.nodes.nvidia_device_plugin_plan(
             {inventory_hostname: {'gpu_node': ansible_facts['gpu_node'], 'config': ''}}) }}
"""

RETURN = r"""
_value:
  description: >-
    C(action) (apply, refuse, or leave to C(others)), C(objects) and C(absent) (the objects to apply
    and to remove), C(values) (values of the chart), C(runtime_class), C(expected) (by host, in the
    format of M(kubegpu.nodes.gpu_cluster_info)), C(unknown) (hosts without known resources, and
    why), C(refusals) (C(host), C(cause), C(evidence), C(next_step)), C(text) (the same as text),
    C(warnings) and C(reasons); and C(restarts), the pods to delete because they are older than the
    runtime of their node, or because this run changed their node (C(name), C(node), C(reason) and
    C(definition)): a pod keeps the runtime of its creation, even if its containers restart.
  type: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError


def nvidia_device_plugin_plan(
    options: Mapping[str, Any],
    hosts: Mapping[str, Mapping[str, Any]],
    method: str = "manifest",
    chart_version: str = "",
    facts: Mapping[str, Mapping[str, Any]] | None = None,
    existing: Sequence[Mapping[str, Any]] = (),
    others: Sequence[str] = (),
    login: Sequence[str] = (),
    node_of: Mapping[str, str | None] | None = None,
    teardown: bool = False,
) -> dict[str, Any]:
    """Return the plan as JSON values."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.plan import (
        plan,
        restarts,
    )

    known = facts or {}
    complete = {
        name: {"gpu_node": known.get(name), **host} if name in known else host
        for name, host in hosts.items()
    }
    missing = [name for name, host in complete.items() if not host.get("gpu_node")]
    if missing:
        raise AnsibleFilterError(
            f"nvidia_device_plugin_plan needs the fact gpu_node of {', '.join(missing)}. Next "
            "step: run kubegpu.nodes.gpu_node_facts on the hosts first."
        )
    planned = plan(
        options,
        complete,
        method=method,
        chart_version=str(chart_version),
        existing=existing,
        others=others,
        login=login,
        teardown=teardown,
    )
    pods = [item for item in existing if item["kind"] == "Pod"]
    return {**planned, "restarts": restarts(pods, complete, node_of or {})}


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"nvidia_device_plugin_plan": nvidia_device_plugin_plan}
