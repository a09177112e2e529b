# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes in the output of scontrol, and whose drain it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host_maintenance.slurm import (
    find_nodes,
    holder,
    is_ours,
    needs_resume,
    not_registered,
    other_drain,
    read_nodes,
    reason_of,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host_maintenance.types import Record

# In the form of Slurm 22.05.
LINE = (
    "NodeName={name} Arch=x86_64 CoresPerSocket=1 CPUAlloc={cpus} CPUEfctv=2 CPUTot=2 CPULoad=0.10 "
    "AvailableFeatures=(null) Gres=(null) NodeAddr=127.0.0.1 NodeHostName={host} Version=22.05.8 "
    "OS=Linux 6.1.0 #1 SMP RealMemory=1 Sockets=2 Boards=1 State={state} ThreadsPerCore=1 "
    "BootTime=2026-11-23T10:00:00 SlurmdStartTime=2026-11-23T11:00:00 "
    "CfgTRES=cpu=2,mem=1M,billing=2 AllocTRES= CapWatts=n/a{reason}"
)
OURS = reason_of("gpu-upgrade")
MISSING = "gres/gpu count reported lower than configured (0 < 8)"


def text(state="IDLE", reason="", name="gpu-0", host="rack1", cpus=0):
    shown = f" Reason={reason} [root@2026-11-23T12:00:00]" if reason else ""
    return LINE.format(name=name, host=host, state=state, cpus=cpus, reason=shown)


def node(*given, **more):
    (found,) = read_nodes(text(*given, **more))
    return found


@pytest.mark.parametrize(
    ("state", "drained", "busy", "responds"),
    [
        ("IDLE", False, False, True),
        ("IDLE+DRAIN", True, False, True),
        ("MIXED+DRAIN", True, True, True),
        ("ALLOCATED", False, True, True),
        ("IDLE+COMPLETING+DRAIN", True, True, True),
        ("DOWN*+DRAIN", True, False, False),
        ("IDLE+DRAIN+NOT_RESPONDING", True, False, False),
        ("DOWN", True, False, True),
    ],
)
def test_states(state, drained, busy, responds):
    found = node(state)
    assert (found.drained, found.busy, found.responds) == (drained, busy, responds)


def test_a_node_with_allocated_processors_is_busy_whatever_its_state_is():
    assert node("DOWN+DRAIN", cpus=2).busy


def test_a_reason_is_read_without_user_and_time_and_cannot_fake_a_state():
    found = node("IDLE+DRAIN", "fan State=IDLE NodeName=x broken")
    assert (found.name, found.flags) == ("gpu-0", {"DRAIN"})
    assert found.reason == "fan State=IDLE NodeName=x broken"
    assert node().reason == ""
    assert read_nodes("slurm_load_node error: x\n\n") == []


def test_a_host_is_found_by_its_name_in_slurm():
    lines = [text(), text(name="rack1", host="rack2"), text(name="a", host="b")]
    nodes = read_nodes("\n".join(lines))
    assert [one.name for one in find_nodes(nodes, "rack1.example.com")] == ["gpu-0"]
    assert [one.name for one in find_nodes(nodes, "rack2")] == ["rack1"]
    assert find_nodes(nodes, "gpu-0") == []


@pytest.mark.parametrize(
    ("state", "reason", "was_drained", "resumed", "noted"),
    [
        ("IDLE+DRAIN", OURS, False, True, False),
        ("IDLE+DRAIN", f"{OURS} : Not responding", False, True, False),
        ("DOWN", "Node unexpectedly rebooted", False, True, False),
        # Drained by hand before, or by somebody meanwhile.
        ("IDLE+DRAIN", "fan broken", True, False, False),
        ("DOWN", "Node unexpectedly rebooted", True, False, False),
        # The GPUs were missing while the driver was changed, and are there again, or are not.
        ("IDLE+DRAIN", MISSING, False, True, False),
        ("IDLE+DRAIN", "gres/gpu count too low (0 < 8)", False, True, False),
        ("IDLE+DRAIN", MISSING, True, False, False),
        ("IDLE+DRAIN+INVALID_REG", MISSING, False, False, True),
        ("IDLE+DRAIN+INVALID_REG", OURS, False, True, False),
        ("IDLE+DRAIN", "fan broken", False, False, True),
        ("IDLE+DRAIN", reason_of("gpu-upgrade-2"), False, False, True),
        # Somebody resumed it.
        ("IDLE", "", False, False, False),
    ],
)
def test_only_our_drain_is_taken_back(state, reason, was_drained, resumed, noted):
    record = Record("gpu-upgrade", was_drained=was_drained)
    found = node(state, reason)
    assert needs_resume(found, record) is resumed
    assert bool(other_drain(found, record)) is noted


def test_who_holds_a_node():
    assert holder(node("IDLE+DRAIN", reason_of("another run"))) == "another run"
    assert holder(node("IDLE+DRAIN", "fan broken")) == ""
    # A reason stays after a resume.
    assert holder(node("IDLE", OURS)) == ""
    assert is_ours(node("IDLE+DRAIN", OURS), "gpu-upgrade")
    assert not is_ours(node("IDLE+DRAIN", OURS), "gpu")


def test_a_registration_that_slurm_refuses_is_not_ready():
    """Nodes of a public report: awslabs/awsome-distributed-ai#195 (2024)."""
    path = Path(__file__).parents[3] / "fixtures" / "slurm" / "slurm195-inval.txt"
    nodes = {one.name: one for one in read_nodes(path.read_text())}
    assert [one.ready for one in nodes.values()] == [False, False, False]
    assert all(one.responds for one in nodes.values())
    evidence = {name: not_registered(one).evidence for name, one in nodes.items()}
    # Our own reason explains nothing.
    assert evidence["gpu1"] == "State=IDLE+DRAIN+INVALID_REG"
    assert evidence["gpu2"] == f"State=IDLE+INVALID_REG, Reason={MISSING}"


@pytest.mark.parametrize(
    ("state", "ready"),
    [("IDLE", True), ("IDLE+INVALID_REG", False), ("INVAL", False), ("IDLE*+INVALID_REG", False),
     ("MIXED+INVALID_REG", False), ("IDLE*", False), ("DOWN+INVALID_REG", False)],
)  # fmt: skip
def test_which_states_are_ready(state, ready):
    assert node(state).ready is ready
