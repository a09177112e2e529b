# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The moment of a file or a process, by which a change is seen.

Apart from ``_files`` and ``_service``, since the facts need this alone: a node compiles all that is
sent.
"""

from __future__ import annotations

import os


def mark(path: str) -> str | None:
    """Return a name for the file as it is now, None where nothing is there.

    Whatever is done to it leaves another one: nobody can set the change time back.
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
    """Return the clock ticks from boot to the start of the process; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as handle:
            # The command name may hold spaces and brackets: fields count from the last bracket.
            return int(handle.read().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def process_birth(pid: int) -> str | None:
    """Return a name for the moment of the start that no change of the clock alters."""
    ticks = process_ticks(pid)
    return None if ticks is None else str(ticks)
