# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""gpu_node_acceptance: read a node, run one test, keep or forget the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .._core.errors import InputError
from .._core.finding import Finding
from .._core.printable import printable
from .._exporter.data import DCGM_UNIT
from .._host.systemd import read_daemon
from .._record.acceptance import ACCEPTANCE, read_acceptance
from .data import BANDWIDTH_TESTS, DCGM, GPU_BURN, NVBANDWIDTH, PROGRAMS, TITLES
from .dcgm import read_diag
from .gpu_burn import read_burn
from .nvbandwidth import read_bandwidth
from .types import ProgramResult, to_json

if TYPE_CHECKING:
    from .._host.bounded import Ended, Stream
    from .._host.command import Runner
    from .._known_faults.evidence_types import DeviceUser
    from .._record.store import StateStore

Object = Mapping[str, Any]

#: Programs with CUDA contexts have it open; those that only ask the driver do not.
_CUDA_DEVICE = "/dev/nvidia-uvm"
#: Daemons that hold the driver and compute nothing.
_DAEMONS = ("nvidia-persistenced.service", "nvidia-dcgm.service", "nvidia-dcgm-exporter.service")
# Status of coreutils' timeout when it has ended its program, and when it had to kill it, which
# kills the group that it is in itself.
_TIMED_OUT = (124, 137, -9)
# Seconds from SIGTERM, with which dcgmi ends its diag, to SIGKILL; and until timeout itself is.
_UNTIL_KILL, _UNTIL_GROUP = 20, 30
# Seconds until DCGM's engine answers, after systemd says that it is started.
_UNTIL_ENGINE = 30
_MOST_OUTPUT = 1 << 30
# The limit of JSON; of other output only the end is kept.
_MOST_KEPT = 16 * 1024 * 1024
_TAIL = 64 * 1024
_MOST_SHOWN = 500


@dataclass(frozen=True)
class Test:
    """The options of a test."""

    test: str
    program: str
    timeout: int
    diag_level: int
    minutes: int
    thresholds: Mapping[str, float]
    gpus: int
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Dependencies:
    """Access to the node.

    :param find_program: returns the path of a program, None if the node does not have it.
    :param exists: whether there is a file.
    :param real_path: returns a path with its links resolved, None without a file.
    :param users: returns the processes that have the driver's devices open.
    """

    run: Runner
    stream: Stream
    find_program: Callable[[str], str | None]
    exists: Callable[[str], bool]
    real_path: Callable[[str], str | None]
    users: Callable[[], tuple[DeviceUser, ...]]
    store: StateStore


def look(node: Dependencies, programs: Mapping[str, str]) -> dict[str, Any]:
    """Return the programs that the node has, and what computes on its GPUs.

    :param programs: names or paths that the user gives.
    """
    found = {}
    for tool, known in PROGRAMS.items():
        names = (programs[tool],) if programs.get(tool) else known
        found[tool] = next(filter(None, map(node.find_program, names)), None)
    return {"programs": found, "users": _computing(node)}


def _computing(node: Dependencies) -> list[str]:
    return [
        str(user)
        for user in node.users()
        if _CUDA_DEVICE in user.devices and user.unit not in _DAEMONS
    ]


def run_test(node: Dependencies, test: Test, *, dry_run: bool = False) -> dict[str, Any]:
    """Run a test and return what it found; in check mode, what would be run.

    What is started ends with it: the program with its process group, and DCGM's engine if it did
    not run before.
    """
    argv = _argv(node, test)
    told = {"test": test.test, "argv": argv, "ran": not dry_run}
    if dry_run:
        return {**told, **_values(ProgramResult()), "seconds": 0}
    busy = _computing(node)
    if busy:
        finding = Finding(
            "gpus_in_use",
            f"Programs use the GPUs now, so that {TITLES[test.test]} was not run.",
            printable("; ".join(busy)),
            "Wait until they end, and accept the node again.",
        )
        return {**told, "ran": False, **_values(ProgramResult((finding,))), "seconds": 0}
    begin = time.monotonic()
    started = test.test == DCGM and _start_engine(node, test.program)
    try:
        ended, text = _run(node, test, argv)
    finally:
        if started:
            node.run(["systemctl", "stop", DCGM_UNIT], timeout=60)
    outcome = _judge(test, ended, text)
    return {**told, **_values(outcome), "seconds": round(time.monotonic() - begin, 1)}


def _values(outcome: ProgramResult) -> dict[str, Any]:
    return {
        "findings": [to_json(one) for one in outcome.judged],
        "measured": {name: dict(one) for name, one in outcome.values.items()},
        # "skipped" would be a task that Ansible skipped.
        "not_tested": list(outcome.skipped),
        "version": outcome.version,
    }


def _argv(node: Dependencies, test: Test) -> list[str]:
    if test.test == DCGM:
        return [test.program, "diag", "--run", str(test.diag_level), "--json"]
    if test.test == NVBANDWIDTH:
        return [test.program, "--json", "--testcase", *BANDWIDTH_TESTS.values()]
    # Without the option it looks for its kernel in the working folder. A link to the program lies
    # elsewhere.
    real = node.real_path(test.program) or test.program
    kernel = f"{real.rpartition('/')[0]}/compare.ptx"
    own = ["-c", kernel] if node.exists(kernel) else []
    return [test.program, "-m", "90%", "-tc", *own, str(test.minutes * 60)]


def _start_engine(node: Dependencies, dcgmi: str) -> bool:
    """Start DCGM's engine where its unit is there and does not run; return whether it did."""
    daemon = read_daemon(node.run, DCGM_UNIT)
    if not daemon.exists or daemon.active:
        return False
    # One that does not start is told by dcgmi, with its own words.
    if not node.run(["systemctl", "start", DCGM_UNIT], timeout=60).ok:
        return False
    deadline = time.monotonic() + _UNTIL_ENGINE
    while not node.run([dcgmi, "discovery", "-l"], timeout=10).ok:
        if time.monotonic() >= deadline:
            break
        time.sleep(1)
    return True


def _run(node: Dependencies, test: Test, argv: list[str]) -> tuple[Ended, str]:
    """Run the program; return how it ended, and its output as far as it is judged."""
    kept = bytearray()
    whole = test.test != GPU_BURN

    def keep(part: bytes) -> None:
        if whole:
            kept.extend(part[: max(0, _MOST_KEPT - len(kept))])
        else:
            kept.extend(part)
            del kept[:-_TAIL]

    # SIGTERM first: dcgmi then ends the diag, which its engine runs.
    limited = ["timeout", f"--kill-after={_UNTIL_KILL}", str(test.timeout), *argv]
    ended = node.stream(limited, keep, test.timeout + _UNTIL_GROUP, _MOST_OUTPUT)
    return ended, kept.decode("utf-8", "replace")


def _judge(test: Test, ended: Ended, text: str) -> ProgramResult:
    late = ended.rc in _TIMED_OUT and ended.seconds >= test.timeout
    if ended.hang is not None or late:
        return ProgramResult((_timed_out(test, ended, text),))
    if test.test == DCGM:
        answer = {"rc": ended.rc, "stdout": text, "stderr": ended.stderr}
        return read_diag(
            answer,
            level=test.diag_level,
            timeout="gpu_acceptance_timeout",
            otherwise="set gpu_acceptance_dcgm: never",
            gpus=test.gpus,
        )
    if test.test == NVBANDWIDTH:
        return read_bandwidth(text, ended.rc, ended.stderr, test.thresholds, test.gpus, test.facts)
    return read_burn(text, ended.rc, ended.stderr, test.gpus, test.facts)


def _timed_out(test: Test, ended: Ended, text: str) -> Finding:
    left = ""
    if ended.hang is not None and ended.hang.left:
        left = (
            f" Its process {ended.hang.pid} cannot be ended (state {ended.hang.state}), so that "
            "the driver hangs."
        )
    return Finding(
        "test_timed_out",
        f"{TITLES[test.test]} did not end in {test.timeout} seconds.{left}",
        printable((ended.stderr.strip() or text.strip())[-_MOST_SHOWN:]),
        "Check dmesg | grep -i -e NVRM -e Xid; if the test only needs longer, raise "
        "gpu_acceptance_timeout.",
    )


def keep(store: StateStore, result: Object, *, dry_run: bool) -> dict[str, Any]:
    """Keep a result in the node's record.

    :raises InputError: it is none.
    """
    if read_acceptance({"values": {ACCEPTANCE: result}}) is None:
        raise InputError(
            "The option result is not a result of an acceptance.",
            next_step="Give what the filter kubegpu.nodes.rollout returns for acceptance_record.",
        )
    return _replace(store, dict(result), dry_run)


def forget(store: StateStore, *, dry_run: bool) -> dict[str, Any]:
    """Remove the result from the node's record."""
    return _replace(store, None, dry_run)


def _replace(store: StateStore, value: dict[str, Any] | None, dry_run: bool) -> dict[str, Any]:
    before = store.get(ACCEPTANCE)
    if before != value and not dry_run:
        with store.transaction():
            if value is None:
                store.drop(ACCEPTANCE)
            else:
                store.put(ACCEPTANCE, value)
    return {
        "changed": before != value,
        "diff": {"before": {ACCEPTANCE: before}, "after": {ACCEPTANCE: value}},
    }
