# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_diagnosis
short_description: Find why GPUs cannot be used, from what was read of hosts and pods
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - The role P(kubegpu.nodes.gpu_diagnose#role) calls it. Its variables and facts are those of that
    role.
  - Joins the facts, the verified layers, the health of GPUs, what Kubernetes offers, and pods. A
    finding that follows from another one is folded into it; what remains is a root cause.
positional: _input, what, hostvars
options:
  _input:
    description: >-
      With V(diagnose) a list of hosts, with V(baselines) the content of an earlier result, with the
      others the result of V(diagnose).
    type: raw
    required: true
  what:
    description: What is returned.
    type: str
    choices: [diagnose, rows, nodes, failures, baselines]
    required: true
  hostvars:
    description: Ansible's C(hostvars), with V(diagnose).
    type: dict
    default: {}
  rows:
    description: The rows of C(gpu_verify_result), with V(diagnose).
    type: list
    elements: dict
    default: []
  cluster:
    description: >-
      The result of M(kubegpu.nodes.gpu_cluster_info), with V(diagnose); empty if the cluster was
      not asked.
    type: dict
    default: {}
  hosts:
    description: The hosts of the play, with V(failures).
    type: list
    elements: str
    default: []
  fail_on:
    description: The least severity for which a host fails, or V(never), with V(failures).
    type: str
    default: error
"""

EXAMPLES = r"""
- name: Show the root causes
  ansible.builtin.debug:
    msg: "{{ ansible_play_hosts_all | kubegpu.nodes.gpu_diagnosis('diagnose', hostvars) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - With V(diagnose) a dictionary. C(findings) has the root causes, the worst first, with C(id),
      C(severity) (V(error), V(warning), V(info)), C(subject) with C(host), C(gpu) and C(pod),
      C(cause), C(evidence), C(next_step), C(fix) (a command or variables, may be empty),
      C(confidence) (V(proven), V(likely), V(possible)) and C(follows), the ids of the findings that
      are folded into it. C(hosts) has C(verdict), C(gpus), C(node), C(roots) and C(devices) of each
      host, C(pods) the pods that were asked about, C(unseen) what could not be read and why, and
      C(ok) is true if no root cause is an error.
    - With V(rows) and V(nodes) the rows of tables, with V(failures) the causes by host for which
      it fails, with V(baselines) a baseline for M(kubegpu.nodes.gpu_node_health) by host.
  type: raw
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

_WHAT = ("diagnose", "rows", "nodes", "failures", "baselines")


def gpu_diagnosis(
    value: Any,
    what: str,
    hostvars: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    rows: Sequence[Mapping[str, Any]] = (),
    cluster: Mapping[str, Any] | None = None,
    hosts: Sequence[str] = (),
    fail_on: str = "error",
) -> Any:
    """Return what the role asks for."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
    from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis import show

    if what not in _WHAT:
        raise AnsibleFilterError(f"gpu_diagnosis: {what!r} is none of {', '.join(_WHAT)}.")
    if what == "diagnose":
        from ansible_collections.kubegpu.nodes.plugins.plugin_utils._diagnose import diagnose_hosts

        return diagnose_hosts(value, hostvars or {}, rows, cluster or {})
    try:
        if what == "failures":
            return show.failures(value, fail_on, list(hosts))
    except InputError as error:
        raise AnsibleFilterError(f"gpu_diagnosis: {error}") from error
    shown: Mapping[str, Callable[[Any], Any]] = {
        "rows": show.rows,
        "nodes": show.node_rows,
        "baselines": show.baselines,
    }
    return shown[what](value)


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_diagnosis": gpu_diagnosis}
