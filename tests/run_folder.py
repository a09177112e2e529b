# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One temporary folder for all that a test run makes; it goes with the run.

The process that starts the run holds a lock on it, which ends with that process however it ends: a
later run removes the folders whose lock nobody holds. Workers inherit the folder by ``TMPDIR``.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

PREFIX = "kubegpu-run-"
_LOCK = ".lock"
_HELD: dict[str, Any] = {}


def begin(config: Any) -> None:
    """Make the run's folder, unless this is a worker or the folder is there already."""
    if hasattr(config, "workerinput") or _HELD:
        return
    before = os.environ.get("TMPDIR")
    parent = Path(tempfile.gettempdir())
    remove_left_over(parent)
    while True:
        # Short: the path of a socket has 108 characters.
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        lock = _locked(folder / _LOCK)
        # Another run may have taken it for left over before it was locked.
        if lock is not None and (folder / _LOCK).exists():
            break
    _HELD.update(folder=folder, before=before, lock=lock)
    _use(str(folder))


def end(config: Any) -> None:
    """Remove the run's folder; called by every conftest that began it."""
    if hasattr(config, "workerinput") or not _HELD:
        return
    _use(_HELD["before"])
    remove(_HELD["folder"])
    _HELD["lock"].close()
    _HELD.clear()


def remove_left_over(parent: Path) -> None:
    """Remove the folders of runs that were killed."""
    for folder in parent.glob(f"{PREFIX}*"):
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            continue
        handle = _locked(folder / _LOCK)
        if handle is not None:
            remove(folder)
            handle.close()


def remove(folder: Path) -> None:
    """Remove a folder; what a killed daemon left mounted below it is unmounted first."""
    mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for place in reversed([one for one in mounted if one.startswith(f"{folder}/")]):
        subprocess.run(["umount", "--lazy", place], check=False)
    shutil.rmtree(folder, ignore_errors=True)


def _locked(path: Path) -> Any | None:
    """Return the lock file, held; None where another process holds it or is about to."""
    try:
        handle = path.open("w")
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.close()
        return None
    return handle


def _use(folder: str | None) -> None:
    if folder is None:
        os.environ.pop("TMPDIR", None)
    else:
        os.environ["TMPDIR"] = folder
    # It remembers what it found first.
    tempfile.tempdir = None
