# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Temporary root file system for a test container, with programs and libraries of the node."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import tarfile
from collections.abc import Iterator, Sequence
from typing import Any

from .._core.errors import KubegpuError
from .._host.files import locked, make_directories

# Not in /tmp or /run, which many nodes mount with noexec.
BASE = "/var/lib/kubegpu-verify"
_LOCK = "/run/kubegpu-verify.lock"
_ROOT = "rootfs"
_RECORD = "notes"
_FOLDERS = ("dev", "etc", "proc", "sys", "tmp", "usr/bin", "usr/lib", "usr/sbin", "var", "run")
# Links into /usr on most current systems.
_MERGED = ("bin", "lib", "lib32", "lib64", "libx32", "sbin")


class TemporaryRoot:
    """The directory of a verification run: a root file system, and a record of what to remove.

    It is created when something is written into it.
    """

    def __init__(self, base: str = BASE) -> None:
        self.base = base
        self.path = os.path.join(base, _ROOT)

    def make(self) -> None:
        """Create an empty root file system with the directory layout of the node."""
        # A container may have written into an earlier one.
        self._remove(self.path)
        try:
            self._make_base()
            # A container's users enter these, its root too if that is another user of the node.
            for name in _FOLDERS:
                make_directories(os.path.join(self.path, name))
            for name in _MERGED:
                target = os.path.join(self.path, name)
                if os.path.islink(f"/{name}") and not os.path.lexists(target):
                    os.symlink(os.readlink(f"/{name}").lstrip("/"), target)
                    make_directories(os.path.realpath(target))
        except OSError as error:
            raise _unwritable(self.base, error) from error

    def _make_base(self) -> None:
        """Create the directory; root runs what is in it, so that nobody else may write to it.

        :raises OSError: others can.
        """
        make_directories(self.base, 0o700)
        status = os.lstat(self.base)
        if (
            not stat.S_ISDIR(status.st_mode)
            or status.st_uid not in (0, os.geteuid())
            or status.st_mode & 0o022
        ):
            mode = stat.S_IMODE(status.st_mode)
            why = f"others can write to it (user id {status.st_uid}, mode {mode:04o}): remove it"
            raise OSError(why)

    def copy(self, paths: Sequence[str]) -> None:
        """Copy files of the node to the same paths, following links; missing files are skipped."""
        for path in paths:
            target = os.path.join(self.path, path.lstrip("/"))
            try:
                if os.path.isfile(path) and not os.path.exists(target):
                    make_directories(os.path.dirname(target))
                    shutil.copyfile(path, target)
                    os.chmod(target, 0o755)
            except OSError as error:
                raise _unwritable(target, error) from error

    def pack(self, name: str) -> str:
        """Return a tar archive of the root file system."""
        path = os.path.join(self.base, name)
        try:
            with tarfile.open(path, "w") as archive:
                archive.add(self.path, arcname=".")
        except OSError as error:
            raise _unwritable(path, error) from error
        return path

    def record(self, line: str) -> None:
        """Record something to remove, for a later run in case this one is killed."""
        try:
            self._make_base()
            with open(os.path.join(self.base, _RECORD), "a", encoding="utf-8") as handle:
                handle.write(f"{line}\n")
        except OSError as error:
            raise _unwritable(self.base, error) from error

    def recorded(self) -> list[str]:
        """Return what was recorded, by this run or by one that was killed."""
        try:
            with open(os.path.join(self.base, _RECORD), encoding="utf-8") as handle:
                return handle.read().splitlines()
        except OSError:
            return []

    def exists(self) -> bool:
        return os.path.isdir(self.base)

    def remove(self) -> None:
        """Remove the directory with all that is in it."""
        self._remove(self.base)

    def _remove(self, folder: str) -> None:
        if os.path.islink(folder):
            os.unlink(folder)
        # Files of a mounted file system are not ours to remove.
        if os.path.isdir(folder) and not any(self._mounts()):
            shutil.rmtree(folder, ignore_errors=True)

    def _mounts(self) -> Iterator[str]:
        """Return the mount points in the directory."""
        with contextlib.suppress(OSError), open("/proc/self/mounts", encoding="utf-8") as handle:
            for line in handle:
                fields = line.split()
                if len(fields) > 1 and fields[1].startswith(f"{self.base}/"):
                    yield fields[1]


def interpreter(path: str) -> str | None:
    """Return the program in a script's first line (``#!``); None for other files."""
    try:
        with open(path, "rb") as handle:
            head = handle.read(256)
    except OSError:
        return None
    arguments = head[2:].split(b"\n", 1)[0].split() if head.startswith(b"#!") else []
    return arguments[0].decode(errors="replace") if arguments else None


def is_file(path: str) -> bool:
    return os.path.isfile(path)


@contextlib.contextmanager
def exclusive() -> Iterator[None]:
    """Keep other verification runs out while the block runs; wait at most 300 seconds for them.

    :raises LockedError: another run holds the lock for longer.
    """
    with locked(_LOCK, timeout=300):
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.unlink(_LOCK)


def image_names(path: str) -> list[str]:
    """Return the names of the images in an archive of ``docker save`` or of OCI's layout.

    :raises KubegpuError: the file cannot be read, or is no such archive.
    """
    try:
        with tarfile.open(path) as archive:
            for name, read in (("manifest.json", _docker_names), ("index.json", _oci_names)):
                for member in (name, f"./{name}"):
                    with contextlib.suppress(KeyError):
                        handle = archive.extractfile(member)
                        if handle is not None:
                            return read(json.load(handle))
    except (OSError, ValueError, TypeError, AttributeError, tarfile.TarError) as error:
        raise KubegpuError(
            f"The archive {path} on the node cannot be read.",
            evidence=str(error),
            next_step="Give one made by docker save, ctr images export or skopeo copy, or check "
            "the path.",
        ) from error
    raise KubegpuError(
        f"{path} is not an archive of an image.",
        evidence="it has neither manifest.json nor index.json",
        next_step="Make one by docker save, ctr images export or skopeo copy.",
    )


def _docker_names(manifest: Any) -> list[str]:
    return [str(name) for image in manifest for name in image.get("RepoTags") or ()]


def _oci_names(index: Any) -> list[str]:
    found = []
    for manifest in index.get("manifests") or ():
        notes = manifest.get("annotations") or {}
        name = notes.get("io.containerd.image.name")
        if name:
            found.append(str(name))
    return found


def _unwritable(path: str, error: OSError) -> KubegpuError:
    return KubegpuError(
        f"{path} cannot be written on the node.",
        evidence=str(error),
        next_step="Run with become, and check that the file system is writable and not full.",
    )
