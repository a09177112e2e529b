# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""systemd units on the node: main process, start, journal, restart and reload."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from .._core.errors import KubegpuError
from .command import Runner
from .fingerprint import process_start_id, process_ticks

_JOURNAL_LINES = 15


@dataclass(frozen=True)
class Daemon:
    """A unit and its main process. ``started`` is Unix time. A stopped unit has no process.

    ``tried``: it is to run but does not: it failed, or is still being started.
    """

    unit: str
    exists: bool
    active: bool
    pid: int | None = None
    started: float | None = None
    command_line: tuple[str, ...] = ()
    start_id: str | None = None
    tried: bool = False

    @property
    def identity(self) -> str | None:
        """An ID of this process that differs after a restart, whatever the clock does."""
        return None if self.pid is None else f"{self.pid}@{self.start_id or self.started}"


def read_daemon(run: Runner, unit: str, pid_file: str | None = None) -> Daemon:
    """Return the unit's state from systemd and ``/proc``. Without systemd no unit exists.

    :param pid_file: a file with the daemon's process ID, if that is not the unit's main process.
    """
    result = run(["systemctl", "show", unit, "--property=LoadState,ActiveState,MainPID"])
    properties = dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)
    exists = properties.get("LoadState", "not-found") not in ("not-found", "")
    active = properties.get("ActiveState") in ("active", "reloading")
    tried = properties.get("ActiveState") in ("failed", "activating")
    pid = _read_pid(pid_file) or int(properties.get("MainPID", "0") or 0)
    if pid <= 0:
        return Daemon(unit, exists, active, tried=tried)
    return Daemon(
        unit,
        exists,
        active,
        pid,
        process_started(pid),
        process_command_line(pid),
        process_start_id(pid),
        tried,
    )


def _read_pid(path: str | None) -> int | None:
    """Return the process ID in a file, if that process runs."""
    if path is None:
        return None
    try:
        with open(path, encoding="ascii") as handle:
            pid = int(handle.read().strip())
    except (OSError, ValueError):
        return None
    return None if process_ticks(pid) is None else pid


def process_started(pid: int) -> float | None:
    """Return the start time of the process as Unix time; None if it does not run."""
    return _unix_time(process_ticks(pid))


def _unix_time(ticks: int | None) -> float | None:
    if ticks is None:
        return None
    # btime of /proc/stat is truncated to seconds: a file written just before would seem newer.
    boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return boot + ticks / os.sysconf("SC_CLK_TCK")


def process_command_line(pid: int) -> tuple[str, ...]:
    """Return the command line of the process; empty if it does not run."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as handle:
            return tuple(
                part.decode(errors="surrogateescape") for part in handle.read().split(b"\0") if part
            )
    except OSError:
        return ()


def restart(run: Runner, unit: str, timeout: int = 120) -> None:
    """Restart the unit.

    :param timeout: seconds.
    :raises KubegpuError: it failed; the evidence is the unit's journal.
    """
    _act(run, "restart", unit, timeout)


def reload(run: Runner, unit: str, timeout: int = 60) -> None:
    """Reload the unit.

    :param timeout: seconds.
    :raises KubegpuError: it failed; the evidence is the unit's journal.
    """
    _act(run, "reload", unit, timeout)


def journal(run: Runner, unit: str, since: float | None = None) -> str:
    """Return the last lines of the unit's journal, from ``since`` (Unix time) on if given."""
    argv = ["journalctl", "--unit", unit, "--no-pager", "--output=cat", f"--lines={_JOURNAL_LINES}"]
    if since is not None:
        argv.append(f"--since=@{int(since)}")
    return run(argv).stdout.strip()


def _act(run: Runner, verb: str, unit: str, timeout: int) -> None:
    begun = time.time()
    # systemd refuses to start a unit that failed several times in a row until it is reset.
    if verb == "restart":
        run(["systemctl", "reset-failed", unit])
    result = run(["systemctl", verb, unit], timeout=timeout)
    if not result.ok:
        raise KubegpuError(
            f"systemctl {verb} {unit} failed.",
            evidence=journal(run, unit, begun) or result.last_output(),
            next_step=f"Check: journalctl --unit {unit}",
        )
