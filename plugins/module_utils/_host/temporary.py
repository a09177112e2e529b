# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A directory on the node that is removed after its use."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping

from .._core.errors import KubegpuError
from .files import FileState, make_directories, remove_empty_directories, write_file

# Beside the cached runfiles: /tmp and /var/tmp are often too small, or mounted with noexec.
UNPACKED = "/var/cache/kubegpu/unpacked"


@contextlib.contextmanager
def unpacking(root: str, name: str) -> Iterator[str]:
    """Create the directory in which an installer unpacks itself, yield its path, and remove it with
    all that is in it. What a killed run has left is removed first.

    :param root: the node's root directory.
    :param name: the installer, so that two of them have a directory each.
    :raises KubegpuError: programs cannot be run there.
    """
    folder = f"{root.rstrip('/')}{UNPACKED}/{name}"
    shutil.rmtree(folder, ignore_errors=True)
    made = make_directories(folder, 0o700)
    try:
        if os.statvfs(folder).f_flag & os.ST_NOEXEC:
            raise KubegpuError(
                f"Installers cannot be run from {folder}: its file system is mounted noexec.",
                evidence=f"the mount options of the file system of {folder}",
                next_step=f"Mount it with exec, or mount a file system with exec at {UNPACKED}.",
            )
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        remove_empty_directories(made[:-1])


def clear_unpacked(root: str, name: str) -> None:
    """Remove what a killed installer has unpacked."""
    folder = f"{root.rstrip('/')}{UNPACKED}/{name}"
    shutil.rmtree(folder, ignore_errors=True)
    remove_empty_directories((os.path.dirname(os.path.dirname(folder)), os.path.dirname(folder)))


@contextlib.contextmanager
def temporary_directory(prefix: str, mode: int) -> Iterator[str]:
    """Create a directory, yield its path, and remove it with all that is in it."""
    with tempfile.TemporaryDirectory(prefix=prefix) as folder:
        os.chmod(folder, mode)
        yield folder


def create_tree(directories: Iterable[str], files: Mapping[str, str]) -> None:
    """Create the directories and files with their text, readable for everyone; absolute paths."""
    for directory in directories:
        make_directories(directory)
    for path, text in files.items():
        write_file(FileState(path, text.encode()))
