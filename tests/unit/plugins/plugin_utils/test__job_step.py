# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a detached job does, from the processes of a node."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._job_step import (
    Job,
    look_command,
    read_job,
)

# As the command prints it: files of the wrapper, uptime, then pid, ppid, start and name.
HEAD = "/proc/40/cmdline\n/proc/41/cmdline\n1000.00 3999.12\n"
APT = "40 1 80000 python3\n41 40 80000 python3\n50 41 80100 python3\n51 50 80200 apt-get\n"
DPKG = APT + "60 51 85000 dpkg\n61 60 86000 nvidia-dkms-580\n"


@pytest.mark.parametrize(
    ("processes", "step", "seconds"),
    [
        (APT, "", None),
        (APT + "52 51 80300 http\n53 51 80310 https\n", "packages are downloaded", 197.0),
        (DPKG, "packages are unpacked and configured", 150.0),
        # Below dpkg, and with compilers below it.
        (DPKG + "62 61 88000 dkms\n63 62 88100 make\n", "DKMS builds kernel modules", 120.0),
        (DPKG + "64 61 99000 update-initramf\n", "the initial RAM disk is made", 10.0),
        (APT + "70 50 90000 make\n", "kernel modules are compiled", 100.0),
        # Of the other processes of the node, none counts.
        (APT + "90 1 99000 dkms\n91 90 99000 make\n", "", None),
        # A name is anybody's; this is neither a line of its own nor a child of the job.
        (APT + "90 1 99000 x y) S 50\n", "", None),
        # Nor does one whose name is a file's, or what it has started.
        (APT + "7 1 99000 bash\n90 7 99000 dkms\n91 1 99000 /proc/7/cmdline\n", "", None),
    ],
)
def test_the_step_is_that_of_the_job_s_own_processes(processes, step, seconds):
    assert read_job(HEAD + processes) == Job(True, step, seconds)
    # As a terminal has it.
    assert read_job((HEAD + processes).replace("\n", "\r\n")) == Job(True, step, seconds)


def test_without_a_wrapper_the_job_has_ended():
    assert read_job("1000.00 3999.12\n" + DPKG) == Job(alive=False)
    assert read_job("1000.00 3999.12\r\n" + DPKG) == Job(alive=False)


def test_no_output_says_nothing_of_the_job():
    assert read_job("") is None
    assert read_job("Connection to 192.0.2.1 closed.\r\n") is None


def test_a_process_s_name_is_no_wrapper():
    assert read_job("1000.00 3999.12\n91 1 99000 /proc/7/cmdline\n") == Job(alive=False)


def test_a_clock_that_runs_elsewhere_tells_no_time():
    """The uptime of a container may be its own, and the start of a process the machine's."""
    text = "/proc/41/cmdline\n10.00 10.00\n" + DPKG
    assert read_job(text) == Job(True, "packages are unpacked and configured", None)
    assert read_job("/proc/41/cmdline\n" + DPKG).seconds is None


def test_the_command_finds_a_real_process_and_its_children():
    word = "j4711word"
    code = "import subprocess, sys; print(1, flush=True); subprocess.run(['cat'])"
    with subprocess.Popen(
        [sys.executable, "-c", code, word], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        process.stdout.readline()
        command = look_command(word)
        text = subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, check=True
        ).stdout
        process.stdin.close()
    assert f"/proc/{process.pid}/cmdline\n" in text
    assert read_job(text) == Job(alive=True)
    # Its own shell, whose command line has the word too, is not found.
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert read_job(ended.stdout) == Job(alive=False)


LOCKS = """\
lock-inode 4711
lock-inode 4712
1: POSIX  ADVISORY  WRITE 77 fe:00:9999 0 EOF
2: POSIX  ADVISORY  WRITE {pid} fe:00:4711 0 EOF
3: POSIX  ADVISORY  READ 1 fe:00:4712 0 EOF
4: FLOCK  ADVISORY  WRITE 1 fe:00:5 0 EOF
"""


def test_a_lock_that_another_process_holds_is_told():
    """Azure/aks-engine#1538: unattended-upgrades holds the lock of dpkg."""
    other = "4000 1 1000 unattended-upgr\n"
    job = read_job(HEAD + other + LOCKS.format(pid=4000))
    step = "waits for the package manager's lock, held by unattended-upgr (process 4000)"
    assert job == Job(True, step)
    gone = read_job(HEAD + LOCKS.format(pid=4001))
    assert gone is not None and gone.step.endswith("held by process 4001")


def test_a_lock_of_the_job_itself_is_no_wait():
    job = read_job(HEAD + DPKG + LOCKS.format(pid=51))
    assert job is not None and "lock" not in job.step


def test_locks_of_others_do_not_count():
    job = read_job(HEAD + "1: POSIX  ADVISORY  WRITE 77 fe:00:9999 0 EOF\n")
    assert job == Job(True)
