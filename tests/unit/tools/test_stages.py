# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stages run side by side, and the next begins where one has ended."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.tools.environments import REPOSITORY
from tests.tools.stages import run_stages

SCRIPTS = {
    "one": "print('1 passed in 0.1s')",
    "two": "import pathlib, sys; sys.exit(not pathlib.Path(sys.argv[1], 'one.log').exists())",
    "bad": "print('what went wrong'); raise SystemExit(3)",
    "last": "print('noise'); print('2 passed in 0.2s'); print('made inputs: KUBEGPU_SEED=7')",
}


def test_stages_that_pass_and_fail(tmp_path, capsys):
    def command(name):
        return [sys.executable, "-c", SCRIPTS[name], str(tmp_path)]

    results = run_stages(["bad", "one", "two", "last"], command, tmp_path, 1)

    codes = {result.name: result.code for result in results}
    assert codes == {"one": 0, "two": 0, "bad": 3, "last": 0}
    assert [result.name for result in results] == ["bad", "one", "two", "last"]
    screen = capsys.readouterr().out
    assert "what went wrong" in screen, "a failed stage shows all that it printed"
    assert "2 passed" in screen and "noise" not in screen
    assert "KUBEGPU_SEED=7" in screen, "what repeats a run has to be in CI's log"
    assert "=== bad FAILED in" in screen and "=== last passed in" in screen


@pytest.mark.parametrize("at_once", [2, 5])
def test_as_many_as_wished_run_at_once_and_the_next_begins_where_one_has_ended(tmp_path, at_once):
    """Each notes itself while it runs and sees the others that do; the first ends with the last."""
    script = (
        "import pathlib, sys, time\n"
        "here, name = pathlib.Path(sys.argv[1]), sys.argv[2]\n"
        "(here / name).touch(); until = time.monotonic() + 60\n"
        "(here.parent / f'{name}.begun').touch()\n"
        "awaited = 'last.log' if name == 'first' else 'first.begun'\n"
        "while not (here.parent / awaited).exists():\n"
        "    time.sleep(0.1); assert time.monotonic() < until\n"
        "print('saw', *sorted(one.name for one in here.iterdir()))\n"
        "(here / name).unlink()\n"
    )
    running = tmp_path / "running"
    running.mkdir()
    names = ["first", "second", "third", "last"]

    def command(name):
        return [sys.executable, "-c", script, str(running), name]

    results = run_stages(names, command, tmp_path, at_once)
    assert sorted(result.name for result in results if not result.code) == sorted(names)
    saw = {name: (tmp_path / f"{name}.log").read_text().split()[1:] for name in names}
    assert max(len(seen) for seen in saw.values()) <= at_once
    if at_once == 2:
        assert [saw[name] for name in names[1:3]] == [["first", "second"], ["first", "third"]]


def test_ctrl_c_ends_what_runs_and_begins_nothing_more(tmp_path):
    stage = (
        "import os, pathlib, sys, time; "
        "pathlib.Path(sys.argv[1]).write_text(str(os.getpid())); time.sleep(600)"
    )
    script = (
        "import pathlib, signal, sys; from tests.tools.stages import run_stages\n"
        # A shell that starts the tests in the background has it ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "here = pathlib.Path(sys.argv[1])\n"
        "command = lambda name: [sys.executable, '-c', sys.argv[2], str(here / name)]\n"
        "run_stages(['first', 'second', 'third'], command, here, 2)\n"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path), stage],
        cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    begun = [tmp_path / "first", tmp_path / "second"]
    deadline = time.monotonic() + 60
    while not all(path.exists() and path.read_text() for path in begun):
        assert time.monotonic() < deadline and run.poll() is None
        time.sleep(0.1)
    run.send_signal(signal.SIGINT)
    assert run.wait(timeout=60) != 0
    for path in begun:
        assert not Path("/proc", path.read_text()).exists()
    assert not (tmp_path / "third").exists()
