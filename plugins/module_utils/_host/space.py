# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""File systems of the node: which one a path is on, whether it is full, and whether read-only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .reader import NodeReader

# Below these, package managers and installers write. Other mounts are not looked at: a server of
# network storage that does not answer would block this process.
_WRITTEN = (
    "/boot/efi",
    "/boot/firmware",
    "/etc",
    "/lib/modules",
    "/opt",
    "/tmp",
    "/usr/lib/modules",
    "/usr/local",
    "/usr/share",
    "/usr/src",
    "/var/cache/apt/archives",
    "/var/cache/dnf",
    "/var/cache/kubegpu",
    "/var/cache/zypp",
    "/var/lib/apt",
    "/var/lib/dpkg",
    "/var/lib/kubegpu",
    "/var/lib/rpm",
    "/var/log",
    "/var/tmp",
)
_NETWORK = re.compile(r"nfs|cifs|smb|fuse|autofs|ceph|lustre|gpfs|glusterfs|9p")
# What is left of a file system that a transaction has filled: the package manager removes its
# partial files when it fails.
_LITTLE = 16 << 20
_FEW = 16


@dataclass(frozen=True)
class FileSystem:
    """A mounted file system. ``files`` is the number of its inodes; 0 if it has no such limit."""

    point: str
    read_only: bool = False
    free: int = 0
    size: int = 0
    free_files: int = 0
    files: int = 0

    @property
    def without_inodes(self) -> bool:
        return bool(self.files) and self.free_files < _FEW

    @property
    def full(self) -> bool:
        return self.without_inodes or (bool(self.size) and self.free < _LITTLE)

    def shown(self) -> str:
        text = f"{self.point}: {self.free >> 20} of {self.size >> 20} MiB free"
        return f"{text}, {self.free_files} of {self.files} inodes free" if self.files else text


def read_file_systems(reader: NodeReader) -> tuple[FileSystem, ...]:
    """Return the local file systems on which a package manager or an installer writes."""
    found = []
    for point, read_only in parse_mounts(reader.read_text("/proc/self/mounts") or "").items():
        try:
            status = os.statvfs(point)
        except OSError:
            continue
        found.append(
            FileSystem(
                point,
                read_only,
                status.f_bavail * status.f_frsize,
                status.f_blocks * status.f_frsize,
                status.f_ffree,
                status.f_files,
            )
        )
    return tuple(found)


def parse_mounts(text: str) -> dict[str, bool]:
    """Return the points of local file systems, and whether each is read-only."""
    found: dict[str, bool] = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) < 4 or _NETWORK.match(fields[2]):
            continue
        point = fields[1].encode().decode("unicode_escape")
        if any(_is_below(path, point) for path in _WRITTEN):
            # The last mount at a point covers those before.
            found[point] = "ro" in fields[3].split(",")
    return found


def file_system_of(path: str, systems: Iterable[FileSystem]) -> FileSystem | None:
    """Return the file system of a path; None if it is not among them."""
    above: Sequence[FileSystem] = [one for one in systems if _is_below(path, one.point)]
    return max(above, key=lambda one: len(one.point), default=None)


def _is_below(path: str, point: str) -> bool:
    return path == point or path.startswith(f"{point.rstrip('/')}/")
