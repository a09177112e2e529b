# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CDI specification of AMD GPUs: made once, made again for other devices, undone."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.installed import Package
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.amd_cdi import (
    read_amd_specification,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.amd_cdi_apply import (
    AmdCdiRequest,
    Dependencies,
    absent,
    present,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.amd_facts import (
    read_amd_toolkit,
)


def specification(*numbers):
    """Return what amd-ctk 1.3.0 writes (internal/cdi/cdi.go)."""
    kfd = {"path": "/dev/kfd", "type": "c", "major": 511, "fileMode": 432, "permissions": "rwm"}
    nodes = [{**kfd, "path": f"/dev/dri/renderD{number}"} for number in numbers]
    devices = [
        {"name": str(index), "containerEdits": {"deviceNodes": [one, kfd]}}
        for index, one in enumerate(nodes)
    ]
    every = {"name": "all", "containerEdits": {"deviceNodes": [*nodes, kfd]}}
    spec = {"cdiVersion": "0.6.0", "kind": "amd.com/gpu", "devices": [*devices, every]}
    return json.dumps({**spec, "containerEdits": {}}, indent=2) + "\n"


class Machine:
    """A node whose amd-ctk writes what its topology has."""

    def __init__(self, tmp_path):
        self.root = tmp_path
        self.devices = tmp_path / "dev/dri"
        self.devices.mkdir(parents=True)
        self.spec = tmp_path / "etc/cdi/amd.json"
        self.state = tmp_path / "state.json"
        self.knows = (128, 129)
        self.answer = Result(0, "Generated CDI spec\n", "")
        self.calls = []

    def have(self, *numbers):
        for old in self.devices.iterdir():
            old.unlink()
        for number in numbers:
            (self.devices / f"renderD{number}").touch()
        (self.devices / "card1").touch()

    def run(self, argv, timeout=30, **_more):
        self.calls.append(argv)
        if self.answer.rc == 0:
            text = specification(*self.knows).replace("/dev/dri", str(self.devices))
            output = argv[-1].partition("=")[2]
            assert output.endswith("/amd.json")
            (self.root / "made.json").write_text(text)
            (self.root / "made.json").rename(output)
        return self.answer

    def call(self, act, check_mode=False):
        request = AmdCdiRequest(str(self.spec), "/usr/bin/amd-ctk", str(self.devices))
        node = Dependencies(self.run, StateStore(str(self.state)), str(self.root))
        return act(request, node, check_mode)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    made = Machine(tmp_path)
    # The paths of a tree instead of the node's.
    monkeypatch.setattr(
        "ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.amd_cdi._RENDER",
        f"{made.devices}/renderD",
    )
    made.have(128, 129)
    return made


def test_check_run_again_other_devices_and_absent(machine):
    predicted = machine.call(present, check_mode=True)
    assert not machine.spec.exists() and machine.calls == []
    assert machine.call(present) == predicted
    assert predicted["changed"] and predicted["diff"]["after"].endswith("renderD129\n")
    assert json.loads(machine.spec.read_text())["kind"] == "amd.com/gpu"
    assert machine.call(present)["changed"] is False and len(machine.calls) == 1
    # A card that amd-ctk does not know makes it run once, and not in each run.
    machine.have(128, 129, 130)
    predicted = machine.call(present, check_mode=True)
    assert machine.call(present) == predicted and predicted["changed"]
    assert machine.call(present)["changed"] is False and len(machine.calls) == 2
    # A card that is gone.
    machine.have(128)
    machine.knows = (128,)
    assert "renderD129, renderD130" in machine.call(present)["reasons"][0] or machine.calls
    assert machine.call(present)["changed"] is False
    predicted = machine.call(absent, check_mode=True)
    assert machine.spec.exists()
    assert machine.call(absent) == predicted and predicted["changed"]
    assert not machine.spec.exists() and not machine.state.exists()
    assert machine.call(absent)["changed"] is False


def test_what_was_there_before_comes_back(machine):
    machine.spec.parent.mkdir(parents=True)
    before = specification(7).replace("/dev/dri", str(machine.devices))
    machine.spec.write_text(before)
    machine.spec.chmod(0o600)
    assert "renderD7, which is not there" in machine.call(present)["reasons"][0]
    assert machine.spec.stat().st_mode & 0o777 == 0o600
    machine.call(absent)
    assert machine.spec.read_text() == before


def test_what_another_program_wrote_since_stays(machine):
    machine.call(present)
    machine.spec.write_text("{}\n")
    assert machine.call(absent)["changed"] is False
    assert machine.spec.read_text() == "{}\n"


@pytest.mark.parametrize(
    ("answer", "knows", "words"),
    [
        (Result(1, "", "amdgpu driver unavailable"), (), "made no CDI specification"),
        (Result(0, "", ""), (), "has no GPU"),
    ],
)
def test_what_amd_ctk_cannot_make_is_written_nowhere(machine, answer, knows, words):
    machine.answer, machine.knows = answer, knows
    with pytest.raises(KubegpuError, match=words):
        machine.call(present)
    assert not machine.spec.exists() and not machine.state.exists()


@pytest.mark.parametrize("text", [None, "", "[]", "{", '{"kind": "nvidia.com/gpu"}', "[" * 9999])
def test_what_is_no_specification_of_amd(text):
    assert read_amd_specification(text) is None


def test_facts(tmp_path):
    (tmp_path / "etc/cdi").mkdir(parents=True)
    (tmp_path / "etc/cdi/amd.json").write_text(specification(128))
    (tmp_path / "dev/dri").mkdir(parents=True)
    for name in ("renderD129", "renderD128", "card1"):
        (tmp_path / "dev/dri" / name).touch()
    record = {
        "values": {"package_set_preserved:amd-container-toolkit": [{"path": "/etc/cdi/x"}]},
        "files": {"cdi_specification:amd:/etc/cdi/amd.json": {
            "details": {"nodes": ["/dev/dri/renderD128"]}}},
    }  # fmt: skip
    package = Package("amd-container-toolkit", "1.3.0~24.04", "amd64", held=True)
    reader = NodeReader(str(tmp_path))
    assert read_amd_toolkit(reader, [package], record) == {
        "version": "1.3.0~24.04",
        "held": True,
        "cdi_spec": {
            "path": "/etc/cdi/amd.json",
            "devices": ["0", "all"],
            "nodes": ["/dev/dri/renderD128"],
            "made_for": ["/dev/dri/renderD128"],
        },
        "render_nodes": ["/dev/dri/renderD128", "/dev/dri/renderD129"],
        "interrupted": ["/etc/cdi/x"],
    }
    (tmp_path / "etc/cdi/amd.json").unlink()
    bare = read_amd_toolkit(reader, [], None)
    assert (bare["version"], bare["cdi_spec"], bare["interrupted"]) == (None, None, [])
