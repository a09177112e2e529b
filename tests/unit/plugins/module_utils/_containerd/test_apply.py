# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The transaction on containerd's files: guards and roll-back."""

from __future__ import annotations

import os
import tomllib
from dataclasses import replace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd import apply as flow
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd import prepare
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.host import Dependencies
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.options import Settings
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.types import Request
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import (
    KubegpuError,
    RolledBackError,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.files import FileState
from ansible_collections.kubegpu.nodes.plugins.module_utils._record import transaction
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore

CRI = 'plugins."io.containerd.grpc.v1.cri"'
RUNC = (
    f"[{CRI}.containerd.runtimes.runc]\n"
    '  runtime_type = "io.containerd.runc.v2"\n'
    f"[{CRI}.containerd.runtimes.runc.options]\n"
    "  SystemdCgroup = true\n"
)
TEXT = f"version = 2\n\n{RUNC}"


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
        settings = Settings(
            distribution="containerd",
            containerd_path="containerd",
            restart=restart,
            restart_timeout=1,
        )
        scratch = self.folder / "scratch"
        scratch.mkdir(exist_ok=True)
        dependencies = Dependencies(self, tomllib.loads, self.store, str(scratch), os.path.exists)
        return flow.ContainerdRuntime(request, settings, dependencies)(check)

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


def test_the_copies_for_the_validation_are_removed(standin):
    """They belong to root, in a folder that Ansible removes as the user of the connection."""
    standin.run(restart=True)
    assert list((standin.folder / "scratch").iterdir()) == []


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
    with pytest.raises(KubegpuError, match="changed by another program during this run"):
        standin.run(state=state)
    assert standin.config.read_text() == TEXT + "# somebody's\n"
    assert standin.record() == record


def test_what_containerd_would_take_otherwise_is_not_written(standin, monkeypatch):
    planned = prepare.plan_present

    def wrong(*arguments):
        plan = planned(*arguments)
        return replace(
            plan,
            edits=tuple(
                replace(edit, after=edit.after.replace("/bin/true", "/bin/false"))
                for edit in plan.edits
            ),
        )

    monkeypatch.setattr(prepare, "plan_present", wrong)
    with pytest.raises(KubegpuError, match="would not mean what it should"):
        standin.run()
    assert standin.config.read_text() == TEXT
    assert standin.record() == {}


def test_a_roll_back_that_fails_is_told(standin, monkeypatch):
    """With the first error, and not as if the old configuration was restored: it was not."""
    standin.takes = lambda text: "nvidia" not in text

    def full(self, *_arguments):
        raise KubegpuError("No space left on device.")

    monkeypatch.setattr(StateStore, "take_back", full)
    with pytest.raises(KubegpuError, match="No space left") as caught:
        standin.run(restart=True)
    assert not isinstance(caught.value, RolledBackError)
    assert "could not be restored" in caught.value.cause and "Job 1 failed" in str(caught.value)


def test_a_roll_back_of_an_undo_that_fails_is_told(standin, monkeypatch):
    standin.run(restart=True)
    standin.takes = lambda text: "nvidia" in text
    written = transaction.write_file

    def full(state: FileState):
        if b"nvidia" in (state.content or b"") and state.path == str(standin.config):
            raise KubegpuError("No space left on device.")
        return written(state)

    monkeypatch.setattr(transaction, "write_file", full)
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
