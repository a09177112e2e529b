# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""gpu_exporter: set up the exporter of a host, or remove it."""

from __future__ import annotations

import contextlib
import posixpath
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._core.errors import KubegpuError
from .._host.command import Runner
from .._host.files import FileState, read_file, remove_empty_directories, write_file
from .._host.systemd import journal, read_daemon
from .._record.store import StateStore
from .._record.transaction import FileChange
from .._runtime.engine import Service, change_runtime
from .data import PATHS, STATE_PATH, TEXTFILE
from .files import output_path, setup
from .plan import plan_exporter
from .record import FILES, RECORD, Record
from .types import Plan, Request, Setup

# Seconds for a command of systemd, and between two checks of a unit.
_UNIT_SECONDS = 120
_PAUSE = 0.5


@dataclass(frozen=True)
class Dependencies:
    """Access to the node. ``facts`` reads ``gpu_node``."""

    run: Runner
    store: StateStore
    facts: Callable[[], Mapping[str, Any]]
    listens: Callable[[int], bool]
    warn: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep


def present(request: Request, node: Dependencies, check_mode: bool) -> dict[str, Any]:
    """Set up files and units of the method; return the module's result.

    :raises KubegpuError: it is refused, or failed and was rolled back.
    """
    with _locked(node, check_mode):
        facts = node.facts()
        plan = plan_exporter(facts, request)
        if plan.action == "refuse":
            raise KubegpuError("\n".join(plan.reasons))
        if not plan.method:
            return _result(plan, False, ())
        for warning in plan.warnings:
            node.warn(warning)
        wanted = setup(plan.method, request, facts, plan.gpus)
        changes = _changes(node.store, wanted)
        if plan.change_setup and not check_mode:
            _apply(plan, request, wanted, changes, node)
        return _result(plan, plan.change_setup, changes)


def absent(node: Dependencies, check_mode: bool) -> dict[str, Any]:
    """Remove all that was set up; return the module's result."""
    with _locked(node, check_mode):
        record = Record.from_json(node.store.get(RECORD))
        changes = _changes(node.store, Setup())
        if record is None and not changes:
            return _result(Plan(), False, ())
        if not check_mode:
            old = record.units if record else ()
            _stop(old, node)
            for change in changes:
                node.store.write_undone(change.key, change.after)
            node.run(["systemctl", "daemon-reload"])
            _remove_output(record)
            node.store.drop(RECORD)
        return _result(Plan("change", change=True), True, changes)


@contextlib.contextmanager
def _locked(node: Dependencies, check_mode: bool) -> Iterator[None]:
    with contextlib.nullcontext() if check_mode else node.store.transaction():
        yield


def _result(plan: Plan, changed: bool, changes: Sequence[FileChange]) -> dict[str, Any]:
    diff = [one.diff(lambda content: content.decode(errors="replace")) for one in changes]
    return {"changed": changed, "plan": plan.to_json(), "diff": diff}


def _changes(store: StateStore, wanted: Setup) -> tuple[FileChange, ...]:
    """Return the changes of all files: those of another method are undone."""
    changes = []
    for path in PATHS:
        key, before = f"{FILES}{path}", read_file(path)
        if path in wanted.files:
            text = wanted.files[path].encode()
            after = FileState(before.path, text, 0o644)
            change = FileChange(key, before, after)
            if change.changed or store.record(key) is None:
                changes.append(change)
        elif store.record(key) is not None:
            undo, after = store.undo_target(key, before)
            if undo.value == "remove_lines":
                # Edited since; the whole file is ours, and without its method it has no use.
                after = FileState(before.path)
            changes.append(FileChange(key, before, after, undo=True))
    return tuple(changes)


def _apply(
    plan: Plan,
    request: Request,
    wanted: Setup,
    changes: Sequence[FileChange],
    node: Dependencies,
) -> None:
    """Write the files and start the units, or restore both."""
    earlier = Record.from_json(node.store.get(RECORD))
    old = earlier.units if earlier else ()
    ours = [unit for unit in wanted.units if unit in old or not _is_enabled(unit, node)]
    output = output_path(plan.textfile_directory) if plan.method == TEXTFILE else ""
    page = "" if output else request.page
    record = Record(plan.method, plan.gpus, tuple(dict.fromkeys((*old, *ours))), output, page)
    node.store.put(RECORD, record.to_json())
    restart = any(change.changed for change in changes)

    gone = [unit for unit in old if unit not in wanted.units]

    def load() -> None:
        try:
            _start(wanted, restart, node)
            _verify(plan, request, wanted, node)
        except KubegpuError:
            # While their files are there.
            _stop([unit for unit in ours if unit not in old], node)
            raise

    def load_restored() -> None:
        _run_again(old, node)

    service = Service("The exporter", wanted.units[-1], node.run, load, load_restored)
    # Without their files systemd would not know them any more.
    _stop(gone, node)
    try:
        change_runtime(node.store, changes, service)
    except BaseException:
        # The files are restored.
        _run_again(gone, node)
        if earlier is None:
            node.store.drop(RECORD)
        else:
            node.store.put(RECORD, earlier.to_json())
        raise
    if earlier and earlier.output != output:
        _remove_output(earlier)
    node.store.put(RECORD, replace(record, units=tuple(ours)).to_json())


def _run_again(units: Sequence[str], node: Dependencies) -> None:
    node.run(["systemctl", "daemon-reload"])
    for unit in units:
        for verb in ("enable", "restart"):
            node.run(["systemctl", verb, unit], timeout=_UNIT_SECONDS)


def _is_enabled(unit: str, node: Dependencies) -> bool:
    return node.run(["systemctl", "is-enabled", "--quiet", unit]).ok


def _start(wanted: Setup, restart: bool, node: Dependencies) -> None:
    node.run(["systemctl", "daemon-reload"])
    for unit in wanted.units:
        _systemctl("enable", unit, node)
        _systemctl("restart" if restart and unit in wanted.restart else "start", unit, node)
    if wanted.once:
        _systemctl("start", wanted.once, node)


def _systemctl(verb: str, unit: str, node: Dependencies) -> None:
    """Act on a unit.

    :raises KubegpuError: it failed; the evidence is the unit's journal.
    """
    begun = time.time()
    if verb != "enable":
        # systemd refuses to start a unit that failed several times in a row until it is reset.
        node.run(["systemctl", "reset-failed", unit])
    answer = node.run(["systemctl", verb, unit], timeout=_UNIT_SECONDS)
    if not answer.ok:
        raise KubegpuError(
            f"systemctl {verb} {unit} failed.",
            evidence=journal(node.run, unit, begun) or answer.last_output(),
            next_step=f"Check: journalctl --unit {unit}",
        )


def _verify(plan: Plan, request: Request, wanted: Setup, node: Dependencies) -> None:
    """Wait until the exporter serves, or its program has written its file.

    :raises KubegpuError: it does not within the time limit.
    """
    if plan.method == TEXTFILE:
        path = output_path(plan.textfile_directory)
        if not read_file(path).exists:
            raise KubegpuError(
                f"{wanted.once} has not written {path}.",
                evidence=journal(node.run, wanted.once),
                next_step="Check that the folder exists and can be written.",
            )
        return
    unit = wanted.units[-1]
    deadline = time.monotonic() + request.timeout
    while not (read_daemon(node.run, unit).active and node.listens(request.port)):
        if time.monotonic() > deadline:
            raise KubegpuError(
                f"{unit} does not listen on port {request.port} after {request.timeout} seconds.",
                evidence=journal(node.run, unit),
                next_step=f"Check: journalctl --unit {unit}",
            )
        node.sleep(_PAUSE)


def _stop(units: Sequence[str], node: Dependencies) -> None:
    for unit in reversed(units):
        # Packages may be gone, and their units with them.
        if read_daemon(node.run, unit).exists:
            answer = node.run(["systemctl", "disable", "--now", unit], timeout=_UNIT_SECONDS)
            if not answer.ok:
                node.warn(f"systemctl disable --now {unit} failed: {answer.last_output()}")
            if unit.endswith(".timer"):
                # It may run just now, and would write its files again.
                service = f"{unit[: -len('.timer')]}.service"
                node.run(["systemctl", "stop", service], timeout=_UNIT_SECONDS)


def _remove_output(record: Record | None) -> None:
    if record is None or not record.output:
        return
    for path in (record.output, STATE_PATH):
        write_file(FileState(path))
    remove_empty_directories((posixpath.dirname(STATE_PATH),))
