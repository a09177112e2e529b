# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which services are started, started anew or left alone after a change of the driver."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.loading import ModuleState
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.units import (
    NO_UNIT,
    enable_services,
    read_services,
    restore_mig,
    restore_services,
    start_services,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.components import BRIDGE_MODULE
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan import config_files
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan import (
    config_texts as texts,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from tests.unit.fixtures.driver_nodes import OK, StandinRunner

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
        files = {config_files.MODULES: texts.modules(*more.get("modules", ()))}
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
            module_state=lambda: ModuleState(users=users),
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
    node = Node(units=("nvidia-imex",), files={config_files.IMEX_NODES: None})
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


def test_the_mig_layout_is_made_again_where_the_node_has_one(tmp_path):
    node = Node(fails=["systemctl restart kubegpu-mig.service"])
    node.work.reader = NodeReader(str(tmp_path))
    restore_mig(node.work)
    assert node.calls == []
    (tmp_path / "etc/kubegpu").mkdir(parents=True)
    (tmp_path / "etc/kubegpu/mig-layout").touch()
    restore_mig(node.work)
    # The refresh that the module's load has started is stopped, and comes after the instances.
    assert node.calls == [
        "udevadm settle --timeout=30",
        "systemctl stop nvidia-cdi-refresh.service",
        "systemctl restart kubegpu-mig.service",
        "systemctl cat nvidia-cdi-refresh.service",
        "systemctl reset-failed nvidia-cdi-refresh.service",
        "systemctl restart nvidia-cdi-refresh.service",
    ]
    (warning,) = node.warnings
    assert "did not recreate the MIG layout" in warning


@pytest.mark.parametrize(
    ("fails", "warned"),
    [
        (("systemctl restart nvidia-cdi-refresh",), ["for the MIG instances: systemctl says no."]),
        # No toolkit, or one without the service.
        (("systemctl cat nvidia-cdi-refresh", "systemctl restart nvidia-cdi-refresh"), []),
    ],
)
def test_a_specification_that_is_not_made_for_the_instances_is_a_warning(tmp_path, fails, warned):
    (tmp_path / "etc/kubegpu").mkdir(parents=True)
    (tmp_path / "etc/kubegpu/mig-layout").touch()
    node = Node(fails=fails)
    node.work.reader = NodeReader(str(tmp_path))
    restore_mig(node.work)
    assert [text in warning for text, warning in zip(warned, node.warnings)] == [True] * len(warned)
    assert len(node.warnings) == len(warned)


def test_a_fabric_manager_that_does_not_start_says_why():
    node = Node(fails=("systemctl start nvidia-fabricmanager",))
    with pytest.raises(KubegpuError) as caught:
        start_services(node.work, "")
    assert "580.95.05" in caught.value.cause and "580.178.04" in caught.value.cause
    assert "nvidia_driver_branch" in caught.value.next_step


def test_services(tree):
    states = {"a.service": "disabled", "b.service": "enabled", "m.service": "masked"}

    def systemctl(argv):
        if argv[1] == "is-enabled":
            return Result(0, states.get(argv[-1], "not-found") + "\n", "")
        return OK

    run = StandinRunner(systemctl=systemctl)
    requested = dict.fromkeys("abmx", "enabled")
    assert read_services(run, requested)["x"] == NO_UNIT
    run.calls.clear()
    warnings = enable_services(run, requested, start=True)
    changes = [call for call in run.calls if "is-enabled" not in call and "reset" not in call]
    assert changes == [
        "systemctl enable a.service",
        "systemctl start a.service",
        "systemctl start b.service",
    ]
    assert len(warnings) == 2


def test_services_are_given_back(tree):
    run = StandinRunner(
        systemctl=lambda argv: Result(0, "enabled\n", "") if argv[1] == "is-enabled" else OK
    )
    restore_services(run, {"a": "disabled", "b": "enabled", "c": "not-found"})
    assert [call for call in run.calls if "disable " in call] == [
        "systemctl disable a.service",
        "systemctl disable c.service",
    ]


def test_without_systemctl_nothing_is_said_of_services():
    assert read_services(StandinRunner(), ["a"]) == {}
    assert enable_services(StandinRunner(), {"a": "enabled"}, start=True) == []


def test_a_service_that_does_not_start_is_an_error():
    def systemctl(argv):
        if argv[1] == "is-enabled":
            return Result(0, "enabled\n", "")
        return Result(1, "", "failed") if argv[1] == "start" else OK

    with pytest.raises(KubegpuError, match="start a failed"):
        enable_services(StandinRunner(systemctl=systemctl), {"a": "enabled"}, start=True)
