# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a loaded driver lacks, and who upgraded it, in the files of a node."""

from __future__ import annotations

import time

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.driver_trouble import (
    find_driver_trouble,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from tests.unit.fixtures.make_tree import write

BOOT = 1_795_000_000
SAME = {"loaded": "580.95.05", "installed": "580.95.05", "userland": "580.95.05"}
NEWER = {**SAME, "installed": "580.105.08", "userland": "580.105.08"}
INFORMATION = "Model: \t\t Tesla P4\nBus Location: \t 0000:00:05.0\nDevice Minor: \t {}\n"
GPUS = {
    f"/proc/driver/nvidia/gpus/0000:0{minor}:00.0/information": INFORMATION.format(minor)
    for minor in (0, 1)
}
DEVICES = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia1")
CAPABILITY = "/proc/driver/nvidia/capabilities/gpu0/mig/gi7/access"


def found(tmp_path, files, driver=None):
    for path, text in files.items():
        write(tmp_path, path, text)
    return find_driver_trouble(NodeReader(str(tmp_path)), driver or SAME)


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        ({}, None),
        ({**GPUS, **dict.fromkeys(DEVICES, "")}, None),
        ({**GPUS, **dict.fromkeys(DEVICES[:2], "")}, "/dev/nvidia1"),
        (GPUS, "/dev/nvidiactl, /dev/nvidia0, /dev/nvidia1"),
        (
            {**GPUS, **dict.fromkeys(DEVICES, ""), "/sys/module/nvidia_uvm/refcnt": "0"},
            "/dev/nvidia-uvm",
        ),
        (
            {**GPUS, **dict.fromkeys(DEVICES, ""), CAPABILITY: "DeviceFileMinor: 66\n"},
            "/dev/nvidia-caps/nvidia-cap66",
        ),
    ],
    ids=["no list of GPUs", "all", "a GPU", "without a file", "uvm", "an instance"],
)
def test_device_files_that_are_not_there(tmp_path, files, missing):
    problems = found(tmp_path, files)
    assert [one.code for one in problems] == (["device_nodes_missing"] if missing else [])
    if missing:
        assert problems[0].evidence == f"not in /dev: {missing}"


def test_without_a_loaded_driver_nothing_is_missed(tmp_path):
    assert found(tmp_path, GPUS, {**SAME, "loaded": None}) == []


def apt(moment, command, package="libnvidia-compute-580"):
    started = time.strftime("%Y-%m-%d  %H:%M:%S", time.localtime(moment))
    return (
        f"\nStart-Date: {started}\nCommandline: {command}\n"
        f"Upgrade: vim:amd64 (2:9.0, 2:9.1), {package}:amd64 (580.95.05-1, 580.105.08-1)\n"
        f"End-Date: {started}\n"
    )


UNATTENDED = "/usr/bin/unattended-upgrade --password hunter2"


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ([apt(BOOT + 60, UNATTENDED)], True),
        ([apt(BOOT + 60, UNATTENDED), apt(BOOT + 90, "apt-get upgrade", "vim")], True),
        ([apt(BOOT - 60, UNATTENDED)], False),
        ([apt(BOOT + 60, "apt-get upgrade")], False),
        ([apt(BOOT + 60, UNATTENDED, "libnvidia-container1")], False),
        (["Start-Date: yesterday\nCommandline: unattended-upgrade\nUpgrade: nvidia-x:a (1, 2)"],
         False),
    ],
    ids=["since boot", "not the last", "before it", "by hand", "the toolkit", "no time"],
)  # fmt: skip
def test_an_upgrade_by_apt(tmp_path, entries, told):
    files = {"/proc/stat": f"btime {BOOT}\n", "/var/log/apt/history.log": "\n".join(entries)}
    problems = found(tmp_path, files, NEWER)
    assert [one.code for one in problems] == (["upgraded_unattended"] if told else [])
    if told:
        assert "libnvidia-compute-580 580.95.05-1 -> 580.105.08-1" in problems[0].evidence
        # Of the command line only its program is told.
        assert "hunter2" not in str(problems) and "vim" not in problems[0].evidence
    assert found(tmp_path, files, SAME) == []


def dnf(moment, word="Upgrade", package="nvidia-driver-libs-3:580.105.08-1.el9.x86_64"):
    started = time.strftime("%Y-%m-%dT%H:%M:%S+0000", time.gmtime(moment))
    return f"{started} SUBDEBUG {word}: {package}\n"


@pytest.mark.parametrize(
    ("line", "timer", "told"),
    [
        (dnf(BOOT + 60), "dnf-automatic.timer", True),
        (dnf(BOOT + 60), "dnf-automatic-install.timer", True),
        (dnf(BOOT + 60), "dnf-makecache.timer", False),
        (dnf(BOOT - 60), "dnf-automatic.timer", False),
        (dnf(BOOT + 60, "Upgraded"), "dnf-automatic.timer", False),
    ],
)
def test_an_upgrade_by_dnf(tmp_path, line, timer, told):
    files = {
        "/proc/stat": f"btime {BOOT}\n",
        "/var/log/dnf.rpm.log": line,
        f"/etc/systemd/system/timers.target.wants/{timer}": "",
    }
    problems = found(tmp_path, files, NEWER)
    assert [one.code for one in problems] == (["upgraded_unattended"] if told else [])
    if told:
        assert problems[0].evidence.endswith(f"x86_64; {timer} is enabled")
