# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find a program of an earlier run that hangs in the driver, so that no second one is started."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .bounded import Hang

if TYPE_CHECKING:
    from .reader import NodeReader

# A task's flag in /proc/PID/stat (linux/sched.h): it was told to end, and ends.
_PF_EXITING = 0x4


def hanging_smi(reader: NodeReader) -> Hang | None:
    """Return a nvidia-smi of another run that cannot be ended (state D, and asked to end)."""
    for name in reader.list_dir("/proc"):
        if name.isdecimal() and reader.read_line(f"/proc/{name}/comm") == "nvidia-smi":
            status = reader.read_text(f"/proc/{name}/status") or ""
            state = re.search(r"^State:\s*(\w)", status, re.M)
            if state and state[1] == "D" and _told_to_end(reader, name, status):
                wchan = reader.read_line(f"/proc/{name}/wchan")
                at = wchan if wchan not in (None, "0") else None
                return Hang("nvidia-smi", int(name), 0.0, "D", at, True)
    return None


def _told_to_end(reader: NodeReader, pid: str, status: str) -> bool:
    """Return whether a process has SIGKILL pending (signal 9), or has taken it and ends.

    One that ends closes the driver's devices, where a driver that hangs holds it again.
    """
    pending = re.findall(r"^(?:SigPnd|ShdPnd):\s*([0-9a-f]+)", status, re.M)
    if any(int(mask, 16) >> 8 & 1 for mask in pending):
        return True
    after_name = (reader.read_line(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
    flags = after_name[6] if len(after_name) > 6 else ""
    return flags.isdecimal() and bool(int(flags) & _PF_EXITING)
