# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from plugins.module_utils._core.errors import KubegpuError, RolledBackError
from plugins.module_utils._exporter import apply as module
from plugins.module_utils._exporter import data, files
from plugins.module_utils._exporter.apply import Dependencies, absent, present
from plugins.module_utils._exporter.options import read_options
from plugins.module_utils._exporter.record import RECORD, Record
from plugins.module_utils._host.command import Result
from plugins.module_utils._record.store import StateStore
from tests.unit.fixtures.node_facts import node as facts

COUNTERS = "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\n"
PATHS = [name for name in vars(data) if name.endswith("_PATH")]


class ExporterNode:
    """A node below a folder, with a systemd that knows the units of packages and of files.

    ``fail`` is a command that fails, such as ``start kubegpu-metrics.service``.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.directory = root / "textfiles"
        self.directory.mkdir()
        self.commands: list[str] = []
        self.warnings: list[str] = []
        self.enabled: set[str] = set()
        self.active: set[str] = set()
        self.packaged: set[str] = set()
        self.fail = ""
        self.ports = {9400}

    def run(self, argv, timeout=60, environment=None):
        if argv[0] == "journalctl":
            return Result(0, "its last words\n", "")
        verb, unit = argv[1], argv[-1]
        if verb == "show":
            unit = argv[2]
            state = "active" if unit in self.active else "inactive"
            load = "loaded" if self._exists(unit) else "not-found"
            return Result(0, f"LoadState={load}\nActiveState={state}\nMainPID=0\n", "")
        if verb == "is-enabled":
            return Result(0 if unit in self.enabled else 1, "", "")
        self.commands.append(" ".join(argv[1:]))
        if self.commands[-1] == self.fail:
            return Result(1, "", "it failed")
        if verb == "enable":
            self.enabled.add(unit)
        if verb in ("start", "restart"):
            self.active.add(unit)
            if unit == "kubegpu-metrics.service":
                (self.directory / "kubegpu.prom").write_text("kubegpu_gpus_expected 1\n")
                Path(data_path(self, "STATE_PATH")).parent.mkdir(parents=True, exist_ok=True)
                Path(data_path(self, "STATE_PATH")).write_text("{}\n")
        if verb == "disable":
            self.enabled.discard(unit)
            self.active.discard(unit)
        return Result(0, "", "")

    def _exists(self, unit):
        name = unit if "." in unit else f"{unit}.service"
        return unit in self.packaged or bool(list(self.root.rglob(name)))

    def facts(self):
        node = facts()
        record = Record.from_json(self.store.get(RECORD))
        node["exporter"].update(
            method=record.method if record else "",
            expected_gpus=list(record.gpus) if record else [],
            files={
                path: hashlib.sha256(Path(path).read_bytes()).hexdigest()
                for path in (data_path(self, name) for name in PATHS)
                if Path(path).exists() and not path.endswith("state.json")
            },
            enabled=sorted(self.enabled),
            units={unit: "active" if unit in self.active else None for unit in UNITS},
            packages_managed=bool(self.packaged),
            packages={
                "datacenter-gpu-manager-4-core": "1:4.6.1-1",
                "datacenter-gpu-manager-exporter": "4.8.4-1",
            },
            textfile_directories=[str(self.directory)],
        )
        return node

    @property
    def store(self):
        return StateStore(f"{self.root}/state/state.json")

    def dependencies(self):
        return Dependencies(
            self.run,
            self.store,
            self.facts,
            self.ports.__contains__,
            self.warnings.append,
            lambda seconds: None,
        )

    def present(self, method, check_mode=False, **options):
        request = read_options({"method": method, "counters": COUNTERS, **options})
        return present(request, self.dependencies(), check_mode)

    def absent(self, check_mode=False):
        return absent(self.dependencies(), check_mode)

    def left(self):
        """Return the files beside the empty folder of node_exporter."""
        return sorted(
            str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()
        )


UNITS = (*data.UNITS, "kubegpu-metrics.timer")


def data_path(node, name):
    return f"{node.root}{getattr(data, name)}"


@pytest.fixture
def node(tmp_path, monkeypatch):
    made = ExporterNode(tmp_path)
    for name in PATHS:
        for one in (files, module):
            if hasattr(one, name):
                monkeypatch.setattr(one, name, data_path(made, name))
    monkeypatch.setattr(module, "PATHS", tuple(f"{tmp_path}{path}" for path in data.PATHS))
    return made


@pytest.mark.parametrize("method", ["textfile", "packages", "container"])
def test_set_up_again_and_remove(node, method):
    if method == "packages":
        node.packaged = {"nvidia-dcgm", "nvidia-dcgm-exporter"}
    before = node.left()
    predicted = node.present(method, check_mode=True)
    assert node.left() == before
    assert node.commands == []
    result = node.present(method)
    assert result["changed"]
    assert (result["diff"], result["plan"]) == (predicted["diff"], predicted["plan"])
    wanted = files.setup(method, read_options({"method": method}), node.facts(), ())
    assert set(wanted.units) <= node.enabled & node.active
    record = Record.from_json(node.store.get(RECORD))
    assert bool(record.output) == (method == "textfile")
    assert record.page == ("" if record.output else "http://127.0.0.1:9400/metrics")
    node.commands.clear()
    again = node.present(method)
    assert (again["changed"], again["diff"], node.commands) == (False, [], [])
    assert node.absent(check_mode=True)["changed"]
    assert node.absent()["changed"]
    assert node.left() == before
    assert not node.enabled
    assert not node.absent()["changed"]


def test_units_that_were_enabled_before_stay(node):
    node.packaged = {"nvidia-dcgm", "nvidia-dcgm-exporter"}
    node.enabled = {"nvidia-dcgm"}
    node.present("packages")
    node.absent()
    assert node.enabled == {"nvidia-dcgm"}


def test_only_what_changed_is_restarted(node):
    node.packaged = {"nvidia-dcgm", "nvidia-dcgm-exporter"}
    node.present("packages")
    node.commands.clear()
    node.active.discard("nvidia-dcgm")
    node.present("packages")
    assert not [one for one in node.commands if one.startswith("restart")]
    node.commands.clear()
    node.ports = {9500}
    node.present("packages", listen=":9500")
    assert "restart nvidia-dcgm-exporter" in node.commands
    assert "restart nvidia-dcgm" not in node.commands


def test_a_program_that_fails_leaves_nothing(node):
    node.fail = "start kubegpu-metrics.service"
    with pytest.raises(RolledBackError, match="its last words"):
        node.present("textfile")
    assert node.left() == []
    assert not node.enabled
    assert not node.absent()["changed"]


def test_an_exporter_that_does_not_listen_is_put_back(node):
    node.packaged = {"nvidia-dcgm", "nvidia-dcgm-exporter"}
    node.present("packages")
    drop_in = Path(data_path(node, "DROP_IN_PATH"))
    before = drop_in.read_text()
    with pytest.raises(RolledBackError, match="does not listen on port 9999"):
        node.present("packages", listen=":9999", timeout=1)
    assert drop_in.read_text() == before
    assert {"nvidia-dcgm", "nvidia-dcgm-exporter"} <= node.active & node.enabled
    assert not node.present("packages")["changed"]


def test_another_method_takes_the_place_of_the_first(node):
    node.present("textfile")
    assert (node.directory / "kubegpu.prom").exists()
    node.present("container")
    assert node.enabled == {"kubegpu-dcgm-exporter"}
    assert not (node.directory / "kubegpu.prom").exists()
    assert not Path(data_path(node, "TIMER_PATH")).exists()
    node.absent()
    assert node.left() == []


def test_a_file_of_ours_that_somebody_edited_is_written_again_and_removed(node):
    node.present("textfile")
    path = Path(data_path(node, "TIMER_PATH"))
    path.write_text(path.read_text() + "# mine\n")
    assert node.present("textfile")["changed"]
    path.write_text("# mine\n")
    node.absent()
    assert node.left() == []


def test_a_refusal_writes_nothing(node):
    with pytest.raises(KubegpuError, match="gpu_monitoring_counters is empty"):
        node.present("container", counters="")
    assert node.left() == []
