# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run commands in turn, and what each took: A B C, A B C, ... as a busy machine is busy for all."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.integration.fleet.playbooks import BIN
from tests.integration.fleet.playbooks import environment as of_fleet

REFERENCE = Path(__file__).parent / "reference"
_PATIENCE = 3600


@dataclass(frozen=True)
class Sample:
    """One run: wall seconds, CPU seconds of all its processes, MiB of the biggest of them."""

    seconds: float
    cpu: float
    memory: float
    output: str = ""


@dataclass(frozen=True)
class Median:
    """The middle of several runs, each figure for itself."""

    seconds: float
    cpu: float
    memory: float
    rounds: int

    def to_json(self) -> dict[str, Any]:
        return {
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }


def environment(**more: str) -> dict[str, str]:
    """Return the environment of all runs: this checkout is the collection."""
    return {**of_fleet(), "ANSIBLE_LOCALHOST_WARNING": "false", **more}


def playbook(inventories: Sequence[Path], name: str | Path, *arguments: str) -> list[str]:
    words = [word for path in inventories for word in ("-i", str(path))]
    return [str(BIN / "ansible-playbook"), *words, str(name), *arguments]


def run(argv: Sequence[str], **more: str) -> Sample:
    """Run a command; one that fails ends the benchmark with its output.

    :param more: further variables of its environment.
    """
    with tempfile.TemporaryFile() as output:
        begin = time.monotonic()
        process = subprocess.Popen(
            argv,
            env=environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        timer = threading.Timer(_PATIENCE, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        try:
            # Its own processes and no others, with what they waited for.
            _pid, status, usage = os.wait4(process.pid, 0)
        finally:
            timer.cancel()
        seconds = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if process.returncode:
        raise SystemExit(f"{' '.join(argv)} ended with {process.returncode}:\n{text[-4000:]}")
    return Sample(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text)


def middle(samples: Sequence[Sample]) -> Median:
    return Median(
        statistics.median(one.seconds for one in samples),
        statistics.median(one.cpu for one in samples),
        statistics.median(one.memory for one in samples),
        len(samples),
    )


def alternate(
    cases: Mapping[str, Callable[[], Sample]], rounds: int, *, warm: bool = True
) -> dict[str, Median]:
    """Run all cases in turn, several times, after a round that does not count."""
    samples: dict[str, list[Sample]] = {name: [] for name in cases}
    for number in range(-1 if warm else 0, rounds):
        for name, case in cases.items():
            sample = case()
            if number >= 0:
                samples[name].append(sample)
                tell(f"{name}: {sample.seconds:.2f} s, CPU {sample.cpu:.2f} s")
    return {name: middle(found) for name, found in samples.items()}


def tell(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)
