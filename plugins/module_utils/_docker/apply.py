# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""docker_runtime: read, plan, write in one transaction, reload or restart, verify."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from .._formats.json_edit import Document, decode, parse, redact
from .._host.files import FileState, read_file
from .._host.fingerprint import file_signature
from .._host.systemd import reload, restart
from .._record import converged
from .._record.file_record import FileRecord, Undo
from .._record.transaction import FileChange
from .._runtime.engine import Result, Service, change_runtime, note_converged
from .config import (
    check_result,
    configure,
    default_runtime,
    read,
    remove,
    runtimes,
    verify,
)
from .daemon import TRANSITION, needs, transition, transition_record
from .edit import EditResult
from .flags import check_flags
from .host import DockerHost
from .record import Record
from .types import (
    BUILTIN_DEFAULT,
    HOOK,
    Dependencies,
    Needs,
    Plan,
    Request,
    Running,
    Settings,
)

RELOAD_SECONDS = 20.0
RESTART_SECONDS = 90.0


@dataclass(frozen=True)
class DockerResult(Result):
    """What the module returns."""

    reload_required: bool
    reload_reason: str | None
    reloaded: bool
    waiting_containers: int | None
    runtimes: dict[str, Any]


class DockerRuntime:
    """One run of the module."""

    def __init__(self, request: Request, settings: Settings, dependencies: Dependencies) -> None:
        self._request = request.checked()
        self._settings = settings
        self._run = dependencies.run
        self._store = dependencies.store
        self._find_program = dependencies.find_program
        self._host = DockerHost(settings, dependencies)
        # Signatures of the files that the result depends on, taken before they are read.
        self._signatures: dict[str, str | None] = {}

    def __call__(self, check: bool) -> DockerResult:
        version = self._host.version(required=self._request.present)
        if check:
            return self._result(self._plan(version))
        if self._request.present:
            self._host.check_program(self._request.runtime_path)
        with self._store.transaction():
            self._finish_transition()
            plan = self._plan(version)
            self._apply(plan, version)
            result = self._result(plan, done=True)
            self._note_converged(plan, result)
            return result

    # -- read and plan ------------------------------------------------------------------------

    def _key(self, path: str) -> str:
        return f"docker_runtime:{path}"

    def _transition_key(self, path: str) -> str:
        return f"docker_runtime_{TRANSITION}:{path}"

    def _hook_key(self) -> str:
        return f"docker_runtime:hook:{self._settings.unit}"

    def _current(self) -> FileState:
        """Return the current file, without the transition of a run that was killed in it."""
        path = self._settings.config_path
        # A file that does not exist yet changes its directory when it is created.
        self._signatures = {one: file_signature(one) for one in (path, path.rpartition("/")[0])}
        current = read_file(path)
        key = self._transition_key(current.path)
        file_record = self._store.record(key)
        if file_record is None:
            return current
        undo, target = self._store.undo_target(key, current)
        if undo is not Undo.REMOVE_LINES:
            return target
        document = parse(decode(current.content or b"", current.path), current.path, trailing=True)
        request = replace(self._request, name=TRANSITION, present=False)
        edited = remove(document, request, Record.from_json(file_record.details))
        return replace(current, content=edited.document.encode())

    def _finish_transition(self) -> None:
        current = read_file(self._settings.config_path)
        key = self._transition_key(current.path)
        if self._store.record(key) is not None:
            self._store.write_undone(key, self._current())

    def _plan(self, version: tuple[int, ...] | None) -> Plan:
        before = self._current()
        edited, after = self._edit(before, version)
        name = self._settings.config_path
        final = parse(decode(after.content or b"", name), name, trailing=True)
        daemon = self._host.daemon()
        running = self._host.running(
            daemon,
            file_changes=before.content != after.content,
            hook_seen_by=self._store.get(self._hook_key()),
        )
        if self._request.present:
            check_flags(final, name, before.path, self._host.flag_sources(daemon))
        required = needs(final, self._request, running, version)
        restarts = bool(required.restart) and self._may_restart(running)
        reloads = bool(required.reload) and self._settings.reload and not restarts
        between = transition(final, running.info, running) if required.reload else None
        reasons = [
            *edited.reasons,
            *required.notes,
            *self._open_reasons(required, running, restarts, reloads, between),
        ]
        return Plan(
            before=before,
            after=after,
            final=final,
            record=edited.record,
            forget=not edited.record.names,
            daemon=daemon,
            running=running,
            needs=required,
            reload=reloads,
            restart=restarts,
            transition=between if reloads else None,
            reasons=tuple(reasons),
        )

    def _edit(
        self, before: FileState, version: tuple[int, ...] | None
    ) -> tuple[EditResult, FileState]:
        """Return the edit of the file, and the file after it."""
        request, name = self._request, self._settings.config_path
        key = self._key(before.path)
        file_record = self._store.record(key)
        record = Record() if file_record is None else Record.from_json(file_record.details)
        document = read(decode(before.content or b"", name), name, version)
        if not request.present:
            edited = remove(document, request, record)
            return edited, self._undone(key, file_record, before, document, edited)
        edited = configure(document, request, record, version)
        check_result(edited.document)
        verify(document, edited.document, request.name)
        return edited, _with_text(before, document, edited.document)

    def _may_restart(self, running: Running) -> bool:
        if self._settings.restart == "if_idle":
            return running.info is not None and running.info.idle is True
        return self._settings.restart == "always"

    def _waiting(self, plan: Plan) -> int | None:
        """Return the number of running containers for which dockerd is not restarted."""
        info = plan.running.info
        return (
            None if self._settings.restart != "if_idle" or info is None else info.containers_running
        )

    def _open_reasons(
        self,
        required: Needs,
        running: Running,
        restarts: bool,
        reloads: bool,
        between: Document | None,
    ) -> list[str]:
        """Return why something that is required is not done."""
        reasons = []
        if required.restart and self._settings.restart == "if_idle" and not restarts:
            unknown = running.info is None or running.info.idle is None
            reasons.append(
                "dockerd is not restarted: "
                + ("it does not say" if unknown else "containers run on it")
                + (" whether containers run." if unknown else " and live-restore is off.")
            )
        runtime_path = self._request.runtime_path
        if self._request.present and not self._host.has_program(runtime_path):
            reasons.append(f"{runtime_path} is not there yet.")
        if required.reload and not reloads and not restarts and between is not None:
            reasons.append(
                "A plain reload removes nothing that the file no longer names (and Docker 20.10 "
                "can crash on it): use reload: true of this module, or restart."
            )
        return reasons

    def _undone(
        self,
        key: str,
        file_record: FileRecord | None,
        before: FileState,
        document: Document,
        edited: EditResult,
    ) -> FileState:
        """Return the file without the runtime; its old bytes if only this module changed it."""
        if file_record is not None and not edited.record.names:
            undo, target = self._store.undo_target(key, before)
            if undo is Undo.RESTORE:
                return target
            root = edited.document.root
            if undo is Undo.NOTHING:
                return before
            if file_record.before_sha256 is None and (root is None or not root.members):
                return FileState(before.path)
        verify(document, edited.document, self._request.name)
        return _with_text(before, document, edited.document)

    # -- apply --------------------------------------------------------------------------------

    def _apply(self, plan: Plan, version: tuple[int, ...] | None) -> None:
        key = self._key(plan.before.path)
        earlier = self._store.record(key)
        details = plan.record.to_json()
        if plan.writes:
            self._host.validate(plan.after, plan.before, version)
        # The record of a removal is written last: a run that is killed before it can be repeated.
        recorded = details if self._request.present or earlier is None else earlier.details
        change = FileChange(key, plan.before, plan.after, undo=plan.forget, details=recorded)
        service = Service(
            name="dockerd",
            unit=self._settings.unit,
            run=self._run,
            load=(lambda: self._load(plan)) if plan.restart or plan.reload else None,
            load_restored=lambda: self._load_restored(plan),
        )
        change_runtime(
            self._store,
            [change] if plan.writes or plan.forget else [],
            service,
            written=lambda: self._update_details(key, plan, details),
        )
        self._note_hook(plan, key)

    def _update_details(self, key: str, plan: Plan, details: dict[str, Any]) -> None:
        record = self._store.record(key)
        if record is not None and not plan.forget and record.details != details:
            self._store.put_record(key, replace(record, details=details))

    def _load(self, plan: Plan) -> None:
        if plan.restart:
            restart(self._run, self._settings.unit)
            self._host.wait_until_applied(plan.final, RESTART_SECONDS, plan.running)
        else:
            self._reload(plan)

    def _load_restored(self, plan: Plan) -> None:
        if plan.restart or not self._host.daemon().active:
            restart(self._run, self._settings.unit)
        else:
            reload(self._run, self._settings.unit)

    def _reload(self, plan: Plan) -> None:
        store, unit = self._store, self._settings.unit
        if plan.transition is None:
            reload(self._run, unit)
            self._host.wait_until_applied(plan.final, RELOAD_SECONDS, plan.running)
            return
        key = self._transition_key(plan.after.path)
        before = read_file(self._settings.config_path)
        between = replace(before, content=plan.transition.encode())
        store.write_recorded(key, before, between, transition_record(plan.final).to_json())
        try:
            reload(self._run, unit)
            self._host.wait_until_applied(plan.transition, RELOAD_SECONDS, plan.running)
        finally:
            store.write_undone(key, before)

    def _note_hook(self, plan: Plan, key: str) -> None:
        """Store which dockerd found NVIDIA's hook."""
        store = self._store
        if store.record(key) is None:
            store.drop(self._hook_key())
        elif plan.running.hook_path is not None and (
            plan.restart or not plan.running.started_before_hook
        ):
            daemon = self._host.daemon() if plan.restart else plan.daemon
            if daemon.identity is not None:
                store.put(self._hook_key(), daemon.identity)

    def _note_converged(self, plan: Plan, result: DockerResult) -> None:
        """Store that nothing is left to do, or remove that."""
        daemon, process = plan.daemon, plan.daemon.identity
        key = converged.record_key("docker", self._request.name)
        paths = [
            *(self._find_program(path, daemon.pid) for path in (self._request.runtime_path, HOOK)),
            *daemon.command_line[:1],
        ]
        known = [path for path in paths if path is not None and path[:1] == "/"]
        left = result.changed or result.restart_required or result.reload_required
        if left or process is None or known != paths or not self._request.present:
            self._store.drop(key)
            return

        def files() -> dict[str, str | None]:
            return {**self._signatures, **{path: file_signature(path) for path in known}}

        fingerprint = self._settings.fingerprint
        note_converged(self._store, key, fingerprint, "docker", process, files)

    # -- result -------------------------------------------------------------------------------

    def _result(self, plan: Plan, done: bool = False) -> DockerResult:
        file_record = self._store.record(self._key(plan.before.path)) if done else None
        flag = plan.running.flags.get("default-runtime", ())
        reload_reason = "; ".join(plan.needs.reload) or None
        restart_reason = "; ".join(plan.needs.restart) or None
        change = FileChange(self._key(plan.before.path), plan.before, plan.after)
        changes = []
        if plan.reload:
            changes.append(f"dockerd is reloaded: {reload_reason}.")
        if plan.restart:
            changes.append(f"dockerd is restarted: {restart_reason}.")
        restart_required = bool(plan.needs.restart) and not plan.restart
        reload_required = bool(plan.needs.reload) and not (plan.reload or plan.restart)
        return DockerResult(
            changed=plan.changed,
            file_changed=plan.writes,
            restart_required=restart_required,
            restart_reason=restart_reason,
            restarted=plan.restart,
            reload_required=reload_required,
            reload_reason=reload_reason if reload_required or plan.reload else None,
            reloaded=plan.reload,
            waiting_containers=self._waiting(plan) if restart_required else None,
            default_runtime=default_runtime(plan.final) or (flag[-1] if flag else BUILTIN_DEFAULT),
            runtimes=runtimes(plan.final),
            backup_file=None if file_record is None else file_record.backup,
            diff=[change.diff(partial(_show, change.after.path))] if plan.writes else [],
            reasons=[*plan.reasons, *changes],
        )


def _show(path: str, content: bytes) -> str:
    document = parse(decode(content, path), path, trailing=True)
    return redact(document).encode("utf-8", "replace").decode()


def _with_text(before: FileState, old: Document, new: Document) -> FileState:
    """Return the file with the new text; mode, owner and label stay."""
    if new.text == old.text:
        return before
    return replace(before, content=new.encode())
