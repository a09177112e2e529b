# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Applies a request to containerd: read, plan, validate, write and restart as one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .._core.errors import KubegpuError, RolledBackError
from .._core.redact import changed_parts, redact_lines
from .._formats.toml_redact import redact
from .._host.files import FileState, read_file, remove_leftovers, write_file
from .._host.systemd import restart
from .._record import converged
from .._record.file_record import FileRecord, Undo
from .._record.transaction import FileChange
from .._runtime.config_file import table
from .config import Effective, meaning
from .data import Version
from .distributions import expand_variables
from .dump import read_effective
from .host import Dependencies, Host, redact_output
from .options import Settings
from .prepare import Planned, Preparation
from .record import HandlerRecord
from .restart import Restarter, RestartFailed, cri_off
from .types import Request
from .undo import record_without


@dataclass(frozen=True)
class Result:
    """The return values of the module."""

    changed: bool
    restart_required: bool
    restart_reason: str | None
    restarted: bool
    default_runtime: str | None
    handlers: dict[str, Any]
    backup_file: str | None
    diff: list[dict[str, str]]
    reasons: list[str]
    warnings: list[str]


class ContainerdRuntime:
    """One run of the module."""

    def __init__(self, request: Request, settings: Settings, dependencies: Dependencies) -> None:
        self.host = Host(request, settings, dependencies)
        self.restarter = Restarter(self.host)
        self.preparation = Preparation(self.host)

    def __call__(self, check: bool) -> Result:
        self.host.complete_options()
        if check:
            return self._work(check=True)
        with self.host.store.transaction(self.host.settings.lock_timeout):
            return self._work(check=False)

    def _work(self, check: bool) -> Result:
        self.host.daemon = self.host.read_daemon()
        version = self.host.read_version()
        self.host.check_daemon_config()
        self.host.find_placement(version)
        if self.host.request.state == "present":
            self.host.check_runtime_path(check)
            planned = self.preparation.present(version)
        else:
            planned = self.preparation.absent(version)
        restart_required, reason = self.restarter.required(planned.changes, planned.files, version)
        if not check:
            self._apply(planned, restart_required)
        restarted = self.host.settings.restart and restart_required
        if restarted:
            restart_required, reason = False, None
        result = self._result(planned, restart_required, reason, restarted)
        if not check:
            self._remember_converged(planned, version, result)
        return result

    # -- writing ---------------------------------------------------------------------------------

    def _apply(self, planned: Planned, restart_required: bool) -> None:
        store = self.host.store
        applied: list[_AppliedChange] = []
        try:
            for change in planned.changes:
                if read_file(change.before.path) != change.before:
                    raise KubegpuError(
                        f"{change.before.path} was changed by somebody else during this run.",
                        next_step="Run again.",
                    )
                other_handlers = self.host.other_handlers(change.key)
                applied.append(_AppliedChange(change, store.record(change.key), other_handlers))
                if change.undo:
                    if change.after != change.before:
                        remove_leftovers(change.after.path)
                        write_file(change.after)
                else:
                    twin = self.host.current_twin(change.key, change.before)
                    for key, record in other_handlers.items():
                        store.put_record(key, self.host.advanced(record, change))
                    details = dict(change.details)
                    store.write_recorded(change.key, change.before, change.after, details, twin)
            if any(not change.undo for change in planned.changes):
                self._check_written(planned)
            if self.host.settings.restart and restart_required:
                self.restarter.restart(planned.files)
        except BaseException as error:
            self._roll_back(applied, error)
            raise
        for change in planned.changes:
            if change.undo:
                self._finish_undo(change)
        if self.host.request.state == "absent" and not store.records("containerd_runtime:"):
            store.drop(self.restarter.loaded_key())

    def _roll_back(self, applied: list[_AppliedChange], error: BaseException) -> None:
        restarted = isinstance(error, RestartFailed)
        if not applied and restarted:
            applied = self._unfinished()
        for one in reversed(applied):
            change = one.change
            if change.undo:
                if change.after != change.before:
                    write_file(change.before)
            else:
                self.host.store.take_back(change.key, change.before, one.earlier)
                for key, record in one.other_handlers.items():
                    self.host.store.put_record(key, record)
        if not isinstance(error, RestartFailed):
            return
        if not applied:
            raise KubegpuError(
                f"containerd did not come back: {error.cause}",
                evidence=error.evidence,
                next_step=f"Look at: journalctl --unit {self.host.settings.unit}. This run changed "
                "no file, so there was nothing to put back.",
            ) from error
        again = "containerd runs again with it."
        try:
            restart(self.host.run, self.host.settings.unit, self.host.settings.restart_timeout)
            self.restarter.wait(None)
        except KubegpuError as second:
            again = f"containerd still does not run: {second.cause} {second.evidence}"
        raise RolledBackError(
            f"containerd did not come back with the new configuration: {error.cause} The old "
            f"configuration was put back; {again}",
            evidence=error.evidence,
            next_step=f"Look at: journalctl --unit {self.host.settings.unit}",
        ) from error

    def _unfinished(self) -> list[_AppliedChange]:
        """Return the changes of an earlier run that containerd has not loaded."""
        found: list[_AppliedChange] = []
        for key, record in self.host.records().items():
            state = read_file(record.path)
            undo, before = self.host.store.undo_target(key, state)
            # With another managed handler in the file, the original file cannot be restored.
            if undo is Undo.RESTORE and not self.host.other_handlers(key):
                found.append(_AppliedChange(FileChange(key, before, state)))
        return found

    def _finish_undo(self, change: FileChange) -> None:
        """Remove the record; records of other handlers in the file follow its current content."""
        store, parse = self.host.store, self.host.parse
        gone = store.record(change.key)
        if gone is not None:
            first = HandlerRecord.from_json(gone.details)
            for key, other in self.host.other_handlers(change.key).items():
                record = self.host.advanced(other, change)
                before = HandlerRecord.from_json(record.details)
                try:
                    handler_record = record_without(gone.path, before, first, parse)
                    edited = record.edited or handler_record.base != before.base
                except (KubegpuError, ValueError):
                    # The file cannot be edited, or the line merge is not TOML: it must not be
                    # restored as a whole.
                    handler_record, edited = before, True
                store.put_record(
                    key,
                    replace(
                        record,
                        # A text that contains the removed handler must not be restored.
                        edited=edited,
                        made_directories=tuple(
                            dict.fromkeys((*gone.made_directories, *record.made_directories))
                        ),
                        details=handler_record.to_json(),
                    ),
                )
        store.forget(change.key)

    def _check_written(self, planned: Planned) -> None:
        """Check that the installed containerd sees the handler in the written files."""
        if (
            not self.host.settings.validate
            or cri_off(planned.files)
            or self.restarter.pending(planned.files)
        ):
            return
        answer = self.host.run(
            [str(self.host.binary), "--config", self.host.request.config_path, "config", "dump"]
        )
        known = Effective(self.host.parse(answer.stdout)).runtimes if answer.ok else {}
        if self.host.request.name not in known:
            raise KubegpuError(
                f"containerd does not see the handler {self.host.request.name} in the files that "
                "were written; they were put back.",
                evidence=redact_output(answer.last_output())
                if not answer.ok
                else f"it sees {', '.join(known)}",
                next_step="Use layout: in_place, or check imports in the configuration.",
            )

    def _remember_converged(self, planned: Planned, version: Version, result: Result) -> None:
        """Record that the node is converged, or drop that record.

        Only a run without changes records it: the files are then as they were read.
        """
        request, store, daemon = self.host.request, self.host.store, self.host.daemon
        key = converged.record_key("containerd", request.name)
        binary = self.host.binary or ""
        left = result.changed or result.restart_required or result.warnings
        process = daemon.identity if daemon else None
        known = process and binary[:1] == "/"
        if left or not known or request.state != "present":
            store.drop(key)
            return
        if not self.host.settings.fingerprint:
            # Nothing was changed, so the record of another caller stays valid.
            return
        for path in (
            *(binary, request.config_path, request.drop_in_path, request.runtime_path),
            *self.restarter.watched(planned.files, version),
            *filter(None, [self.host.auto_handler_program()]),
        ):
            self.host.track(path)
        owner = self.host.placement.distribution.name
        bare = (self.host.settings.fingerprint, owner, process, self.host.signatures)
        if converged.without_report(store.get(key)) != converged.build_entry(*bare):
            # Read after the signatures were taken: a change in between invalidates one of them.
            store.put(key, converged.build_entry(*bare, self._reported_config(binary)))

    def _reported_config(self, binary: str) -> dict[str, Any] | None:
        """Return the configuration that containerd reports, in the form of the facts."""
        path = self.host.request.config_path
        choice = ["--config", path] if self.host.exists(path) else []
        answer = self.host.run([binary, *choice, "config", "dump"])
        variables = self.host.placement.distribution.variables
        try:
            text = expand_variables(answer.stdout, variables) if answer.ok else ""
            return {"version": self.host.version_output, **read_effective(text)} if text else None
        except ValueError:
            return None

    # -- reporting -------------------------------------------------------------------------------

    def _result(
        self, planned: Planned, restart_required: bool, reason: str | None, restarted: bool
    ) -> Result:
        changed = [change for change in planned.changes if change.changed]
        backups = [
            record.backup for record in self.host.records().values() if record.backup is not None
        ]
        effective = planned.effective
        warnings = [*self.host.warnings, *planned.plan.warnings]
        return Result(
            changed=bool(changed) or restarted,
            restart_required=restart_required,
            restart_reason=reason,
            restarted=restarted,
            default_runtime=None if effective is None else effective.default,
            handlers=_handlers(effective.runtimes if effective else {}),
            backup_file=backups[0] if backups else None,
            diff=[_diff(change, self.host.placement.template) for change in changed],
            reasons=[*planned.plan.reasons, *warnings],
            warnings=warnings,
        )


@dataclass(frozen=True)
class _AppliedChange:
    """An applied change, with the earlier records of its handler and of others in the file."""

    change: FileChange
    earlier: FileRecord | None = None
    other_handlers: Mapping[str, FileRecord] = field(default_factory=dict)


def _handlers(runtimes: Mapping[str, Any]) -> dict[str, Any]:
    handlers = {}
    for name, runtime in sorted(runtimes.items()):
        options = meaning(table(runtime, ("options",)))
        path = [value for key, value in options.items() if key.lower() == "binaryname"]
        handlers[name] = {
            "type": table(runtimes, (name,)).get("runtime_type"),
            "path": path[0] if path else None,
            "options": options,
        }
    return handlers


def _diff(change: FileChange, template: bool = False) -> dict[str, str]:
    def side(state: FileState) -> tuple[str, str]:
        if state.content is None:
            return "", f"{change.after.path} (absent)"
        text = state.content.decode("utf-8", "replace")
        return redact_lines(text) if template else redact(text), change.after.path

    before, before_header = side(change.before)
    after, after_header = side(change.after)
    before, after = changed_parts(before, after)
    return {
        "before": before,
        "after": after,
        "before_header": before_header,
        "after_header": after_header,
    }
