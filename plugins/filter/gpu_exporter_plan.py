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
  method:
    description:
      - How the metrics get to Prometheus.
      - V(packages) installs nothing by itself. It sets up the exporter of the packages
        C(datacenter-gpu-manager-exporter), which M(kubegpu.nodes.package_set) installs.
      - V(container) runs the exporter as a container of Docker, by a unit of systemd.
      - V(textfile) writes a file for node_exporter by a timer. It serves the GPUs of all vendors
        and needs Python only.
      - V(auto) is V(packages) on a node with NVIDIA's GPUs alone whose distribution has a
        repository of NVIDIA, otherwise V(textfile).
    type: str
    choices: [auto, textfile, packages, container]
    default: auto
  version:
    description: Versions of DCGM and of its exporter, which are released in pairs, as in the tag of
      the image.
    type: str
    default: 4.6.0-4.8.3
  image:
    description: Image of the exporter without tag, for V(container).
    type: str
    default: nvcr.io/nvidia/k8s/dcgm-exporter
  digest:
    description: Digest of the image, C(sha256:) and 64 digits. Empty is the tag of O(version).
    type: str
    default: ""
  counters:
    description: The counters of DCGM's exporter, V(default) or a list of lines of its file (field,
      kind and help, with commas).
    type: raw
    default: default
  profiling:
    description: Whether the profiling metrics (C(DCGM_FI_PROF_*)) are read, which need a package
      more, and in a container the capability C(SYS_ADMIN).
    type: bool
    default: true
  interval:
    description: Seconds between two readings of the GPUs.
    type: int
    default: 15
  listen:
    description: Address and port of the exporter. Without an address, all of the node's.
    type: str
    default: ":9400"
  web_config:
    description: Path of a file on the node with TLS and basic authentication in the format of
      Prometheus' exporters. Its content is never read.
    type: str
    default: ""
  job_mapping_dir:
    description: Folder on the node in which Slurm's prolog writes the jobs of each GPU. Empty is
      none.
    type: str
    default: ""
  textfile_directory:
    description: Folder from which node_exporter reads text files. Empty is the first that exists of
      C(/var/lib/prometheus/node-exporter) (Debian), C(/var/lib/node_exporter)
      (prometheus.prometheus) and C(/var/lib/node_exporter/textfile_collector).
    type: str
    default: ""
  expected_gpus:
    description: PCI addresses of the GPUs that the node has to have, such as V(0000:3b:00.0). If
      empty, those that it has, and those that it had at an earlier run.
    type: list
    elements: str
    default: []
  beside_others:
    description: Whether an exporter is set up beside one that somebody else has installed.
    type: bool
    default: false
  timeout:
    description: Seconds until the exporter has to listen.
    type: int
    default: 120
  hold:
    description: Whether the packages are held.
    type: bool
    default: true
  manage_repository:
    description: Whether the repository is set up. An entry that is there and trusted, the driver's
      included, stays as it is.
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
    (C(exporter), C(port) and C(scheme) of what Prometheus reads), C(change), C(steps), C(changes)
    (the steps as text), C(reasons) and C(warnings).
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any


def gpu_exporter_plan(gpu_node: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """Return the plan of :func:`plan_exporter` as JSON values."""
    from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
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
        return Plan("refuse", reasons=tuple(str(error).splitlines())).to_json()


class FilterModule:
    """The filter under its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"gpu_exporter_plan": gpu_exporter_plan}
