# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""docker_runtime's flow: read, plan, write as one transaction, reload or restart, look again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from .._core.errors import InputError, KubegpuError, RolledBackError
from .._core.redact import changed_parts
from .._formats.json_edit import Document, decode, parse, redact
from .._host.command import Runner
from .._host.files import FileState, changed_since, read_file, remove_leftovers, write_file
from .._host.fingerprint import file_signature
from .._host.systemd import Daemon, journal, read_daemon, reload, restart
from .._record import converged as _settled
from .._record.file_record import FileRecord, Undo
from .._record.store import StateStore
from . import plan as docker
from .plan import Edited, Info, Ledger, Needs, Request, Running

RELOAD_SECONDS = 20.0
RESTART_SECONDS = 90.0
_PAUSE = 0.2


@dataclass(frozen=True)
class Settings:
    """Where things are, and what may be done to the daemon."""

    config_path: str
    docker_version: str | None
    validate: bool
    reload: bool
    restart: str
    unit: str
    socket: str
    #: The caller's name for all that it asks, by which the facts tell that it is done.
    wish: str = ""


@dataclass(frozen=True)
class World:
    """What the flow acts through."""

    run: Runner
    store: StateStore
    scratch: str
    read_info: Callable[[str], Any]
    find_program: Callable[..., str | None]


@dataclass(frozen=True)
class Outcome:
    """The module's answer."""

    changed: bool
    restart_required: bool
    restart_reason: str | None
    restarted: bool
    reload_required: bool
    reload_reason: str | None
    reloaded: bool
    default_runtime: str
    runtimes: dict[str, Any]
    backup_file: str | None
    diff: list[dict[str, str]]
    reasons: list[str]
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Plan:
    before: FileState
    after: FileState
    final: Document
    ledger: Ledger
    forget: bool
    daemon: Daemon
    running: Running
    needs: Needs
    reload: bool
    restart: bool
    transition: Document | None
    reasons: tuple[str, ...]

    @property
    def writes(self) -> bool:
        return self.before.content != self.after.content

    @property
    def changed(self) -> bool:
        return self.writes or self.reload or self.restart


class DockerRuntime:
    """One call of the module."""

    def __init__(self, request: Request, settings: Settings, world: World) -> None:
        self._request = request.checked()
        self._settings = settings
        self._world = world
        # The files that the answer depends on, as they were before they were read.
        self._marks: dict[str, str | None] = {}

    def __call__(self, check: bool) -> Outcome:
        version = self._version()
        if check:
            return self._outcome(self._plan(version))
        if self._request.present:
            self._need_runtime()
        with self._world.store.transaction():
            self._finish_transition()
            plan = self._plan(version)
            self._apply(plan, version)
            outcome = self._outcome(plan, done=True)
            self._settle(plan, outcome)
            return outcome

    # -- read and plan ------------------------------------------------------------------------

    def _version(self) -> tuple[int, ...] | None:
        given = self._settings.docker_version
        if given:
            version = docker.parse_version(given)
            if version is None:
                raise InputError(
                    f"docker_version: {given!r} is not a version.",
                    next_step="Give it like 28.5.2, or leave it out.",
                )
            return version
        answer = self._world.run(["dockerd", "--version"])
        version = docker.parse_version(answer.stdout) if answer.ok else None
        if version is None and self._request.present:
            raise InputError(
                "dockerd is not installed on this node."
                if answer.rc == 127
                else "dockerd does not tell its version.",
                evidence=answer.words(),
                next_step="Install Docker (this collection does not), or set docker_version.",
            )
        return version

    def _need_runtime(self) -> None:
        path = self._request.runtime_path
        if self._world.find_program(path) is None:
            raise InputError(
                f"runtime_path: there is no program {path} on this node.",
                next_step="Install the NVIDIA container toolkit first, or correct runtime_path.",
            )

    def _key(self, path: str) -> str:
        return f"docker_runtime:{path}"

    def _transition_key(self, path: str) -> str:
        return f"docker_runtime_{docker.TRANSITION}:{path}"

    def _hook_key(self) -> str:
        return f"docker_runtime:hook:{self._settings.unit}"

    def _current(self) -> FileState:
        """Return the file as it stands; a run that died in a transition has not happened."""
        path = self._settings.config_path
        # The folder tells of a file that was not there.
        self._marks = {one: file_signature(one) for one in (path, path.rpartition("/")[0])}
        current = read_file(path)
        key = self._transition_key(current.path)
        record = self._world.store.record(key)
        if record is None:
            return current
        way, target = self._world.store.undo_target(key, current)
        if way is not Undo.REMOVE_LINES:
            return target
        document = parse(decode(current.content or b"", current.path), current.path, trailing=True)
        ledger = Ledger.from_json(record.details)
        request = replace(self._request, name=docker.TRANSITION, present=False)
        edited = docker.remove(document, request, ledger)
        return replace(current, content=edited.document.encode())

    def _finish_transition(self) -> None:
        current = read_file(self._settings.config_path)
        key = self._transition_key(current.path)
        if self._world.store.record(key) is not None:
            self._world.store.write_undone(key, self._current())

    def _plan(self, version: tuple[int, ...] | None) -> _Plan:
        request, settings, store = self._request, self._settings, self._world.store
        before = self._current()
        key = self._key(before.path)
        record = store.record(key)
        ledger = Ledger() if record is None else Ledger.from_json(record.details)
        name = settings.config_path
        document = docker.read(decode(before.content or b"", name), name, version)
        if request.present:
            edited = docker.configure(document, request, ledger, version)
            docker.check_result(edited.document)
            docker.verify(document, edited.document, request.name)
            after = _with_text(before, document, edited.document)
        else:
            edited = docker.remove(document, request, ledger)
            after = self._undone(key, record, before, document, edited)
        final = parse(decode(after.content or b"", name), name, trailing=True)
        daemon, running = self._running(before.content != after.content)
        if request.present:
            docker.check_flags(final, name, before.path, self._flag_sources(daemon))
        wants = docker.needs(final, request, running, version)
        idle = running.info.idle if running.info is not None else None
        may = settings.restart == "always" or (settings.restart == "if_idle" and idle is True)
        restarts = bool(wants.restart) and may
        reloads = bool(wants.reload) and settings.reload and not restarts
        reasons = [*edited.reasons, *wants.notes]
        if wants.restart and settings.restart == "if_idle" and not may:
            reasons.append(
                "dockerd is not restarted: "
                + ("it does not say" if idle is None else "containers run on it")
                + (" whether containers run." if idle is None else " and live-restore is off.")
            )
        if request.present and self._world.find_program(request.runtime_path) is None:
            reasons.append(f"{request.runtime_path} is not there yet.")
        between = docker.transition(final, running.info, running) if wants.reload else None
        if wants.reload and not reloads and not restarts and between is not None:
            reasons.append(
                "A plain reload takes nothing back that the file does not name any more (and "
                "Docker 20.10 can die of it): use reload: true of this module, or restart."
            )
        return _Plan(
            before=before,
            after=after,
            final=final,
            ledger=edited.ledger,
            forget=not edited.ledger.names,
            daemon=daemon,
            running=running,
            needs=wants,
            reload=reloads,
            restart=restarts,
            transition=between if reloads else None,
            reasons=tuple(reasons),
        )

    def _undone(
        self,
        key: str,
        record: FileRecord | None,
        before: FileState,
        document: Document,
        edited: Edited,
    ) -> FileState:
        if record is not None and not edited.ledger.names:
            way, target = self._world.store.undo_target(key, before)
            if way is Undo.RESTORE:
                return target
            root = edited.document.root
            if way is Undo.NOTHING:
                return before
            if record.before_sha256 is None and (root is None or not root.members):
                return FileState(before.path)
        docker.verify(document, edited.document, self._request.name)
        return _with_text(before, document, edited.document)

    def _running(self, file_changes: bool) -> tuple[Daemon, Running]:
        daemon = read_daemon(self._world.run, self._settings.unit)
        info = None
        # Where systemd runs nothing the question would start a dockerd by its socket.
        if daemon.active or not daemon.exists:
            info = Info.from_api(self._world.read_info(self._settings.socket))
        hook = self._world.find_program(docker.HOOK, daemon.pid)
        old = (
            hook is not None
            and daemon.started is not None
            and changed_since(hook, daemon.started)
            # A dockerd that once had the hook keeps it: an upgrade of the toolkit is no reason.
            and self._world.store.get(self._hook_key()) != daemon.identity
        )
        return daemon, Running(
            active=daemon.active or info is not None,
            info=info,
            hook_path=hook,
            started_before_hook=old,
            file_changes=file_changes,
            flags=docker.flags(daemon.command_line),
        )

    def _flag_sources(self, daemon: Daemon) -> list[docker.FlagSource]:
        sources: list[docker.FlagSource] = []
        if daemon.exists:
            answer = self._world.run(["systemctl", "cat", self._settings.unit])
            sources, files = docker.unit_sources(answer.stdout)
            for path in files:
                with contextlib.suppress(KubegpuError):
                    content = read_file(path).content or b""
                    sources.append(
                        docker.environment_source(path, content.decode(errors="replace"))
                    )
        if daemon.command_line:
            where = f"the command line of the running dockerd (process {daemon.pid})"
            sources.append(docker.FlagSource(where, daemon.command_line))
        return sources

    # -- apply --------------------------------------------------------------------------------

    def _apply(self, plan: _Plan, version: tuple[int, ...] | None) -> None:
        store = self._world.store
        key = self._key(plan.before.path)
        earlier = store.record(key)
        if plan.writes:
            self._validate(plan.after, plan.before, version)
            now = read_file(self._settings.config_path)
            if now.content != plan.before.content:
                raise KubegpuError(
                    f"{self._settings.config_path} was changed by somebody while this ran.",
                    next_step="Run again; nothing was written.",
                )
            if self._request.present:
                store.write_recorded(key, plan.before, plan.after, plan.ledger.to_json())
            elif earlier is None:
                remove_leftovers(plan.after.path)
                write_file(plan.after)
            else:
                # What is ours is forgotten last: a run killed here can be done again.
                store.write_recorded(key, plan.before, plan.after, earlier.details)
        record = store.record(key)
        if record is not None and not plan.forget and record.details != plan.ledger.to_json():
            store.put_record(key, replace(record, details=plan.ledger.to_json()))
        try:
            if plan.restart:
                self._restart(plan)
            elif plan.reload:
                self._reload(plan)
        except KubegpuError as error:
            raise self._rolled_back(plan, key, earlier, error) from error
        self._remember(plan, key)

    def _validate(
        self, after: FileState, before: FileState, version: tuple[int, ...] | None
    ) -> None:
        if (
            not self._settings.validate
            or after.content is None
            or version is None
            or not docker.can_validate(version)
        ):
            return
        words = self._refusal(after.content)
        if words is None:
            return
        # An undo that brings back a file dockerd never took is still the undo.
        was = None if before.content is None else self._refusal(before.content)
        if was == words:
            raise InputError(
                f"dockerd refuses {self._settings.config_path}, and did before this change too.",
                evidence=words,
                next_step="Correct the file by hand and run again; nothing was written.",
            )
        raise InputError(
            f"dockerd would refuse {self._settings.config_path} after this change.",
            evidence=words,
            next_step="Nothing was written. Correct the options, or the file by hand.",
        )

    def _refusal(self, content: bytes) -> str | None:
        path = f"{self._world.scratch}/daemon.json"
        write_file(FileState(path, content, 0o600))
        try:
            answer = self._world.run(["dockerd", "--validate", f"--config-file={path}"])
        finally:
            write_file(FileState(path))
        if answer.ok or answer.rc == 127:
            return None
        return answer.words().replace(path, self._settings.config_path)

    def _reload(self, plan: _Plan) -> None:
        store, unit = self._world.store, self._settings.unit
        if plan.transition is None:
            reload(self._world.run, unit)
            self._wait(plan.final, RELOAD_SECONDS, plan.running)
            return
        key = self._transition_key(plan.after.path)
        before = read_file(self._settings.config_path)
        between = replace(before, content=plan.transition.encode())
        ledger = docker.transition_ledger(plan.final)
        store.write_recorded(key, before, between, ledger.to_json())
        try:
            reload(self._world.run, unit)
            self._wait(plan.transition, RELOAD_SECONDS, plan.running)
        finally:
            store.write_undone(key, before)

    def _restart(self, plan: _Plan) -> None:
        restart(self._world.run, self._settings.unit)
        self._wait(plan.final, RESTART_SECONDS, plan.running)

    def _wait(self, document: Document, seconds: float, running: Running) -> None:
        """Wait until the running dockerd has the document's runtimes and default."""
        if running.info is None:
            return  # it could not be asked before either
        deadline = time.monotonic() + seconds
        while True:
            info = Info.from_api(self._world.read_info(self._settings.socket))
            if docker.applied(document, info, running.flags):
                return
            if time.monotonic() >= deadline:
                raise KubegpuError(
                    "dockerd does not answer."
                    if info is None
                    else "dockerd did not take the runtimes of the file over.",
                    evidence=""
                    if info is None
                    else f"runtimes {', '.join(info.runtimes)}; default {info.default_runtime}",
                )
            time.sleep(_PAUSE)

    def _rolled_back(
        self, plan: _Plan, key: str, earlier: FileRecord | None, error: KubegpuError
    ) -> KubegpuError:
        unit, run = self._settings.unit, self._world.run
        words = "\n".join(part for part in (error.evidence, journal(run, unit)) if part)
        if not plan.writes:
            return KubegpuError(
                error.cause, evidence=words, next_step=f"Look at: journalctl --unit {unit}"
            )
        self._world.store.take_back(key, plan.before, earlier)
        came_back = True
        try:
            if plan.restart or not read_daemon(run, unit).active:
                restart(run, unit)
            else:
                reload(run, unit)
        except KubegpuError:
            came_back = False
        return RolledBackError(
            f"{error.cause} {self._settings.config_path} was put back"
            + (", and dockerd runs with it." if came_back else ", but dockerd did not come back."),
            evidence=words,
            next_step=f"Look at: journalctl --unit {unit}",
        )

    def _remember(self, plan: _Plan, key: str) -> None:
        store = self._world.store
        if plan.forget:
            store.forget(key)
        record = store.record(key)
        if record is None:
            store.drop(self._hook_key())
        elif plan.running.hook_path is not None and (
            plan.restart or not plan.running.started_before_hook
        ):
            daemon = plan.daemon
            if plan.restart:
                daemon = read_daemon(self._world.run, self._settings.unit)
            if daemon.identity is not None:
                store.put(self._hook_key(), daemon.identity)

    def _settle(self, plan: _Plan, outcome: Outcome) -> None:
        """Note that nothing was left to do, or that something is.

        Only by a run that changed nothing: what was read then is what stands there.
        """
        request, settings, store = self._request, self._settings, self._world.store
        daemon, key = plan.daemon, _settled.key("docker", request.name)
        find = self._world.find_program
        programs = [find(name, daemon.pid) for name in (request.runtime_path, docker.HOOK)]
        known = [*programs, *daemon.command_line[:1]]
        left = outcome.changed or outcome.restart_required or outcome.reload_required
        told = all(path is not None and path[:1] == "/" for path in known) and daemon.identity
        if left or outcome.warnings or not (request.present and told):
            store.drop(key)
            return
        if not settings.wish:
            # Nothing was changed, so what somebody else was told here still stands.
            return
        files = {**self._marks, **{path: file_signature(path) for path in known if path}}
        note = _settled.note(settings.wish, "docker", daemon.identity, files)
        if store.get(key) != note:
            store.put(key, note)

    # -- answer -------------------------------------------------------------------------------

    def _outcome(self, plan: _Plan, done: bool = False) -> Outcome:
        record = self._world.store.record(self._key(plan.before.path)) if done else None
        flag = plan.running.flags.get("default-runtime", ())
        reload_reason = "; ".join(plan.needs.reload) or None
        restart_reason = "; ".join(plan.needs.restart) or None
        changes = []
        if plan.reload:
            changes.append(f"dockerd is reloaded: {reload_reason}.")
        if plan.restart:
            changes.append(f"dockerd is restarted: {restart_reason}.")
        required = bool(plan.needs.restart) and not plan.restart
        open_reload = bool(plan.needs.reload) and not (plan.reload or plan.restart)
        return Outcome(
            changed=plan.changed,
            restart_required=required,
            restart_reason=restart_reason if required else None,
            restarted=plan.restart,
            reload_required=open_reload,
            reload_reason=reload_reason if open_reload else None,
            reloaded=plan.reload,
            default_runtime=docker.default_runtime(plan.final)
            or (flag[-1] if flag else docker.BUILTIN_DEFAULT),
            runtimes=docker.runtimes(plan.final),
            backup_file=None if record is None else record.backup,
            diff=self._diff(plan),
            reasons=[*plan.reasons, *changes],
        )

    def _diff(self, plan: _Plan) -> list[dict[str, str]]:
        if not plan.writes:
            return []
        header = self._settings.config_path
        before, after = changed_parts(self._shown(plan.before), self._shown(plan.after))
        return [
            {
                "before": before,
                "after": after,
                "before_header": header,
                "after_header": header,
            }
        ]

    def _shown(self, state: FileState) -> str:
        if state.content is None:
            return ""
        document = parse(decode(state.content, state.path), state.path, trailing=True)
        return redact(document).encode("utf-8", "replace").decode()


def _with_text(before: FileState, old: Document, new: Document) -> FileState:
    """Return the file with the new text; mode, owner and label stay."""
    if new.text == old.text:
        return before
    return replace(before, content=new.encode())
