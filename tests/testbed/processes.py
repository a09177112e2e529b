# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs in the background, each known by a file with its process id and its start.

Only the process that was started is ever ended: a number that somebody else has by now is known by
another time of start.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.shell import TestbedError

_STOP_PATIENCE = 20.0


@dataclass(frozen=True)
class Background:
    """A program, its folder (for ``NAME.pid`` and ``NAME.log``) and its name there."""

    name: str
    home: Path

    @property
    def log(self) -> Path:
        return self.home / f"{self.name}.log"

    @property
    def _pidfile(self) -> Path:
        return self.home / f"{self.name}.pid"

    def start(self, argv: Sequence[str], *, with_parent: bool = False) -> None:
        """Start it; ``with_parent`` ends it when this process ends, however that comes."""
        if self.runs():
            return
        prefix = ["setpriv", "--pdeathsig", "KILL"] if with_parent else []
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [*prefix, *argv],
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._pidfile.write_text(f"{process.pid} {started(process.pid)}\n")

    def runs(self) -> bool:
        """Whether the very process runs that was started."""
        return self._process() is not None

    def stop(self) -> None:
        """End it, first politely; waits until it is gone."""
        pid = self._process()
        if pid is not None:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
                if self._gone(_STOP_PATIENCE):
                    break
            else:
                raise TestbedError(f"{self.name} (process {pid}) does not stop")
        self._pidfile.unlink(missing_ok=True)

    def tail(self, lines: int = 15) -> str:
        """The end of its log."""
        with contextlib.suppress(OSError):
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        return ""

    def _gone(self, patience: float) -> bool:
        deadline = time.monotonic() + patience
        while self._process() is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def _process(self) -> int | None:
        with contextlib.suppress(OSError, ValueError):
            pid, start = (int(word) for word in self._pidfile.read_text().split())
            with contextlib.suppress(ChildProcessError):
                # A child of ours that has ended.
                os.waitpid(pid, os.WNOHANG)
            if started(pid) == start:
                return pid
        return None


def own_name() -> str:
    """What this process is known by: machine's start, space of process ids, id and own start."""
    pid = os.getpid()
    return f"{_machine()}.{pid}.{started(pid)}"


def has_ended(name: str) -> bool:
    """Whether the process of that name is gone, as far as that can be seen from here."""
    with contextlib.suppress(ValueError):
        boot, space, pid, start = name.split(".")
        if f"{boot}.{space}" != _machine():
            # Processes of another container are not seen; those before a reboot are all gone.
            return boot != _machine().partition(".")[0]
        try:
            return started(int(pid)) != int(start)
        except (OSError, ValueError):
            return True
    return False


def _machine() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
    return f"{boot}.{os.stat('/proc/self/ns/pid').st_ino}"


def started(pid: int) -> int:
    """When a process began, in ticks since the machine's start; ValueError for one that ended."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    if words[0] == "Z":
        raise ValueError(f"process {pid} has ended")
    return int(words[19])
