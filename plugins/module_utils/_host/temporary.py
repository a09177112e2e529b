# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Directories on the node that are removed after their use."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping

from .._core.errors import KubegpuError
from .access import barrier
from .command import Runner
from .files import FileState, make_directories, remove_empty_directories, write_file

# Beside the cached runfiles: /tmp and /var/tmp are often too small, or mounted with noexec.
UNPACKED = "/var/cache/kubegpu/unpacked"
# Exists on a node with SELinux.
_SELINUX = "/sys/fs/selinux/enforce"


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


def make_shared(run: Runner, folder: str) -> str:
    """Create a directory for the temporary files of programs (TMPDIR), and return its path, or an
    empty text where /tmp has to serve.

    Every user may write to it, as to /tmp: scripts of packages start programs as other users.

    /tmp has to serve where no other user can enter the directory, where its file system is mounted
    noexec, since scripts are run from it, and on a node with SELinux, whose policy gives files in
    /tmp a type that files in other folders do not get.
    """
    if os.path.exists(_SELINUX):
        return ""
    clear_shared(folder)
    make_directories(folder, 0o1777)
    if os.statvfs(folder).f_flag & os.ST_NOEXEC or barrier(run, folder):
        clear_shared(folder)
        return ""
    return folder


def clear_shared(folder: str) -> None:
    """Remove the directory with all that is in it, also what a killed program left."""
    shutil.rmtree(folder, ignore_errors=True)
    remove_empty_directories((os.path.dirname(folder),))


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
