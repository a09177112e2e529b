# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which stages have passed for this very tree, so that ``make test-full`` can be resumed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tests.tools.environments import REPOSITORY, checkout_files, interpreters

# Settings that let a run do less, or something else.
_SETTINGS = ("KUBEGPU_NODES", "PYTEST_ADDOPTS", "KUBEGPU_PROPERTY_SEED")


def tree() -> str:
    """Return a hash of all files of the checkout (names, modes, content) and of what runs them."""
    settings = [os.environ.get(name, "") for name in _SETTINGS]
    digest = hashlib.sha256(repr((sorted(interpreters().items()), settings, os.geteuid())).encode())
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


def forget(folder: Path, stage: str) -> None:
    """Remove the note of a stage that begins, and its reports: it may fail now."""
    for path in (
        folder / f"{stage}.passed",
        *folder.glob(f"{stage}.xml"),
        *folder.glob(f"{stage}-*.xml"),
    ):
        path.unlink(missing_ok=True)


def has_passed(folder: Path, stage: str, of_tree: str) -> bool:
    """Return whether a stage's last note is of this tree."""
    path = folder / f"{stage}.passed"
    return path.is_file() and path.read_text(encoding="ascii").strip() == of_tree
