# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of the exporter of a host, for its module and the filter of its plan."""

from __future__ import annotations


class ModuleDocFragment:
    """Extended as C(kubegpu.nodes.exporter)."""

    DOCUMENTATION = r"""
options:
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
    default: 4.6.1-4.8.4
  image:
    description: Image of the exporter without tag, for V(container).
    type: str
    default: nvcr.io/nvidia/k8s/dcgm-exporter
  digest:
    description: Digest of the image, C(sha256:) and 64 digits. Empty is the tag of O(version).
    type: str
    default: ""
  profiling:
    description: Whether the profiling metrics (C(DCGM_FI_PROF_*)) are read, which need a package
      more, and in a container the capability C(SYS_ADMIN).
    type: bool
    default: true
  interval:
    description: Seconds between two readings of the GPUs, at most 120.
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
    description: Whether an exporter is set up although another one, which this collection does not
      manage, is on the node.
    type: bool
    default: false
  timeout:
    description: Seconds until the exporter has to listen.
    type: int
    default: 120
"""
