# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way back of runtimes: the records are those that their own modules write."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import (
    KubegpuError,
    RolledBackError,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.modules import (
    crio_runtime,
    docker_runtime,
    runtime_configuration,
)
from tests.unit.fixtures.documented import documented_options
from tests.unit.module_process import predicted, run_module

NO_UNIT = "kubegpu-test-no-such-unit"
ADMINS = b'{"log-driver": "journald"}\n'


class Node:
    """CRI-O and Docker without daemons, whose files are below a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.state = folder / "var" / "state.json"
        self.crio, self.docker = folder / "crio.d" / "99-nvidia.toml", folder / "daemon.json"
        self.crio.parent.mkdir()
        self.docker.write_bytes(ADMINS)

    def configure(self, name="nvidia", crio=True, **options):
        own = {"name": name, "runtime_path": "/bin/true", "state_path": str(self.state), **options}
        main, more = docker_runtime.main, {"config_path": str(self.docker), "unit": NO_UNIT,
                                           "docker_version": "28.5.1", "validate": False,
                                           "socket": str(self.folder / "none")}  # fmt: skip
        if crio:
            main, more = (
                crio_runtime.main,
                {
                    "config_path": str(self.folder / "crio.conf"),
                    "drop_in_path": str(self.crio),
                    "unit": NO_UNIT,
                },
            )
            (self.folder / "crio.conf").write_text("[crio]\n")
        answer = run_module(main, {**own, **more})
        assert not answer.get("failed"), answer
        return answer

    def options(self, state, name="one"):
        units = dict.fromkeys(("containerd", "docker", "crio"), NO_UNIT)
        return {"name": name, "state": state, "state_path": str(self.state), "units": units}

    def ask(self, state, name="one"):
        answer = predicted(runtime_configuration.main, self.options(state, name))
        assert not answer.get("failed"), answer
        return answer

    def files(self):
        return self.crio.read_bytes(), self.docker.read_bytes()


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def test_options_are_documented():
    documented = documented_options(runtime_configuration)
    assert set(documented) == set(runtime_configuration.ARGUMENTS)
    for name, spec in runtime_configuration.ARGUMENTS.items():
        assert documented[name].get("default") == spec.get("default")
        assert documented[name].get("choices") == spec.get("choices")


def test_what_an_upgrade_changed_is_as_before(node):
    node.configure()
    node.configure(crio=False)
    before, record = node.files(), json.loads(node.state.read_text())["files"]
    assert node.ask("saved")["changed"] and not node.ask("saved")["changed"]
    node.configure(set_default=True)
    node.configure(crio=False, set_default=True)
    # A second handler, in a file that has one.
    node.configure("more", crio=False)
    assert not {*node.files()} & {*before}
    # A run that was killed comes by again.
    assert not node.ask("saved")["changed"]
    answer = node.ask("restored")
    assert sorted(answer["restored"]) == sorted([str(node.crio), str(node.docker)])
    assert answer["left"] == answer["restarted"] == answer["restart_required"] == []
    assert "default_runtime" in answer["diff"][0]["before"] + answer["diff"][1]["before"]
    assert node.files() == before
    after = json.loads(node.state.read_text())["files"]
    # The removal knows as much as before.
    for key, one in record.items():
        for part in ("backup", "before_sha256", "after_sha256", "details", "edited"):
            assert after[key][part] == one[part]
    again = node.ask("restored")
    assert (again["changed"], again["restored"], again["diff"]) == (False, [], [])
    assert node.ask("forgotten")["changed"] and not node.ask("forgotten")["changed"]
    node.configure(state="absent")
    node.configure(crio=False, state="absent")
    assert not node.crio.exists() and node.docker.read_bytes() == ADMINS
    assert not node.state.exists()


def test_a_file_that_is_new_since_goes_if_its_runtime_had_one(node):
    node.configure(crio=False)
    node.ask("saved")
    node.configure()
    new = node.crio.read_bytes()
    assert not node.ask("restored")["changed"] and node.crio.read_bytes() == new
    node.ask("forgotten")
    node.ask("saved")
    other = node.crio.with_name("98-more.toml")
    arguments = {
        "name": "more", "runtime_path": "/bin/true", "drop_in_path": str(other),
        "config_path": str(node.folder / "crio.conf"), "unit": NO_UNIT,
        "state_path": str(node.state),
    }  # fmt: skip
    assert run_module(crio_runtime.main, arguments)["changed"] and other.exists()
    assert node.ask("restored")["restored"] == [str(other)]
    assert not other.exists() and node.crio.read_bytes() == new
    assert str(other) not in node.state.read_text()


def test_a_file_that_others_wrote_since_is_left_and_told(node):
    node.configure(crio=False)
    node.ask("saved")
    node.configure(crio=False, set_default=True)
    text = node.docker.read_bytes().replace(b"journald", b"syslog")
    node.docker.write_bytes(text)
    answer = node.ask("restored")
    assert (answer["changed"], node.docker.read_bytes()) == (False, text)
    assert [one["path"] for one in answer["left"]] == [str(node.docker)]


def test_files_of_another_change_are_replaced_and_not_restored(node):
    node.configure()
    node.ask("saved")
    node.configure(set_default=True)
    default = node.crio.read_bytes()
    assert not node.ask("restored", "two")["changed"]
    assert node.ask("saved", "two")["changed"]
    node.configure()
    assert node.ask("restored", "two")["changed"] and node.crio.read_bytes() == default


def test_a_record_that_was_changed_by_hand_is_an_error(node):
    node.configure()
    node.ask("saved")
    data = json.loads(node.state.read_text())
    for one in data["values"][runtime_configuration.KEY]["files"].values():
        one["file"]["content"] = "?"
    node.state.write_text(json.dumps(data))
    before = node.files()
    answer = run_module(runtime_configuration.main, node.options("restored"))
    assert answer["failed"] and "changed by hand" in answer["cause"] and answer["next_step"]
    assert node.files() == before


class Systemd:
    """Stand-in of systemctl: the units run, and one of them may not start."""

    def __init__(self):
        self.restarted, self.broken = [], ""

    def __call__(self, argv, **_options):
        if argv[1] == "restart":
            self.restarted.append(argv[-1])
            if argv[-1] == self.broken:
                return Result(1, "", "it does not start")
        return Result(0, "LoadState=loaded\nActiveState=active\nMainPID=0\n", "")


def restore(node, systemd, **options):
    units = {"containerd": "a", "docker": "b", "crio": "c"}
    given = {"docker_restart": "if_idle", "docker_socket": str(node.folder / "none"), **options}
    params = {**node.options("restored"), "units": units, **given}
    return runtime_configuration._apply(params, systemd, False)


def test_runtimes_load_what_is_restored(node):
    node.configure()
    node.configure(crio=False)
    node.ask("saved")
    for crio in (True, False):
        node.configure(crio=crio, set_default=True)
    systemd = Systemd()
    # Whether containers run on dockerd is not known: it does not answer.
    answer = restore(node, systemd)
    assert (answer["restarted"], answer["restart_required"]) == (["c"], ["b"])
    assert systemd.restarted == ["c"]
    assert restore(node, systemd)["restarted"] == [] and systemd.restarted == ["c"]
    node.configure(crio=False, set_default=True)
    assert restore(node, systemd, docker_restart="always")["restarted"] == ["b"]


def test_a_runtime_that_does_not_start_keeps_what_it_had(node):
    node.configure()
    node.ask("saved")
    node.configure(set_default=True)
    before, systemd = node.files(), Systemd()
    systemd.broken = "c"
    with pytest.raises(KubegpuError) as error:
        restore(node, systemd)
    assert isinstance(error.value, RolledBackError) and node.files() == before
    assert systemd.restarted == ["c", "c"]
