# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: cluster_connection
short_description: The connection to a Kubernetes cluster, from the variables of fleet and role
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Merges mappings such as C(kubegpu_kube) and C(gpu_verify_kube) key by key; the later one is
    stronger. A key that is null is not set.
  - What the host's own variables had before any node was read is used, as
    M(kubegpu.nodes.fleet_variables) returned it, but for the token. With C(inject_facts_as_vars)
    a node could otherwise choose by its facts where a token is sent.
  - Fails for a host whose facts have names of variables of this collection.
positional: _input, variables
options:
  _input:
    description: The mappings, by the names of their variables.
    type: dict
    required: true
  variables:
    description: The entry of the host in Ansible's C(hostvars).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Where the cluster of this host is asked
  ansible.builtin.debug:
    msg: >-
      {{
        ({'kubegpu_kube': kubegpu_kube | default({}, true)}
         | kubegpu.nodes.cluster_connection(hostvars[inventory_hostname])).delegate
      }}
"""

RETURN = r"""
_value:
  description: The merged mapping, with all keys. It has the token.
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError


def cluster_connection(given: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the connection of a role."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._connection import merged

    try:
        return merged(given, variables)
    except InputError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cluster_connection": cluster_connection}
