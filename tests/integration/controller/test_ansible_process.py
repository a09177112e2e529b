# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs that are forks of one process: what they say, how they end, that nothing of them stays."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.integration import ansible_process


def play(folder, timeout=120.0, **task):
    path = folder / "play.json"
    path.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [task]}]))
    argv = ["ansible-playbook", "--inventory", "node,", "--connection", "local", str(path)]
    return ansible_process.run(argv, env=os.environ, cwd=folder, timeout=timeout)


def test_runs_are_apart_and_say_what_the_program_says(tmp_path):
    good = play(tmp_path, **{"ansible.builtin.debug": {"msg": "standin"}})
    assert good.returncode == 0 and "standin" in good.stdout
    bad = play(tmp_path, **{"ansible.builtin.fail": {"msg": "no"}})
    assert bad.returncode == 2 and "standin" not in bad.stdout and "AnsibleC" not in bad.stderr
    assert play(tmp_path, **{"ansible.builtin.debug": {"msg": "x"}}).returncode == 0


@pytest.mark.full(why="what the tests' own program does when a test has failed")
def test_a_run_that_takes_too_long_ends_with_all_that_it_started(tmp_path):
    begun = tmp_path / "begun"
    words = f"sleep 1200 & echo $$ $! >{begun}; wait"
    # Longer where this machine has not even begun by then.
    for timeout in (5.0, 20.0, 80.0, 320.0):
        with pytest.raises(subprocess.TimeoutExpired):
            play(tmp_path, timeout=timeout, **{"ansible.builtin.shell": words})
        if begun.exists():
            break
    pids = begun.read_text().split()
    assert len(pids) == 2
    deadline = time.monotonic() + 60
    while any(Path("/proc", pid).exists() for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)
