# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Playbooks that are killed at random points, on the controller and on the node.

Three victims in turn: the controller with its workers, the controller without them, and the
processes of the run on the node. A fault that a seed finds is repeated with that seed.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.fleet.playbooks import BIN, INVENTORY, PATIENT, REPOSITORY, environment
from tests.integration.killing import kill
from tests.testbed.fleet import Node
from tests.testbed.nodes import execute

# The full tier kills a few runs; a release is tried with more.
POINTS = int(os.environ.get("KUBEGPU_KILL_POINTS", "3"))
SEED = int(os.environ.get("KUBEGPU_KILL_SEED", "20261127"))
LOG = os.environ.get("KUBEGPU_KILL_LOG", "")
_VICTIMS = ("controller", "controller without its workers", "node")
_TASKS = ("TASK [", "RUNNING HANDLER [")
_PATIENCE = 900
# Seconds in which a worker without its controller ends what it does on the node.
_OF_WORKERS = 120

# A shell command that lists what a run could leave on a node. Locks stay. The unpacked code of a
# module, which a killed process of Ansible leaves, is not ours.
LEFT = (
    "find /var/lib/kubegpu /var/lib/kubegpu-packages /var/cache/kubegpu /run/kubegpu /usr/local "
    "/tmp /var/tmp ! -name '*.lock' ! -path '*/systemd-private-*' "
    "! -path '/tmp/ansible_*_payload_*' 2>/dev/null | LC_ALL=C sort"
)

# Kills what Ansible started on the node: what sudo runs as root, jobs that are detached from the
# connection, and all children of both. Prints how many they were.
_ON_NODE = """
import os, signal, time

def table():
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as stat, open(f"/proc/{name}/cmdline", "rb") as line:
                parent = int(stat.read().rpartition(")")[2].split()[1])
                found[int(name)] = (parent, line.read())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found

killed = set()
deadline = time.monotonic() + 20
while time.monotonic() < deadline:
    processes = table()
    chosen = {
        pid for pid, (_parent, line) in processes.items()
        if any(word in line for word in (b"BECOME-SUCCESS", b"async_wrapper", b"AnsiballZ"))
    }
    while True:
        more = {pid for pid, (parent, _line) in processes.items() if parent in chosen} - chosen
        if not more:
            break
        chosen |= more
    chosen -= {os.getpid(), *killed}
    if killed and not chosen:
        break
    for pid in chosen:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    killed |= chosen
    time.sleep(0 if chosen else 0.05)
print(len(killed))
"""


class Started:
    """A playbook in a process of its own, as ``playbooks.play`` runs it."""

    def __init__(
        self, name: str, *arguments: str, variables: Mapping[str, Any], screen: Path
    ) -> None:
        argv = [str(BIN / "ansible-playbook"), "-i", str(INVENTORY), f"kubegpu.nodes.{name}"]
        argv += [*arguments, "--extra-vars", json.dumps(variables)]
        self.screen = screen
        self.began = time.monotonic()
        # Seconds, once it was waited for.
        self.lasted = 0.0
        with screen.open("w", encoding="utf-8") as output:
            self._process = subprocess.Popen(
                [sys.executable, *argv], env={**environment(), **PATIENT, "PYTHONUNBUFFERED": "1"},
                cwd=REPOSITORY, stdout=output, stderr=output, text=True, start_new_session=True,
            )  # fmt: skip

    @property
    def text(self) -> str:
        return self.screen.read_text(encoding="utf-8")

    def task(self) -> str:
        """Return the task that began last."""
        begun = [line for line in self.text.splitlines() if line.startswith(_TASKS)]
        return begun[-1].rstrip(" *") if begun else "the start"

    def wait(self) -> int:
        """Wait for the end; return the exit status."""
        status = self._process.wait(timeout=_PATIENCE)
        self.lasted = self.lasted or time.monotonic() - self.began
        return status

    def ended(self) -> bool:
        return self._process.poll() is not None

    def until(self, seconds: float) -> None:
        """Wait until so many seconds after the start, or the end."""
        while not self.ended() and time.monotonic() < self.began + seconds:
            time.sleep(0.02)

    def kill(self, *, workers: bool) -> list[int]:
        """End the controller at once; return the workers that live on."""
        return [] if self.ended() else kill(self._process, workers=workers)


def _gone(pids: list[int]) -> bool:
    """Whether none works; one that nobody has waited for has an empty command line."""
    for pid in pids:
        try:
            if Path(f"/proc/{pid}/cmdline").read_bytes():
                return False
        except (FileNotFoundError, ProcessLookupError):
            continue
    return True


def assert_same(found: str, right: str, what: str) -> None:
    """Compare two lists of lines; the message has those that differ."""
    differing = set(found.splitlines()) ^ set(right.splitlines())
    assert not differing, f"{sorted(differing)}\n{what}"


@dataclass(frozen=True)
class _Point:
    """A run and what became of it.

    :ivar reached: whether a process of the run was killed; none where the run had ended.
    """

    what: str
    reached: bool
    text: str


def kill_at_random_points(
    start: Callable[[int, Node], Started],
    survived: Callable[[int, str], None],
    nodes: Sequence[Node],
    *,
    seconds: Mapping[str, tuple[float, float]],
) -> list[str]:
    """Kill runs, each at a random moment, and look after each, until enough were reached.

    In a round each node has a run, a moment and a victim of its own. One run for all nodes comes
    next: a start of Ansible and what is waited for in it are paid for once.

    :param start: begins the run of a round's number on one node.
    :param survived: lets the next run do its work on all nodes and checks what is there; gets the
        round's number, and what was done as a text for messages.
    :param seconds: first and last moment by the node's name, counted from a run's start.
    :returns: what was done, a line for each point that was reached.
    """
    dice = random.Random(SEED)
    done: list[str] = []
    for turn in range(2 * math.ceil(POINTS / len(nodes)) + 1):
        chosen = nodes[: POINTS - len(done)]
        # What a test alternates by the round's number meets each victim.
        first = turn + turn // len(_VICTIMS)
        plan = [
            (one, dice.uniform(*seconds[one.name]), _VICTIMS[(first + place) % len(_VICTIMS)])
            for place, one in enumerate(chosen)
        ]

        def point(given: tuple[Node, float, str], turn: int = turn) -> _Point:
            node, moment, victim = given
            return _kill_one(start(turn, node), node, moment, victim)

        began = time.monotonic()
        with ThreadPoolExecutor(max_workers=len(plan)) as pool:
            points = list(pool.map(point, plan))
        killed = time.monotonic()
        _log(f"round {turn}: " + "; ".join(one.what for one in points))
        survived(turn, "\n".join(f"{one.what}\n{one.text}" for one in points))
        for one in points:
            if one.reached:
                done.append(f"{len(done) + 1}: {one.what}")
            _log(f"{done[-1]}: converged" if one.reached else f"not counted: {one.what}")
        after = time.monotonic()
        _log(f"killed {killed - began:.0f} s, the next run {after - killed:.0f} s")
        if len(done) == POINTS:
            return done
    raise AssertionError(f"{len(done)} of {POINTS} points were reached: the moments are too late")


def _log(line: str) -> None:
    """Print a line, and append it to the file that ``KUBEGPU_KILL_LOG`` names."""
    print(line, flush=True)
    if LOG:
        with open(LOG, "a", encoding="utf-8") as log:
            log.write(f"{line}\n")


def _kill_one(run: Started, node: Node, moment: float, victim: str) -> _Point:
    """Kill a run at its moment; return what was done, once nothing of it works any more."""
    run.until(moment)
    after = f"after {moment:.1f} s in {run.task()}"
    if victim == "node":
        killed = 0 if run.ended() else int(execute(node, "python3", "-c", _ON_NODE))
        run.wait()
        return _Point(f"{killed} processes of {node.name} {after}", killed > 0, run.text)
    living = run.kill(workers=victim == "controller")
    reached = run.wait() == -signal.SIGKILL
    deadline = time.monotonic() + _OF_WORKERS
    while not _gone(living) and time.monotonic() < deadline:
        time.sleep(0.2)
    # One that was forked just then waits for its controller for ever, as Ansible has it.
    for pid in living:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    ended = "" if reached else " (had ended)"
    return _Point(f"{victim} of {node.name} {after}{ended}", reached, run.text)


def whole_runs(start: Callable[[int, Node], Started], nodes: Sequence[Node]) -> list[Started]:
    """Runs that nobody kills, side by side as those that are killed; return them ended."""
    runs = [start(0, node) for node in nodes]
    with ThreadPoolExecutor(max_workers=len(runs)) as pool:
        list(pool.map(Started.wait, runs))
    return runs
