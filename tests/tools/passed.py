# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which stages have passed for this very tree, so that ``make test-full`` can be resumed."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.tools.environments import REPOSITORY, checkout_files, interpreters


def tree() -> str:
    """Return a hash of all files of the checkout (names, modes, content) and of the Pythons."""
    digest = hashlib.sha256(repr(sorted(interpreters().items())).encode())
    for name in checkout_files():
        path = REPOSITORY / name
        content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
        mode = path.lstat().st_mode
        digest.update(f"{name}\0{mode:o}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def note(folder: Path, stage: str, of_tree: str) -> None:
    """Remember that a stage passed for a tree."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stage}.passed").write_text(f"{of_tree}\n", encoding="ascii")


def has_passed(folder: Path, stage: str, of_tree: str) -> bool:
    """Return whether a stage's last note is of this tree."""
    path = folder / f"{stage}.passed"
    return path.is_file() and path.read_text(encoding="ascii").strip() == of_tree
