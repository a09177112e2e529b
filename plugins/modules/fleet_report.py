# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fleet_report
short_description: Write a report of all hosts as HTML, JSON and Markdown (internal)
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - The playbooks and roles of this collection use it. Its options can change in any release.
  - Joins what the run knows of its hosts into one report. This is the fact C(gpu_node) of
    M(kubegpu.nodes.gpu_node_facts), the public facts of the roles, and what
    P(kubegpu.nodes.gpu_report#role) has read.
  - The report has one sentence on the whole fleet, the changes since the earlier report, what is
    to be done by root cause, differences between like nodes, an inventory, layers, findings,
    decisions and GPUs of each node, and what could not be seen.
  - The HTML file needs no other file and no network, and can be sent by mail. Values of nodes are
    escaped, and never evaluated.
  - Use it with C(run_once). It connects to no node and changes none.
options:
  hosts:
    description: Names of the hosts of the report.
    type: list
    elements: str
    required: true
  dest:
    description: Folder on the controller. It is created. The files are C(report.html),
      C(report.json) and C(report.md). Other files, links, folders and pipes of these names are
      refused.
    type: path
    required: true
  title:
    description: Title of the report.
    type: str
    default: GPU fleet
  generated:
    description: Time of the report, in any form. Two reports with the same input are equal.
    type: str
    default: ""
  previous:
    description: JSON file of the report to compare with. By default that in O(dest), before it is
      replaced.
    type: path
  hide:
    description: Values that are left out of all files, also where they are part of a text.
    type: list
    elements: str
    choices: [serial, uuid, address, machine_id]
    default: []
  applied:
    description: Whether this run applies the plans of the hosts. The changes of a host that it got
      to are then no longer to be done.
    type: bool
    default: false
  diagnosis:
    description:
      - The fact C(gpu_diagnose_result) of the role P(kubegpu.nodes.gpu_diagnose#role).
      - For its hosts, its verdict and its causes replace what the report would say of layers,
        health and facts. Causes of pods, and of no host, become part of the actions to take.
    type: dict
    default: {}
attributes:
  check_mode:
    description: Writes nothing, and reports whether the report differs.
    support: full
  diff_mode:
    description: Shows the Markdown.
    support: full
  idempotent:
    description: >-
      C(changed) is whether the report differs from the one in O(dest).
      The files are always written, because they have the time of the report.
    support: full
  platform:
    description: Runs on the controller.
    platforms: posix
    support: full
seealso:
  - module: kubegpu.nodes.fleet_table
"""

EXAMPLES = r"""
- name: Write a report of all hosts
  kubegpu.nodes.fleet_report:
    hosts: "{{ ansible_play_hosts_all }}"
    dest: kubegpu-report
    generated: "{{ now(utc=true, fmt='%Y-%m-%d %H:%M UTC') }}"
  run_once: true

- name: Write a report for somebody else
  kubegpu.nodes.fleet_report:
    hosts: "{{ ansible_play_hosts_all }}"
    dest: for-the-vendor
    hide: [uuid, address, machine_id]
  run_once: true
"""

RETURN = r"""
summary:
  description: The sentence, and the numbers of nodes, GPUs and states.
  returned: always
  type: dict
  sample:
    sentence: 39 of 40 nodes are ready for GPU containers; 1 could not be read.
    nodes: 40
    gpus: 156
    states: {failed: 0, unknown: 1, partly: 0, attention: 0, ready: 39, no_gpu: 0}
changes:
  description: What has changed since the earlier report, with C(node), C(kind) and C(text).
  returned: always
  type: list
  elements: dict
  sample:
    - {node: gpu7, kind: version, text: "Driver: 570.195.03 → 580.126.09"}
actions:
  description: The actions to take, by root cause, with C(id), C(severity), C(cause), C(next_step),
    C(fix) and C(nodes), of which one without a name stands for a pod or the cluster.
  returned: always
  type: list
  elements: dict
  sample: []
drift:
  description: Differences between nodes with the same GPUs and the same system.
  returned: always
  type: list
  elements: dict
  sample: []
files:
  description: The files.
  returned: always
  type: list
  elements: str
  sample: [kubegpu-report/report.html, kubegpu-report/report.json, kubegpu-report/report.md]
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
