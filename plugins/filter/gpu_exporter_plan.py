# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_exporter_plan
short_description: Decide how a host exports the metrics of its GPUs
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Takes the facts of M(kubegpu.nodes.gpu_node_facts) and the request, and returns the packages,
    files and units that have to change, with their reasons.
  - Reads and changes nothing. An unsatisfiable request and an invalid value of an option are
    returned as refusals; only an unknown option is an error.
positional: _input
options:
  _input:
    description: The fact C(gpu_node).
    type: dict
    required: true
  counters:
    description: The counters of DCGM's exporter, V(default) or a list of lines of its file (field,
      kind and help, with commas).
    type: raw
    default: default
  hold:
    description: Whether the packages are held.
    type: bool
    default: true
  manage_repository:
    description: Whether the repository is set up. An entry that is there and trusted, the driver's
      included, is left unchanged.
    type: bool
    default: true
  repository_name:
    description: Stem of the names of the files for the repository and its key.
    type: str
    default: kubegpu-nvidia-dcgm
  repository_url:
    description: Address of the repository, for a mirror. Empty is NVIDIA's own.
    type: str
    default: ""
  repository_key_url:
    description: Address of the repository's key. Empty is NVIDIA's own.
    type: str
    default: ""
  key_fingerprints:
    description: Full fingerprints of the keys that may sign the repository. Empty is NVIDIA's own.
    type: list
    elements: str
    default: []
  planned_repositories:
    description: Addresses of repositories that the same run adds first.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - kubegpu.nodes.exporter
"""

EXAMPLES = r"""
- name: Show what the node would get
  ansible.builtin.debug:
    msg: "{{ ansible_facts['gpu_node'] | kubegpu.nodes.gpu_exporter_plan(method='textfile') }}"
"""

RETURN = r"""
_value:
  description: >-
    C(action) (none, change or refuse), C(method), C(counters) (the file's content), C(gpus)
    (addresses that are expected), C(packages), C(optional_packages), C(obsolete),
    C(change_packages), C(remove_packages), C(repository), C(files), C(change_setup), C(scrape)
    (C(exporter), C(port) and C(scheme) of what Prometheus reads, and C(gpus), how many it has to
    show), C(change), C(steps), C(changes)
    (the steps as text), C(reasons), C(refusals) and C(warnings).
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any


def gpu_exporter_plan(gpu_node: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """Return the plan of :func:`plan_exporter` as JSON values."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import parts
    from ansible_collections.kubegpu.nodes.plugins.module_utils._exporter.options import (
        ARGUMENTS,
        read_options,
    )
    from ansible_collections.kubegpu.nodes.plugins.module_utils._exporter.plan import plan_exporter
    from ansible_collections.kubegpu.nodes.plugins.module_utils._exporter.types import Plan
    from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring.metrics import (
        counters_file,
        read_counters,
    )
    from ansible_collections.kubegpu.nodes.plugins.plugin_utils._plan_filters import check_call

    check_call("gpu_exporter_plan", gpu_node, options, ARGUMENTS)
    try:
        profiling = read_options({"profiling": options.get("profiling")}).profiling
        counters = read_counters(
            options.get("counters", "default"), profiling, "gpu_monitoring_counters"
        )
        request = read_options({**options, "counters": counters_file(counters)})
        return plan_exporter(gpu_node, request).to_json()
    except InputError as error:
        refused = tuple(str(error).splitlines())
        return Plan("refuse", reasons=refused, refusals=(parts(error),)).to_json()


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_exporter_plan": gpu_exporter_plan}
