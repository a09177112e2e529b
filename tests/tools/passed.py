# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What passed with the files that it depends on: ``make test-full`` continues from there.

It is noted for each stage, and for each file of integration tests.

What a stage depends on is what ``make test CHANGED=1`` uses: ``tests/tools/changed.py``.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
from pathlib import Path

from tests.tools import changed
from tests.tools.environments import REPOSITORY, checkout_files, interpreters

# Settings that let a run do less, or something else. Each run draws the seed of made inputs, which
# is none of them.
_SETTINGS = ("KUBEGPU_NODES", "PYTEST_ADDOPTS")
_TEST_FILES = "tests/integration/*/test_*.py"


def digests() -> dict[str, str]:
    """Return a hash for each stage: of the files that touch it, and of what runs them.

    A file counts by name, mode and content. What runs them is the interpreters, the settings that
    let a run do less, and the user.
    """
    hashes = {stage: _of_runs() for stage in sorted(changed.EVERY)}
    for name in checkout_files():
        entry = _entry(name)
        for stage in changed.stages_of([name]):
            hashes[stage].update(entry)
    return {stage: one.hexdigest() for stage, one in hashes.items()}


def file_digests(stage: str) -> dict[str, str]:
    """Return a hash for each file of tests of a stage, by path, as :func:`digests` does.

    Another file of tests counts if it is imported.
    """
    depends = [name for name in checkout_files() if stage in changed.stages_of([name])]
    tests = {name for name in depends if fnmatch.fnmatchcase(name, _TEST_FILES)}
    shared = _of_runs()
    for name in depends:
        if name not in tests:
            shared.update(_entry(name))
    found = {}
    for name in sorted(tests):
        one = shared.copy()
        for own in sorted({name, *(tests & changed.imports_of(name))}):
            one.update(_entry(own))
        found[name] = one.hexdigest()
    return found


def _of_runs() -> hashlib._Hash:
    settings = [os.environ.get(name, "") for name in _SETTINGS]
    runs = repr((sorted(interpreters().items()), settings, os.geteuid())).encode()
    return hashlib.sha256(runs)


def _entry(name: str) -> bytes:
    path = REPOSITORY / name
    content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
    return f"{name}\0{path.lstat().st_mode:o}\0{len(content)}\0".encode() + content


def note(folder: Path, stage: str, digest: str) -> None:
    """Remember that a stage passed, with its hash when it began."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stage}.passed").write_text(f"{digest}\n", encoding="ascii")


def forget(folder: Path, stage: str) -> None:
    """Remove the note of a stage that begins, and its reports: it may fail now."""
    for path in (
        folder / f"{stage}.passed",
        *folder.glob(f"{stage}.xml"),
        *folder.glob(f"{stage}-*.xml"),
    ):
        path.unlink(missing_ok=True)


def has_passed(folder: Path, stage: str, digest: str) -> bool:
    """Return whether a stage's last note has this hash."""
    path = folder / f"{stage}.passed"
    return path.is_file() and path.read_text(encoding="ascii").strip() == digest
