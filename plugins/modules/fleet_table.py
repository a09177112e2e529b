# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fleet_table
short_description: Show rows of the whole fleet as one table
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Prints a table on the controller's screen and, on request, writes its rows as JSON there.
  - Use it with C(run_once). No connection to a node is made, and no node is changed, which is why
    it never says changed, not even where it wrote the JSON file on the controller.
options:
  title:
    description: A line above the table.
    type: str
    default: ""
  columns:
    description: What is shown, in order.
    type: list
    elements: dict
    required: true
    suboptions:
      key:
        description: The rows' key.
        type: str
        required: true
      title:
        description: The words above the column.
        type: str
        required: true
      paired:
        description: Whether items of this column begin on the same line as the items with the same
          place in the other paired columns.
        type: bool
        default: false
      below:
        description: More of the rows' keys. Their values stand below that of O(columns[].key), in
          the same cell; what is empty is left out.
        type: list
        elements: str
        default: []
      optional:
        description: Whether the column is left out where no row says anything in it.
        type: bool
        default: false
  notes:
    description: The rows' key for a list of remarks. They are shown below the table, each once
      with the names of the rows (their first column) that make it.
    type: str
  rows:
    description: The rows. A list in a cell is shown one item a line.
    type: list
    elements: dict
    required: true
  dest:
    description: A file on the controller to which the rows are written as JSON. Its directory is
      made. A device or pipe is written to, never replaced.
    type: path
attributes:
  check_mode:
    description: Shows and writes the same in check mode.
    support: full
  diff_mode:
    description: There is nothing to compare.
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
- name: Show which host has which GPUs
  kubegpu.nodes.fleet_table:
    title: GPUs of the fleet
    columns:
      - {key: node, title: Node}
      - {key: gpus, title: GPUs}
    rows: "{{ ansible_play_hosts | map('extract', hostvars, 'plan_row') | list }}"
    dest: build/gpus.json
  run_once: true
"""

RETURN = r"""
table:
  description: The lines that were shown.
  returned: always
  type: list
  elements: str
  sample: ["Node  GPUs", "----  ----------------", "gpu1  1x Tesla P4 (pascal)"]
"""
