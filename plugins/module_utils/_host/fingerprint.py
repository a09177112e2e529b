# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Identify the state of a file and the start of a process, to detect changes.

Separate from ``files.py`` and ``systemd.py`` because the facts need only this, and a node compiles
each file that is sent.
"""

from __future__ import annotations

import os


def file_signature(path: str) -> str | None:
    """Return device, inode, mode, size and times of the file as text; None if it does not exist.

    Each change of the file changes the signature, because the change time cannot be set.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    return ":".join(
        str(number)
        for number in (
            *(status.st_dev, status.st_ino, status.st_mode, status.st_size),
            *(status.st_mtime_ns, status.st_ctime_ns),
        )
    )


def process_ticks(pid: int) -> int | None:
    """Return the clock ticks from boot to the start of the process; None if it does not run."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as handle:
            # The command name may hold spaces and brackets: fields count from the last bracket.
            return int(handle.read().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def process_start_id(pid: int) -> str | None:
    """Return an ID of the process's start that does not depend on the wall clock."""
    ticks = process_ticks(pid)
    return None if ticks is None else str(ticks)
