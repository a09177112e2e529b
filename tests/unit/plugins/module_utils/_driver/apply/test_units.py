# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which services are started, started anew or left alone after a change of the driver."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply import host as machine
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.units import (
    start_services,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan import (
    config_files as texts,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.fabric import BRIDGE_MODULE
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.record import Look
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader

OLD = {"nvidia-fabricmanager-580": "580.95.05-1", "nvidia-imex-580": "580.95.05-1"}
NEW = {"nvidia-fabricmanager-580": "580.178.04-1", "nvidia-imex-580": "580.95.05-1"}
MISMATCH = (
    "fabric manager NVIDIA GPU driver interface version 580.95.05 don't match with driver version "
    "580.178.04. Please update with matching NVIDIA driver package."
)


class Node:
    """A node whose units are enabled; ``fails`` are the beginnings of commands that fail."""

    def __init__(self, before=None, units=("nvidia-fabricmanager",), users=(), fails=(), **more):
        self.calls, self.warnings, self.fails = [], [], fails
        services = dict.fromkeys(("nvidia-persistenced", *units), "enabled")
        files = {texts.MODULES: texts.modules(*more.get("modules", ()))}
        self.work = SimpleNamespace(
            run=self.run,
            warn=self.warnings.append,
            plan=SimpleNamespace(services=services, files=files),
            daemons=tuple(units),
            pending={
                "before": {"packages": NEW if before is None else before},
                "files": more.get("files", {}),
            },
            facts={"driver": {"packages": NEW, "loaded": more.get("loaded", "580.178.04")}},
            look=lambda: Look(users=users),
        )

    def run(self, argv, timeout=60, environment=None):
        words = " ".join(argv)
        self.calls.append(words)
        if any(words.startswith(one) for one in self.fails):
            return Result(1, "", f"{argv[0]} says no")
        if argv[0] == "journalctl":
            return Result(0, MISMATCH, "")
        return Result(0, "enabled\n", "")

    def started(self):
        """Return what was started (+) and started anew (!)."""
        marks = {"start": "+", "restart": "!"}
        found = [call.split() for call in self.calls if call.startswith("systemctl")]
        return [marks[one[1]] + one[2].split(".")[0] for one in found if one[1] in marks]


def test_services_are_started():
    node = Node(units=("nvidia-fabricmanager", "nvidia-imex"))
    start_services(node.work, "")
    assert node.started() == ["+nvidia-persistenced", "+nvidia-fabricmanager", "+nvidia-imex"]
    assert node.warnings == [] and not any("modprobe" in call for call in node.calls)


def test_a_part_that_was_changed_is_started_anew():
    node = Node(before=OLD, units=("nvidia-fabricmanager", "nvidia-imex"))
    start_services(node.work, "")
    assert node.started() == ["+nvidia-persistenced", "!nvidia-fabricmanager", "+nvidia-imex"]
    node = Node(units=("nvidia-imex",), files={texts.IMEX_NODES: None})
    start_services(node.work, "")
    assert node.started() == ["+nvidia-persistenced", "!nvidia-imex"]


def test_what_computes_is_not_aborted():
    node = Node(before=OLD, users=("python3 (pid 12)",))
    start_services(node.work, "")
    assert node.started() == ["+nvidia-persistenced", "+nvidia-fabricmanager"]
    assert "python3 (pid 12)" in node.warnings[0] and "systemctl restart" in node.warnings[0]


def test_parts_of_another_version_than_the_loaded_module_wait_for_the_boot():
    # Whether they came now or in an earlier run: neither of them would start.
    for before in (OLD, NEW, {}):
        node = Node(before=before, loaded="580.82.07")
        start_services(node.work, "580.82.07 is loaded")
        assert node.started() == ["+nvidia-persistenced"]
    node = Node(loaded=None)
    start_services(node.work, "The driver is loaded by a boot.")
    assert node.started() == ["+nvidia-persistenced"]


def test_what_was_stopped_for_a_module_that_stays_is_started_again():
    both = ("nvidia-fabricmanager", "nvidia-imex")
    stays = "A module that is loaded cannot be unloaded: rmmod: nvidia is in use"
    # IMEX is of the version before: it is not started beside another driver.
    node = Node(units=both)
    start_services(node.work, stays)
    assert node.started() == ["+nvidia-persistenced", "+nvidia-fabricmanager"]


def test_switches_behind_bridges_are_reached_first():
    node = Node(modules=(BRIDGE_MODULE,))
    start_services(node.work, "")
    assert node.calls[0] == "modprobe ib_umad" and node.warnings == []
    node = Node(modules=(BRIDGE_MODULE,), fails=("modprobe",))
    start_services(node.work, "")
    assert "linux-modules-extra" in node.warnings[0]
    assert "+nvidia-fabricmanager" in node.started()


def test_a_fabric_manager_that_does_not_start_says_why():
    node = Node(fails=("systemctl start nvidia-fabricmanager",))
    with pytest.raises(KubegpuError) as caught:
        start_services(node.work, "")
    assert "580.95.05" in caught.value.cause and "580.178.04" in caught.value.cause
    assert "nvidia_driver_branch" in caught.value.next_step


def test_daemons_of_ours_are_no_users_and_are_stopped_for_a_change(tmp_path):
    for pid, comm, unit in (
        ("10", "nv-fabricmanage", "nvidia-fabricmanager.service"),
        ("11", "nvidia-imex", "nvidia-imex.service"),
    ):
        folder = tmp_path / "proc" / pid / "fd"
        folder.mkdir(parents=True)
        (folder / "3").symlink_to("/dev/nvidiactl")
        (folder.parent / "comm").write_text(f"{comm}\n")
        (folder.parent / "cgroup").write_text(f"0::/system.slice/{unit}\n")
    version = tmp_path / "sys/module/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text("580.95.05\n")
    reader = NodeReader(str(tmp_path))
    ours = ("nvidia-fabricmanager",)
    # What an admin runs without us is named, and not stopped.
    assert machine.look_around(reader, ours).users == ("nvidia-imex (pid 11, nvidia-imex.service)",)
    node = Node()
    assert machine.Modules(node.run, reader, ours).unload() is None
    assert node.calls == [
        "systemctl stop nvidia-persistenced",
        "systemctl stop nvidia-fabricmanager.service",
    ]
