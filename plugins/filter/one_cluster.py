# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: one_cluster
short_description: Check that all hosts belong to the same Kubernetes cluster
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - A run makes one call for a whole cluster, so that it can serve only one. The filter fails if
    C(kubeconfig), C(context), C(host) or C(delegate) in the variable C(kubegpu_kube), or the
    variable C(kubegpu_kube_namespace), of two hosts differ, and names the hosts.
  - It also fails if C(kubegpu_kube.delegate) is a host that is not in the inventory, for example in
    a slice of a job.
positional: _input, hostvars
options:
  _input:
    description: The hosts' names.
    type: list
    elements: str
    required: true
  hostvars:
    description: Ansible's C(hostvars).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Check that all hosts belong to one cluster
  ansible.builtin.set_fact:
    cluster: "{{ ansible_play_hosts | kubegpu.nodes.one_cluster(hostvars) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: The common values, by name, such as C(kubegpu_kube.host). They contain no secret.
  type: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._hosts import connection

_LOCAL = ("", "localhost", "127.0.0.1", "::1")
_DELEGATE = "kubegpu_kube.delegate"
_NAMESPACE = "kubegpu_kube_namespace"
_KEYS = ("kubeconfig", "context", "host", "delegate")


def one_cluster(hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the cluster's variables, which are equal for all hosts."""
    first: dict[str, str] = {}
    for host in hosts:
        kube = connection(hostvars[host])
        values = {f"kubegpu_kube.{key}": str(kube.get(key) or "") for key in _KEYS}
        values[_NAMESPACE] = str(hostvars[host].get(_NAMESPACE) or "")
        for name, value in values.items() if first else ():
            if first[name] != value:
                raise AnsibleFilterError(
                    f"{hosts[0]} and {host} are not of one cluster: {name} is {first[name]!r} and "
                    f"{value!r}. Next step: set it once for all of them, or run each cluster by "
                    "itself with --limit."
                )
        first = first or values
    delegate = first.get(_DELEGATE, "")
    if delegate not in _LOCAL and delegate not in hostvars:
        raise AnsibleFilterError(
            f"{_DELEGATE} is {delegate!r}, and the inventory of this run has no such "
            "host. In slices of a job each run sees its own part of the hosts. Next step: leave it "
            "out, so that localhost speaks to the cluster, or have that host in every inventory."
        )
    return first


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"one_cluster": one_cluster}
