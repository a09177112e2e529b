# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import pty
import signal
import sys
import threading
import time

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubegpu.nodes.plugins.module_utils._host import command as _command
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import (
    TIMED_OUT,
    Result,
    module_runner,
)
from tests.tools.environments import collections


@pytest.fixture
def run():
    with patch_module_args({}):
        return module_runner(AnsibleModule(argument_spec={}))


def test_program_that_does_not_exist_is_an_answer(run):
    answer = run(["no-such-program-at-all"])
    assert (answer.rc, answer.ok) == (127, False)
    assert "no-such-program-at-all" in answer.last_output()


def test_output_is_in_the_c_locale_whatever_the_user_has(run, monkeypatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert run(["sh", "-c", "echo $LC_ALL $LANG $LANGUAGE"]).stdout == "C C C\n"


def test_environment_is_passed_on(run):
    assert run(["sh", "-c", "echo $X"], environment={"X": "y"}).stdout == "y\n"


def test_arguments_are_not_for_a_shell(run):
    assert run(["echo", "$HOME; true"]).stdout == "$HOME; true\n"


def test_command_that_hangs_is_ended(run):
    assert run(["sleep", "20"], timeout=1).rc == TIMED_OUT


ON_A_TERMINAL = """
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import module_runner

with patch_module_args({}):
    answer = module_runner(AnsibleModule(argument_spec={}))(["cat"], timeout=10)
print("rc", answer.rc, repr(answer.stdout), flush=True)
"""


def test_a_command_that_reads_is_not_stopped_on_a_terminal():
    """Without pipelining ssh gives a module a terminal, and timeout(1) puts its command behind."""
    environment = {**os.environ, "PYTHONPATH": str(collections())}
    child, terminal = pty.fork()
    if child == 0:
        os.execve(sys.executable, [sys.executable, "-c", ON_A_TERMINAL], environment)
    shown = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # Linux: the other side was closed.
            break
        if not part:
            break
        shown += part
    os.close(terminal)
    os.waitpid(child, 0)
    assert b"rc 0 ''" in shown, shown


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(_command, "_KILL_AFTER", 0.5)
    monkeypatch.setattr(_command, "_MARGIN", 0.5)


def test_without_timeout_a_command_that_hangs_is_ended_too(quick):
    with patch_module_args({}):
        module = AnsibleModule(argument_spec={})
    find = module.get_bin_path
    module.get_bin_path = lambda name, **more: None if name == "timeout" else find(name, **more)
    limited = module_runner(module)
    begin = time.monotonic()
    assert limited(["sleep", "20"], timeout=1).rc == TIMED_OUT
    stubborn = limited(["sh", "-c", "trap '' TERM; echo begun; sleep 20"], timeout=1)
    assert (stubborn.rc, stubborn.stdout) == (TIMED_OUT, "begun\n")
    assert time.monotonic() - begin < 10
    assert limited(["echo", "x"], timeout=1) == Result(0, "x\n", "")


def test_a_command_that_the_kernel_does_not_let_go_is_not_waited_for(quick, tmp_path, monkeypatch):
    """timeout(1) would wait for its child for ever: a stand-in that does, and heeds no SIGTERM.

    The child keeps the pipe open, as a process in state D would.
    """
    pid = tmp_path / "pid"
    standin = tmp_path / "timeout"
    standin.write_text(f"#!/bin/sh\ntrap '' TERM\nsleep 60 &\necho $! > {pid}\necho seen\nwait\n")
    standin.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with patch_module_args({}):
        limited = module_runner(AnsibleModule(argument_spec={}))
    begin = time.monotonic()
    try:
        answer = limited(["true"], timeout=1)
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)
    assert (answer.rc, answer.stdout) == (TIMED_OUT, "seen\n")
    assert time.monotonic() - begin < 10


def test_nothing_watches_a_command_that_has_ended(run):
    before = threading.active_count()
    for _number in range(3):
        assert run(["true"], timeout=60).ok
    assert threading.active_count() == before


def test_bytes_that_are_not_utf_8_do_not_fail(run):
    assert run(["printf", "\\377"]).stdout == "\udcff"


def test_words_are_the_last_lines_of_what_was_said():
    text = "\n".join(str(number) for number in range(30))
    assert Result(1, "out", text).last_output().splitlines() == [str(n) for n in range(15, 30)]
    assert Result(1, "out\n", " \n").last_output() == "out"


def test_what_a_command_writes_can_be_read_whatever_the_umask(run, tmp_path):
    """apt reads downloaded packages as a user of its own."""
    before = os.umask(0o077)
    try:
        assert run(["mkdir", str(tmp_path / "made")]).ok
        # Only of the command: the module's own files have their modes.
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(before)
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o755
