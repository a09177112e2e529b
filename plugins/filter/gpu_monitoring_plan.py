# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_monitoring_plan
short_description: Plan the monitoring of GPUs, with manifests, alert rules and dashboard
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes the options of P(kubegpu.nodes.gpu_monitoring#role), and returns the Kubernetes objects to
    apply and to remove, and the rules for Prometheus and the dashboard for Grafana, which are the
    same with and without Kubernetes.
  - The filter reads and changes nothing. A refusal is a value, not an error; with a refusal, no
    objects are returned.
positional: _input, hosts
options:
  _input:
    description: The options of the role, without its prefix. Missing options have their default.
    type: dict
    required: true
  hosts:
    description: >-
      By host name, C(options) (the options as this host sees them, which must be equal on all
      hosts).
    type: dict
    default: {}
  kinds:
    description: >-
      The kinds of the Prometheus operator that the cluster has (C(ServiceMonitor), C(PodMonitor),
      C(PrometheusRule)), as returned by M(kubegpu.nodes.gpu_cluster_info).
    type: list
    elements: str
    default: []
  existing:
    description: >-
      Existing objects with the names of the role's objects. An unmanaged namespace is kept
      unchanged. Another unmanaged object is a refusal. Managed objects of another namespace are
      those of an earlier run, and are removed.
    type: list
    elements: dict
    default: []
  others:
    description: >-
      Descriptions of unmanaged exporters of the cluster. If there is one, nothing is applied.
    type: list
    elements: str
    default: []
  teardown:
    description: Whether to remove everything.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Write alert rules for a Prometheus that is set up by other means
  ansible.builtin.copy:
    content: "{{ ({'temperature': 85} | kubegpu.nodes.gpu_monitoring_plan).rules | to_nice_yaml }}"
    dest: /etc/prometheus/rules/kubegpu.yml
    mode: "0644"

- name: Write the Kubernetes objects into a file
  ansible.builtin.copy:
    content: "{{ plan.objects | to_nice_yaml }}"
    dest: monitoring.yml
    mode: "0644"
  vars:
    plan: >-
      {{ {'labels': {'release': 'kube-prometheus-stack'}} | kubegpu.nodes.gpu_monitoring_plan(
           kinds=['ServiceMonitor', 'PodMonitor', 'PrometheusRule']) }}
"""

RETURN = r"""
_value:
  description: >-
    C(action) (apply, refuse, or leave to C(others)), C(objects) and C(absent) (the objects to apply
    and to remove), C(earlier) (other namespaces of which objects are removed), C(scrape) (how
    Prometheus finds the pods), C(rules) (alert rules as a file of Prometheus), C(dashboard) (the
    dashboard), C(counters) (the exporter's file of counters), C(refusals) (C(host), C(cause),
    C(evidence), C(next_step)), C(text) (the same as text), C(warnings) and C(reasons).
  type: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def gpu_monitoring_plan(
    options: Mapping[str, Any],
    hosts: Mapping[str, Mapping[str, Any]] | None = None,
    kinds: Sequence[str] = (),
    existing: Sequence[Mapping[str, Any]] = (),
    others: Sequence[str] = (),
    teardown: bool = False,
) -> dict[str, Any]:
    """Return the plan as JSON values."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring.plan import plan

    return plan(options, hosts, kinds=kinds, existing=existing, others=others, teardown=teardown)


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_monitoring_plan": gpu_monitoring_plan}
