# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guards of both editors: each stops an edit that would be a mistake of our own.

containerd and Docker are stand-ins here. A mistake is made on purpose where no input is known that
makes it, and the guard has to see it.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import replace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd import apply as flow
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd import plan as containerd
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.plan import Node, Request
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.undo import plan_absent
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import (
    KubegpuError,
    RolledBackError,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker import apply as docker_apply
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker import config as docker
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.files import FileState
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.config_file import ConfigFile
from ansible_collections.kubegpu.nodes.plugins.modules import docker_runtime
from tests.unit.module_process import run_module

CRI = 'plugins."io.containerd.grpc.v1.cri"'
RUNC = (
    f"[{CRI}.containerd.runtimes.runc]\n"
    '  runtime_type = "io.containerd.runc.v2"\n'
    f"[{CRI}.containerd.runtimes.runc.options]\n"
    "  SystemdCgroup = true\n"
)
TEXT = f"version = 2\n\n{RUNC}"
CRI_PATH = ("plugins", "io.containerd.grpc.v1.cri")
DEFAULT = (*CRI_PATH, "containerd", "default_runtime_name")
OURS = (
    f"[{CRI}.containerd.runtimes.nvidia]\n"
    '  runtime_type = "io.containerd.runc.v2"\n'
    f"[{CRI}.containerd.runtimes.nvidia.options]\n"
    '  BinaryName = "/usr/bin/nvidia-container-runtime"\n'
    "  SystemdCgroup = true\n"
)


def config(path, text):
    return ConfigFile(path, text, tomllib.loads(text))


def node(*texts):
    files = tuple(config(f"/etc/{number}.toml", text) for number, text in enumerate(texts))
    return Node(version=(1, 7), files=files, drop_in=ConfigFile("/etc/99-nvidia.toml", None, {}))


# -- containerd: the plan ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT + OURS.replace("nvidia]", "other]"), "does not mean what was intended"),
        ("version = 2\n" + OURS, "does not mean what was intended"),
        (TEXT + OURS + "x = [\n", "cannot be edited safely"),
    ],
    ids=["something else", "something is lost", "no TOML"],
)
def test_a_text_that_does_not_mean_what_was_intended_is_refused(text, words):
    editor = containerd.Editor(tomllib.loads)
    editor.open(config("/c.toml", TEXT))
    editor.set_table(
        "/c.toml",
        (*CRI_PATH, "containerd", "runtimes", "nvidia"),
        tomllib.loads(OURS)["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["runtimes"][
            "nvidia"
        ],
    )
    (edit,) = editor.edits()
    assert tomllib.loads(edit.after) == tomllib.loads(TEXT + OURS)
    editor.replace_text("/c.toml", text)
    with pytest.raises(KubegpuError, match=words) as caught:
        list(editor.edits())
    assert "nothing was written" in caught.value.cause


def test_a_second_spelling_of_our_program_goes_from_every_file():
    """Options are read without regard to case: two of them contradict each other."""
    twice = OURS + '  binaryName = "/usr/bin/runc"\n'
    (edit,) = containerd.plan_present(Request(), node(TEXT + twice), tomllib.loads).edits
    assert tomllib.loads(edit.after) == tomllib.loads(TEXT + OURS)


def test_every_entry_of_our_name_goes_where_there_is_no_record():
    """An older tool wrote into the file, and somebody's copy of that into an imported one."""
    planned = plan_absent(
        Request(state="absent"), node(TEXT + OURS, TEXT + OURS), {}, tomllib.loads
    )
    assert {edit.path for edit in planned.edits} == {"/etc/0.toml", "/etc/1.toml"}
    for edit in planned.edits:
        assert tomllib.loads(edit.after) == tomllib.loads(TEXT)


@pytest.mark.parametrize("default", ["kata", "runc", "nvidia"])
def test_only_a_default_of_our_name_goes_with_the_handler_that_has_no_record(default):
    line = f'[{CRI}.containerd]\n  default_runtime_name = "{default}"\n'
    given = node(TEXT + OURS + line)
    (edit,) = plan_absent(Request(state="absent"), given, {}, tomllib.loads).edits
    left = containerd.value_at(tomllib.loads(edit.after), DEFAULT)
    assert left == (() if default == "nvidia" else (default,))


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (containerd.Change(DEFAULT, ("crun",), ("nvidia",)), ("crun",)),
        (containerd.Change(DEFAULT, (), ("nvidia",)), ()),
        # An earlier run of ours made another one the default, or something else nvidia.
        (containerd.Change(DEFAULT, ("crun",), ("gpu",)), ("nvidia",)),
        (containerd.Change((*CRI_PATH, "x"), ("crun",), ("nvidia",)), ("nvidia",)),
        (None, ("nvidia",)),
    ],
)
def test_a_default_is_ours_only_where_an_earlier_run_made_it(change, left):
    line = f'[{CRI}.containerd]\n  default_runtime_name = "nvidia"\n'
    earlier = {"/etc/0.toml": () if change is None else (change,)}
    given = replace(node(TEXT + OURS + line), earlier=earlier)
    planned = containerd.plan_present(Request(), given, tomllib.loads)
    text = planned.edits[0].after if planned.edits else given.files[0].text
    assert containerd.value_at(tomllib.loads(text), DEFAULT) == left


# -- containerd: the transaction -----------------------------------------------------------------


class StandinNode:
    """A node whose containerd says of its files what is in them; systemd is this class too."""

    def __init__(self, folder):
        self.folder = folder
        self.config = folder / "config.toml"
        self.config.write_text(TEXT)
        self.store = StateStore(str(folder / "var" / "state.json"))
        # What a restart has to find in the file to succeed; None: it always does.
        self.takes = None
        self.restarts = 0

    def __call__(self, argv, timeout=60, environment=None):
        if argv[0] == "containerd":
            if argv[1] == "--version":
                return Result(0, "containerd example.com/containerd 1.7.24 x", "")
            path = argv[2] if argv[1] == "--config" else self.config
            return Result(0, open(path, encoding="utf-8").read(), "")
        if argv[:2] == ["systemctl", "show"]:
            return Result(0, f"LoadState=loaded\nActiveState=active\nMainPID={os.getpid()}\n", "")
        if argv[:2] == ["systemctl", "restart"]:
            self.restarts += 1
            good = self.takes is None or self.takes(self.config.read_text())
            return Result(0, "", "") if good else Result(1, "", f"Job {self.restarts} failed.")
        if argv[0] == "ctr":
            return Result(0, "io.containerd.grpc.v1 cri linux/amd64 ok\n", "")
        return Result(127 if argv[0] == "crictl" else 0, "", "")

    def run(self, check=False, restart=False, **options):
        request = Request(
            runtime_path="/bin/true",
            config_path=str(self.config),
            drop_in_path=str(self.folder / "99-nvidia.toml"),
            **options,
        )
        settings = flow.Settings(
            flavour="containerd", containerd_path="containerd", restart=restart, restart_timeout=1
        )
        scratch = self.folder / "scratch"
        scratch.mkdir(exist_ok=True)
        world = flow.World(self, tomllib.loads, self.store, str(scratch), os.path.exists)
        return flow.ContainerdRuntime(request, settings, world)(check)

    def record(self):
        return self.store.records("containerd_runtime:")


@pytest.fixture
def standin(tmp_path):
    return StandinNode(tmp_path)


def test_the_stand_in_takes_a_good_run(standin):
    assert standin.run(restart=True).restarted
    assert tomllib.loads(standin.config.read_text())["plugins"]
    assert not standin.run(restart=True).changed
    assert standin.run(state="absent").changed
    assert standin.config.read_text() == TEXT
    assert standin.record() == {}


@pytest.mark.parametrize("state", ["present", "absent"])
def test_a_file_that_changed_meanwhile_is_not_overwritten(standin, monkeypatch, state):
    if state == "absent":
        standin.run()
    record = standin.record()
    apply = flow.ContainerdRuntime._apply

    def edited_meanwhile(*arguments):
        standin.config.write_text(TEXT + "# somebody's\n")
        return apply(*arguments)

    monkeypatch.setattr(flow.ContainerdRuntime, "_apply", edited_meanwhile)
    with pytest.raises(KubegpuError, match="changed by somebody else during this run"):
        standin.run(state=state)
    assert standin.config.read_text() == TEXT + "# somebody's\n"
    assert standin.record() == record


def test_what_containerd_would_take_otherwise_is_not_written(standin, monkeypatch):
    planned = flow.plan_present

    def wrong(*arguments):
        plan = planned(*arguments)
        return replace(
            plan,
            edits=tuple(
                replace(edit, after=edit.after.replace("/bin/true", "/bin/false"))
                for edit in plan.edits
            ),
        )

    monkeypatch.setattr(flow, "plan_present", wrong)
    with pytest.raises(KubegpuError, match="would not mean what it should"):
        standin.run()
    assert standin.config.read_text() == TEXT
    assert standin.record() == {}


def test_a_roll_back_that_fails_is_told(standin, monkeypatch):
    """Not the first error, and not that the old configuration was put back: it was not."""
    standin.takes = lambda text: "nvidia" not in text

    def full(self, *_arguments):
        raise KubegpuError("No space left on device.")

    monkeypatch.setattr(StateStore, "take_back", full)
    with pytest.raises(KubegpuError, match="No space left") as caught:
        standin.run(restart=True)
    assert not isinstance(caught.value, RolledBackError)
    assert "put back" not in str(caught.value)


def test_a_roll_back_of_an_undo_that_fails_is_told(standin, monkeypatch):
    standin.run(restart=True)
    standin.takes = lambda text: "nvidia" in text
    written = flow.write_file

    def full(state: FileState):
        if b"nvidia" in (state.content or b"") and state.path == str(standin.config):
            raise KubegpuError("No space left on device.")
        return written(state)

    monkeypatch.setattr(flow, "write_file", full)
    with pytest.raises(KubegpuError, match="No space left") as caught:
        standin.run(restart=True, state="absent")
    assert not isinstance(caught.value, RolledBackError)


def test_a_daemon_that_does_not_come_back_with_the_old_file_either_is_told(standin):
    standin.takes = lambda text: False
    with pytest.raises(RolledBackError) as caught:
        standin.run(restart=True)
    assert standin.config.read_text() == TEXT
    assert standin.restarts == 2
    assert "containerd still does not run" in caught.value.cause
    assert "runs again" not in caught.value.cause


# -- Docker --------------------------------------------------------------------------------------

BEFORE = """{
  "debug": true,
  "live-restore": true,
  "features": {"buildkit": true},
  "runtimes": {"crun": {"path": "/usr/bin/crun"}, "kata": {"path": "/opt/kata"}}
}
"""


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (BEFORE.replace("/usr/bin/crun", "/usr/bin/runc"), "other runtimes"),
        (BEFORE.replace('"crun": {"path": "/usr/bin/crun"}, ', ""), "other runtimes"),
        (BEFORE.replace('"buildkit": true', '"buildkit": false'), "other features"),
        (BEFORE.replace('"debug": true', '"debug": false'), "other settings"),
        (BEFORE.replace('  "debug": true,\n', ""), "other settings"),
        (BEFORE.replace("{\n", '{\n  "more": 1,\n', 1), "other settings"),
        (
            BEFORE.replace('"debug"', '"x"').replace("live-restore", "debug").replace(
                '"x"', '"live-restore"'
            ),
            "other settings",
        ),
        (BEFORE + '{"left": "behind"}\n', "other settings"),
    ],
    ids=[
        "runtime changed", "runtime lost", "feature changed", "setting changed", "setting lost",
        "setting added", "order changed", "data behind",
    ],
)  # fmt: skip
def test_docker_sees_an_edit_of_what_is_not_ours(after, words):
    before = docker.read(BEFORE, "daemon.json", (20, 10))
    with pytest.raises(KubegpuError, match=f"would have changed {words}"):
        docker.verify(before, docker.read(after, "daemon.json", (20, 10)), "nvidia")


@pytest.mark.parametrize("state", ["present", "absent"])
def test_docker_asks_that_guard_before_it_writes(tmp_path, monkeypatch, state):
    """The edit goes wrong on purpose: another runtime of the admin's is changed with ours."""
    path = tmp_path / "daemon.json"
    path.write_text(BEFORE)
    arguments = {
        "config_path": str(path),
        "state_path": str(tmp_path / "var" / "state.json"),
        "runtime_path": "/bin/true",
        "unit": "kubegpu-test-no-such-unit",
        "socket": str(tmp_path / "no.sock"),
        "docker_version": "28.5.2",
        "validate": False,
    }
    if state == "absent":
        assert run_module(docker_runtime.main, arguments)["changed"]
        # Edited since, so that the old bytes cannot come back as a whole.
        path.write_text(path.read_text().replace('"debug": true', '"debug": false'))
    name = {"present": "configure", "absent": "remove"}[state]
    real = getattr(docker, name)

    def wrong(document, *arguments):
        edited = real(document, *arguments)
        text = edited.document.text.replace("/opt/kata", "/opt/other")
        return replace(edited, document=docker.read(text, "daemon.json", (28, 5)))

    monkeypatch.setattr(docker_apply, name, wrong)
    before = path.read_text()
    answer = run_module(docker_runtime.main, {**arguments, "state": state})
    assert answer.get("failed"), answer
    assert "would have changed other runtimes" in answer["msg"]
    assert path.read_text() == before
