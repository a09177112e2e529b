# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Applies a request to containerd: read, plan, validate, write and restart as one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.errors import KubegpuError
from .._core.redact_lines import redact_lines
from .._formats.toml_redact import redact
from .._host.files import read_file
from .._record import converged
from .._record.file_record import Undo
from .._record.transaction import FileChange
from .._runtime.config_file import table
from .._runtime.engine import HandlerResult, Service, change_runtime, note_converged
from .config import Effective, meaning
from .data import Version
from .distributions import expand_variables
from .dump import read_effective
from .host import Dependencies, Host, redact_output
from .options import Settings
from .prepare import Planned, Preparation
from .restart import LOADED, Restarter, cri_off
from .types import Request


class ContainerdRuntime:
    """One run of the module."""

    def __init__(self, request: Request, settings: Settings, dependencies: Dependencies) -> None:
        self.host = Host(request, settings, dependencies)
        self.restarter = Restarter(self.host)
        self.preparation = Preparation(self.host)

    def __call__(self, check: bool) -> HandlerResult:
        self.host.complete_options()
        if check:
            return self._work(check=True)
        with self.host.store.transaction(self.host.settings.lock_timeout):
            return self._work(check=False)

    def _work(self, check: bool) -> HandlerResult:
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
        restarted = self.host.settings.restart and restart_required
        if restarted:
            self.restarter.check_voided(planned.voided)
        if not check:
            self._apply(planned, restarted)
        if restarted:
            restart_required = False
        result = self._result(planned, restart_required, reason, restarted)
        if not check:
            self._note_converged(planned, version, result)
        return result

    # -- writing ---------------------------------------------------------------------------------

    def _apply(self, planned: Planned, restarting: bool) -> None:
        store, restarter = self.host.store, self.restarter
        service = Service(
            name="containerd",
            unit=self.host.settings.unit,
            run=self.host.run,
            load=(lambda: restarter.restart(planned.files)) if restarting else None,
            load_restored=restarter.restart_restored,
        )
        change_runtime(
            store,
            planned.changes,
            service,
            written=lambda: self._check_written(planned),
            unloaded=self._unloaded,
        )
        if self.host.request.state == "absent" and not store.records("containerd_runtime:"):
            # Also of a distribution that has left the node since.
            store.drop_all(LOADED)

    def _unloaded(self) -> list[FileChange]:
        """Return how the files of an earlier run are undone that containerd has not loaded."""
        found = []
        for key, record in self.host.records().items():
            state = read_file(record.path)
            undo, before = self.host.store.undo_target(key, state)
            # With another managed handler in the file, the original file cannot be restored.
            if undo is Undo.RESTORE and not self.host.other_handlers(key):
                found.append(FileChange(key, state, before, undo=True))
        return found

    def _check_written(self, planned: Planned) -> None:
        """Check that the installed containerd sees the handler in the written files."""
        if (
            all(change.undo for change in planned.changes)
            or not self.host.settings.validate
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
                "were written; they were restored.",
                evidence=redact_output(answer.last_output())
                if not answer.ok
                else f"it sees {', '.join(known)}",
                next_step="Use layout: in_place, or check imports in the configuration.",
            )

    def _note_converged(self, planned: Planned, version: Version, result: HandlerResult) -> None:
        """Store that nothing is left to do, or remove that."""
        request, store, daemon = self.host.request, self.host.store, self.host.daemon
        key = converged.record_key("containerd", request.name)
        binary, process = self.host.binary or "", daemon.identity if daemon else None
        left = result.changed or result.restart_required or result.warnings
        if left or process is None or binary[:1] != "/" or request.state != "present":
            store.drop(key)
            return

        def files() -> dict[str, str | None]:
            for path in (
                *(binary, request.config_path, request.drop_in_path, request.runtime_path),
                *self.restarter.watched(planned.files, version),
                *filter(None, [self.host.auto_handler_program()]),
            ):
                self.host.track(path)
            return self.host.signatures

        note_converged(
            store,
            key,
            self.host.settings.fingerprint,
            self.host.placement.distribution.name,
            process,
            files,
            lambda: self._reported_config(binary),
        )

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
    ) -> HandlerResult:
        changed = [change for change in planned.changes if change.changed]
        backups = [
            record.backup for record in self.host.records().values() if record.backup is not None
        ]
        effective = planned.effective
        warnings = [*self.host.warnings, *planned.plan.warnings]
        return HandlerResult(
            changed=bool(changed) or restarted,
            file_changed=bool(changed),
            restart_required=restart_required,
            restart_reason=reason,
            restarted=restarted,
            default_runtime=None if effective is None else effective.default,
            handlers=_handlers(effective.runtimes if effective else {}),
            backup_file=backups[0] if backups else None,
            diff=[change.diff(self._show) for change in changed],
            reasons=[*planned.plan.reasons, *warnings],
            warnings=warnings,
        )

    def _show(self, content: bytes) -> str:
        text = content.decode("utf-8", "replace")
        return redact_lines(text) if self.host.placement.template else redact(text)


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
