# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read, plan, validate, write, restart: one transaction on containerd's configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Callable

from ._command import Runner
from ._containerd import FileEdit, Node, Plan, Request, plan_present, verify
from ._containerd_config import (
    BUILTIN_IMPORTS,
    ConfigFile,
    Effective,
    Parser,
    Version,
    decode,
    disabled_cri,
    import_pattern,
    imports_path,
    load,
    meaning,
    parse_version,
    shadow,
    table,
)
from ._containerd_flavours import PLAIN, find_flavour
from ._containerd_undo import History, continued, plan_absent
from ._cri import Answer, ask, wait_until_ready
from ._errors import InputError, KubegpuError, RolledBackError
from ._files import (
    FileState,
    changed_since,
    glob_files,
    read_file,
    remove_leftovers,
    sha256,
    write_file,
)
from ._record import FileRecord, Undo
from ._service import Daemon, journal, read_daemon, restart
from ._state import StateStore
from ._toml import redact


@dataclass(frozen=True)
class Settings:
    """How the work is done, beside what is wanted."""

    flavour: str = "auto"
    containerd_version: str | None = None
    containerd_path: str | None = None
    unit: str = PLAIN.units[0]
    socket: str = PLAIN.socket
    validate: bool = True
    restart: bool = False
    restart_timeout: int = 60
    lock_timeout: float = 180.0


@dataclass(frozen=True)
class World:
    """What the transaction needs of the node. ``scratch`` is a folder of this run's own."""

    run: Runner
    parse: Parser
    store: StateStore
    scratch: str
    exists: Callable[[str], bool]


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


@dataclass(frozen=True)
class Step:
    """One file that changes. ``undo`` takes a recorded change back."""

    key: str
    before: FileState
    after: FileState
    undo: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Planned:
    """All that one run is about to do, and what containerd would then make of it."""

    steps: tuple[Step, ...]
    plan: Plan
    files: tuple[ConfigFile, ...]
    effective: Effective | None


class ContainerdRuntime:
    """One run of the module."""

    def __init__(self, request: Request, settings: Settings, world: World) -> None:
        self.request = request
        self.settings = settings
        self.world = world
        self.warnings: list[str] = []
        self._states: dict[str, FileState] = {}
        self._shadows = 0
        self._daemon: Daemon | None = None
        self._binary: str | None = None

    def __call__(self, check: bool) -> Outcome:
        self.request.check()
        check_flavour(self.settings, self.world.exists)
        if check:
            return self._work(check=True)
        with self.world.store.transaction(self.settings.lock_timeout):
            return self._work(check=False)

    def _work(self, check: bool) -> Outcome:
        self._daemon = read_daemon(self.world.run, self.settings.unit)
        version = self._version()
        self._check_daemon_config()
        if self.request.state == "present":
            self._check_runtime_path(check)
            planned = self._plan_present(version)
        else:
            planned = self._plan_absent(version)
        restart_required, reason = self._restart_state(planned, version)
        if not check:
            self._apply(planned, restart_required)
        restarted = self.settings.restart and restart_required
        if restarted:
            restart_required, reason = False, None
        return self._outcome(planned, restart_required, reason, restarted)

    # -- reading -------------------------------------------------------------------------------

    def _version(self) -> Version:
        given = self.settings.containerd_version
        command_line = self._daemon.command_line if self._daemon else ()
        candidates = (
            (self.settings.containerd_path,)
            if self.settings.containerd_path
            else (*command_line[:1], *PLAIN.binaries)
        )
        for candidate in candidates:
            answer = self.world.run([candidate, "--version"])
            if answer.ok:
                self._binary = candidate
                return parse_version(given or answer.stdout)
        if given and not self.settings.validate:
            return parse_version(given)
        raise KubegpuError(
            "containerd is not installed on this node, or its binary is somewhere else.",
            evidence="looked for " + ", ".join(str(candidate) for candidate in candidates),
            next_step="Install containerd first (this collection never does), or give the "
            "binary by containerd_path.",
        )

    def _check_daemon_config(self) -> None:
        used = config_argument(self._daemon.command_line if self._daemon else ())
        if used is not None and used != self.request.config_path:
            self.warnings.append(
                f"The running containerd was started with --config {used}, so "
                f"{self.request.config_path} has no effect on it: set config_path."
            )

    def _check_runtime_path(self, check: bool) -> None:
        path = self.request.runtime_path
        if self.world.exists(path):
            return
        if self.request.set_default and not check:
            raise InputError(
                f"{path} does not exist, so making {self.request.name} the default runtime would "
                "keep every pod of this node from starting.",
                next_step="Install the NVIDIA container toolkit first, or correct runtime_path.",
            )
        self.warnings.append(f"{path} does not exist yet: the handler works once it does.")

    def _state(self, path: str) -> FileState:
        state = read_file(path)
        return self._states.setdefault(state.path, state)

    def _load(
        self,
        version: Version,
        builtin: tuple[str, ...] = (),
        overlay: Mapping[str, bytes | None] | None = None,
    ) -> tuple[ConfigFile, ...]:
        """Return the files as they stand, or as they would with ``overlay`` (by real path)."""
        new = overlay or {}
        drop_in = self.request.drop_in_path

        def read(path: str) -> tuple[str, bytes | None]:
            state = self._state(path)
            return state.path, new.get(state.path, state.content)

        def glob(pattern: str) -> Iterable[str]:
            found = set(glob_files(pattern))
            real = self._state(drop_in).path
            if new.get(real) is not None and _imported(pattern, drop_in, version):
                found.add(drop_in)
            return [path for path in found if new.get(self._state(path).path, b"") is not None]

        return load(self.request.config_path, read, glob, self.world.parse, version, builtin)

    def _node(self, version: Version) -> Node:
        drop_in = self._state(self.request.drop_in_path)
        builtin: tuple[str, ...] = ()
        if version >= BUILTIN_IMPORTS and self._binary and self.settings.validate:
            answer = self.world.run([self._binary, "config", "default"])
            if answer.ok:
                imports = self.world.parse(answer.stdout).get("imports") or ()
                builtin = tuple(str(pattern) for pattern in imports)
        files = self._load(version, builtin)
        earlier = {
            record.path: History.from_json(record.details).changes
            for record in self._records().values()
        }
        return Node(
            version=version,
            files=files,
            drop_in=decode(drop_in.path, drop_in.content, self.world.parse),
            builtin_imports=builtin,
            earlier=earlier,
        )

    def _key(self, path: str) -> str:
        return f"containerd_runtime:{self.request.name}:{path}"

    def _records(self) -> dict[str, FileRecord]:
        return self.world.store.records(self._key(""))

    def _dump(self, files: tuple[ConfigFile, ...]) -> Effective:
        """Return what the installed containerd makes of the files."""
        binary = str(self._binary)
        if all(file.text is None for file in files):
            answer = self.world.run([binary, "config", "default"])
        else:
            self._shadows += 1
            copies = shadow(files, f"{self.world.scratch}/kubegpu-{self._shadows}")
            for path, text in copies.items():
                write_file(FileState(path, text.encode(), 0o600))
            answer = self.world.run([binary, "--config", next(iter(copies)), "config", "dump"])
        if not answer.ok:
            raise KubegpuError(
                "containerd cannot load the configuration.",
                evidence=redact_words(answer.words()),
                next_step=f"Look at: containerd --config {self.request.config_path} config dump",
            )
        return Effective(self.world.parse(answer.stdout))

    # -- planning ------------------------------------------------------------------------------

    def _plan_present(self, version: Version) -> Planned:
        node = self._node(version)
        if self.settings.validate:
            try:
                node = replace(node, effective=self._dump(node.files))
            except KubegpuError as error:
                raise KubegpuError(
                    f"containerd cannot load {self.request.config_path} as it stands; nothing "
                    "was written.",
                    evidence=error.evidence,
                    next_step="Correct the file first: the running containerd would not come "
                    "back from a restart either.",
                ) from error
        plan = plan_present(self.request, node, self.world.parse)
        steps = tuple(self._write_step(edit) for edit in plan.edits)
        return self._validated(node, plan, steps)

    def _write_step(self, edit: FileEdit) -> Step:
        before = self._states[edit.path]
        key = self._key(edit.path)
        record = self.world.store.record(key)
        earlier = None if record is None else History.from_json(record.details)
        history = continued(
            earlier,
            edit,
            foreign=record is not None and not record.continues(before.sha256),
            fresh=record is not None and before.sha256 == record.before_sha256,
        )
        after = replace(before, content=(edit.after or "").encode())
        return Step(key, before, after, details=history.to_json())

    def _plan_absent(self, version: Version) -> Planned:
        node = self._node(version)
        known = {file.path for file in (*node.files, node.drop_in)}
        restored: dict[str, FileState] = {}
        histories: dict[str, History] = {}
        undone: list[str] = []
        for key, record in self._records().items():
            if record.path not in known:
                self.warnings.append(
                    f"An earlier run also changed {record.path}, which containerd does not load "
                    "from here: give its config_path to undo that."
                )
                continue
            undone.append(key)
            way, target = self.world.store.undo_target(key, self._states[record.path])
            if way is Undo.RESTORE:
                restored[record.path] = target
            elif way is Undo.REMOVE_LINES:
                histories[record.path] = History.from_json(
                    record.details, shared=bool(self._neighbours(key))
                )
        overlay = {path: state.content for path, state in restored.items()}
        rest = replace(
            node,
            files=tuple(self._overlaid(file, overlay) for file in node.files),
            drop_in=self._overlaid(node.drop_in, overlay),
        )
        plan = plan_absent(self.request, rest, histories, self.world.parse, bool(undone))
        edits = {edit.path: edit for edit in plan.edits}
        steps = []
        for path in sorted({*restored, *edits}, key=lambda path: path != node.root.path):
            before = self._states[path]
            if path in restored:
                after = restored[path]
            else:
                text = edits[path].after
                content = None if text is None else text.encode()
                after = replace(before, content=content) if text is not None else FileState(path)
            steps.append(Step(self._key(path), before, after, undo=True))
        for key in undone:
            if key not in {step.key for step in steps}:
                state = self._states[self._records()[key].path]
                steps.append(Step(key, state, state, undo=True))
        reasons = [f"{path} is put back to what it was." for path in restored]
        plan = replace(plan, reasons=(*reasons, *plan.reasons))
        return self._validated(node, plan, tuple(steps))

    def _overlaid(self, file: ConfigFile, overlay: Mapping[str, bytes | None]) -> ConfigFile:
        if file.path not in overlay:
            return file
        return decode(file.path, overlay[file.path], self.world.parse)

    def _neighbours(self, key: str) -> dict[str, FileRecord]:
        """Return the records of our other handlers in the same file."""
        path = key.split(":", 2)[2]
        return {
            other: record
            for other, record in self.world.store.records("containerd_runtime:").items()
            if other != key and record.path == path
        }

    def _validated(self, node: Node, plan: Plan, steps: tuple[Step, ...]) -> Planned:
        changed = {
            step.after.path: step.after.content
            for step in steps
            if step.after.content != step.before.content
        }
        files = self._load(node.version, node.builtin_imports, changed) if changed else node.files
        if not self.settings.validate:
            return Planned(steps, plan, files, None)
        before = node.effective
        if before is None:
            try:
                before = self._dump(node.files)
            except KubegpuError as error:
                self.warnings.append(f"The configuration as it stands cannot be loaded: {error}")
        if not changed:
            return Planned(steps, plan, files, before)
        after = self._dump(files)
        if self.request.state == "absent" and after.default not in after.runtimes:
            self.warnings.append(
                f"The default runtime is {after.default!r}, as it was before this module came, and "
                "does not exist: correct default_runtime_name."
            )
        if before is not None:
            verify(self.request, plan, before, after)
        return Planned(steps, plan, files, after)

    # -- writing -------------------------------------------------------------------------------

    def _apply(self, planned: Planned, restart_required: bool) -> None:
        store = self.world.store
        done: list[tuple[Step, FileRecord | None]] = []
        try:
            for step in planned.steps:
                if read_file(step.before.path) != step.before:
                    raise KubegpuError(
                        f"{step.before.path} was changed by somebody else during this run.",
                        next_step="Run again.",
                    )
                done.append((step, store.record(step.key)))
                if step.undo:
                    if step.after != step.before:
                        remove_leftovers(step.after.path)
                        write_file(step.after)
                else:
                    store.write_recorded(step.key, step.before, step.after, dict(step.details))
            if any(not step.undo for step in planned.steps):
                self._check_written(planned)
            if self.settings.restart and restart_required:
                self._restart(planned)
        except BaseException as error:
            self._roll_back(done, error)
            raise
        for step in planned.steps:
            if step.undo:
                self._finish_undo(step)
        if self.request.state == "absent" and not store.records("containerd_runtime:"):
            store.drop(self._loaded_key())

    def _roll_back(self, done: list[tuple[Step, FileRecord | None]], error: BaseException) -> None:
        restarted = isinstance(error, _RestartFailed)
        if not done and restarted:
            done = self._unfinished()
        for step, earlier in reversed(done):
            if step.undo:
                if step.after != step.before:
                    write_file(step.before)
            else:
                self.world.store.take_back(step.key, step.before, earlier)
        if not isinstance(error, _RestartFailed):
            return
        if not done:
            raise KubegpuError(
                f"containerd did not come back: {error.cause}",
                evidence=error.evidence,
                next_step=f"Look at: journalctl --unit {self.settings.unit}. This run changed no "
                "file, so there was nothing to put back.",
            ) from error
        again = "containerd runs again with it."
        try:
            restart(self.world.run, self.settings.unit, self.settings.restart_timeout)
            self._wait(None)
        except KubegpuError as second:
            again = f"containerd still does not run: {second.cause} {second.evidence}"
        raise RolledBackError(
            f"containerd did not come back with the new configuration: {error.cause} The old "
            f"configuration was put back; {again}",
            evidence=error.evidence,
            next_step=f"Look at: journalctl --unit {self.settings.unit}",
        ) from error

    def _unfinished(self) -> list[tuple[Step, FileRecord | None]]:
        """Return what a run before this one wrote and never saw loaded."""
        found: list[tuple[Step, FileRecord | None]] = []
        for key, record in self._records().items():
            state = read_file(record.path)
            way, before = self.world.store.undo_target(key, state)
            if way is Undo.RESTORE:
                found.append((Step(key, before, state), None))
        return found

    def _finish_undo(self, step: Step) -> None:
        """Drop the record; the file's other handlers of ours go on from what is there now."""
        store = self.world.store
        gone = store.record(step.key)
        if gone is not None:
            text = None if step.after.content is None else step.after.content.decode()
            for key, other in self._neighbours(step.key).items():
                record, history = other, History.from_json(other.details)
                if record.before_sha256 == gone.after_sha256:
                    first = History.from_json(gone.details)
                    history = replace(history, base=first.base)
                    record = replace(
                        record,
                        before_sha256=gone.before_sha256,
                        before_mode=gone.before_mode,
                        before_uid=gone.before_uid,
                        before_gid=gone.before_gid,
                        before_selinux=gone.before_selinux,
                        backup=gone.backup,
                        edited=record.edited or gone.edited,
                        made_directories=gone.made_directories + record.made_directories,
                    )
                if record.after_sha256 == step.before.sha256:
                    history = replace(history, ours=text)
                    record = replace(record, after_sha256=step.after.sha256)
                store.put_record(key, replace(record, details=history.to_json()))
        store.forget(step.key)

    def _check_written(self, planned: Planned) -> None:
        """Ask the real binary about the real files, imports and all."""
        if not self.settings.validate or _cri_off(planned.files):
            return
        answer = self.world.run(
            [str(self._binary), "--config", self.request.config_path, "config", "dump"]
        )
        known = Effective(self.world.parse(answer.stdout)).runtimes if answer.ok else {}
        if self.request.name not in known:
            raise KubegpuError(
                f"containerd does not see the handler {self.request.name} in the files that were "
                "written; they were put back.",
                evidence=redact_words(answer.words())
                if not answer.ok
                else f"it sees {', '.join(known)}",
                next_step="Use layout: in_place, or check imports in the configuration.",
            )

    # -- restarting ----------------------------------------------------------------------------

    def _loaded_key(self) -> str:
        return f"loaded:{self.settings.unit}:{self.request.config_path}"

    @staticmethod
    def _digest(files: tuple[ConfigFile, ...]) -> str:
        parts = (f"{file.path}\0{file.text}" for file in files if file.text is not None)
        return sha256("\0".join(parts).encode())

    def _restart_state(self, planned: Planned, version: Version) -> tuple[bool, str | None]:
        daemon = self._daemon
        unit = self.settings.unit
        if daemon is None or not daemon.exists:
            return False, f"There is no unit {unit} on this node, so there is nothing to restart."
        if not daemon.active:
            return False, f"{unit} is not running: it reads the file when it starts."
        for step in planned.steps:
            if step.after.content != step.before.content:
                return True, f"{step.after.path} changes; the running {unit} has the old one."
        loaded = {"process": daemon.identity, "sha256": self._digest(planned.files)}
        if self.world.store.get(self._loaded_key()) == loaded or daemon.started is None:
            return False, None
        for path in self._watched(planned.files, version):
            if changed_since(path, daemon.started):
                return True, f"{path} was changed after the running {unit} started."
        return False, None

    def _watched(self, files: tuple[ConfigFile, ...], version: Version) -> list[str]:
        """Return what tells by its change time that the configuration changed.

        A file that is gone shows by its folder, where that holds nothing but configuration.
        """
        paths = [file.path for file in files if file.text is not None]
        root = files[0]
        if root.text is None:
            paths.append(_folder(root.path))
        for pattern in root.data.get("imports") or ():
            full = import_pattern(self.request.config_path, str(pattern), version)
            if "*" in full:
                paths.append(_folder(full))
        return paths

    def _restart(self, planned: Planned) -> None:
        unit = self.settings.unit
        try:
            restart(self.world.run, unit, self.settings.restart_timeout)
            handler = self.request.name if self.request.state == "present" else None
            self._wait(None if _cri_off(planned.files) else handler, _cri_off(planned.files))
        except KubegpuError as error:
            raise _RestartFailed(
                error.cause,
                evidence="\n".join(
                    words
                    for words in (error.evidence, journal(self.world.run, unit))
                    if words and words != "-- No entries --"
                ),
            ) from error
        if self.request.state == "present":
            daemon = read_daemon(self.world.run, unit)
            self.world.store.put(
                self._loaded_key(),
                {"process": daemon.identity, "sha256": self._digest(planned.files)},
            )

    def _wait(self, handler: str | None, cri_off: bool = False) -> None:
        run, socket = self.world.run, self.settings.socket

        def question() -> Answer:
            if cri_off:
                version = run(["ctr", "--address", socket, "--timeout=5s", "version"], timeout=10)
                return Answer(version.ok, words=version.words())
            return ask(run, socket)

        wait_until_ready(question, handler, self.settings.restart_timeout)

    # -- telling -------------------------------------------------------------------------------

    def _outcome(
        self, planned: Planned, restart_required: bool, reason: str | None, restarted: bool
    ) -> Outcome:
        changed = [
            step
            for step in planned.steps
            if step.after.content != step.before.content or step.after.mode != step.before.mode
        ]
        backups = [
            record.backup for record in self._records().values() if record.backup is not None
        ]
        effective = planned.effective
        warnings = [*self.warnings, *planned.plan.warnings]
        return Outcome(
            changed=bool(changed) or restarted,
            restart_required=restart_required,
            restart_reason=reason,
            restarted=restarted,
            default_runtime=None if effective is None else effective.default,
            handlers=_handlers(effective.runtimes if effective else {}),
            backup_file=backups[0] if backups else None,
            diff=[_diff(step) for step in changed],
            reasons=[*planned.plan.reasons, *warnings],
            warnings=warnings,
        )


class _RestartFailed(KubegpuError):
    """containerd did not come back from a restart."""


def check_flavour(settings: Settings, exists: Callable[[str], bool]) -> None:
    """Refuse a node whose Kubernetes brings a containerd that is configured elsewhere."""
    if settings.flavour == "containerd":
        return
    found, sign = settings.flavour, "the option flavour"
    if found == "auto":
        flavour, sign = find_flavour(exists)
        if flavour is PLAIN:
            return
        found = flavour.name
    raise KubegpuError(
        f"The containerd of {found} is configured in another way, which this release cannot do.",
        evidence=sign,
        next_step=f"Configure the handler by {found}'s own means. If a plain containerd on this "
        "node is meant, say flavour: containerd.",
    )


def config_argument(command_line: tuple[str, ...]) -> str | None:
    """Return the file of ``--config`` on a daemon's command line."""
    for index, argument in enumerate(command_line):
        for option in ("--config", "-config", "-c", "--c"):
            if argument == option:
                return command_line[index + 1] if index + 1 < len(command_line) else None
            if argument.startswith(f"{option}="):
                return argument.partition("=")[2]
    return None


def redact_words(words: str) -> str:
    """Return what a command said without lines that could hold a credential."""
    secret = ("password", "auth", "token", "secret")
    return "\n".join(
        line for line in words.splitlines() if not any(word in line.lower() for word in secret)
    )


def _imported(pattern: str, path: str, version: Version) -> bool:
    return imports_path(ConfigFile("", "", {"imports": [pattern]}), "/", path, version)


def _cri_off(files: tuple[ConfigFile, ...]) -> bool:
    return any(disabled_cri(file.data) for file in files)


def _folder(path: str) -> str:
    return path.rpartition("/")[0] or "/"


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


def _diff(step: Step) -> dict[str, str]:
    def side(state: FileState) -> tuple[str, str]:
        if state.content is None:
            return "", f"{step.after.path} (absent)"
        return redact(state.content.decode("utf-8", "replace")), step.after.path

    before, before_header = side(step.before)
    after, after_header = side(step.after)
    return {
        "before": before,
        "after": after,
        "before_header": before_header,
        "after_header": after_header,
    }
