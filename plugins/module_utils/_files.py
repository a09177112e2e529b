# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read and write files on the node: whole or not at all, and one writer at a time."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass

from ._errors import InputError, KubegpuError, LockedError

_SELINUX = "security.selinux"


@dataclass(frozen=True)
class FileState:
    """A file as it stands: ``content`` is None where there is none; ``path`` has links resolved."""

    path: str
    content: bytes | None = None
    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    selinux: str | None = None

    @property
    def exists(self) -> bool:
        return self.content is not None

    @property
    def sha256(self) -> str | None:
        return None if self.content is None else sha256(self.content)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_file(path: str) -> FileState:
    """Return the file behind ``path`` (symbolic links followed) with mode, owner and label."""
    real = os.path.realpath(path)
    try:
        with open(real, "rb") as handle:
            content = handle.read()
            status = os.fstat(handle.fileno())
    except FileNotFoundError:
        return FileState(real)
    except IsADirectoryError as error:
        raise InputError(
            f"{path} is a directory, not a file.", next_step="Give the path of the file itself."
        ) from error
    except OSError as error:
        raise KubegpuError(
            f"{path} cannot be read.",
            evidence=str(error),
            next_step="Run with become, or check the file's mode.",
        ) from error
    label = None
    with contextlib.suppress(OSError, AttributeError):
        label = os.getxattr(real, _SELINUX).rstrip(b"\0").decode()
    return FileState(
        real, content, stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, label
    )


def write_file(wanted: FileState) -> tuple[str, ...]:
    """Make the file be ``wanted``, by writing beside it and renaming; absent content removes it.

    :returns: the directories that had to be made, outermost first.
    """
    if wanted.content is None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(wanted.path)
            _sync_directory(os.path.dirname(wanted.path))
        return ()
    folder = os.path.dirname(wanted.path)
    made = _make_directories(folder)
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(
            prefix=f".{os.path.basename(wanted.path)}.", suffix=".kubegpu", dir=folder
        )
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(wanted.content)
            if wanted.uid is not None and wanted.gid is not None:
                # Not allowed to an ordinary user for a foreign owner; then the rename would
                # silently change the owner, so the error is let through.
                current = os.fstat(handle.fileno())
                if (current.st_uid, current.st_gid) != (wanted.uid, wanted.gid):
                    os.fchown(handle.fileno(), wanted.uid, wanted.gid)
            os.fchmod(handle.fileno(), 0o644 if wanted.mode is None else wanted.mode)
            handle.flush()
            os.fsync(handle.fileno())
        if wanted.selinux is not None:
            with contextlib.suppress(OSError, AttributeError):
                os.setxattr(temporary, _SELINUX, wanted.selinux.encode() + b"\0")
        os.rename(temporary, wanted.path)
        temporary = None
        _sync_directory(folder)
    except OSError as error:
        remove_empty_directories(made)
        raise KubegpuError(
            f"{wanted.path} cannot be written; it is as it was.",
            evidence=str(error),
            next_step=(
                f"Free space on the file system of {folder}."
                if error.errno in (errno.ENOSPC, errno.EDQUOT)
                else "Run with become, and check that the file system is writable."
            ),
        ) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
    return made


def remove_leftovers(path: str) -> None:
    """Remove what a writer of ``path`` that was killed left beside it."""
    folder, name = os.path.split(os.path.realpath(path))
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder):
            if entry.startswith(f".{name}.") and entry.endswith(".kubegpu"):
                os.unlink(os.path.join(folder, entry))


def remove_empty_directories(paths: tuple[str, ...]) -> None:
    """Remove directories that we made, innermost first, as long as they are empty."""
    for path in reversed(paths):
        try:
            os.rmdir(path)
        except OSError:
            return


def changed_since(path: str, moment: float) -> bool:
    """Return whether the file's content, name or attributes changed after ``moment`` (Unix time).

    The change time is looked at: unlike the modification time nobody can set it back.
    """
    try:
        return os.stat(path).st_ctime > moment
    except OSError:
        return False


@contextlib.contextmanager
def locked(path: str, timeout: float = 60.0) -> Iterator[None]:
    """Hold the lock file ``path`` while the block runs; wait ``timeout`` seconds for it at most.

    The kernel drops the lock when its holder dies, so a killed run never leaves the node locked.
    """
    made = _make_directories(os.path.dirname(path))
    with open(path, "a+", encoding="ascii") as handle:
        os.fchmod(handle.fileno(), 0o600)
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    handle.seek(0)
                    raise LockedError(
                        f"Another run works on this node and holds {path} for more than "
                        f"{timeout:.0f} seconds.",
                        evidence=f"process {handle.read().strip() or 'unknown'}",
                        next_step="Wait for that run to end, then run again.",
                    ) from error
                time.sleep(0.1)
        handle.truncate(0)
        handle.write(f"{os.getpid()}\n")
        handle.flush()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                handle.truncate(0)
            fcntl.flock(handle, fcntl.LOCK_UN)
    remove_empty_directories(made)


def _make_directories(folder: str) -> tuple[str, ...]:
    missing = []
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    made: list[str] = []
    for path in reversed(missing):
        try:
            os.mkdir(path, 0o755)
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
