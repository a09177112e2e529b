# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The change that containerd, Docker and CRI-O share; their modules' tests have the rest."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import (
    KubegpuError,
    RolledBackError,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.files import FileState, read_file
from ansible_collections.kubegpu.nodes.plugins.module_utils._record import transaction
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.transaction import FileChange
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.engine import (
    Service,
    change_runtime,
)


class Files:
    """Two files, and a daemon that works or not."""

    def __init__(self, folder):
        self.paths = [folder / "one", folder / "two"]
        for path in self.paths:
            path.write_text("old")
        self.store = StateStore(str(folder / "var" / "state.json"))
        self.broken = False
        self.loads = 0

    def load(self):
        self.loads += 1
        if self.broken:
            raise KubegpuError("It does not start.", evidence="line 3")

    def changes(self, **options):
        states = [read_file(str(path)) for path in self.paths]
        return [
            FileChange(f"m:x:{state.path}", state, FileState(state.path, b"new", 0o644), **options)
            for state in states
        ]

    def run(self, changes, keeps_undo=False, **options):
        journal = Result(0, "the journal", "")
        service = Service(
            "it", "it.service", lambda _argv: journal, self.load, self.load, keeps_undo
        )
        with self.store.transaction():
            change_runtime(self.store, changes, service, **options)

    def texts(self):
        return [path.read_text() for path in self.paths]


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


@pytest.mark.parametrize("undo", [False, True])
def test_files_are_restored_and_the_old_ones_are_loaded(files, undo):
    files.broken = True
    with pytest.raises(RolledBackError) as caught:
        files.run(files.changes(undo=undo))
    assert files.texts() == ["old", "old"]
    assert files.loads == 2
    assert files.store.records("m:") == {}
    error = caught.value
    assert error.cause == (
        "it does not work with the new configuration: It does not start. The old configuration was "
        "restored; it still does not run: It does not start. line 3"
    )
    assert error.evidence == "line 3\nthe journal"


def test_without_a_change_nothing_is_restored_or_loaded_again(files):
    files.broken = True
    with pytest.raises(KubegpuError, match="it does not work: It does not start") as caught:
        files.run([])
    assert not isinstance(caught.value, RolledBackError)
    assert "changed no file" in caught.value.next_step
    assert files.loads == 1


def test_files_of_an_earlier_run_that_were_not_loaded_are_restored(files):
    service = Service("it", "it.service", lambda _argv: Result(0, "", ""), None, files.load)
    with files.store.transaction():
        change_runtime(files.store, files.changes(), service)
    assert files.texts() == ["new", "new"]
    files.broken = True

    def unloaded():
        for key, record in files.store.records("m:").items():
            state = read_file(record.path)
            yield FileChange(key, state, files.store.undo_target(key, state)[1], undo=True)

    with pytest.raises(RolledBackError):
        files.run([], unloaded=unloaded)
    assert files.texts() == ["old", "old"]
    assert files.store.records("m:") == {}


def test_a_file_whose_record_a_killed_run_left_is_restored_too(files):
    changes = files.changes()
    with files.store.transaction():
        for change in changes:
            files.store.write_recorded(change.key, change.before, change.after, {})
    for path in files.paths:
        path.write_text("old")
    files.broken = True
    with pytest.raises(RolledBackError):
        files.run(files.changes())
    assert files.texts() == ["old", "old"]


def test_a_removal_can_stay_although_the_daemon_does_not_start(files):
    files.broken = True
    with pytest.raises(KubegpuError) as caught:
        files.run(files.changes(undo=True), keeps_undo=True)
    assert not isinstance(caught.value, RolledBackError)
    assert "remains so" in caught.value.next_step
    assert files.texts() == ["new", "new"]


def test_one_file_that_cannot_be_restored_leaves_no_other_one_changed(files, monkeypatch):
    files.broken = True
    written = transaction.write_file

    def full(state):
        if state.path.endswith("two") and state.content == b"old":
            raise KubegpuError("No space left on device.")
        return written(state)

    monkeypatch.setattr(transaction, "write_file", full)
    with pytest.raises(KubegpuError, match="It does not start") as caught:
        files.run(files.changes(undo=True))
    assert "could not be restored: No space left on device." in caught.value.cause
    assert not isinstance(caught.value, RolledBackError)
    assert files.texts() == ["old", "new"] and files.loads == 2


def test_a_file_that_somebody_changed_stops_the_change(files):
    changes = files.changes()
    files.paths[1].write_text("somebody's")
    with pytest.raises(KubegpuError, match="changed by another program during this run"):
        files.run(changes)
    assert files.texts() == ["old", "somebody's"]
    assert files.loads == 0
