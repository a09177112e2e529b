# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Real processes with limits of time and output."""

from __future__ import annotations

import os
import signal
import time

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.bounded import (
    HANG_ARGUMENTS,
    Hang,
    module_stream,
    read_hang,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader

MUCH = 1 << 30


@pytest.fixture
def stream():
    with patch_module_args({}):
        return module_stream(AnsibleModule(argument_spec={}))


@pytest.fixture
def output():
    return []


def gone(pid):
    """Whether the process ends within a moment: the kernel ends one that is killed later."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as handle:
                # One that nobody has waited for does not run either.
                if handle.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def test_output_status_and_errors(stream, output):
    ended = stream(["sh", "-c", "printf 'a\\nb'; echo bad >&2; exit 3"], output.append, 10, MUCH)
    assert b"".join(output) == b"a\nb"
    assert (ended.rc, ended.stderr, ended.size, ended.hang) == (3, "bad\n", 3, None)


def test_a_program_that_does_not_exist(stream, output):
    ended = stream(["no-such-program-at-all"], output.append, 10, MUCH)
    assert (ended.rc, output) == (127, []) and "no-such-program" in ended.stderr


def test_a_program_that_was_killed_has_a_negative_status(stream, output):
    assert stream(["sh", "-c", "kill -9 $$"], output.append, 10, MUCH).rc == -9


def test_the_c_locale_no_input_and_no_ignored_signal(stream, output, monkeypatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    stream(["sh", "-c", "echo $LC_ALL; cat; grep SigIgn /proc/self/status"], output.append, 9, MUCH)
    locale, ignored = b"".join(output).decode().split("\n")[:2]
    assert locale == "C"
    assert not int(ignored.split()[1], 16) >> (signal.SIGPIPE - 1) & 1


def test_one_that_heeds_no_signal_is_killed_in_time_with_its_children(stream, output, tmp_path):
    script = tmp_path / "nvidia-smi"
    script.write_text(
        "#!/bin/sh\ntrap '' TERM INT HUP\necho begun\nsleep 60 &\necho $!\nwait\nsleep 60\n"
    )
    script.chmod(0o755)
    begin = time.monotonic()
    ended = stream([str(script)], output.append, 1, MUCH)
    assert time.monotonic() - begin < 20
    child = int(b"".join(output).split()[1])
    assert ended.rc is None and not ended.too_long
    assert ended.hang.program == "nvidia-smi" and not ended.hang.left
    assert ended.hang.state == "S" and ended.hang.seconds >= 1
    assert gone(ended.hang.pid) and gone(child)


def test_too_much_output_is_cut_and_the_program_ended(stream, output):
    ended = stream(["yes"], output.append, 20, 100_000)
    assert ended.too_long and ended.rc is None and ended.hang is None
    assert (ended.size, len(b"".join(output))) == (100_000, 100_000)


def test_errors_without_end_are_read_and_cut(stream, output):
    ended = stream(["sh", "-c", "yes bad | head -c 3000000 >&2"], output.append, 20, MUCH)
    assert ended.rc == 0 and len(ended.stderr) == 65536


def test_a_child_that_keeps_the_output_open_is_not_waited_for(stream, output):
    begin = time.monotonic()
    ended = stream(["sh", "-c", "sleep 30 & echo $!"], output.append, 20, MUCH)
    assert time.monotonic() - begin < 18
    assert ended.rc == 0 and gone(int(b"".join(output)))


def test_one_that_closes_its_output_and_stays_is_ended_in_time(stream, output):
    ended = stream(["sh", "-c", "exec >&- 2>&-; sleep 30"], output.append, 1, MUCH)
    assert ended.hang is not None and not ended.hang.left and ended.seconds < 20


def test_a_signal_to_the_module_ends_the_program(stream, output):
    class Stopped(BaseException):
        pass

    def stop(part):
        output.append(part)
        raise Stopped

    with pytest.raises(Stopped):
        stream(["sh", "-c", "echo $$; exec sleep 30"], stop, 20, MUCH)
    assert gone(int(output[0]))


def test_the_group_is_killed_while_its_number_cannot_be_anothers(stream, output, monkeypatch):
    """Once a process is waited for, another one may get its pid, and be killed instead."""
    killed = []

    def killpg(pid, number):
        with open(f"/proc/{pid}/stat", encoding="ascii") as handle:
            killed.append(handle.read().rpartition(")")[2].split()[0])
        real(pid, number)

    real = os.killpg
    monkeypatch.setattr(os, "killpg", killpg)
    assert stream(["true"], output.append, 10, MUCH).rc == 0
    assert killed == ["Z"]


def test_nothing_stays_open(stream, output):
    before = os.listdir("/proc/self/fd")
    for argv in (["true"], ["sh", "-c", "exec sleep 20"], ["/dev/null"]):
        try:
            stream(argv, output.append, 0.2, MUCH)
        except OSError:
            assert argv == ["/dev/null"]
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_reader_asks_a_driver_and_does_not_wait_for_one_that_hangs(stream):
    reader = NodeReader(stream=stream)
    answer, hang = reader.ask(["sh", "-c", "echo fine; echo bad >&2; exit 9"], 10)
    assert hang is None and answer is not None
    assert (answer.rc, answer.stdout, answer.stderr) == (9, "fine\n", "bad\n")
    begin = time.monotonic()
    answer, hang = reader.ask(["sh", "-c", "trap '' TERM; while :; do sleep 1; done"], 1)
    assert time.monotonic() - begin < 4
    assert answer is not None and answer.rc == 124
    assert hang is not None and not hang.left and gone(hang.pid)
    assert reader.ask(["no-such-program-at-all"], 1)[0].rc == 127


def test_a_hang_is_passed_on_to_other_modules():
    hang = Hang("nvidia-smi", 7, 60.0, "D", "rm_ioctl", True)
    assert set(HANG_ARGUMENTS) == set(vars(hang))
    assert read_hang(vars(hang)) == hang and read_hang(None) is None and read_hang({}) is None
