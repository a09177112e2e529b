# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a play of a test's own, on hosts that are facts of nodes that were made."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.integration import ansible_process
from tests.testbed.paths import REPOSITORY
from tests.tools.environments import collections

_PROGRAM = Path(sys.executable).parent / "ansible-playbook"
_TIMEOUT = 1200
# Facts and groups as the playbook groups makes them.
GROUPS = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.set_fact:
        gpu_node: "{{ facts }}"
        cacheable: true
    - ansible.builtin.add_host:
        name: "{{ item.host }}"
        groups: "{{ item.groups }}"
      loop: "{{ ansible_play_hosts | kubegpu.nodes.gpu_hosts(hostvars, 'groups') }}"
      changed_when: false
"""


class Run:
    """A run: its exit status, its screen, and how many tasks changed something."""

    def __init__(self, done: subprocess.CompletedProcess[str]):
        self.status = done.returncode
        self.output = done.stdout + done.stderr
        self.changed = sum(int(count) for count in re.findall(r"changed=(\d+)", done.stdout))


def run_play(folder: Path, *arguments: str, **options: Any) -> Run:
    """Run ``play.yml`` of a folder with its ``inventory.yml``.

    :param options: variables.
    """
    argv = [str(_PROGRAM), "-i", str(folder / "inventory.yml"), str(folder / "play.yml")]
    return Run(
        ansible_process.run(
            [*argv, *arguments, "--extra-vars", json.dumps(options)],
            # One folder for all, so that one process has imported Ansible for all.
            cwd=REPOSITORY,
            env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(collections())},
            timeout=_TIMEOUT,
        )
    )
