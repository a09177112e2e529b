# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: rollout_serial
short_description: Say how many hosts of a play go at once
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Returns what C(kubegpu_serial) is for hosts that M(kubegpu.nodes.fleet_variables) has looked at,
    for the keyword C(serial) of a play. Ansible works that keyword out without any host, so that
    by itself it sees neither C(group_vars) nor C(host_vars).
  - Where hosts say different ones it is the one with the smallest batches. Percentages are those of
    the hosts that are given, which have to be the hosts of the play.
positional: _input, hostvars
options:
  _input:
    description: Names of the hosts of the play.
    type: list
    elements: str
    required: true
  hostvars:
    description: Ansible's C(hostvars).
    type: dict
    required: true
seealso:
  - plugin: kubegpu.nodes.rollout_stop
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Work in batches
  hosts: gpus
  # ansible-playbook --syntax-check knows no hostvars.
  serial: "{{ groups['gpus'] | kubegpu.nodes.rollout_serial(hostvars | default({})) }}"
  roles:
    - kubegpu.nodes.nvidia_driver
"""

RETURN = r"""
_value:
  description: A number, a percentage, or a list of these. V(100%) where nobody says one.
  type: raw
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def rollout_serial(hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the answer of :func:`serial` for the values that ``fleet_variables`` found."""
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._rollout import ALL, serial

    for host in hosts:
        found = hostvars[host].get("__kubegpu_variables") if host in hostvars else None
        if found:
            serials = found["serials"]
            return serial([serials[one] for one in hosts if one in serials], len(hosts))
    return ALL


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"rollout_serial": rollout_serial}
