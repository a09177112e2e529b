# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_groups
short_description: Return the inventory groups of hosts by their hardware
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes host names and returns the groups of each, which are C(kubegpu_) with the vendor of its
    GPUs (C(kubegpu_nvidia), C(kubegpu_amd), C(kubegpu_intel), C(kubegpu_none)), and
    C(kubegpu_cluster) if its variable C(kubegpu_kube) has C(kubeconfig) or C(host).
  - A host with a wrong value of a variable, as M(kubegpu.nodes.fleet_variables) found it and the
    playbook C(kubegpu.nodes.groups) keeps it, is in C(kubegpu_refused) alone.
  - A host without facts is omitted.
positional: _input, hostvars
options:
  _input:
    description: Names of hosts.
    type: list
    elements: str
    required: true
  hostvars:
    description: Ansible's C(hostvars).
    type: dict
    required: true
seealso:
  - plugin: kubegpu.nodes.gpu_vendor
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Group all hosts of the play
  ansible.builtin.add_host:
    name: "{{ item.host }}"
    groups: "{{ item.groups }}"
  loop: "{{ ansible_play_hosts | kubegpu.nodes.gpu_groups(hostvars) }}"
  changed_when: false
"""

RETURN = r"""
_value:
  description: C(host) and C(groups) of each, in the order of the hosts.
  type: list
  elements: dict
"""

from collections.abc import Callable
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._hosts import gpu_groups


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_groups": gpu_groups}
