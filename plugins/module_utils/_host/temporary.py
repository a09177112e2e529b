# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A directory on the node that is removed after its use."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping


@contextlib.contextmanager
def temporary_directory(prefix: str, mode: int) -> Iterator[str]:
    """Create a directory, yield its path, and remove it with all that is in it."""
    with tempfile.TemporaryDirectory(prefix=prefix) as folder:
        os.chmod(folder, mode)
        yield folder


def create_tree(directories: Iterable[str], files: Mapping[str, str]) -> None:
    """Create the directories, then the files with their text; paths are absolute."""
    for directory in directories:
        os.makedirs(directory)
    for path, text in files.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
