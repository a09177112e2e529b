# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module as Ansible runs it, on files in a folder and a stand-in for dockerd and systemd.

The stand-in does what was measured on the real ones; those judge in tests/integration/engines.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
import time
from dataclasses import replace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._docker import apply as docker_apply
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker import host as docker_host
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.fingerprint import (
    file_signature,
    process_start_id,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.converged import (
    converged_fingerprints,
)
from ansible_collections.kubegpu.nodes.plugins.modules import docker_runtime
from tests.tools import tiers
from tests.unit.module_process import predicted, run_module

FORK = multiprocessing.get_context("fork")
ADMINS = b'{\n  "log-driver": "json-file",\n  "max-size": 9223372036854775807\n}\n'


class DockerStandin:
    """dockerd and systemd: keeps what it was started with, and takes over what a reload does."""

    def __init__(self, folder):
        self.folder = folder
        self.config = folder / "etc" / "docker" / "daemon.json"
        self.state = folder / "var" / "state.json"
        self.runtime = folder / "runtime"
        self.runtime.write_text("#!/bin/sh\n")
        self.runtime.chmod(0o755)
        self.version = "28.5.2"
        self.active = False
        self.answers = True
        self.info = {
            "ServerVersion": self.version,
            "ContainersRunning": 0,
            "LiveRestoreEnabled": False,
            "Runtimes": {},
            "DefaultRuntime": "runc",
        }
        self.deaf = ()
        self.done = []
        self.hook = None

    def run(self, argv, timeout=60, environment=None):
        if argv == ["dockerd", "--version"]:
            return Result(0, f"Docker version {self.version}, build x", "")
        if argv[0] == "dockerd":
            with open(argv[2].partition("=")[2], encoding="utf-8-sig") as handle:
                text = handle.read()
            bad = "no-such-key" in text
            return Result(int(bad), "", "no-such-key: no such option" if bad else "")
        if argv[0] == "journalctl":
            return Result(0, "dockerd: the reason why", "")
        if argv[1] == "show":
            state = "active" if self.active else "inactive"
            return Result(0, f"LoadState=loaded\nActiveState={state}\nMainPID={self.pid}\n", "")
        if argv[1] in ("reload", "restart"):
            self.done.append(argv[1])
            if argv[1] not in self.deaf:
                self.take_over(argv[1] == "restart")
        return Result(0, "", "")

    @property
    def pid(self):
        return os.getpid() if self.active else 0

    def take_over(self, start):
        text = self.config.read_text() if self.config.exists() else ""
        data = json.loads(text) if text.strip() else {}
        if start:
            self.info.update(Runtimes={}, DefaultRuntime="runc")
            self.hook = None
        if data.get("runtimes") is not None:
            self.info["Runtimes"] = data["runtimes"]
        if data.get("default-runtime"):
            self.info["DefaultRuntime"] = data["default-runtime"]

    def read_info(self, _path):
        return json.loads(json.dumps(self.info)) if self.active and self.answers else None

    def find_program(self, name, pid=None):
        if name == str(self.runtime):
            return name
        return self.hook if name.endswith("-hook") else None

    def arguments(self, **options):
        return {
            "config_path": str(self.config),
            "state_path": str(self.state),
            "runtime_path": str(self.runtime),
            **options,
        }

    def __call__(self, **options):
        answer = predicted(docker_runtime.main, self.arguments(**options))
        assert not answer.get("failed"), answer["msg"]
        return answer

    def once(self, check=False, **options):
        return run_module(docker_runtime.main, self.arguments(**options), check=check)

    def admins(self, content=ADMINS, mode=0o640):
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_bytes(content)
        self.config.chmod(mode)

    def files(self):
        return sorted(
            str(path.relative_to(self.folder))
            for path in self.folder.rglob("*")
            if path.is_file() and path != self.runtime
        )


@pytest.fixture
def node(tmp_path, monkeypatch):
    made = DockerStandin(tmp_path)
    use(made, monkeypatch)
    return made


def use(node, monkeypatch):
    monkeypatch.setattr(docker_runtime, "module_runner", lambda _module: node.run)
    monkeypatch.setattr(docker_runtime, "read_info", node.read_info)
    monkeypatch.setattr(docker_runtime, "find_program", node.find_program)
    monkeypatch.setattr(docker_apply, "RELOAD_SECONDS", 0.0)
    monkeypatch.setattr(docker_apply, "RESTART_SECONDS", 0.0)


# -- create, again, check, diff, absent, absent again (each with the check before it) ------------


def test_life_of_a_runtime(node):
    node.admins()
    answer = node(set_default=True)
    assert answer["changed"]
    assert answer["default_runtime"] == "nvidia"
    assert answer["runtimes"] == {"nvidia": {"path": str(node.runtime)}}
    assert answer["backup_file"].startswith(str(node.folder / "var" / "backups"))
    assert answer["diff"][0]["before"] == ADMINS.decode()
    assert answer["diff"][0]["after"] == node.config.read_text()
    assert not node(set_default=True)["changed"]
    answer = node(state="absent")
    assert answer["changed"]
    assert answer["diff"][0]["after"] == ADMINS.decode()
    assert node.config.read_bytes() == ADMINS
    assert stat.S_IMODE(node.config.stat().st_mode) == 0o640
    answer = node(state="absent")
    assert (answer["changed"], answer["diff"]) == (False, [])
    assert node.files() == ["etc/docker/daemon.json"]


def test_file_that_was_not_there_goes_with_its_folder(node):
    assert node()["changed"]
    assert stat.S_IMODE(node.config.stat().st_mode) == 0o644
    answer = node(state="absent")
    assert answer["diff"][0]["after"] == ""
    assert not (node.folder / "etc").exists()


def test_check_mode_writes_nothing(node):
    answer = node.once(check=True)
    assert answer["changed"]
    assert node.files() == []
    assert not (node.folder / "var").exists()


def test_symbolic_link_is_followed(node):
    node.admins()
    real = node.folder / "real.json"
    node.config.rename(real)
    node.config.symlink_to(real)
    node()
    assert node.config.is_symlink()
    assert b"nvidia" in real.read_bytes()
    node(state="absent")
    assert node.config.is_symlink()
    assert real.read_bytes() == ADMINS


def test_edit_of_somebody_else_survives_absent(node):
    node.admins()
    node(set_default=True, cdi=True)
    node.config.write_text(node.config.read_text().replace("json-file", "journald"))
    assert node(state="absent")["changed"]
    assert node.config.read_bytes() == ADMINS.replace(b"json-file", b"journald")
    assert node.files() == ["etc/docker/daemon.json"]


def test_secrets_are_not_in_the_diff(node):
    node.admins(
        b'{"proxies": {"http-proxy": "http://me:hunter2@p:1"}, "log-opts": {"splunk-token": "t0p"}}'
    )
    text = json.dumps(node())
    assert "hunter2" not in text
    assert "t0p" not in text
    assert "splunk-token" in text


@pytest.mark.parametrize("value", [r"http:\/\/svc:hunter2@p:1", r"http://svc:hunter2\u0040p:1"])
def test_escapes_of_json_hide_no_secret(node, value):
    node.admins(f'{{"proxies": {{"http-proxy": "{value}"}}}}'.encode())
    assert "hunter2" not in json.dumps(node())


def test_other_runtimes_arguments_are_returned_without_secrets(node):
    node.admins(b'{"runtimes": {"x": {"path": "/x", "runtimeArgs": ["--token", "hunter2"]}}}')
    answer = node()
    assert "hunter2" not in json.dumps(answer)
    assert answer["runtimes"]["x"]["path"] == "/x"


def test_the_diff_has_what_changes_and_comes_with_diff_mode_alone(node):
    keys = [f'  "key-{number}": {number},\n' for number in range(30)]
    node.admins(("{\n" + "".join(keys) + '  "last": true\n}\n').encode())
    for check in (True, False):
        answer = run_module(docker_runtime.main, node.arguments(), check=check, diff=False)
        assert answer["changed"] and "diff" not in answer
    (part,) = node(state="absent")["diff"]
    assert '"key-28"' in part["after"] and '"key-0"' not in part["before"] + part["after"]


def test_words_of_a_daemon_that_does_not_come_back_hold_no_secret(node, monkeypatch):
    real = node.run

    def run(argv, timeout=60, environment=None):
        if argv[0] == "dockerd" and argv[1] != "--version":
            return Result(1, "", "cannot use http://svc:hunter2@p:1 token=hunter2")
        return real(argv, timeout, environment)

    monkeypatch.setattr(node, "run", run)
    node.admins()
    answer = node.once()
    assert answer["failed"] and "hunter2" not in json.dumps(answer)
    assert "http://***@p:1" in answer["evidence"]


def test_docker_that_is_not_installed_is_said(node, monkeypatch):
    monkeypatch.setattr(node, "run", lambda *_a, **_k: Result(127, "", "dockerd: no such program"))
    answer = node.once()
    assert answer["failed"]
    assert "dockerd is not installed" in answer["msg"]
    assert "this collection does not" in answer["next_step"]
    assert not node.once(state="absent")["changed"]


def test_runtime_that_is_not_there_yet_is_no_failure_of_a_check(node, monkeypatch):
    node.runtime = node.folder / "later"
    monkeypatch.setattr(docker_runtime, "find_program", lambda *_arguments: None)
    answer = node.once(check=True)
    assert answer["changed"]
    assert any("not there yet" in reason for reason in answer["reasons"])
    assert "there is no program" in node.once()["msg"]
    assert not node.config.exists()


def test_scenario_7_docker_18_09(node):
    node.version = "18.09.9"
    answer = node()
    assert answer["changed"]
    assert answer["runtimes"]["nvidia"]
    assert any("has no --gpus" in reason for reason in answer["reasons"])
    assert not answer["restart_required"]


# -- the daemon ----------------------------------------------------------------------------------


def running(node, text="{}"):
    node.admins(text.encode())
    node.active = True
    node.take_over(True)
    return node


def test_absent_goes_through_a_file_in_between(node):
    running(node, '{"debug": true}')
    node(set_default=True, reload=True)
    assert node.info["DefaultRuntime"] == "nvidia"
    answer = node(state="absent", reload=True)
    assert answer["reloaded"]
    assert node.info["DefaultRuntime"] == "runc"
    assert node.info["Runtimes"] == {}
    assert node.config.read_text() == '{"debug": true}'
    assert node.files() == ["etc/docker/daemon.json"]


@pytest.mark.parametrize(
    ("restart", "containers", "live", "restarted"),
    [
        ("never", 0, True, False),
        ("if_idle", 0, False, True),
        ("if_idle", 3, True, True),
        ("if_idle", 3, False, False),
        ("if_idle", None, None, False),
        ("always", 3, False, True),
    ],
)
def test_restart_only_as_allowed(node, restart, containers, live, restarted):
    running(node)
    node.hook = str(node.folder / "hook")
    (node.folder / "hook").write_text("")  # newer than this process, which stands for dockerd
    node.info.update(ContainersRunning=containers, LiveRestoreEnabled=live)
    answer = node.once(check=True, restart=restart, reload=True)
    assert answer["restarted"] is restarted
    assert answer["restart_required"] is not restarted
    answer = node.once(restart=restart, reload=True)
    assert answer["restarted"] is restarted
    assert ("restart" in node.done) is restarted
    assert answer["restart_required"] is not restarted
    waits = restart == "if_idle" and not restarted
    assert answer["waiting_containers"] == (containers if waits else None)
    assert answer["file_changed"] and str(node.folder / "hook") in answer["restart_reason"]
    if waits:
        assert any("dockerd is not restarted" in reason for reason in answer["reasons"])
    again = node.once(restart=restart, reload=True)
    assert not again["changed"] and not again["file_changed"]
    assert again["restart_required"] is not restarted
    assert (again["restart_reason"] is None) is restarted


@pytest.mark.parametrize("verb", ["reload", "restart"])
def test_dockerd_that_does_not_take_the_file_gets_its_old_one(node, verb):
    running(node, '{"debug": true}')
    node.hook = str(node.folder / "hook")
    (node.folder / "hook").write_text("")
    node.deaf = (verb,)
    answer = node.once(reload=True, restart="always" if verb == "restart" else "never")
    assert answer["failed"]
    assert "was restored; dockerd runs again with it" in answer["cause"]
    assert "the reason why" in answer["evidence"]
    assert node.config.read_text() == '{"debug": true}'
    assert node.done == [verb, verb]
    assert node.files() == ["etc/docker/daemon.json", "hook"]


def test_failed_update_keeps_the_record_of_the_first(node):
    running(node, '{"debug": true}')
    node(reload=True)
    node.deaf = ("reload",)
    assert node.once(reload=True, runtime_args=["-x"])["failed"]
    assert '"-x"' not in node.config.read_text()
    node.deaf = ()
    assert node(state="absent", reload=True)["changed"]
    assert node.config.read_text() == '{"debug": true}'


def test_failed_absent_can_be_done_again(node):
    running(node, '{"debug": true}')
    node(reload=True)
    node.deaf = ("reload",)
    assert node.once(state="absent", reload=True)["failed"]
    assert "nvidia" in node.config.read_text()
    node.deaf = ()
    assert node(state="absent", reload=True)["changed"]
    assert node.config.read_text() == '{"debug": true}'
    assert node.files() == ["etc/docker/daemon.json"]


def test_dockerd_that_cannot_be_asked_is_reloaded_for_a_change_only(node):
    running(node)
    node.answers = False
    answer = node(reload=True)
    assert answer["reloaded"]
    assert any("is unknown whether" in reason for reason in answer["reasons"])
    assert not node(reload=True)["changed"]


def test_validation_quotes_dockerd_and_writes_nothing(node):
    node.admins(b'{"no-such-key": 1}')
    answer = node.once()
    assert "no-such-key: no such option" in answer["evidence"]
    assert "did before this change too" in answer["cause"]
    assert node.config.read_bytes() == b'{"no-such-key": 1}'
    assert node.files() == ["etc/docker/daemon.json"]


def test_file_that_somebody_writes_meanwhile_is_not_overwritten(node, monkeypatch):
    node.admins()
    real = node.run

    def run(argv, timeout=60, environment=None):
        if "--validate" in argv:
            node.config.write_text('{"somebody": "else"}')
        return real(argv, timeout, environment)

    monkeypatch.setattr(node, "run", run)
    answer = node.once()
    assert "changed by another program during this run" in answer["cause"]
    assert node.config.read_text() == '{"somebody": "else"}'


# -- kill at any point ---------------------------------------------------------------------------


def killed_at(step, node, options):
    """Run the module in a process that dies right before its ``step``-th change to the disk."""

    def child():
        count = 0

        def dying(real):
            def call(*arguments, **named):
                nonlocal count
                count += 1
                if count == step:
                    os._exit(9)
                return real(*arguments, **named)

            return call

        for name in ("mkdir", "rename", "unlink", "rmdir", "fchmod", "ftruncate"):
            setattr(os, name, dying(getattr(os, name)))
        run_module(docker_runtime.main, node.arguments(**options))
        os._exit(0)

    process = FORK.Process(target=child)
    process.start()
    process.join(60)
    assert process.exitcode in (0, 9)
    return process.exitcode == 9


FILES = [None, ADMINS, b"", b'{"default-runtime": "runc"}\n']


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(text, marks=[] if text in FILES[:2] else pytest.mark.full(why="another file"))
        for text in FILES
    ],
)
@pytest.mark.parametrize("what", ["present", "absent"])
def test_kill_at_any_point(tmp_path, monkeypatch, before, what):
    """The old or the new file, whole; the next run finishes; absent gives the very bytes back.

    In the default tier the steps are dealt out to the files: each step meets one of them.
    """
    present = {"set_default": True, "cdi": True, "reload": True}
    first, stride = (1, 1) if tiers.is_full() else (1 + FILES.index(before), len(FILES))
    step, died = first, True
    while died:
        folder = tmp_path / str(step)
        folder.mkdir()
        node = DockerStandin(folder)
        use(node, monkeypatch)
        if before is not None:
            node.admins(before)
        node.active = True
        node.take_over(True)
        if what == "absent":
            node.once(**present)
        old = node.config.read_bytes() if node.config.exists() else None
        options = present if what == "present" else {"state": "absent", "reload": True}
        died = killed_at(step, node, options)
        found = node.config.read_bytes() if node.config.exists() else None
        assert found in (old, before) or json.loads(found)
        # The child's dockerd was a copy: what a reload there did is not known here, as after
        # a kill between write and reload.
        if what == "present":
            answer = node.once(**present)
            assert not answer.get("failed"), answer.get("msg")
            assert node.info["DefaultRuntime"] == "nvidia"
            assert not node.once(**present)["changed"]
        answer = node.once(state="absent", reload=True)
        assert not answer.get("failed"), answer.get("msg")
        assert (node.config.read_bytes() if node.config.exists() else None) == before
        assert node.info["DefaultRuntime"] == "runc"
        assert "nvidia" not in node.info["Runtimes"]
        assert not node.once(state="absent", reload=True)["changed"]
        assert node.files() == ([] if before is None else ["etc/docker/daemon.json"])
        step += stride
    last_killed = step - 2 * stride
    assert last_killed > 9 - stride, "few steps were killed: this test looks at nothing"


def test_two_runs_at_once_both_end_well(node):
    node.admins()

    def child(name):
        answer = run_module(docker_runtime.main, node.arguments(name=name))
        os._exit(0 if answer.get("changed") else 1)

    processes = [FORK.Process(target=child, args=(f"nvidia-{n}",)) for n in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    assert len(json.loads(node.config.read_text())["runtimes"]) == 4
    for number in range(4):
        assert node(name=f"nvidia-{number}", state="absent")["changed"]
    assert node.config.read_bytes() == ADMINS
    assert node.files() == ["etc/docker/daemon.json"]


# -- what is noted where nothing is left to do ----------------------------------------------------


def noted(node):
    """What the facts would say."""
    record = json.loads(node.state.read_text()) if node.state.exists() else {}
    return converged_fingerprints(record, "docker", "docker", file_signature, process_start_id)


@pytest.fixture
def quiet(node, tmp_path, monkeypatch):
    """A converged dockerd, after the first run that found it so."""
    look = docker_host.read_daemon

    def read_daemon(*given):
        # It was started after all of what it looks for had come.
        daemon = look(*given)
        return replace(daemon, command_line=(str(node.runtime),), started=time.time() + 60)

    monkeypatch.setattr(docker_host, "read_daemon", read_daemon)
    hook = tmp_path / "nvidia-container-runtime-hook"
    hook.write_text("")
    running(node)
    node.hook = str(hook)
    assert node.once(reload=True, fingerprint="a")["changed"]
    # Only what was read and found right counts.
    assert noted(node) == {}
    assert not node.once(reload=True, fingerprint="a")["changed"]
    assert noted(node) == {"nvidia": "a"}
    return node


def test_what_touches_the_note(quiet):
    quiet.config.write_bytes(quiet.config.read_bytes())
    assert noted(quiet) == {}
    assert not quiet.once(reload=True, fingerprint="b")["changed"]
    assert noted(quiet) == {"nvidia": "b"}
    quiet.runtime.chmod(0o755)
    quiet.runtime.write_text("#!/bin/sh\n# another one\n")
    assert noted(quiet) == {}


def test_no_note_in_check_mode_and_a_run_without_a_fingerprint_leaves_it(quiet):
    before = quiet.state.read_text()
    quiet.once(check=True, reload=True, fingerprint="b")
    assert quiet.state.read_text() == before
    assert not quiet.once(reload=True)["changed"]
    assert quiet.state.read_text() == before


def test_no_note_where_something_is_left(quiet):
    quiet.info["DefaultRuntime"] = "crun"
    assert quiet.once(fingerprint="a")["reload_required"]
    assert noted(quiet) == {}


def test_absent_takes_the_note_away(quiet):
    assert quiet.once(state="absent", reload=True, fingerprint="a")["changed"]
    assert not quiet.state.exists()
