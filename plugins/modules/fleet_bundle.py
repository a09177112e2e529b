# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fleet_bundle
short_description: Write a support bundle of what a diagnosis has read (internal)
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - The playbooks and roles of this collection use it. Its options can change in any release.
  - Writes one archive (C(.tar.gz)) with the diagnosis, the answer of the cluster, and for each host
    the fact C(gpu_node), its versions, layers and health, and the texts of
    M(kubegpu.nodes.gpu_node_texts). C(MANIFEST.json) in it lists all files with size, SHA-256 and
    source.
  - All texts are without secrets, control characters are escaped. The same input gives the same
    bytes.
  - The role P(kubegpu.nodes.gpu_diagnose#role) calls it. Use it with C(run_once). It connects to no
    node and changes none.
options:
  hosts:
    description: Names of the hosts of the bundle.
    type: list
    elements: str
    required: true
  dest:
    description: The archive on the controller. Its folder is created; its mode is C(0600). A
      file there that is not a support bundle is refused.
    type: path
    required: true
  result:
    description: The fact C(gpu_diagnose_result).
    type: dict
    required: true
  rows:
    description: The rows of C(gpu_verify_result).
    type: list
    elements: dict
    default: []
  cluster:
    description: >-
      The result of M(kubegpu.nodes.gpu_cluster_info), empty if the cluster was not asked.
    type: dict
    default: {}
attributes:
  check_mode:
    description: Writes nothing, and returns the same.
    support: full
  diff_mode:
    description: Shows the names of the files in the bundle.
    support: full
  idempotent:
    description: An equal archive is not written again.
    support: full
  platform:
    description: Runs on the controller.
    platforms: posix
    support: full
seealso:
  - module: kubegpu.nodes.gpu_node_texts
  - module: kubegpu.nodes.fleet_report
"""

EXAMPLES = r"""
- name: Write a support bundle
  kubegpu.nodes.fleet_bundle:
    hosts: "{{ ansible_play_hosts_all }}"
    dest: kubegpu-diagnosis.tar.gz
    result: "{{ gpu_diagnose_result }}"
    rows: "{{ gpu_verify_result.rows }}"
  run_once: true
"""

RETURN = r"""
files:
  description: What is in the bundle, with C(name), C(size) in bytes, C(sha256) and C(source).
  returned: always
  type: list
  elements: dict
  sample:
    - name: hosts/gpu1/logs/kernel.log
      size: 4711
      sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
      source: journalctl -k -b 0 -q --no-pager -o short-iso
hosts:
  description: For each C(host), the number of C(files) and their C(size) in bytes, and how many
    entries C(unseen) has, what was not read or left out.
  returned: always
  type: list
  elements: dict
  sample:
    - {host: gpu1, files: 14, size: 90211, unseen: 1}
dest:
  description: The archive.
  returned: always
  type: str
  sample: kubegpu-diagnosis.tar.gz
size:
  description: Its size in bytes.
  returned: always
  type: int
  sample: 51200
cause:
  description: What is wrong, with the name of the file, option or package.
  returned: failure
  type: str
evidence:
  description: What shows it, such as a line of a log; may be empty.
  returned: failure
  type: str
next_step:
  description: What you can do; may be empty.
  returned: failure
  type: str
"""
