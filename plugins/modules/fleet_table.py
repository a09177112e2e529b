# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fleet_table
short_description: Show rows of all hosts as one table
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - The playbooks and roles of this collection use it. Its options can change in any release.
  - Prints a table on the controller's screen. With O(dest), it also writes the rows to a JSON file
    on the controller.
  - With a stdout callback whose output programs read (C(json) in its name) or that prints nothing
    (C(null)), the table goes to standard error.
  - Commands of the playbooks in the rows are printed with the inventory and the options of the
    connection that the run had.
  - Use it with C(run_once). It connects to no node and changes none. Therefore C(changed) is always
    false, even if the JSON file was written.
options:
  title:
    description: Line above the table.
    type: str
    default: ""
  table:
    description: >-
      A table with columns and notes of its own, whose rows are built from O(hosts) or O(content).
      V(plan) has what would change on each host and why, V(not_read) and V(refused) the same of
      hosts that are not planned, V(result) what is on the hosts of the batch after a run,
      V(unverified) why hosts are not verified, V(teardown) what was restored, V(cluster) and
      V(cluster_teardown) what would change in Kubernetes or was removed there, V(dra) what NVIDIA's
      DRA driver needs, V(monitoring) the exporters of hosts, and V(verification) the results of
      M(kubegpu.nodes.gpu_node_verify). V(upgrade_plan) is of C(gpu_upgrade_plan), V(diagnosis) of
      C(gpu_diagnose_result), and V(diagnosis_nodes) has the nodes for its pods without a node.
      V(acceptance_plan) is of the plans of the hosts, V(upgrade) and V(acceptance) of a report of
      them, which is returned and written. Rows of V(plan) that are equal but for
      their names are shown as one. Required without O(columns).
    type: str
    choices: [plan, not_read, refused, result, unverified, teardown, cluster, cluster_teardown, dra,
      monitoring, verification, upgrade_plan, upgrade, acceptance_plan, acceptance,
      diagnosis, diagnosis_nodes]
  columns:
    description: The columns, in order.
    type: list
    elements: dict
    suboptions:
      key:
        description: Key of the rows.
        type: str
        required: true
      title:
        description: Heading of the column.
        type: str
        required: true
      paired:
        description: Start each item of this column on the same line as the item at the same
          position in the other paired columns.
        type: bool
        default: false
      below:
        description: More keys of the rows. Their values are shown below that of
          O(columns[].key), in the same cell. Empty values are left out.
        type: list
        elements: str
        default: []
      optional:
        description: Leave the column out if it is empty in all rows.
        type: bool
        default: false
  notes:
    description: Key of the rows for a list of remarks. Each remark is shown once below the table,
      with the names (the first column) of its rows. Remarks under the same key with C(_last) come
      after them. By default that of O(table).
    type: str
  rows:
    description: The rows. A list is shown with one item a line. Without it, O(table) builds them.
    type: list
    elements: dict
  hosts:
    description: The hosts of which O(table) builds rows.
    type: list
    elements: str
  key:
    description: Variable in which each host has its list of layers, with V(table=verification).
    type: str
    default: ""
  stop:
    description: Why no further batch is started, as P(kubegpu.nodes.rollout#filter) returns it,
      with V(table=result) and V(table=teardown). If it is not empty, each host whose batch was not
      started has a row with it.
    type: str
    default: ""
  dest:
    description:
      - Path of a JSON file on the controller to which the rows are written. Its directory is
        created. Check mode writes nothing.
      - Only a regular file with rows that have the key of the first column is replaced. A folder,
        link, pipe or other file is refused, and V(/dev/null) is not changed.
    type: path
  content:
    description: Is written to O(dest) instead of the rows. What is there has to have its keys.
      Without O(rows), O(table) builds them of it.
    type: dict
attributes:
  check_mode:
    description: Prints the table, and writes no file.
    support: full
  diff_mode:
    description: The module changes nothing.
    support: none
  idempotent:
    description: A second run does the same.
    support: full
  platform:
    description: Runs on the controller.
    platforms: posix
    support: full
"""

EXAMPLES = r"""
- name: Show the GPUs of each host
  kubegpu.nodes.fleet_table:
    title: GPUs of all hosts
    columns:
      - {key: node, title: Node}
      - {key: gpus, title: GPUs}
    rows:
      - {node: gpu1, gpus: 1x Tesla P4}
    dest: build/gpus.json
  run_once: true

- name: Verify each node
  kubegpu.nodes.gpu_node_verify:
  register: seen

- name: Store the layers
  ansible.builtin.set_fact:
    verified: "{{ seen.layers }}"

- name: Show them
  kubegpu.nodes.fleet_table:
    title: Verification
    table: verification
    hosts: "{{ ansible_play_hosts_all }}"
    key: verified
  run_once: true

- name: Show what would be done
  kubegpu.nodes.fleet_table:
    table: plan
    hosts: "{{ ansible_play_hosts_all }}"
  run_once: true
"""

RETURN = r"""
table:
  description: The lines that were shown.
  returned: always
  type: list
  elements: str
  sample: ["Node  GPUs", "----  ----------------", "gpu1  1x Tesla P4 (pascal)"]
content:
  description: The report that the table shows.
  returned: with V(table=upgrade) and V(table=acceptance)
  type: dict
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
