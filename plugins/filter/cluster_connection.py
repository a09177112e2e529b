# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: cluster_connection
short_description: The connection to a Kubernetes cluster, as tasks and modules take it
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Adds the defaults to the mapping C(kubegpu_kube), and makes from it what a task is given. A key
    that is null is not set.
  - What the host's own variable had before any node was read is used, as
    M(kubegpu.nodes.fleet_variables) returned it, but for the token. With C(inject_facts_as_vars)
    a node could otherwise choose by its facts where a token is sent.
  - Fails for a host whose facts have names of variables of this collection.
positional: _input, hostvars, host
options:
  _input:
    description: The mapping C(kubegpu_kube).
    type: dict
    required: true
  hostvars:
    description: Ansible's C(hostvars).
    type: dict
    required: true
  host:
    description: The host of the task.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Read the nodes of the cluster of this host
  kubernetes.core.k8s_info:
    kind: Node
  module_defaults:
    kubernetes.core.k8s_info: "{{ kube.core }}"
  delegate_to: "{{ kube.delegate }}"
  vars:
    kube: "{{ kubegpu_kube | kubegpu.nodes.cluster_connection(hostvars, inventory_hostname) }}"
    ansible_python_interpreter: "{{ kube.interpreter }}"
  register: nodes
"""

RETURN = r"""
_value:
  description: >-
    The mapping with all keys; C(in_cluster) (whether it names a cluster), C(options) (of this
    collection's modules), C(core) and C(helm) (of C(k8s) and C(helm) of kubernetes.core,
    with verification of TLS), and C(interpreter) (the Python of the delegate). It has the token.
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError


def cluster_connection(
    given: Any, hostvars: Mapping[str, Mapping[str, Any]], host: str
) -> dict[str, Any]:
    """Return what the tasks of a host are given."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._connection import connected

    try:
        return connected(given, hostvars, host)
    except InputError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cluster_connection": cluster_connection}
