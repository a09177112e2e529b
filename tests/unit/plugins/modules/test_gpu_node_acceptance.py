# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``gpu_node_acceptance`` as Ansible starts it, with a stand-in of the programs for tests."""

from __future__ import annotations

import json
import os
import sys
import time

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.evidence_types import (
    DeviceUser,
)
from ansible_collections.kubegpu.nodes.plugins.modules import gpu_node_acceptance
from tests.testbed.paths import REPOSITORY
from tests.unit.module_process import predicted, run_module

STANDIN = REPOSITORY / "tests" / "testbed" / "files" / "acceptance" / "standin-gpu-tests"
SYSTEMCTL = """#!/bin/sh
echo "$@" >>{folder}/systemctl.calls
case "$1" in
show) echo LoadState=loaded; echo ActiveState=inactive; echo MainPID=0 ;;
esac
"""
RESULT = {"passed": True, "at": "2026-11-24T02:00:00+00:00", "level": "quick", "driver": "580",
          "gpus": ["GPU-a"], "tests": [], "causes": []}  # fmt: skip


class Node:
    """A folder with the programs, and what they print."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self.users = ()
        self._scenario = folder / "scenario.json"
        programs = folder / "bin"
        programs.mkdir()
        for name in ("dcgmi", "nvbandwidth", "gpu_burn"):
            # Not by its first line: the interpreter of the tests is at hand everywhere.
            program = programs / name
            text = STANDIN.read_text(encoding="utf-8")
            program.write_text(text.replace("#!/usr/bin/python3", f"#!{sys.executable}", 1))
            program.chmod(0o755)
        (programs / "compare.ptx").touch()
        systemctl = programs / "systemctl"
        systemctl.write_text(SYSTEMCTL.format(folder=folder))
        systemctl.chmod(0o755)
        self.programs = programs
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        monkeypatch.setenv("STANDIN_ACCEPTANCE", str(self._scenario))
        monkeypatch.setattr(gpu_node_acceptance, "find_users", lambda _reader: self.users)
        apply = sys.modules[gpu_node_acceptance.run_test.__module__]
        monkeypatch.setattr(apply, "_UNTIL_ENGINE", 0)

    def run(self, step, **options):
        given = {"step": step, "state_path": str(self.folder / "state" / "state.json"), **options}
        return run_module(gpu_node_acceptance.main, given)

    def test(self, name, how="pass", check=False, **options):
        self._scenario.write_text(json.dumps({name_of(name): how, "gpus": 2}))
        given = {"step": "test", "test": name, "program": str(self.programs / name_of(name)),
                 "timeout": 20, "gpus": 2, **options}  # fmt: skip
        return run_module(gpu_node_acceptance.main, given, check=check)

    def calls(self):
        path = self.folder / "scenario.json.calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def units(self):
        path = self.folder / "systemctl.calls"
        return path.read_text().splitlines() if path.exists() else []

    def left(self):
        """Return the processes of a stand-in that hangs."""
        pids = [path.name.split(".")[-2] for path in self.folder.glob("scenario.json.*.pid")]
        assert pids
        return [pid for pid in pids if is_running(pid)]


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as handle:
            return handle.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def name_of(test):
    return {"dcgm": "dcgmi"}.get(test, test)


@pytest.fixture
def node(tmp_path, monkeypatch):
    return Node(tmp_path, monkeypatch)


def codes(answer):
    return [(one["code"], one["severity"]) for one in answer["findings"]]


def test_what_is_there_and_what_computes(node):
    nvml = ("/dev/nvidiactl", "/dev/nvidia0")
    cuda = (*nvml, "/dev/nvidia-uvm")
    node.users = (
        DeviceUser(7, "nvidia-device-p", nvml, "container 3f2a9c1d5e6b"),
        DeviceUser(8, "nv-hostengine", cuda, "nvidia-dcgm.service"),
        DeviceUser(9, "python", cuda, "container 4f2a9c1d5e6b"),
    )
    answer = node.run("look", programs={"gpu_burn": "/nowhere/gpu_burn"})
    assert answer["users"] == ["python (pid 9, container 4f2a9c1d5e6b)"]
    assert answer["programs"] == {
        "dcgm": str(node.programs / "dcgmi"),
        "nvbandwidth": str(node.programs / "nvbandwidth"),
        "gpu_burn": None,
    }
    assert answer["changed"] is False


def test_a_test_is_not_run_in_check_mode(node):
    answer = node.test("dcgm", "hangs", check=True)
    assert answer["ran"] is False and answer["argv"][1:] == ["diag", "--run", "1", "--json"]
    assert node.calls() == [] and node.units() == [] and answer["changed"] is False


def test_nothing_is_run_beside_a_program(node):
    node.users = (DeviceUser(9, "python", ("/dev/nvidia-uvm",), None),)
    answer = node.test("dcgm")
    assert codes(answer) == [("gpus_in_use", "error")] and answer["ran"] is False
    assert "python (pid 9)" in answer["findings"][0]["evidence"] and node.calls() == []


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("pass", []),
        ("dcgm 3", []),
        ("fail 30 4", [("dcgm_failed", "error")]),
        ("dcgm 3 fail", [("dcgm_failed", "error")]),
        ("warn 42 1", [("dcgm_warned", "warning")]),
        ("skip", [("dcgm_nothing_tested", "error")]),
        ("busy", [("dcgm_not_run", "error")]),
        ("no engine", [("dcgm_not_run", "error")]),
    ],
)
def test_what_the_diag_prints_is_judged(node, how, expected):
    answer = node.test("dcgm", how, diag_level=2)
    assert codes(answer) == expected and answer["ran"] is True
    assert node.calls() == [["dcgmi", "diag", "--run", "2", "--json"]]
    if how == "fail 30 4":
        (found,) = answer["findings"]
        assert (found["error_id"], found["error"], found["action"]) == (
            30,
            "LOW_BANDWIDTH",
            "triage",
        )
        assert found["subject"] == "GPU 1" and "nvidia-bug-report.sh" in found["next_step"]
    if how == "busy":
        assert "already running" in answer["findings"][0]["evidence"]


def test_the_engine_of_dcgm_runs_only_for_its_test(node):
    node.test("dcgm")
    assert [line.split()[0] for line in node.units()] == ["show", "start", "stop"]
    node.test("nvbandwidth")
    assert len(node.units()) == 3


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("pass", []),
        ("slow", [("bandwidth_low", "error")]),
        ("error", [("nvbandwidth_not_run", "error")]),
    ],
)
def test_bandwidths(node, how, expected):
    answer = node.test("nvbandwidth", how, thresholds={"h2d": 50})
    assert codes(answer) == expected
    assert node.calls()[0][:3] == ["nvbandwidth", "--json", "--testcase"]
    if how == "pass":
        assert answer["measured"]["h2d"] == {"0": 55.61, "1": 55.61} and answer["version"] == "v0.8"


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("pass", []),
        ("faulty", [("gpu_burn_faulty", "error")]),
        ("dies", [("gpu_burn_not_run", "error")]),
    ],
)
def test_burning(node, how, expected):
    assert codes(node.test("gpu_burn", how, minutes=1)) == expected
    kernel = str(node.programs / "compare.ptx")
    assert node.calls() == [["gpu_burn", "-m", "90%", "-tc", "-c", kernel, "60"]]


def test_a_link_to_gpu_burn_finds_its_kernel(node):
    link = node.folder / "gpu_burn"
    link.symlink_to(node.programs / "gpu_burn")
    node.test("gpu_burn", program=str(link), minutes=1)
    assert str(node.programs / "compare.ptx") in node.calls()[0]


def test_a_test_that_hangs_ends_with_all_that_it_started(node, monkeypatch):
    monkeypatch.setattr(sys.modules[gpu_node_acceptance.run_test.__module__], "_UNTIL_KILL", 1)
    begin = time.monotonic()
    answer = node.test("dcgm", "hangs", timeout=1)
    assert codes(answer) == [("test_timed_out", "error")] and time.monotonic() - begin < 15
    assert "did not end in 1 seconds" in answer["findings"][0]["cause"]
    assert node.left() == []
    # Also then what was started for the test is stopped.
    assert node.units()[-1].startswith("stop")


def test_the_result_is_kept_once_and_forgotten(node):
    given = {"step": "keep", "result": RESULT, "state_path": str(node.folder / "s" / "state.json")}
    first = predicted(gpu_node_acceptance.main, given)
    assert first["changed"] and first["diff"]["after"] == {"acceptance": RESULT}
    assert not predicted(gpu_node_acceptance.main, given)["changed"]
    forget = {**given, "step": "forget", "result": None}
    assert predicted(gpu_node_acceptance.main, forget)["changed"]
    assert not predicted(gpu_node_acceptance.main, forget)["changed"]
    assert not (node.folder / "s" / "state.json").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"step": "keep", "result": {"passed": "yes"}}, "not a result of an acceptance"),
        ({"step": "test", "test": "dcgm", "program": "/x", "timeout": 0}, "timeout is 0"),
        ({"step": "test", "test": "dcgm", "program": "/x", "timeout": 9, "diag_level": 5},
         "diag_level"),
        ({"step": "test", "test": "dcgm", "program": "/x", "timeout": 9,
          "thresholds": {"h2d": "x"}}, "thresholds.h2d"),
        ({"step": "test"}, "step is test but all of the following are missing"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_refused(node, options, words):
    answer = node.run(**options)
    assert answer["failed"] and words in answer["msg"] and node.calls() == []
