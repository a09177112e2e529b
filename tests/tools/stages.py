# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run stages side by side, some at once: the next one begins where one has ended.

Stages that wait for machines leave a processor to those that compute. What a stage prints goes to
a file; the screen shows what begins, what runs still, how it ended, and all of a failed one.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_PROGRESS_SECONDS = 120
_LOOK_SECONDS = 0.5
# Results, and the seed with which made inputs come again.
_SUMMARY = re.compile(r"^\d+ passed|^=+ .*\d+ (passed|failed).*=+$|^make lint: |^made inputs: ")


@dataclass(frozen=True)
class Result:
    """How a stage ended; the processor's seconds are those here, not those in node containers."""

    name: str
    code: int
    seconds: float
    cpu_seconds: float
    log: Path

    @property
    def line(self) -> str:
        """The result in a few words."""
        ended = "FAILED" if self.code else "passed"
        return f"{self.name} {ended} in {self.seconds:.0f} s (CPU {self.cpu_seconds:.0f} s)"


def run_stages(
    names: Sequence[str], command: Callable[[str], list[str]], logs: Path, at_once: int
) -> list[Result]:
    """Run every stage and return the results in the order in which they ended.

    :param names: the stages, in the order in which they begin.
    :param command: the command of a stage, by its name.
    :param logs: the folder for what the stages print.
    :param at_once: how many run side by side.
    """
    logs.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []
    waiting = deque(names)
    running: set[int] = set()
    screen = threading.Lock()

    def work() -> None:
        while True:
            with screen:
                if not waiting:
                    return
                name = waiting.popleft()
                print(f"=== {name}: begins", flush=True)
            result = _run(name, command(name), logs / f"{name}.log", screen, running)
            with screen:
                results.append(result)
                _show(result)

    threads = [threading.Thread(target=work) for _worker in range(at_once)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException:
        # Ctrl-C: no further stage begins, and those that run end.
        with screen:
            waiting.clear()
            for pid in running:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
        for thread in threads:
            thread.join()
        raise
    return results


def _run(
    name: str, command: list[str], log: Path, screen: threading.Lock, running: set[int]
) -> Result:
    start = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        said = start
        with screen:
            running.add(process.pid)
        while True:
            # Popen's own wait does not tell what the process and its children used.
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            now = time.monotonic()
            if pid:
                process.returncode = code = os.waitstatus_to_exitcode(status)
                break
            if now - said >= _PROGRESS_SECONDS:
                said = now
                with screen:
                    print(f"... {name}: {now - start:.0f} s: {_last_line(log)}", flush=True)
            time.sleep(_LOOK_SECONDS)
    with screen:
        running.discard(process.pid)
    return Result(name, code, now - start, usage.ru_utime + usage.ru_stime, log)


def _show(result: Result) -> None:
    text = result.log.read_text(encoding="utf-8", errors="replace")
    if result.code:
        print(f"=== {result.name}: all that it printed ({result.log})\n{text}", flush=True)
    else:
        for line in text.splitlines():
            if _SUMMARY.match(line):
                print(f"    {line}", flush=True)
    print(f"=== {result.line}", flush=True)


def _last_line(log: Path) -> str:
    with log.open("rb") as handle:
        handle.seek(0, 2)
        handle.seek(max(0, handle.tell() - 2000))
        lines = handle.read().decode("utf-8", "replace").split("\n")
    said = [line.strip() for line in lines if line.strip()]
    return said[-1][-150:] if said else "nothing printed yet"
