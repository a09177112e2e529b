# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._host import systemd as service
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.fingerprint import (
    process_start_id,
)


class SystemdStandin:
    """Answers as systemctl and journalctl do, and remembers what was asked."""

    def __init__(self, show="", fails=()):
        self.asked = []
        self._show = show
        self._fails = fails

    def __call__(self, argv, timeout=60, environment=None):
        self.asked.append(argv)
        if argv[:2] == ["systemctl", "show"]:
            return Result(0, self._show, "")
        if argv[0] == "journalctl":
            return Result(0, "dockerd: something broke\n", "")
        return Result(1 if argv[1] in self._fails else 0, "", "Job failed.")


@pytest.fixture
def sleeper():
    with subprocess.Popen(["sleep", "60"]) as process:
        deadline = time.monotonic() + 10
        # While it becomes another program it has no command line.
        while not Path(f"/proc/{process.pid}/cmdline").read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield process
        process.kill()


@pytest.mark.parametrize(
    ("show", "exists", "active"),
    [
        ("LoadState=loaded\nActiveState=inactive\nMainPID=0\n", True, False),
        ("LoadState=masked\nActiveState=inactive\nMainPID=0\n", True, False),
        ("LoadState=not-found\nActiveState=inactive\nMainPID=0\n", False, False),
        ("LoadState=loaded\nActiveState=reloading\nMainPID=0\n", True, True),
        ("LoadState=loaded\nActiveState=failed\nMainPID=\n", True, False),
        ("", False, False),
    ],
)
def test_unit_without_a_process(show, exists, active):
    daemon = service.read_daemon(SystemdStandin(show), "docker")
    assert (daemon.exists, daemon.active, daemon.pid) == (exists, active, None)
    assert daemon.identity is None
    assert daemon.command_line == ()


def test_running_unit_is_told_from_proc(sleeper):
    daemon = service.read_daemon(
        SystemdStandin(f"MainPID={sleeper.pid}\nLoadState=loaded\nActiveState=active\n"), "docker"
    )
    assert daemon.active
    assert daemon.command_line == ("sleep", "60")
    assert abs(daemon.started - time.time()) < 5
    assert daemon.identity.startswith(f"{sleeper.pid}@")


def test_start_is_known_better_than_to_a_second():
    """A file made right after a process started must not look older than it, nor the reverse."""
    for _time in range(5):
        before = time.time()
        with subprocess.Popen(["sleep", "60"]) as process:
            started = service.process_started(process.pid)
            process.kill()
        assert before - 0.05 <= started <= time.time() + 0.05
        time.sleep(0.13)


def test_birth_does_not_move_with_the_clock(sleeper, monkeypatch):
    birth = process_start_id(sleeper.pid)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3600)
    assert process_start_id(sleeper.pid) == birth
    assert service.process_started(sleeper.pid) > real() + 3000


def test_process_that_is_gone():
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert service.process_started(process.pid) is None
    assert process_start_id(process.pid) is None
    assert service.process_command_line(process.pid) == ()


def test_command_name_with_brackets_does_not_confuse(tmp_path):
    program = tmp_path / "a) (b"
    program.write_bytes(Path("/bin/sleep").read_bytes())
    program.chmod(0o755)
    with subprocess.Popen([program, "60"]) as process:
        started = service.process_started(process.pid)
        process.kill()
    assert abs(started - time.time()) < 5


def test_restart_forgets_earlier_failures_first_and_reload_does_not():
    systemd = SystemdStandin()
    service.restart(systemd, "docker")
    service.reload(systemd, "docker")
    assert systemd.asked == [
        ["systemctl", "reset-failed", "docker"],
        ["systemctl", "restart", "docker"],
        ["systemctl", "reload", "docker"],
    ]


@pytest.mark.parametrize("verb", ["restart", "reload"])
def test_failure_quotes_the_journal(verb):
    systemd = SystemdStandin(fails=(verb,))
    with pytest.raises(KubegpuError) as caught:
        getattr(service, verb)(systemd, "docker")
    assert caught.value.cause == f"systemctl {verb} docker failed."
    assert caught.value.evidence == "dockerd: something broke"
    assert "journalctl --unit docker" in caught.value.next_step


def test_own_process_is_known():
    assert process_start_id(os.getpid()) == process_start_id(os.getpid())


def test_process_that_a_file_names(sleeper, tmp_path):
    show = f"LoadState=loaded\nActiveState=active\nMainPID={os.getpid()}\n"
    path = tmp_path / "containerd.pid"
    assert service.read_daemon(SystemdStandin(show), "k0sworker", str(path)).pid == os.getpid()
    path.write_text(f"{sleeper.pid}\n")
    daemon = service.read_daemon(SystemdStandin(show), "k0sworker", str(path))
    assert (daemon.pid, daemon.command_line) == (sleeper.pid, ("sleep", "60"))
    for words in ("", "none", "4194999"):
        path.write_text(words)
        assert service.read_daemon(SystemdStandin(show), "k0sworker", str(path)).pid == os.getpid()
