# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import errno
import multiprocessing
import os
import stat
import struct
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import (
    InputError,
    KubegpuError,
    LockedError,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host import files
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.temporary import create_tree

FORK = multiprocessing.get_context("fork")


def test_absent_file_is_a_state(tmp_path):
    state = files.read_file(str(tmp_path / "no"))
    assert (state.exists, state.content, state.sha256) == (False, None, None)


def test_links_are_followed_and_stay(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    state = files.read_file(str(link))
    files.write_file(files.FileState(state.path, b"new", state.mode, state.uid, state.gid))
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_link_to_nothing_gets_its_target(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    state = files.read_file(str(link))
    assert not state.exists
    files.write_file(files.FileState(state.path, b"new"))
    assert link.is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_files_below_a_folder_are_in_the_order_of_each_folder(tmp_path):
    for name in ("b", "a/z", "a/c/x", "a-1", ".hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "linked").symlink_to(tmp_path)
    (tmp_path / "empty").mkdir()
    found = [path[len(str(tmp_path)) + 1 :] for path in files.files_below(str(tmp_path))]
    assert found == [".hidden", "a/c/x", "a/z", "a-1", "b"]
    assert files.files_below(str(tmp_path / "missing")) == ()


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/zero"):
        with pytest.raises(InputError, match="not a file"):
            files.read_file(path)


def test_a_file_without_measure_is_refused(tmp_path):
    with open(tmp_path / "large", "wb") as handle:
        handle.truncate((16 << 20) + 1)
    with pytest.raises(InputError, match="16 MiB"):
        files.read_file(str(tmp_path / "large"))


def test_directory_is_refused(tmp_path):
    with pytest.raises(InputError, match="is a directory"):
        files.read_file(str(tmp_path))


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o4755])
def test_mode_is_written_whatever_the_umask(tmp_path, mode):
    path = tmp_path / "f"
    old = os.umask(0o077)
    try:
        files.write_file(files.FileState(str(path), b"x", mode))
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_owner_is_kept(tmp_path):
    path = tmp_path / "f"
    path.write_text("x")
    os.chown(path, 1234, 2345)
    state = files.read_file(str(path))
    files.write_file(files.FileState(state.path, b"y", state.mode, state.uid, state.gid))
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


# -- ACLs and attributes ---------------------------------------------------------------------

ACL = "system.posix_acl_access"
DEFAULT_ACL = "system.posix_acl_default"
_NO_ID = 0xFFFFFFFF


def acl(*entries):
    """Return an ACL as the kernel takes it: include/uapi/linux/posix_acl_xattr.h of Linux."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def named(user=65534, bits=4, group=0, mask=4):
    """user::rw-, user:65534:r--, group::---, mask::r--, other::---: its mode reads 0640."""
    return acl(
        (1, 6, _NO_ID), (2, bits, user), (4, group, _NO_ID), (16, mask, _NO_ID), (32, 0, _NO_ID)
    )


@pytest.fixture
def folder(tmp_path):
    """A folder on a file system with ACLs: Linux has them on tmpfs, ext4, XFS and Btrfs."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        for place in (tmp_path, Path(memory)):
            (place / "try").touch()
            try:
                os.setxattr(place / "try", ACL, named())
            except OSError:
                continue
            (place / "try").unlink()
            yield place
            return
        pytest.fail("neither the temporary folder nor /dev/shm has ACLs")


def replaced(path, content=b"new", **more):
    files.write_file(replace(files.read_file(str(path)), content=content, **more))


def test_acl_and_attributes_are_kept(folder):
    path = folder / "f"
    path.write_text("old")
    os.setxattr(path, ACL, named())
    os.setxattr(path, "user.comment", b"mine\0")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    replaced(path)
    assert path.read_bytes() == b"new"
    assert os.getxattr(path, ACL) == named()
    assert os.getxattr(path, "user.comment") == b"mine\0"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_who_may_read_is_the_same_afterwards(folder):
    """Before, the named user lost the file, and the group of the file got it."""
    path = folder / "f"
    path.write_text("old")
    os.chown(path, 0, 2345)
    os.setxattr(path, ACL, named())
    for above in (folder, *folder.parents):
        above.chmod(above.stat().st_mode | 0o111)

    def may_read(uid, gid):
        def child():
            os.setresgid(gid, gid, gid)
            os.setgroups([])
            os.setresuid(uid, uid, uid)
            try:
                os.open(path, os.O_RDONLY)
            except PermissionError:
                os._exit(13)
            os._exit(0)

        process = FORK.Process(target=child)
        process.start()
        process.join(30)
        assert process.exitcode in (0, 13)
        return process.exitcode == 0

    before = (may_read(65534, 65534), may_read(4321, 2345))
    replaced(path)
    assert (may_read(65534, 65534), may_read(4321, 2345)) == before == (True, False)


def test_a_stricter_mode_counts_for_named_users_too(folder):
    path = folder / "f"
    path.write_text("old")
    os.setxattr(path, ACL, named())
    replaced(path, mode=0o600)
    assert os.getxattr(path, ACL) == named(mask=0)


def test_where_the_acl_is_not_taken_the_group_keeps_what_it_had(folder, monkeypatch):
    path = folder / "f"
    path.write_text("old")
    os.setxattr(path, ACL, named())
    said = []
    monkeypatch.setattr(files, "warn", said.append)

    def refuse(*_given):
        raise OSError(errno.EOPNOTSUPP, "no ACLs here")

    with monkeypatch.context() as patch:
        patch.setattr(os, "setxattr", refuse)
        replaced(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, "0640 would let the group read it"
    assert len(said) == 1 and "ACL" in said[0] and str(path) in said[0]


def test_a_file_that_takes_the_place_of_another_has_not_the_acl_of_its_folder(folder):
    path = folder / "f"
    path.write_text("old")
    path.chmod(0o640)
    os.setxattr(folder, DEFAULT_ACL, named(bits=6, mask=6))
    replaced(path)
    with pytest.raises(OSError, match="No data available"):
        os.getxattr(path, ACL)
    # One that is new has it, as any program's.
    replaced(folder / "g", mode=0o640)
    assert os.getxattr(folder / "g", ACL) == named(bits=6)


def test_directories_are_made_named_and_removed_while_empty(tmp_path):
    path = tmp_path / "a" / "b" / "f"
    made = files.write_file(files.FileState(str(path), b"x"))
    assert made == (str(tmp_path / "a"), str(tmp_path / "a" / "b"))
    files.remove_empty_directories(made)
    assert path.exists()
    path.unlink()
    (tmp_path / "a" / "other").write_text("somebody's")
    files.remove_empty_directories(made)
    assert sorted(os.listdir(tmp_path / "a")) == ["other"]


def test_absent_content_removes_the_file_and_twice_is_fine(tmp_path):
    path = tmp_path / "f"
    path.write_text("x")
    for _time in range(2):
        assert files.write_file(files.FileState(str(path))) == ()
        assert not path.exists()


@pytest.mark.parametrize(
    ("number", "words"), [(errno.ENOSPC, "Free space"), (errno.EROFS, "file system is writable")]
)
def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, number, words):
    path = tmp_path / "f"
    path.write_text("old")

    def fail(_descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(KubegpuError) as caught:
        files.write_file(files.FileState(str(path), b"new"))
    assert words in caught.value.next_step
    assert os.listdir(tmp_path) == ["f"]
    assert path.read_text() == "old"


def test_failed_write_takes_its_directories_back(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "rename", lambda *_names: (none for none in ()).throw(OSError(5, "io")))
    with pytest.raises(KubegpuError):
        files.write_file(files.FileState(str(tmp_path / "a" / "b" / "f"), b"new"))
    assert os.listdir(tmp_path) == []


def test_file_that_cannot_be_removed_is_an_error(tmp_path, monkeypatch):
    path = tmp_path / "f"
    path.write_text("x")
    monkeypatch.setattr(os, "unlink", lambda _name: (none for none in ()).throw(OSError(1, "no")))
    with pytest.raises(KubegpuError, match="cannot be removed"):
        files.write_file(files.FileState(str(path)))


def test_only_leftovers_of_this_very_file_are_removed(tmp_path):
    for name in (".f.abc12345.kubegpu", ".f.json.abc12345.kubegpu", ".f.abc.swp", "f.kubegpu"):
        (tmp_path / name).write_text("")
    files.remove_leftovers(str(tmp_path / "f"))
    assert sorted(os.listdir(tmp_path)) == [".f.abc.swp", ".f.json.abc12345.kubegpu", "f.kubegpu"]
    files.remove_all_leftovers(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == [".f.abc.swp", "f.kubegpu"]


def test_changed_since_looks_at_the_time_nobody_can_set_back(tmp_path):
    path = tmp_path / "f"
    before = time.time() - 1
    path.write_text("x")
    os.utime(path, (0, 0))
    assert files.changed_since(str(path), before)
    assert not files.changed_since(str(path), time.time() + 1)
    assert not files.changed_since(str(tmp_path / "no"), 0)


def _kill_at(step, action):
    """Run ``action`` in a process that dies at its ``step``-th change to the file system.

    :returns: whether it died (it did not where there are fewer steps).
    """

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

        for name in ("mkdir", "open", "rename", "unlink", "rmdir", "fsync", "fchmod", "ftruncate"):
            setattr(os, name, dying(getattr(os, name)))
        action()
        os._exit(0)

    process = FORK.Process(target=child)
    process.start()
    process.join(30)
    return process.exitcode == 9


def test_kill_at_any_point_leaves_the_old_or_the_new_file_whole(tmp_path):
    path = tmp_path / "f"
    step, seen = 1, set()
    while True:
        path.write_bytes(b"old" * 9999)
        died = _kill_at(
            step, lambda: files.write_file(files.FileState(str(path), b"new" * 9999, 0o600))
        )
        content = path.read_bytes()
        assert content in (b"old" * 9999, b"new" * 9999)
        seen.add(content[:3])
        files.remove_leftovers(str(path))
        assert os.listdir(tmp_path) == ["f"]
        if not died:
            break
        step += 1
    assert seen == {b"old", b"new"}
    assert step > 4, "no step was killed: this test looks at nothing"


# -- the lock --------------------------------------------------------------------------------


def test_second_holder_waits_and_is_told_who_holds(tmp_path):
    lock = str(tmp_path / "d" / "lock")
    with files.locked(lock):
        with pytest.raises(LockedError) as caught, files.locked(lock, timeout=0.2):
            pytest.fail("two holders")
        assert caught.value.evidence == f"process {os.getpid()}"
    with files.locked(lock, timeout=0.2):
        pass


def test_lock_of_a_killed_holder_is_free(tmp_path):
    lock = str(tmp_path / "lock")

    def die():
        with files.locked(lock):
            os._exit(9)

    process = FORK.Process(target=die)
    process.start()
    process.join(10)
    with files.locked(lock, timeout=0):
        pass


def test_lock_that_cannot_be_opened_is_an_error_of_ours(tmp_path):
    lock = tmp_path / "lock"
    lock.mkdir()
    with pytest.raises(KubegpuError, match="cannot be opened"), files.locked(str(lock)):
        pass


def _count_up(lock, counter, holders, times):
    for _time in range(times):
        with files.locked(lock, timeout=60):
            # Two holders would both get here, or lose each other's count.
            os.mkdir(holders)
            with open(counter, encoding="ascii") as handle:
                number = int(handle.read())
            with open(counter, "w", encoding="ascii") as handle:
                handle.write(str(number + 1))
            os.rmdir(holders)
            os.unlink(lock)


def test_lock_file_that_its_holder_unlinks_never_has_two_holders(tmp_path):
    """Who waits on the file that was unlinked must not think that it holds the lock."""
    counter = tmp_path / "counter"
    counter.write_text("0")
    arguments = (str(tmp_path / "d" / "lock"), str(counter), str(tmp_path / "holder"), 25)
    processes = [FORK.Process(target=_count_up, args=arguments) for _number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * 4
    assert counter.read_text() == "100"


@pytest.fixture(params=[0o027, 0o077, 0o777])
def strict_umask(request):
    """The umask of a hardened node."""
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(folder, *names):
    return [stat.S_IMODE((folder / name).stat().st_mode) for name in names]


@pytest.mark.usefixtures("strict_umask")
def test_folders_have_their_modes_whatever_the_umask(tmp_path):
    files.write_file(files.FileState(str(tmp_path / "etc" / "apt" / "keyrings" / "k"), b"key"))
    with files.locked(str(tmp_path / "run" / "kubegpu" / "lock"), folder_mode=0o700):
        assert modes(tmp_path, "run", "run/kubegpu") == [0o755, 0o700]
    folders = ("etc", "etc/apt", "etc/apt/keyrings")
    assert modes(tmp_path, *folders) == [0o755] * 3
    assert modes(tmp_path, "etc/apt/keyrings/k") == [0o644]


@pytest.mark.usefixtures("strict_umask")
def test_package_lists_of_a_check_can_be_read_by_the_user_of_apt(tmp_path):
    conf = tmp_path / "a" / "apt.conf"
    create_tree([str(tmp_path / "a" / "lists" / "partial")], {str(conf): "text"})
    assert modes(tmp_path, "a", "a/lists", "a/lists/partial") == [0o755] * 3
    assert modes(tmp_path, "a/apt.conf") == [0o644]


def test_an_existing_folder_keeps_its_mode(tmp_path):
    (tmp_path / "keyrings").mkdir(0o700)
    files.write_file(files.FileState(str(tmp_path / "keyrings" / "k"), b"key"))
    assert modes(tmp_path, "keyrings") == [0o700]
