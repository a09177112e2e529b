# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rollback of runtimes: the records are those that their own modules write."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd import (
    restart as containerd_restart,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import (
    KubegpuError,
    RolledBackError,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.earlier import KEY
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
    for one in data["values"][KEY]["files"].values():
        one["file"]["content"] = "?"
    node.state.write_text(json.dumps(data))
    before = node.files()
    answer = run_module(runtime_configuration.main, node.options("restored"))
    assert answer["failed"] and "changed manually" in answer["cause"] and answer["next_step"]
    assert node.files() == before


class Systemd:
    """Stand-in of systemctl: all units have one state, and one of them may not start."""

    def __init__(self, state="active"):
        self.restarted, self.broken, self.state, self.limits = [], "", state, []
        self.answers = {}

    def __call__(self, argv, timeout=None, **_options):
        if argv[0] != "systemctl":
            return self.answers.get(argv[0], Result(127, "", ""))
        if argv[1] == "restart":
            self.limits.append(timeout)
            self.restarted.append(argv[-1])
            if argv[-1] == self.broken:
                return Result(1, "", "it does not start")
        return Result(0, f"LoadState=loaded\nActiveState={self.state}\nMainPID=0\n", "")


def restore(node, systemd, **options):
    units = {"containerd": "a", "docker": "b", "crio": "c"}
    given = {
        "docker_restart": "if_idle", "docker_socket": str(node.folder / "none"),
        "containerd_restart": True, "crio_restart": True, **options,
    }  # fmt: skip
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


def test_an_edit_before_another_write_of_ours_is_kept(node):
    node.configure(crio=False)
    node.ask("saved")
    node.configure(crio=False, set_default=True)
    node.docker.write_bytes(node.docker.read_bytes().replace(b"journald", b"syslog"))
    node.configure("more", crio=False)
    text = node.docker.read_bytes()
    assert b"syslog" in text
    answer = node.ask("restored")
    assert (answer["changed"], node.docker.read_bytes()) == (False, text)
    assert [one["path"] for one in answer["left"]] == [str(node.docker)]


def test_an_edit_before_the_change_does_not_hinder_it(node):
    node.configure(crio=False)
    node.docker.write_bytes(node.docker.read_bytes().replace(b"journald", b"syslog"))
    node.configure("more", crio=False)
    text = node.docker.read_bytes()
    node.ask("saved")
    node.configure(crio=False, set_default=True)
    assert node.ask("restored")["restored"] == [str(node.docker)]
    assert node.docker.read_bytes() == text


def test_a_mode_that_others_gave_since_is_kept(node):
    node.docker.chmod(0o644)
    node.configure(crio=False)
    node.ask("saved")
    node.configure(crio=False, set_default=True)
    node.docker.chmod(0o600)
    before = json.loads(node.state.read_text())["values"][KEY]["files"]
    assert node.ask("restored")["restored"] == [str(node.docker)]
    assert node.docker.stat().st_mode & 0o777 == 0o600
    assert {one["file"]["mode"] for one in before.values()} == {0o644}
    assert not node.ask("restored")["changed"]


def test_a_file_without_a_record_is_told(node):
    node.configure()
    node.configure(crio=False)
    node.ask("saved")
    node.configure(crio=False, state="absent")
    answer = node.ask("restored")
    assert not answer["changed"] and node.docker.read_bytes() == ADMINS
    assert [(one["path"], "taken out" in one["reason"]) for one in answer["left"]] == [
        (str(node.docker), True)
    ]


@pytest.mark.parametrize(
    ("state", "options", "restarted", "required"),
    [
        # A dockerd that does not run stops no container by its start.
        ("failed", {}, ["b"], []),
        ("activating", {}, ["b"], []),
        ("inactive", {}, [], []),
        ("failed", {"docker_restart": "never"}, [], ["b"]),
    ],
)
def test_a_runtime_that_failed_is_started_with_what_is_restored(
    node, state, options, restarted, required
):
    node.configure(crio=False)
    node.ask("saved")
    node.configure(crio=False, set_default=True)
    systemd = Systemd(state)
    answer = restore(node, systemd, **options)
    assert (answer["restarted"], answer["restart_required"]) == (restarted, required)
    assert systemd.restarted == restarted


def test_a_restart_of_cri_o_may_be_forbidden(node):
    node.configure()
    node.ask("saved")
    node.configure(set_default=True)
    answer = restore(node, Systemd(), crio_restart=False)
    assert (answer["restarted"], answer["restart_required"]) == ([], ["c"])


NO_CRI = "TYPE ID PLATFORMS STATUS\nio.containerd.content.v1 content - ok\n"
BAD_CRI = "TYPE ID PLATFORMS STATUS\nio.containerd.grpc.v1 cri - error\n"
READY = '{"status": {"conditions": [{"type": "RuntimeReady", "status": true}]}}'


@pytest.mark.parametrize(
    ("marker", "crictl", "ctr", "limit", "serves"),
    [
        ("", Result(0, READY, ""), Result(127, "", ""), 60, True),
        ("/var/lib/rancher/k3s", Result(0, READY, ""), Result(127, "", ""), 600, True),
        # The restored file switches CRI off.
        ("", Result(1, "", "unimplemented"), Result(0, NO_CRI, ""), 60, True),
        ("", Result(1, "", "refused"), Result(0, BAD_CRI, ""), 60, False),
        ("", Result(1, "", "refused"), Result(1, "", "refused"), 60, False),
    ],
)
def test_containerd_gets_its_time_and_has_to_serve(monkeypatch, marker, crictl, ctr, limit, serves):
    systemd = Systemd()
    for program in ("crictl", "ctr"):
        systemd.answers[program] = systemd.answers[
            f"/var/lib/rancher/k3s/data/current/bin/{program}"
        ] = {"crictl": crictl, "ctr": ctr}[program]
    waited = []

    def wait(probe, handler, timeout):
        waited.append((probe().ready, handler, timeout))

    monkeypatch.setattr(containerd_restart, "wait_until_ready", wait)
    containerd_restart.restart_with_any(
        systemd, "a", lambda path: bool(marker) and path.startswith(marker)
    )
    assert systemd.restarted == ["a"] and systemd.limits == [limit]
    assert waited == [(serves, None, limit)]
