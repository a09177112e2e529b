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
      Use the columns and notes of a table of P(kubegpu.nodes.gpu_report#filter). Rows of V(plan)
      that are equal but for their names are shown as one. Required without O(columns).
    type: str
    choices: [plan, result, teardown, cluster]
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
    description: The rows. A list is shown with one item a line.
    type: list
    elements: dict
    required: true
  dest:
    description:
      - Path of a JSON file on the controller to which the rows are written. Its directory is
        created. Check mode writes nothing.
      - Only a regular file with rows that have the key of the first column is replaced. A folder,
        link, pipe or other file is refused, and V(/dev/null) is not changed.
    type: path
  content:
    description: Is written to O(dest) instead of the rows. What is there has to have its keys.
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
    rows: "{{ ansible_play_hosts_all | kubegpu.nodes.gpu_report('plan', hostvars) }}"
    dest: build/gpus.json
  run_once: true

- name: Show what would be done
  kubegpu.nodes.fleet_table:
    table: plan
    rows: "{{ ansible_play_hosts_all | kubegpu.nodes.gpu_report('plan', hostvars) }}"
  run_once: true
"""

RETURN = r"""
table:
  description: The lines that were shown.
  returned: always
  type: list
  elements: str
  sample: ["Node  GPUs", "----  ----------------", "gpu1  1x Tesla P4 (pascal)"]
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
