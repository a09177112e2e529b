# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""crio_runtime: read, plan, write and restart in one transaction."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Callable

from .._core.errors import InputError, KubegpuError
from .._formats.toml_redact import redact
from .._host.command import Runner
from .._host.files import FileState, changed_since, files_below, read_file
from .._host.systemd import Daemon, read_daemon, restart
from .._record.file_record import Undo
from .._record.store import StateStore
from .._record.transaction import FileChange
from .._runtime.config_file import ConfigFile, Parser, decode
from .._runtime.cri import CRIO_SOCKET, CriStatus, read_info, wait_until_ready
from .._runtime.engine import HandlerResult, Service, change_runtime
from .._runtime.toml_settings import Plan, Seen, plan_absent, plan_present
from .plan import effective, handlers, plan_drop_in, read_order
from .types import DropIn, Effective, Request

HEAD = "# Written by kubegpu.nodes.crio_runtime; add settings of your own freely.\n"
_KEY = "crio_runtime"


@dataclass(frozen=True)
class Settings:
    """Whether and how CRI-O is restarted. ``restart_timeout`` is in seconds."""

    restart: bool = False
    restart_timeout: int = 60
    unit: str = "crio"
    socket: str = CRIO_SOCKET
    # Whether check mode precedes an installation of the container toolkit.
    toolkit_expected: bool = False


@dataclass(frozen=True)
class Dependencies:
    """Access to the node."""

    run: Runner
    parse: Parser
    store: StateStore
    exists: Callable[[str], bool]


class CrioRuntime:
    """One run of the module."""

    def __init__(self, request: Request, settings: Settings, dependencies: Dependencies) -> None:
        self.request = request
        self.settings = settings
        self._dependencies = dependencies
        self.warnings: list[str] = []

    def __call__(self, check: bool) -> HandlerResult:
        self.request.check()
        if check:
            return self._execute(check=True)
        with self._dependencies.store.transaction():
            return self._execute(check=False)

    def _execute(self, check: bool) -> HandlerResult:
        daemon = read_daemon(self._dependencies.run, self.settings.unit)
        self._check_crio()
        own = read_file(self.request.drop_in_path)
        before, after = self._files(own.path)
        if self.request.state == "present":
            self._check_runtime_path(check)
            self._check_not_shared(own.path)
            drop_in = plan_drop_in(self.request, before, after)
        else:
            drop_in = DropIn({})
        self.warnings += drop_in.warnings
        change, plan = self._change(own, drop_in)
        seen = effective((*before, self._decoded(change.after), *after))
        self._check_default(seen)
        reason = self._restart_reason(daemon, change, (*before, *after))
        restarted = self.settings.restart and reason is not None
        if not check:
            newer = daemon.started is not None and changed_since(own.path, daemon.started)
            self._apply(change, restarted, unloaded=newer)
        record = self._dependencies.store.record(change.key)
        writes = change.before.content != change.after.content
        return HandlerResult(
            changed=writes or restarted,
            file_changed=writes,
            restart_required=reason is not None and not restarted,
            restart_reason=reason,
            restarted=restarted,
            default_runtime=seen.default,
            handlers=handlers(seen),
            backup_file=None if record is None else record.backup,
            diff=[change.diff(_show)] if writes else [],
            reasons=[*drop_in.reasons, *plan.reasons, *self.warnings],
            warnings=self.warnings,
        )

    # -- reading -------------------------------------------------------------------------------

    def _check_crio(self) -> None:
        answer = self._dependencies.run(["crio", "--version"])
        if answer.rc == 127 and not self._dependencies.exists(self.request.config_path):
            raise KubegpuError(
                "CRI-O is not installed on this node.",
                evidence=f"no program crio, no {self.request.config_path}",
                next_step="Install CRI-O first (this collection does not).",
            )

    def _check_runtime_path(self, check: bool) -> None:
        path = self.request.runtime_path
        if self._dependencies.exists(path):
            return
        if not check:
            raise InputError(
                f"{path} does not exist, and CRI-O does not start with a handler without program.",
                next_step="Install the NVIDIA container toolkit first, or correct runtime_path.",
            )
        if not self.settings.toolkit_expected:
            self.warnings.append(f"{path} does not exist yet: CRI-O would not start with it.")

    def _check_not_shared(self, path: str) -> None:
        for key, record in self._dependencies.store.records(f"{_KEY}:").items():
            if record.path == path and key != self._key(path):
                raise InputError(
                    f"{path} holds another handler of ours.",
                    evidence=key,
                    next_step="Give each handler its own drop_in_path.",
                )

    def _files(self, own: str) -> tuple[tuple[ConfigFile, ...], tuple[ConfigFile, ...]]:
        """Return the files that CRI-O reads before and after the drop-in file."""
        drop_in = self.request.drop_in_path
        before = [self._decoded(read_file(self.request.config_path))]
        after: list[ConfigFile] = []
        for path in files_below(posixpath.dirname(drop_in)):
            state = read_file(path)
            if state.path == own:
                continue
            is_before = read_order(path) < read_order(drop_in)
            (before if is_before else after).append(self._decoded(state))
        return tuple(before), tuple(after)

    def _decoded(self, state: FileState) -> ConfigFile:
        try:
            return decode(state.path, state.content, self._dependencies.parse)
        except InputError as error:
            raise InputError(
                f"{state.path} is not valid TOML, so CRI-O cannot load it either.",
                evidence=error.evidence,
                next_step="Correct the file (crio config names the place), then run again.",
            ) from error

    def _key(self, path: str) -> str:
        return f"{_KEY}:{self.request.name}:{path}"

    # -- planning ------------------------------------------------------------------------------

    def _change(self, own: FileState, drop_in: DropIn) -> tuple[FileChange, Plan]:
        """Return the change of the drop-in file."""
        key = self._key(own.path)
        record = self._dependencies.store.record(key)
        seen, target = Seen(_text(own)), own
        if record is not None:
            undo, target = self._dependencies.store.undo_target(key, own)
            seen = seen.with_record(record, undo, _text(target))
        if self.request.state == "absent":
            if record is None:
                return FileChange(key, own, own), Plan(seen.text, {})
            plan = plan_absent({}, seen, self._dependencies.parse)
            if seen.way is Undo.RESTORE:
                return FileChange(key, own, target, undo=True), plan
            is_empty = plan.text is not None and not plan.text.replace(HEAD, "").strip()
            return FileChange(
                key, own, _state(own, None if is_empty else plan.text), undo=True
            ), plan
        if not drop_in.settings and not seen.ours:
            return FileChange(key, own, own), Plan(seen.text, {})
        start = replace(seen, text=HEAD) if seen.text is None else seen
        plan = plan_present(drop_in.settings, start, self._dependencies.parse)
        details: Mapping[str, Any] = {"settings": dict(plan.ours), "tables": list(plan.tables)}
        return FileChange(key, own, _state(own, plan.text), details=details), plan

    def _check_default(self, seen: Effective) -> None:
        if seen.default is None or seen.default in seen.handlers:
            return
        self.warnings.append(
            f"The default runtime {seen.default!r} is in no file: CRI-O knows it only if it is "
            "built in."
        )

    def _restart_reason(
        self, daemon: Daemon, change: FileChange, files: tuple[ConfigFile, ...]
    ) -> str | None:
        if not daemon.active:
            return None
        if change.before.content != change.after.content:
            return f"{change.after.path} changes; the running {daemon.unit} has the old one."
        if daemon.started is None:
            return None
        folder = posixpath.dirname(self.request.drop_in_path)
        for path in (
            *(file.path for file in files if file.text is not None),
            folder,
            change.before.path,
        ):
            if changed_since(path, daemon.started):
                return f"{path} was changed after the running {daemon.unit} started."
        return None

    # -- writing -------------------------------------------------------------------------------

    def _apply(self, change: FileChange, restarting: bool, unloaded: bool) -> None:
        """Write and restart.

        :param unloaded: the drop-in file is newer than the running CRI-O.
        """
        handler = self.request.name if self.request.state == "present" else None
        service = Service(
            name="CRI-O",
            unit=self.settings.unit,
            run=self._dependencies.run,
            load=(lambda: self._restart(handler)) if restarting else None,
            load_restored=lambda: self._restart(None),
            # CRI-O does not start with a handler whose program is removed.
            keeps_undo=True,
        )
        change_runtime(
            self._dependencies.store,
            [change] if change.undo or change.before != change.after else [],
            service,
            unloaded=lambda: self._unloaded(change) if unloaded else [],
        )

    def _unloaded(self, change: FileChange) -> list[FileChange]:
        """Return how the drop-in file of an earlier run is undone that CRI-O has not loaded."""
        state = read_file(change.before.path)
        undo, before = self._dependencies.store.undo_target(change.key, state)
        return [replace(change, after=before, undo=True)] if undo is Undo.RESTORE else []

    def _restart(self, handler: str | None) -> None:
        restart_crio(self._dependencies.run, self.settings, handler)


def restart_crio(run: Runner, settings: Settings, handler: str | None = None) -> None:
    """Restart CRI-O and wait until it is ready and, if given, has the handler.

    :raises KubegpuError: it does not become ready in time.
    """
    unit = settings.unit

    def probe() -> CriStatus:
        info = run(
            ["crictl", f"--runtime-endpoint=unix://{settings.socket}", "--timeout=5s", "info"]
        )
        if info.rc == 127:
            return CriStatus(read_daemon(run, unit).active, message=f"{unit} does not run")
        return read_info(info.stdout) if info.ok else CriStatus(False, message=info.last_output())

    restart(run, unit, settings.restart_timeout)
    wait_until_ready(probe, handler, settings.restart_timeout)


def _state(own: FileState, text: str | None) -> FileState:
    return FileState(own.path) if text is None else replace(own, content=text.encode())


def _text(state: FileState) -> str | None:
    return None if state.content is None else state.content.decode()


def _show(content: bytes) -> str:
    return redact(content.decode())
