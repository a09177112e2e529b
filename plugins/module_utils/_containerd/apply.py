# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read, plan, validate, write, restart: one transaction on containerd's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .._core.errors import KubegpuError, RolledBackError
from .._core.redact import changed_parts, redact_lines
from .._formats.toml_redact import redact
from .._host.files import (
    FileState,
    read_file,
    remove_leftovers,
    write_file,
)
from .._host.systemd import restart
from .._record import converged as _settled
from .._record.file_record import FileRecord, Undo
from .._record.transaction import FileChange
from .._runtime.config_file import table
from .config import (
    Effective,
    meaning,
)
from .data import Version
from .distributions import (
    filled_in,
)
from .dump import read_effective
from .host import Host, World, redact_words
from .options import Settings
from .prepare import Planned, Preparation
from .record import History
from .restart import Restarter, RestartFailed, cri_off
from .types import Request
from .undo import neighbour_without


@dataclass(frozen=True)
class Outcome:
    """What is returned to the user."""

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

    def __init__(self, request: Request, settings: Settings, world: World) -> None:
        self.host = Host(request, settings, world)
        self.restarter = Restarter(self.host)
        self.preparation = Preparation(self.host)

    def __call__(self, check: bool) -> Outcome:
        self.host.settle_options()
        if check:
            return self._work(check=True)
        with self.host.world.store.transaction(self.host.settings.lock_timeout):
            return self._work(check=False)

    def _work(self, check: bool) -> Outcome:
        self.host.daemon = self.host.read_daemon()
        version = self.host.read_version()
        self.host.check_daemon_config()
        self.host.find_way(version)
        if self.host.request.state == "present":
            self.host.check_runtime_path(check)
            planned = self.preparation.present(version)
        else:
            planned = self.preparation.absent(version)
        restart_required, reason = self.restarter.required(planned.steps, planned.files, version)
        if not check:
            self._apply(planned, restart_required)
        restarted = self.host.settings.restart and restart_required
        if restarted:
            restart_required, reason = False, None
        outcome = self._outcome(planned, restart_required, reason, restarted)
        if not check:
            self._settle(planned, version, outcome)
        return outcome

    # -- writing ---------------------------------------------------------------------------------

    def _apply(self, planned: Planned, restart_required: bool) -> None:
        store = self.host.world.store
        done: list[_Done] = []
        try:
            for step in planned.steps:
                if read_file(step.before.path) != step.before:
                    raise KubegpuError(
                        f"{step.before.path} was changed by somebody else during this run.",
                        next_step="Run again.",
                    )
                neighbours = self.host.neighbours(step.key)
                done.append(_Done(step, store.record(step.key), neighbours))
                if step.undo:
                    if step.after != step.before:
                        remove_leftovers(step.after.path)
                        write_file(step.after)
                else:
                    twin = self.host.in_step(step.key, step.before)
                    for key, record in neighbours.items():
                        store.put_record(key, self.host.follow(record, step))
                    details = dict(step.details)
                    store.write_recorded(step.key, step.before, step.after, details, twin)
            if any(not step.undo for step in planned.steps):
                self._check_written(planned)
            if self.host.settings.restart and restart_required:
                self.restarter.restart(planned.files)
        except BaseException as error:
            self._roll_back(done, error)
            raise
        for step in planned.steps:
            if step.undo:
                self._finish_undo(step)
        if self.host.request.state == "absent" and not store.records("containerd_runtime:"):
            store.drop(self.restarter.loaded_key())

    def _roll_back(self, done: list[_Done], error: BaseException) -> None:
        restarted = isinstance(error, RestartFailed)
        if not done and restarted:
            done = self._unfinished()
        for one in reversed(done):
            step = one.step
            if step.undo:
                if step.after != step.before:
                    write_file(step.before)
            else:
                self.host.world.store.take_back(step.key, step.before, one.earlier)
                for key, record in one.neighbours.items():
                    self.host.world.store.put_record(key, record)
        if not isinstance(error, RestartFailed):
            return
        if not done:
            raise KubegpuError(
                f"containerd did not come back: {error.cause}",
                evidence=error.evidence,
                next_step=f"Look at: journalctl --unit {self.host.settings.unit}. This run changed "
                "no file, so there was nothing to put back.",
            ) from error
        again = "containerd runs again with it."
        try:
            restart(
                self.host.world.run, self.host.settings.unit, self.host.settings.restart_timeout
            )
            self.restarter.wait(None)
        except KubegpuError as second:
            again = f"containerd still does not run: {second.cause} {second.evidence}"
        raise RolledBackError(
            f"containerd did not come back with the new configuration: {error.cause} The old "
            f"configuration was put back; {again}",
            evidence=error.evidence,
            next_step=f"Look at: journalctl --unit {self.host.settings.unit}",
        ) from error

    def _unfinished(self) -> list[_Done]:
        """Return what a run before this one wrote and never saw loaded."""
        found: list[_Done] = []
        for key, record in self.host.records().items():
            state = read_file(record.path)
            way, before = self.host.world.store.undo_target(key, state)
            # With another handler of ours in it, the file from before them is no way back.
            if way is Undo.RESTORE and not self.host.neighbours(key):
                found.append(_Done(FileChange(key, before, state)))
        return found

    def _finish_undo(self, step: FileChange) -> None:
        """Drop the record; the file's other handlers of ours go on from what is there now."""
        store, parse = self.host.world.store, self.host.world.parse
        gone = store.record(step.key)
        if gone is not None:
            first = History.from_json(gone.details)
            for key, other in self.host.neighbours(step.key).items():
                record = self.host.follow(other, step)
                before = History.from_json(record.details)
                try:
                    history = neighbour_without(gone.path, before, first, parse)
                    edited = record.edited or history.base != before.base
                except (KubegpuError, ValueError):
                    # Of a shape that cannot be edited, or merged by lines to what is no TOML; then
                    # it is not to come back as a whole.
                    history, edited = before, True
                store.put_record(
                    key,
                    replace(
                        record,
                        # Bytes that have the other handler in them may not come back.
                        edited=edited,
                        made_directories=tuple(
                            dict.fromkeys((*gone.made_directories, *record.made_directories))
                        ),
                        details=history.to_json(),
                    ),
                )
        store.forget(step.key)

    def _check_written(self, planned: Planned) -> None:
        """Ask the real binary about the real files, imports and all."""
        if (
            not self.host.settings.validate
            or cri_off(planned.files)
            or self.restarter.pending(planned.files)
        ):
            return
        answer = self.host.world.run(
            [str(self.host.binary), "--config", self.host.request.config_path, "config", "dump"]
        )
        known = Effective(self.host.world.parse(answer.stdout)).runtimes if answer.ok else {}
        if self.host.request.name not in known:
            raise KubegpuError(
                f"containerd does not see the handler {self.host.request.name} in the files that "
                "were written; they were put back.",
                evidence=redact_words(answer.words())
                if not answer.ok
                else f"it sees {', '.join(known)}",
                next_step="Use layout: in_place, or check imports in the configuration.",
            )

    def _settle(self, planned: Planned, version: Version, outcome: Outcome) -> None:
        """Note that nothing was left to do, or that something is.

        Only by a run that changed nothing: what was read then is what stands there.
        """
        request, store, daemon = self.host.request, self.host.world.store, self.host.daemon
        key = _settled.key("containerd", request.name)
        binary = self.host.binary or ""
        left = outcome.changed or outcome.restart_required or outcome.warnings
        process = daemon.identity if daemon else None
        known = process and binary[:1] == "/"
        if left or not known or request.state != "present":
            store.drop(key)
            return
        if not self.host.settings.wish:
            # Nothing was changed, so what somebody else was told here still stands.
            return
        for path in (
            *(binary, request.config_path, request.drop_in_path, request.runtime_path),
            *self.restarter.watched(planned.files, version),
            *filter(None, [self.host.made_by_itself()]),
        ):
            self.host.marked(path)
        owner = self.host.way.flavour.name
        bare = (self.host.settings.wish, owner, process, self.host.marks)
        if _settled.without_words(store.get(key)) != _settled.note(*bare):
            # Asked for after the marks were taken: what changes meanwhile breaks one.
            store.put(key, _settled.note(*bare, self._words(binary)))

    def _words(self, binary: str) -> dict[str, Any] | None:
        """Return what containerd itself makes of its files, as the facts would find it."""
        path = self.host.request.config_path
        choice = ["--config", path] if self.host.world.exists(path) else []
        answer = self.host.world.run([binary, *choice, "config", "dump"])
        try:
            text = filled_in(answer.stdout, self.host.way.flavour.variables) if answer.ok else ""
            return {"version": self.host.version_words, **read_effective(text)} if text else None
        except ValueError:
            return None

    # -- telling ---------------------------------------------------------------------------------

    def _outcome(
        self, planned: Planned, restart_required: bool, reason: str | None, restarted: bool
    ) -> Outcome:
        changed = [
            step
            for step in planned.steps
            if step.after.content != step.before.content or step.after.mode != step.before.mode
        ]
        backups = [
            record.backup for record in self.host.records().values() if record.backup is not None
        ]
        effective = planned.effective
        warnings = [*self.host.warnings, *planned.plan.warnings]
        return Outcome(
            changed=bool(changed) or restarted,
            restart_required=restart_required,
            restart_reason=reason,
            restarted=restarted,
            default_runtime=None if effective is None else effective.default,
            handlers=_handlers(effective.runtimes if effective else {}),
            backup_file=backups[0] if backups else None,
            diff=[_diff(step, self.host.way.template) for step in changed],
            reasons=[*planned.plan.reasons, *warnings],
            warnings=warnings,
        )


@dataclass(frozen=True)
class _Done:
    """A step that was taken, and what was recorded before it: its own, and of the other handlers
    in the same file."""

    step: FileChange
    earlier: FileRecord | None = None
    neighbours: Mapping[str, FileRecord] = field(default_factory=dict)


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


def _diff(step: FileChange, template: bool = False) -> dict[str, str]:
    def side(state: FileState) -> tuple[str, str]:
        if state.content is None:
            return "", f"{step.after.path} (absent)"
        text = state.content.decode("utf-8", "replace")
        return redact_lines(text) if template else redact(text), step.after.path

    before, before_header = side(step.before)
    after, after_header = side(step.after)
    before, after = changed_parts(before, after)
    return {
        "before": before,
        "after": after,
        "before_header": before_header,
        "after_header": after_header,
    }
