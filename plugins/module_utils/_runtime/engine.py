# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes a runtime's files and makes its daemon load them, or restores both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._core.errors import KubegpuError, RolledBackError
from .._host.command import Runner
from .._host.files import read_file
from .._host.systemd import journal
from .._record import converged
from .._record.store import StateStore
from .._record.transaction import FileChange, Transaction


@dataclass(frozen=True)
class Result:
    """The return values that the modules of all runtimes have."""

    changed: bool
    file_changed: bool
    restart_required: bool
    restart_reason: str | None
    restarted: bool
    default_runtime: str | None
    backup_file: str | None
    diff: list[dict[str, str]]
    reasons: list[str]


@dataclass(frozen=True)
class HandlerResult(Result):
    """The return values of the modules of containerd and CRI-O."""

    handlers: dict[str, Any]
    warnings: list[str]


@dataclass(frozen=True)
class Service:
    """The daemon of a runtime.

    ``load`` makes it load the changed files (restart or reload) and waits until it serves; None: it
    is left as it is. ``load_restored`` does so with the restored files. ``keeps_undo``: files stay
    undone although the daemon does not run with them.
    """

    name: str
    unit: str
    run: Runner
    load: Callable[[], None] | None
    load_restored: Callable[[], None]
    keeps_undo: bool = False


def change_runtime(
    store: StateStore,
    changes: Sequence[FileChange],
    service: Service,
    *,
    written: Callable[[], None] = lambda: None,
    unloaded: Callable[[], Iterable[FileChange]] = lambda: (),
) -> None:
    """Write the files and make the daemon load them; if either fails, restore both.

    :param written: called between the two, for example to validate the files.
    :param unloaded: returns how the files are undone that an earlier run wrote and the daemon never
        loaded. They are restored if this run changes none.
    :raises RolledBackError: the daemon does not work with the files, which were restored.
    :raises KubegpuError: a file cannot be written or restored, or was changed meanwhile; or the
        daemon does not work, and there was nothing to restore.
    """
    transaction = Transaction(store)
    try:
        for change in changes:
            _check_unchanged(change)
            transaction.write(change)
        written()
    except BaseException:
        _restore(transaction)
        raise
    kept = [change for change in changes if change.undo and service.keeps_undo]
    if kept:
        transaction.finish()
    if service.load is not None:
        try:
            service.load()
        except KubegpuError as error:
            restored, problem = _restore(transaction)
            restored = restored or (not kept and _undo(store, unloaded()))
            raise _failure(service, error, restored, kept, problem) from error
        except BaseException:
            _restore(transaction)
            raise
    transaction.finish()


def _check_unchanged(change: FileChange) -> None:
    if read_file(change.before.path) != change.before:
        raise KubegpuError(
            f"{change.before.path} was changed by another program during this run.",
            next_step="Run again.",
        )


def _restore(transaction: Transaction) -> tuple[bool, str]:
    """Restore the files; return whether one was written, and what could not be restored.

    The first failure of the run is reported, so that this one is not raised.
    """
    try:
        return transaction.restore(), ""
    except (KubegpuError, OSError) as error:
        return True, str(error)


def _undo(store: StateStore, changes: Iterable[FileChange]) -> bool:
    """Restore the files of an earlier run; return whether there are any."""
    restored = False
    for change in changes:
        store.write_undone(change.key, change.after)
        restored = True
    return restored


def _failure(
    service: Service,
    error: KubegpuError,
    restored: bool,
    kept: Sequence[FileChange],
    problem: str,
) -> KubegpuError:
    """Return the error to raise. If files were restored, the daemon loads them first.

    :param problem: what could not be restored, or an empty string.
    """
    name = service.name
    lines = (error.evidence, journal(service.run, service.unit))
    evidence = "\n".join(text for text in lines if text and text != "-- No entries --")
    look = f"Check: journalctl --unit {service.unit}"
    if restored:
        again = f"{name} runs again with it."
        try:
            service.load_restored()
        except KubegpuError as second:
            again = f"{name} still does not run: {second.cause} {second.evidence}".rstrip()
        restored_text = f"could not be restored: {problem}" if problem else "was restored;"
        return (KubegpuError if problem else RolledBackError)(
            f"{name} does not work with the new configuration: {error.cause} The old configuration "
            f"{restored_text} {again}",
            evidence=evidence,
            next_step=look,
        )
    advice = "This run changed no file, so there is nothing to restore."
    if kept:
        advice = (
            f"{kept[0].after.path} is free of this module's settings and remains so: correct what "
            f"keeps {name} from starting, then systemctl restart {service.unit}."
        )
    return KubegpuError(
        f"{name} does not work: {error.cause}", evidence=evidence, next_step=f"{look}. {advice}"
    )


def note_converged(
    store: StateStore,
    key: str,
    fingerprint: str,
    owner: str,
    process: str,
    files: Callable[[], Mapping[str, str | None]],
    report: Callable[[], Mapping[str, Any] | None] = lambda: None,
) -> None:
    """Store that nothing is left to do for the caller's settings.

    Only a run without changes may: the files are then as they were read.

    :param fingerprint: of the caller's settings. Without one, that of another caller stays valid.
    :param owner: the distribution of the runtime.
    :param process: the daemon's identity.
    :param files: returns the signatures of all files that the result depends on.
    :param report: returns the runtime's own view of its configuration.
    """
    if not fingerprint:
        return
    known = (fingerprint, owner, process, files())
    if converged.without_report(store.get(key)) != converged.build_entry(*known):
        # Read after the signatures were taken: a change in between invalidates one of them.
        store.put(key, converged.build_entry(*known, report()))
