# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A directory on the node that is removed after its use."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping

from .files import FileState, make_directories, write_file


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
