# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import stat
import struct
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.files import read_file, write_file
from ansible_collections.kubegpu.nodes.plugins.module_utils._record import store as _state
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.file_record import Undo
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore

FORK = multiprocessing.get_context("fork")
KEY = "module:nvidia:/f"


class Place:
    """A node in a folder, and what a module does with the record."""

    def __init__(self, folder):
        self.folder = folder
        self.file = folder / "etc" / "f"
        self.state = folder / "var" / "kubegpu" / "state.json"

    def store(self):
        return StateStore(str(self.state))

    def present(self, content=b"ours", key=KEY):
        store = self.store()
        with store.transaction():
            before = read_file(str(self.file))
            if before.content != content:
                after = replace(before, content=content)
                store.write_recorded(key, before, after, {"wrote": content.decode()})
        return store

    def absent(self, key=KEY):
        store = self.store()
        with store.transaction():
            current = read_file(str(self.file))
            way, target = store.undo_target(key, current)
            if way is Undo.REMOVE_LINES:
                target = replace(current, content=b"somebody's")
            if store.record(key) is not None:
                store.write_undone(key, target)
        return way

    def edit(self, content=b"edited"):
        self.file.write_bytes(content)

    def everything(self):
        return sorted(
            str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()
        )


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture
def admins(place):
    place.file.parent.mkdir()
    place.file.write_bytes(b"admin's")
    place.file.chmod(0o640)
    return place


def test_new_file_and_its_folders_go_again(place):
    place.present()
    assert place.file.read_bytes() == b"ours"
    assert place.absent() is Undo.RESTORE
    assert os.listdir(place.folder) == ["var"], "the folder of the record's folder was made too"
    assert not place.state.parent.exists()


def test_very_bytes_and_mode_come_back(admins):
    admins.present()
    admins.present(b"ours, newer")
    assert admins.absent() is Undo.RESTORE
    assert admins.file.read_bytes() == b"admin's"
    assert stat.S_IMODE(admins.file.stat().st_mode) == 0o640
    assert admins.everything() == ["etc/f"]


def test_mode_that_somebody_set_since_stays(admins):
    admins.present()
    admins.file.chmod(0o600)
    assert admins.absent() is Undo.RESTORE
    assert stat.S_IMODE(admins.file.stat().st_mode) == 0o600


ACL = "system.posix_acl_access"
# user:65534:r-- and group::---, as in test_files.py; the file's mode reads 0640.
NAMED = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", *entry)
    for entry in ((1, 6, ~0 & 0xFFFFFFFF), (2, 4, 65534), (4, 0, ~0 & 0xFFFFFFFF),
                  (16, 4, ~0 & 0xFFFFFFFF), (32, 0, ~0 & 0xFFFFFFFF))
)  # fmt: skip


@pytest.fixture
def with_acl(tmp_path):
    """A file with an ACL: on tmpfs, where the temporary folder's file system has none."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        for folder in (tmp_path, Path(memory)):
            place = Place(folder)
            place.file.parent.mkdir()
            place.file.write_bytes(b"admin's")
            with contextlib.suppress(OSError):
                os.setxattr(place.file, ACL, NAMED)
                os.setxattr(place.file, "user.x", b"\0")
                yield place
                return
        pytest.fail("neither the temporary folder nor /dev/shm has ACLs")


def test_acl_and_attributes_come_back(with_acl):
    with_acl.present()
    assert os.getxattr(with_acl.file, ACL) == NAMED
    assert with_acl.absent() is Undo.RESTORE
    assert with_acl.file.read_bytes() == b"admin's"
    assert os.getxattr(with_acl.file, ACL) == NAMED
    assert os.getxattr(with_acl.file, "user.x") == b"\0"
    assert stat.S_IMODE(with_acl.file.stat().st_mode) == 0o640


def test_an_acl_that_somebody_set_since_stays(with_acl):
    with_acl.present()
    os.removexattr(with_acl.file, ACL)
    os.removexattr(with_acl.file, "user.x")
    with_acl.file.chmod(0o600)
    assert with_acl.absent() is Undo.RESTORE
    assert os.listxattr(with_acl.file) == []
    assert stat.S_IMODE(with_acl.file.stat().st_mode) == 0o600


def test_an_acl_comes_back_where_the_file_lost_it_by_our_write(with_acl):
    """As on a file system that took none for a while: what we wrote is what stands there."""
    store = with_acl.store()
    with store.transaction():
        before = read_file(str(with_acl.file))
        after = replace(before, content=b"ours", attributes=())
        store.write_recorded(KEY, before, after, {})
    assert os.listxattr(with_acl.file) == []
    assert with_acl.absent() is Undo.RESTORE
    assert os.getxattr(with_acl.file, ACL) == NAMED


def test_edit_since_the_last_write_is_seen(admins):
    admins.present()
    admins.edit()
    assert admins.absent() is Undo.REMOVE_LINES
    assert admins.everything() == ["etc/f"]


def test_edit_between_two_writes_is_seen(admins):
    admins.present()
    admins.edit()
    admins.present(b"ours again")
    assert admins.absent() is Undo.REMOVE_LINES


def test_file_put_back_by_hand_starts_over(admins):
    admins.present()
    admins.edit()
    admins.present(b"ours again")
    admins.edit(b"admin's")
    admins.present()
    assert admins.absent() is Undo.RESTORE
    assert admins.file.read_bytes() == b"admin's"


def test_without_its_backup_only_lines_are_removed(admins):
    store = admins.present()
    os.unlink(store.record(KEY).backup)
    assert admins.absent() is Undo.REMOVE_LINES


@pytest.mark.parametrize("content", [b"", b"somebody's"])
def test_a_backup_that_is_not_what_was_saved_is_not_put_back(admins, content, monkeypatch):
    said = []
    monkeypatch.setattr(_state, "warn", said.append)
    admins.present()
    (backup,) = (admins.state.parent / "backups").iterdir()
    backup.write_bytes(content)
    assert admins.absent() is Undo.REMOVE_LINES
    assert len(said) == 1 and str(backup) in said[0]


@pytest.mark.parametrize("content", [b"", b"somebody's"])
def test_a_backup_that_is_not_what_is_saved_is_written_again(admins, content):
    store = admins.present()
    backup = Path(store.record(KEY).backup)
    admins.edit(b"admin's")
    backup.write_bytes(content)
    admins.present()
    assert backup.read_bytes() == b"admin's"
    assert admins.absent() is Undo.RESTORE
    assert admins.file.read_bytes() == b"admin's"


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_record_that_others_can_write_is_refused(admins, mode):
    """Else a user of the node plants a record and a backup, and root writes what they say."""
    admins.present()
    admins.state.parent.chmod(mode)
    with pytest.raises(KubegpuError, match="can be written by others") as caught:
        admins.absent()
    assert "chmod 700" in caught.value.next_step
    assert admins.file.read_bytes() == b"ours"
    admins.state.parent.chmod(0o755)
    assert admins.absent() is Undo.RESTORE


def test_a_lock_is_not_written_into_a_folder_of_others(admins):
    """It would empty a file that has a second name there."""
    admins.present()
    lock = admins.state.with_name(f"{admins.state.name}.lock")
    lock.unlink(missing_ok=True)
    os.link(admins.file, lock)
    admins.state.parent.chmod(0o777)
    with pytest.raises(KubegpuError, match="can be written by others"):
        admins.absent()
    assert admins.file.read_bytes() == b"ours"
    admins.state.parent.chmod(0o700)
    with pytest.raises(KubegpuError, match="not a regular file"):
        admins.absent()
    assert admins.file.read_bytes() == b"ours"


@pytest.mark.parametrize(("mode", "refused"), [(0o777, True), (0o1777, False), (0o755, False)])
def test_a_record_in_a_folder_that_others_may_exchange_is_refused(tmp_path, mode, refused):
    around = tmp_path / "around"
    around.mkdir()
    (around / "state").mkdir(mode=0o700)
    around.chmod(mode)
    store = StateStore(str(around / "state" / "state.json"))
    if not refused:
        with store.transaction():
            store.put("a", 1)
        return
    with (
        pytest.raises(KubegpuError, match="in which the node's record") as caught,
        store.transaction(),
    ):
        store.put("a", 1)
    assert f"chmod go-w {around}" in caught.value.next_step


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize("part", ["", "/state"])
def test_a_record_in_a_folder_of_another_user_is_refused(tmp_path, part):
    (tmp_path / "around" / "state").mkdir(parents=True, mode=0o700)
    os.chown(f"{tmp_path}/around{part}", 65534, 65534)
    store = StateStore(str(tmp_path / "around" / "state" / "state.json"))
    with pytest.raises(KubegpuError, match="by others than root"), store.transaction():
        store.put("a", 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link to another user")
def test_a_record_behind_a_link_of_another_user_is_refused(tmp_path):
    (tmp_path / "state").mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "state")
    store = StateStore(str(link / "state.json"))
    with store.transaction():
        store.put("a", 1)
    os.chown(link, 65534, 65534, follow_symlinks=False)
    with pytest.raises(KubegpuError, match="by others than root"), store.transaction():
        store.put("a", 2)


def test_nobody_else_sees_the_names_of_backups(admins):
    admins.present()
    assert stat.S_IMODE(admins.state.parent.stat().st_mode) == 0o700


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_folders_that_an_earlier_release_made_are_closed(admins, monkeypatch):
    folder = admins.state.parent
    backups = folder / "backups"
    admins.present()
    assert mode_of(backups) == 0o700
    for path in (folder, backups):
        path.chmod(0o755)
    store = admins.store()
    assert store.record(KEY) is not None
    assert (mode_of(folder), mode_of(backups)) == (0o755, 0o755), "reading changes nothing"
    admins.present()
    assert (mode_of(folder), mode_of(backups)) == (0o755, 0o700), "the folder is somebody's"
    monkeypatch.setattr(_state, "_OWN_FOLDER", str(folder))
    admins.present()
    assert mode_of(folder) == 0o700


def test_a_folder_of_backups_that_is_a_link_is_left_alone(admins):
    elsewhere = admins.folder / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    admins.state.parent.mkdir(parents=True)
    (admins.state.parent / "backups").symlink_to(elsewhere)
    admins.present()
    assert mode_of(elsewhere) == 0o755


@pytest.mark.parametrize("key", ["path", "before_sha256"])
def test_a_record_without_a_field_is_told(admins, key):
    admins.present()
    data = json.loads(admins.state.read_text())
    del data["files"][KEY][key]
    admins.state.write_text(json.dumps(data))
    with pytest.raises(KubegpuError, match="format that this release cannot read"):
        admins.absent()


@pytest.mark.parametrize("key", ["before_attributes", "after_attributes"])
@pytest.mark.parametrize(
    "value",
    [
        {"user.x": "a"}, {"user.x": "!!!!"}, {"user.x": "é"}, {"user.x": 1}, ["user.x"], "x", 1,
        {ACL: ""}, {ACL: "AAAA"}, {ACL: "AgAAAAE="},
    ],
)  # fmt: skip
def test_a_record_with_wrong_attributes_is_told(admins, key, value):
    admins.present()
    data = json.loads(admins.state.read_text())
    data["files"][KEY][key] = value
    admins.state.write_text(json.dumps(data))
    with pytest.raises(KubegpuError, match="format that this release cannot read"):
        admins.absent()
    assert admins.file.read_bytes() == b"ours"


def test_a_broken_record_of_another_file_is_left_alone(admins):
    admins.present()
    data = json.loads(admins.state.read_text())
    data["files"]["other"] = []
    admins.state.write_text(json.dumps(data))
    assert admins.absent() is Undo.RESTORE
    assert json.loads(admins.state.read_text())["files"] == {"other": []}


def test_a_record_that_is_nested_without_end_is_told(admins):
    admins.present()
    admins.state.write_text('{"a":' * 200_000)
    with pytest.raises(KubegpuError, match="not valid JSON"):
        admins.store()


def test_record_and_backup_are_for_root_only(admins):
    store = admins.present()
    for path in (admins.state, store.record(KEY).backup):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_backup_that_two_records_need_stays_until_the_second_goes(admins):
    other = Place(admins.folder)
    other.file = admins.folder / "etc" / "g"
    other.file.write_bytes(b"admin's")
    admins.present()
    other.present(key="other")
    assert admins.absent() is Undo.RESTORE
    assert other.absent("other") is Undo.RESTORE
    assert other.file.read_bytes() == b"admin's"
    assert admins.everything() == ["etc/f", "etc/g"]


def test_a_backup_goes_when_another_record_takes_over_what_it_was_for(admins):
    """As of two handlers in one file, of which the first goes (finding L2)."""
    admins.present()
    admins.present(b"both", key="other")
    store = admins.store()
    with store.transaction():
        first = store.record(KEY)
        other = replace(store.record("other"), backup=first.backup,
                        before_sha256=first.before_sha256)  # fmt: skip
        store.put_record("other", other)
        store.forget(KEY)
    assert os.listdir(admins.state.parent / "backups") == [os.path.basename(first.backup)]
    assert admins.absent("other") is Undo.RESTORE
    assert admins.file.read_bytes() == b"admin's"
    assert admins.everything() == ["etc/f"]


def test_backups_that_no_record_knows_stay(admins):
    """Somebody moved the record away, as its own failure says, and puts the backup back by hand."""
    admins.present()
    os.rename(admins.state, admins.folder / "moved.json")
    admins.present(b"newer")
    assert len(os.listdir(admins.state.parent / "backups")) == 2


def test_take_back_restores_file_and_record(admins):
    admins.present()
    store = admins.store()
    with store.transaction():
        earlier, before = store.record(KEY), read_file(str(admins.file))
        store.write_recorded(KEY, before, replace(before, content=b"worse"), {})
        store.take_back(KEY, before, earlier)
        assert store.record(KEY) == earlier
    assert admins.file.read_bytes() == b"ours"
    assert admins.absent() is Undo.RESTORE


def test_take_back_of_a_first_write_leaves_nothing(admins):
    store = admins.store()
    with store.transaction():
        before = read_file(str(admins.file))
        store.write_recorded(KEY, before, replace(before, content=b"worse"), {})
        store.take_back(KEY, before, None)
    assert admins.file.read_bytes() == b"admin's"
    assert admins.everything() == ["etc/f"]


def test_values_are_on_disk_at_once_and_leave_nothing_when_dropped(place):
    store = place.store()
    with store.transaction():
        store.put("k", {"a": 1})
        assert place.store().get("k") == {"a": 1}
        store.drop("k")
        assert place.store().get("k") is None
    assert place.everything() == []


def test_failure_inside_keeps_what_was_recorded(admins):
    store = admins.store()
    with pytest.raises(RuntimeError), store.transaction():
        store.put("k", 1)
        raise RuntimeError
    assert admins.store().get("k") == 1


def test_reading_needs_no_lock_and_writes_nothing(place):
    assert place.store().record(KEY) is None
    assert not place.state.parent.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not valid JSON"),
        ("[]", "of a format"),
        ('{"format": 99, "files": {}, "values": {}}', "99"),
        ('{"format": 1}', "of a format"),
        ('{"format": 1, "files": [], "values": {}}', "of a format"),
    ],
)
def test_record_that_cannot_be_read_is_said_and_kept(place, text, words):
    place.state.parent.mkdir(parents=True)
    place.state.write_text(text)
    with pytest.raises(KubegpuError) as caught:
        place.store()
    assert words in str(caught.value)
    assert place.state.read_text() == text


# -- kill at any point -------------------------------------------------------------------------


def killed_at(step, action):
    """Run ``action`` in a process that dies right before its ``step``-th change to the disk."""

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

        for name in ("mkdir", "rename", "unlink", "rmdir", "fsync", "fchmod", "ftruncate"):
            setattr(os, name, dying(getattr(os, name)))
        action()
        os._exit(0)

    process = FORK.Process(target=child)
    process.start()
    process.join(30)
    assert process.exitcode in (0, 9)
    return process.exitcode == 9


def each_step(folder, prepare, action):
    """Yield a place for each point at which ``action`` can die, after it died there."""
    step = 1
    while True:
        place = Place(folder / str(step))
        place.file.parent.mkdir(parents=True)
        place.file.write_bytes(b"admin's")
        place.file.chmod(0o640)
        prepare(place)
        died = killed_at(step, lambda place=place: action(place))
        yield place
        if not died:
            assert step > 8, "no step was killed: this test looks at nothing"
            return
        step += 1


def test_kill_in_a_first_write_loses_nothing(tmp_path):
    for place in each_step(tmp_path, lambda _place: None, Place.present):
        assert place.file.read_bytes() in (b"admin's", b"ours")
        place.present()
        assert place.file.read_bytes() == b"ours"
        assert place.absent() is Undo.RESTORE
        assert place.file.read_bytes() == b"admin's"
        assert stat.S_IMODE(place.file.stat().st_mode) == 0o640
        assert place.everything() == ["etc/f"]


def test_kill_in_a_first_write_can_be_undone_at_once(tmp_path):
    for place in each_step(tmp_path, lambda _place: None, Place.present):
        before = place.file.read_bytes()
        way = place.absent()
        if before == b"ours":
            assert way is Undo.RESTORE
        assert place.file.read_bytes() == b"admin's"
        if way is not Undo.REMOVE_LINES:
            assert [name for name in place.everything() if "state" in name] == []


def test_kill_in_a_second_write_does_not_look_like_an_edit(tmp_path):
    for place in each_step(tmp_path, Place.present, lambda place: place.present(b"newer")):
        assert place.file.read_bytes() in (b"ours", b"newer")
        assert place.absent() is Undo.RESTORE
        assert place.file.read_bytes() == b"admin's"
        assert place.everything() == ["etc/f"]


def test_kill_in_a_second_write_then_a_third(tmp_path):
    for place in each_step(tmp_path, Place.present, lambda place: place.present(b"newer")):
        place.present(b"newest")
        assert place.absent() is Undo.RESTORE
        assert place.file.read_bytes() == b"admin's"
        assert place.everything() == ["etc/f"]


def test_kill_in_undoing_is_finished_by_the_next(tmp_path):
    for place in each_step(tmp_path, Place.present, Place.absent):
        assert place.file.read_bytes() in (b"admin's", b"ours")
        place.absent()
        if place.file.read_bytes() == b"somebody's":
            pytest.fail("undoing twice took lines out of the admin's file")
        assert place.file.read_bytes() == b"admin's"
        assert stat.S_IMODE(place.file.stat().st_mode) == 0o640
        assert place.everything() == ["etc/f"]
        assert not place.state.parent.exists()


# -- several runs at once ------------------------------------------------------------------------


def _put_and_drop(path, name):
    for number in range(15):
        store = StateStore(path)
        with store.transaction():
            assert store.get("running") is None
            store.put("running", name)
            store.put(f"{name}-{number}", number)
            store.drop("running")
        store = StateStore(path)
        with store.transaction():
            assert store.get(f"{name}-{number}") == number
            store.drop(f"{name}-{number}")


def test_runs_at_once_do_not_lose_each_others_records(tmp_path):
    path = tmp_path / "kubegpu" / "state.json"
    processes = [FORK.Process(target=_put_and_drop, args=(str(path), str(n))) for n in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * 4
    assert os.listdir(tmp_path) == []


def test_state_file_is_plain_json_for_people(admins):
    admins.present()
    data = json.loads(admins.state.read_text())
    assert data["files"][KEY]["path"] == str(admins.file)
    write_file(read_file(str(admins.state)))
    assert admins.absent() is Undo.RESTORE
