# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""End a controller that a test started, at once."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import Any


def family(pid: int) -> list[int]:
    """A process and all that it started; Ansible's workers have sessions of their own."""
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, check=True)
    pairs = [list(map(int, line.split())) for line in listed.stdout.splitlines()]
    found = [pid]
    for one in found:
        found.extend(child for child, parent in pairs if parent == one)
    return found


def session(pid: int) -> int | None:
    """The session of a process; None where it has ended meanwhile, as a worker's ssh does."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def kill(controller: subprocess.Popen[Any], *, workers: bool) -> list[int]:
    """End a controller at once, with or without its workers; return the workers that live on."""
    stopped: set[int] = set()
    while True:
        # What is stopped starts nothing new while the rest is looked for.
        found = family(controller.pid)
        chosen = {pid for pid in found if workers or session(pid) == controller.pid}
        if chosen <= stopped:
            break
        for pid in chosen - stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        stopped |= chosen
    for pid in stopped:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    controller.wait()
    return [pid for pid in found if pid not in stopped]
