# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read and write files on the node, atomically and with a lock."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import fnmatch
import glob
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass

from ansible.module_utils.common.warnings import warn

from .._core.errors import InputError, KubegpuError, LockedError
from . import acl as _acl

_SELINUX = "security.selinux"
_TEMPORARY = ".kubegpu"
# The largest file to read, in bytes.
_MAX_SIZE = 16 << 20


@dataclass(frozen=True)
class FileState:
    """The state of a file. ``content`` is None if it does not exist; ``path`` has links resolved.

    :param attributes: POSIX ACL and extended attributes ``user.*``, sorted. With None, a new file
        keeps those that it inherits from its folder.
    """

    path: str
    content: bytes | None = None
    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    selinux: str | None = None
    attributes: tuple[tuple[str, bytes], ...] | None = None

    @property
    def exists(self) -> bool:
        return self.content is not None

    @property
    def sha256(self) -> str | None:
        return None if self.content is None else sha256(self.content)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_file(path: str) -> FileState:
    """Return the state of the file at ``path``; symbolic links are followed.

    :raises InputError: it is not a regular file, or is larger than 16 MiB.
    :raises KubegpuError: it cannot be read.
    """
    real = os.path.realpath(path)
    try:
        with open(real, "rb", opener=_open_nonblocking) as handle:
            status = os.fstat(handle.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _no_file(path, "a device, a pipe or a socket")
            content = handle.read(_MAX_SIZE + 1)
            attributes = _attributes(handle.fileno())
    except FileNotFoundError:
        return FileState(real)
    except IsADirectoryError as error:
        raise _no_file(path, "a directory") from error
    except OSError as error:
        raise KubegpuError(
            f"{path} cannot be read.",
            evidence=str(error),
            next_step="Run with become, or check the file's mode.",
        ) from error
    if len(content) > _MAX_SIZE:
        raise InputError(
            f"{path} has more than {_MAX_SIZE >> 20} MiB: it is not a configuration file.",
            next_step="Give the path of the file itself.",
        )
    label = None
    with contextlib.suppress(OSError, AttributeError):
        label = os.getxattr(real, _SELINUX).rstrip(b"\0").decode()
    return FileState(
        real, content, stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, label, attributes
    )


def _attributes(descriptor: int) -> tuple[tuple[str, bytes], ...]:
    found = {}
    with contextlib.suppress(OSError, AttributeError):
        found[_acl.ATTRIBUTE] = os.getxattr(descriptor, _acl.ATTRIBUTE)
    with contextlib.suppress(OSError, AttributeError):
        for name in os.listxattr(descriptor):
            if name.startswith("user."):
                found[name] = os.getxattr(descriptor, name)
    return tuple(sorted(found.items()))


def _open_nonblocking(path: str, flags: int) -> int:
    # Opening a pipe without a writer would block.
    return os.open(path, flags | os.O_NONBLOCK)


def _no_file(path: str, what: str) -> InputError:
    return InputError(
        f"{path} is {what}, not a file.", next_step="Give the path of the file itself."
    )


def glob_files(pattern: str) -> tuple[str, ...]:
    """Return the matching files, sorted; unlike in a shell, hidden files match too."""
    folder, name = os.path.split(pattern)
    if "*" in folder:
        return tuple(sorted(glob.glob(pattern)))
    try:
        entries = os.listdir(folder)
    except OSError:
        return ()
    return tuple(
        os.path.join(folder, entry) for entry in sorted(entries) if fnmatch.fnmatchcase(entry, name)
    )


def files_below(folder: str) -> tuple[str, ...]:
    """Return the files of a folder and its subfolders, in the order of names in each folder.

    Links to folders are left out.
    """
    found: list[str] = []
    for path in glob_files(f"{folder}/*"):
        if not os.path.isdir(path):
            found.append(path)
        elif not os.path.islink(path):
            found += files_below(path)
    return tuple(found)


def write_file(desired: FileState) -> tuple[str, ...]:
    """Write the file to a temporary one and rename it; without content, remove the file.

    :returns: the directories that were created, outermost first.
    :raises KubegpuError: the file cannot be written; it is unchanged.
    """
    if desired.content is None:
        try:
            os.unlink(desired.path)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise KubegpuError(
                f"{desired.path} cannot be removed; it is as it was.",
                evidence=str(error),
                next_step="Run with become, and check that the file system is writable.",
            ) from error
        _sync_directory(os.path.dirname(desired.path))
        return ()
    folder = os.path.dirname(desired.path)
    made = make_directories(folder)
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(
            prefix=f".{os.path.basename(desired.path)}.", suffix=_TEMPORARY, dir=folder
        )
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(desired.content)
            if desired.uid is not None and desired.gid is not None:
                # An ordinary user may not do this. The rename would then silently change the
                # owner, so the error is raised.
                current = os.fstat(handle.fileno())
                if (current.st_uid, current.st_gid) != (desired.uid, desired.gid):
                    os.fchown(handle.fileno(), desired.uid, desired.gid)
            _set_mode(handle.fileno(), desired)
            handle.flush()
            os.fsync(handle.fileno())
        if desired.selinux is not None:
            with contextlib.suppress(OSError, AttributeError):
                os.setxattr(temporary, _SELINUX, desired.selinux.encode() + b"\0")
        os.rename(temporary, desired.path)
        temporary = None
        _sync_directory(folder)
    except OSError as error:
        # First the file, then the directories, which must be empty to be removed.
        _unlink_quietly(temporary)
        temporary = None
        remove_empty_directories(made)
        raise KubegpuError(
            f"{desired.path} cannot be written; it is as it was.",
            evidence=str(error),
            next_step=(
                f"Free space on the file system of {folder}."
                if error.errno in (errno.ENOSPC, errno.EDQUOT)
                else "Run with become, and check that the file system is writable."
            ),
        ) from error
    finally:
        _unlink_quietly(temporary)
    return made


def _set_mode(descriptor: int, desired: FileState) -> None:
    """Set mode, ACL and attributes of a new file, which only its owner can open until then."""
    mode = 0o644 if desired.mode is None else desired.mode
    if desired.attributes is None:
        os.fchmod(descriptor, mode)
        return
    with contextlib.suppress(OSError, AttributeError):
        # The folder's default ACL is for new files; this file replaces another.
        os.removexattr(descriptor, _acl.ATTRIBUTE)
    attributes = dict(desired.attributes)
    acl = attributes.pop(_acl.ATTRIBUTE, None)
    lost = []
    # With a mask, the group's bits are the mask, and would grant the group more than before.
    os.fchmod(descriptor, mode if acl is None else _acl.without_acl(acl, mode))
    if acl is not None:
        try:
            os.setxattr(descriptor, _acl.ATTRIBUTE, _acl.with_mode(acl, mode))
        except (OSError, AttributeError) as error:
            lost.append(f"its ACL ({error})")
    for name, value in attributes.items():
        try:
            os.setxattr(descriptor, name, value)
        except (OSError, AttributeError) as error:
            lost.append(f"its attribute {name} ({error})")
    if lost:
        warn(
            f"{desired.path} is written without {' and '.join(lost)}, which this file system did "
            "not take. The group of the file keeps what it may do."
        )


def remove_leftovers(path: str) -> None:
    """Remove temporary files of a killed writer of ``path``. The caller holds the lock."""
    folder, name = os.path.split(os.path.realpath(path))
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder):
            # The random part has no dot, so temporary files of `name.other` do not match.
            if _is_leftover(entry) and entry[1:].rsplit(".", 2)[0] == name:
                _unlink_quietly(os.path.join(folder, entry))


def remove_all_leftovers(folder: str) -> None:
    """Remove temporary files of killed writers in a folder that only this collection uses."""
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder):
            if _is_leftover(entry):
                _unlink_quietly(os.path.join(folder, entry))


def remove_empty_directories(paths: tuple[str, ...]) -> None:
    """Remove the given directories, innermost first, as long as they are empty."""
    for path in reversed(paths):
        try:
            os.rmdir(path)
        except OSError:
            return


def changed_since(path: str, moment: float) -> bool:
    """Return whether the file's content, name or attributes changed after ``moment`` (Unix time).

    This is the change time, which unlike the modification time cannot be set.
    """
    try:
        return os.stat(path).st_ctime > moment
    except OSError:
        return False


@contextlib.contextmanager
def locked(path: str, timeout: float = 60.0, *, folder_mode: int = 0o755) -> Iterator[None]:
    """Hold the lock file ``path`` while the block runs.

    The kernel releases the lock when its holder dies, so a killed run never leaves the node locked.
    The block may remove the lock file at its end: a waiting process then notices that its file is
    no longer the one at ``path``, and starts over.

    :param timeout: seconds to wait for the lock.
    :param folder_mode: the mode of the lock file's folder, if it has to be created.
    :raises LockedError: another process holds the lock.
    :raises KubegpuError: the lock file cannot be opened.
    """
    deadline = time.monotonic() + timeout
    made: tuple[str, ...] = ()
    while True:
        folders = make_directories(os.path.dirname(path), folder_mode)
        made += tuple(new for new in folders if new not in made)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:
            # Another run has just removed its empty directory.
            continue
        except OSError as error:
            raise KubegpuError(
                f"The lock file {path} cannot be opened.",
                evidence=str(error),
                next_step="Run with become, and check that the file system is writable.",
            ) from error
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
                # It is emptied below.
                raise KubegpuError(
                    f"The lock file {path} is another name of a file, or not a regular file.",
                    evidence=f"{status.st_nlink} names, mode {status.st_mode:o}",
                    next_step=f"See who made it (ls -l {path}), and remove it.",
                )
            _wait_for_lock(descriptor, path, timeout, deadline)
        except BaseException:
            os.close(descriptor)
            raise
        if _is_at(descriptor, path):
            break
        os.close(descriptor)
    try:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
        # Closing drops the lock.
        os.close(descriptor)
        remove_empty_directories(made)


def _wait_for_lock(descriptor: int, path: str, timeout: float, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() < deadline:
                time.sleep(0.1)
                continue
            holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
            raise LockedError(
                f"Another run works on this node and holds {path} for more than "
                f"{timeout:.0f} seconds.",
                evidence=f"process {holder or 'unknown'}",
                next_step="Wait for that run to end, then run again.",
            ) from error
        return


def _is_at(descriptor: int, path: str) -> bool:
    try:
        current = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    opened = os.fstat(descriptor)
    return (current.st_dev, current.st_ino) == (opened.st_dev, opened.st_ino)


def _is_leftover(name: str) -> bool:
    return name.startswith(".") and name.endswith(_TEMPORARY) and name.count(".") > 2


def _unlink_quietly(path: str | None) -> None:
    if path is not None:
        with contextlib.suppress(OSError):
            os.unlink(path)


def make_directories(folder: str, mode: int = 0o755) -> tuple[str, ...]:
    """Create missing directories, ``folder`` with ``mode``, its parents with 0755.

    :returns: those that were created, outermost first. The umask does not change their modes: apt
        reads keys as a user of its own, and containers can have another root.
    """
    missing = []
    desired = folder
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    made: list[str] = []
    for path in reversed(missing):
        try:
            # Not by chmod afterwards: a run that is killed in between would leave another mode.
            umask = os.umask(0)
            try:
                os.mkdir(path, mode if path == desired else 0o755)
            finally:
                os.umask(umask)
        except FileExistsError:
            continue
        except OSError as error:
            remove_empty_directories(tuple(made))
            raise KubegpuError(
                f"The directory {path} cannot be made.",
                evidence=str(error),
                next_step="Run with become, and check that the file system is writable.",
            ) from error
        made.append(path)
    return tuple(made)


def _sync_directory(folder: str) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
