# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A folder on the node for a container of our own: a root file system of the node's programs."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from typing import Any

from .._core.errors import KubegpuError

# Not below /tmp or /run: programs may not be started from there on many nodes.
BASE = "/var/lib/kubegpu-verify"
_ROOT = "rootfs"
_NOTES = "notes"
_FOLDERS = ("dev", "etc", "proc", "sys", "tmp", "usr/bin", "usr/lib", "usr/sbin", "var", "run")
# Folders that are links into usr on most of today's systems.
_MERGED = ("bin", "lib", "lib32", "lib64", "libx32", "sbin")


class Scratch:
    """The folder, made when something is put into it. Nothing of it is left by ``remove``."""

    def __init__(self, base: str = BASE) -> None:
        self.base = base
        self.root = os.path.join(base, _ROOT)

    def make(self) -> None:
        """Make an empty root file system whose folders are laid out as the node's."""
        # A container may have left something in the one before.
        self._remove(self.root)
        try:
            os.makedirs(self.base, mode=0o700, exist_ok=True)
            for name in _FOLDERS:
                os.makedirs(os.path.join(self.root, name), exist_ok=True)
            for name in _MERGED:
                place = os.path.join(self.root, name)
                if os.path.islink(f"/{name}") and not os.path.lexists(place):
                    os.symlink(os.readlink(f"/{name}").lstrip("/"), place)
                    os.makedirs(os.path.realpath(place), exist_ok=True)
        except OSError as error:
            raise _unwritable(self.base, error) from error

    def copy(self, paths: Sequence[str]) -> None:
        """Put files of the node at the same places, links followed; what is not there is not."""
        for path in paths:
            target = os.path.join(self.root, path.lstrip("/"))
            try:
                if os.path.isfile(path) and not os.path.exists(target):
                    os.makedirs(os.path.dirname(target), exist_ok=True)
                    shutil.copyfile(path, target)
                    os.chmod(target, 0o755)
            except OSError as error:
                raise _unwritable(target, error) from error

    def pack(self, name: str) -> str:
        """Return a tar archive of the root file system."""
        path = os.path.join(self.base, name)
        try:
            with tarfile.open(path, "w") as archive:
                archive.add(self.root, arcname=".")
        except OSError as error:
            raise _unwritable(path, error) from error
        return path

    def note(self, line: str) -> None:
        """Write down what has to be removed, for a run after this one was killed."""
        try:
            os.makedirs(self.base, mode=0o700, exist_ok=True)
            with open(os.path.join(self.base, _NOTES), "a", encoding="utf-8") as handle:
                handle.write(f"{line}\n")
        except OSError as error:
            raise _unwritable(self.base, error) from error

    def notes(self) -> list[str]:
        """Return what was written down, by this run or one that was killed."""
        try:
            with open(os.path.join(self.base, _NOTES), encoding="utf-8") as handle:
                return handle.read().splitlines()
        except OSError:
            return []

    def there(self) -> bool:
        return os.path.isdir(self.base)

    def remove(self) -> None:
        """Remove all of it."""
        self._remove(self.base)

    def _remove(self, folder: str) -> None:
        # What is mounted below belongs to somebody else.
        if os.path.isdir(folder) and not any(self._mounts()):
            shutil.rmtree(folder, ignore_errors=True)

    def _mounts(self) -> Iterator[str]:
        """Return what is mounted below the folder."""
        with contextlib.suppress(OSError), open("/proc/self/mounts", encoding="utf-8") as handle:
            for line in handle:
                fields = line.split()
                if len(fields) > 1 and fields[1].startswith(f"{self.base}/"):
                    yield fields[1]


def interpreter(path: str) -> str | None:
    """Return the program that a script names in its first line."""
    try:
        with open(path, "rb") as handle:
            head = handle.read(256)
    except OSError:
        return None
    words = head[2:].split(b"\n", 1)[0].split() if head.startswith(b"#!") else []
    return words[0].decode(errors="replace") if words else None


def image_names(path: str) -> list[str]:
    """Return the names of the images in an archive of ``docker save`` or of OCI's layout.

    :raises KubegpuError: it is no such archive.
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
        f"{path} is no archive of an image.",
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
