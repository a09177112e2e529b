# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read, plan, validate, write, restart: one transaction on containerd's configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Callable

from .._core.errors import InputError, KubegpuError, RolledBackError
from .._core.redact import changed_parts, is_secret, redact_lines
from .._formats.toml_edit import redact
from .._host.command import Runner
from .._host.files import (
    FileState,
    changed_since,
    glob_files,
    read_file,
    remove_leftovers,
    sha256,
    write_file,
)
from .._host.fingerprint import file_signature
from .._host.systemd import Daemon, journal, read_daemon, restart
from .._record import converged as _settled
from .._record.file_record import FileRecord, Undo
from .._record.store import StateStore
from .._runtime.config_file import ConfigFile, Parser, decode, table
from .._runtime.cri import Answer, ask, wait_until_ready
from .config import (
    BUILTIN_IMPORTS,
    CRI_TABLE,
    Effective,
    Version,
    disabled_cri,
    import_pattern,
    imports_path,
    load,
    meaning,
    parse_version,
    shadow,
)
from .distributions import (
    BEGIN,
    END,
    FLAVOURS,
    PLAIN,
    Flavour,
    asked_by,
    check_marked,
    filled_in,
    find_flavour,
    has_base_template,
    made_by_itself,
    marked,
    unit_in_use,
    with_mark,
)
from .dump import read_effective
from .placement import Way, as_generated, as_rendered, find_way
from .plan import (
    FileEdit,
    Node,
    Plan,
    Request,
    completed_runtimes,
    plan_present,
    refuse_twice,
    verify,
)
from .undo import History, continued, neighbour_without, plan_absent


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
    restart_timeout: int = PLAIN.restart_timeout
    lock_timeout: float = 180.0
    #: The caller's name for all that it asks, by which the facts tell that it is done.
    wish: str = ""
    flavours: tuple[Flavour, ...] = FLAVOURS


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
        # The files and folders that the answer depends on, as they were before they were read.
        self._marks: dict[str, str | None] = {}
        self._shadows = 0
        self._daemon: Daemon | None = None
        self._binary: str | None = None
        self._version_words = ""
        self._way = Way(chosen_flavour(settings, world.exists))

    def __call__(self, check: bool) -> Outcome:
        self.request.check()
        self.request, self.settings = at_home(
            self._way.flavour, self.request, self.settings, self._unit
        )
        if check:
            return self._work(check=True)
        with self.world.store.transaction(self.settings.lock_timeout):
            return self._work(check=False)

    def _unit(self) -> str:
        """Return the unit of the flavour that this node has, and uses."""
        units = self._way.flavour.units
        daemons = [read_daemon(self.world.run, unit) for unit in units]
        return unit_in_use({one.unit: one.active for one in daemons if one.exists}) or units[0]

    def _read_daemon(self) -> Daemon:
        return read_daemon(self.world.run, self.settings.unit, self._way.flavour.pid_file)

    def _work(self, check: bool) -> Outcome:
        self._daemon = self._read_daemon()
        version = self._version()
        self._check_daemon_config()
        self._find_way(version)
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
        outcome = self._outcome(planned, restart_required, reason, restarted)
        if not check:
            self._settle(planned, version, outcome)
        return outcome

    # -- reading -------------------------------------------------------------------------------

    def _version(self) -> Version:
        given = self.settings.containerd_version
        flavour = self._way.flavour
        # The units of the others run something else, which brings a containerd.
        running = self._daemon.command_line[:1] if self._daemon and flavour is PLAIN else ()
        candidates = (
            (self.settings.containerd_path,)
            if self.settings.containerd_path
            else (*running, *flavour.binaries)
        )
        for candidate in candidates:
            answer = self.world.run([candidate, "--version"])
            if answer.ok:
                self._binary, self._version_words = candidate, answer.stdout
                return parse_version(given or answer.stdout)
        if given and not self.settings.validate:
            return parse_version(given)
        raise KubegpuError(
            "containerd is not installed on this node, or its binary is somewhere else.",
            evidence="looked for " + ", ".join(str(candidate) for candidate in candidates),
            next_step="Install containerd first (this collection never does), or give the "
            "binary by containerd_path.",
        )

    def _find_way(self, version: Version) -> None:
        """Find out where a distribution's containerd takes settings from."""
        flavour, path = self._way.flavour, self.request.config_path
        if flavour.generated is None:
            return
        content = self._state(path).content
        if content is None and self.request.state == "absent":
            return
        if content is None:
            raise KubegpuError(
                f"{flavour.name} has not written {path} yet.",
                evidence="no such file",
                next_step=f"Start {self.settings.unit} once, then run again.",
            )
        if not re.match(flavour.generated, content.decode("utf-8", "replace")):
            # Its first line was taken out: from there on it is the admin's own.
            return
        root = decode(path, content, self.world.parse)
        way = find_way(flavour, root, version, lambda name: self._state(name).content, self.request)
        self.request = replace(self.request, drop_in_path=way.own_path, layout="drop_in")
        own = self._state(way.own_path)
        self._way = replace(way, own_path=own.path)
        if way.template and self.request.state == "present":
            self._check_template(own)

    def _check_template(self, own: FileState) -> None:
        """Refuse a template that cannot be edited, or begun."""
        flavour = self._way.flavour
        if own.content is not None:
            check_marked(own.path, own.content.decode("utf-8", "replace"))
        else:
            answers = [
                self.world.run([program, "--version"])
                for program in flavour.programs
                if self.world.exists(program)
            ]
            words = " ".join(answer.stdout for answer in answers if answer.ok)
            if not has_base_template(words):
                raise KubegpuError(
                    f"This {flavour.name} has no template 'base' that {own.path} could begin "
                    "with, or its version cannot be told.",
                    evidence=words.strip() or "looked for " + ", ".join(flavour.programs),
                    next_step=f"Upgrade {flavour.name}, or write that template yourself with the "
                    f"lines {BEGIN!r} and {END!r} at its end.",
                )

    def _check_daemon_config(self) -> None:
        if self._way.flavour is not PLAIN:
            return
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

    def _marked(self, path: str) -> str:
        self._marks.setdefault(path, file_signature(path))
        return path

    def _state(self, path: str) -> FileState:
        state = read_file(self._marked(path))
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
            self._marked(_folder(pattern))
            found = set(glob_files(pattern))
            real = self._state(drop_in).path
            if new.get(real) is not None and _imported(pattern, drop_in, version):
                found.add(drop_in)
            return [path for path in found if new.get(self._state(path).path, b"") is not None]

        files = load(self.request.config_path, read, glob, self.world.parse, version, builtin)
        if not self._way.generated:
            return files
        own = self._state(self.request.drop_in_path)
        return as_generated(
            self._way,
            files,
            self._own_file(new.get(own.path, own.content)),
            self.world.parse,
            self._made_by_itself() if self.request.state == "present" else None,
        )

    def _own_file(self, content: bytes | None) -> ConfigFile:
        """Return the file of our own, which may be the marked place of a template."""
        path = self._state(self.request.drop_in_path).path
        if not self._way.template:
            return decode(path, content, self.world.parse)
        block = marked(None if content is None else content.decode())
        part = decode(path, None if block is None else block.encode(), self.world.parse)
        return replace(part, part=True)

    def _text(self, path: str, content: bytes | None) -> str | None:
        """Return what of a file is ours to edit."""
        if content is None:
            return None
        if self._way.template and path == self._way.own_path:
            return marked(content.decode())
        return content.decode()

    def _content(self, path: str, before: bytes | None, text: str | None) -> bytes | None:
        """Return the file with ``text`` as our part of it."""
        if self._way.template and path == self._way.own_path:
            text = with_mark(path, None if before is None else before.decode(), text)
        return None if text is None else text.encode()

    def _made_by_itself(self) -> str | None:
        """Return the program of the handler that the distribution makes itself."""
        return made_by_itself(self._way.flavour, self.request.name, self.world.exists)

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
        every = tuple(
            change
            for record in self.world.store.records("containerd_runtime:").values()
            for change in History.from_json(record.details).changes
        )
        return Node(
            version=version,
            files=files,
            drop_in=self._own_file(drop_in.content),
            builtin_imports=builtin,
            merged=self._way.merged,
            earlier=earlier,
            every=every,
        )

    def _key(self, path: str) -> str:
        return f"containerd_runtime:{self.request.name}:{path}"

    def _records(self) -> dict[str, FileRecord]:
        return self.world.store.records(self._key(""))

    def _dump(self, files: tuple[ConfigFile, ...]) -> Effective:
        """Return what the installed containerd makes of the files."""
        binary = str(self._binary)
        files = as_rendered(self._way, files, self.world.parse)
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
        for edit in plan.edits:
            if self._way.template:
                part = decode(edit.path, (edit.after or "").encode(), self.world.parse)
                refuse_twice(self._way.flavour.name, node.root, part, node.drop_in)
        steps = tuple(self._write_step(edit) for edit in plan.edits)
        return self._validated(node, plan, steps)

    def _write_step(self, edit: FileEdit) -> Step:
        before = self._states[edit.path]
        key = self._key(edit.path)
        record = self.world.store.record(key)
        earlier = None if record is None else History.from_json(record.details)
        twin = self._in_step(key, before)
        if record is None and twin is not None:
            # Both go back to the file from before the first of them.
            earlier = replace(History.from_json(twin.details), changes=())
        history = continued(
            earlier,
            edit,
            foreign=record is not None and not record.continues(before.sha256),
            fresh=record is not None and before.sha256 == record.before_sha256,
        )
        content = self._content(edit.path, before.content, edit.after or "")
        after = replace(before, content=content)
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
            shared = bool(self._neighbours(key))
            if way is Undo.RESTORE and not shared:
                restored[record.path] = target
            elif way is not Undo.NOTHING:
                histories[record.path] = History.from_json(record.details, shared=shared)
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
                content = self._content(path, before.content, edits[path].after)
                after = FileState(path) if content is None else replace(before, content=content)
            steps.append(Step(self._key(path), before, after, undo=True))
        for key in undone:
            if key not in {step.key for step in steps}:
                state = self._states[self._records()[key].path]
                steps.append(Step(key, state, state, undo=True))
        reasons = [f"{path} is put back to what it was." for path in restored]
        plan = replace(plan, reasons=(*reasons, *plan.reasons))
        return self._validated(node, plan, tuple(steps), restored=not edits)

    def _overlaid(self, file: ConfigFile, overlay: Mapping[str, bytes | None]) -> ConfigFile:
        if file.path not in overlay:
            return file
        if file.path == self._state(self.request.drop_in_path).path:
            return self._own_file(overlay[file.path])
        return decode(file.path, overlay[file.path], self.world.parse)

    def _neighbours(self, key: str) -> dict[str, FileRecord]:
        """Return the records of our other handlers in the same file."""
        path = key.split(":", 2)[2]
        return {
            other: record
            for other, record in self.world.store.records("containerd_runtime:").items()
            if other != key and record.path == path
        }

    def _in_step(self, key: str, state: FileState) -> FileRecord | None:
        """Return another handler's record of the file which nobody edited since."""
        return next(
            (
                record
                for record in self._neighbours(key).values()
                if record.after_sha256 == state.sha256
            ),
            None,
        )

    def _follow(self, record: FileRecord, step: Step) -> FileRecord:
        """Return a record of the step's file, where it was in step, as it is after the step."""
        if record.after_sha256 != step.before.sha256:
            return record
        text = self._text(step.after.path, step.after.content)
        history = replace(History.from_json(record.details), ours=text)
        return replace(
            record,
            from_sha256=step.before.sha256,
            after_sha256=step.after.sha256,
            details=history.to_json(),
        )

    def _validated(
        self, node: Node, plan: Plan, steps: tuple[Step, ...], *, restored: bool = False
    ) -> Planned:
        """Return what would be done, after containerd was asked what it means.

        :param restored: whether the files come back as they were before us.
        """
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
            completed = completed_runtimes(node.every)
            verify(self.request, plan, before, after, completed, restored)
        return Planned(steps, plan, files, after)

    # -- writing -------------------------------------------------------------------------------

    def _apply(self, planned: Planned, restart_required: bool) -> None:
        store = self.world.store
        done: list[_Done] = []
        try:
            for step in planned.steps:
                if read_file(step.before.path) != step.before:
                    raise KubegpuError(
                        f"{step.before.path} was changed by somebody else during this run.",
                        next_step="Run again.",
                    )
                neighbours = self._neighbours(step.key)
                done.append(_Done(step, store.record(step.key), neighbours))
                if step.undo:
                    if step.after != step.before:
                        remove_leftovers(step.after.path)
                        write_file(step.after)
                else:
                    twin = self._in_step(step.key, step.before)
                    for key, record in neighbours.items():
                        store.put_record(key, self._follow(record, step))
                    details = dict(step.details)
                    store.write_recorded(step.key, step.before, step.after, details, twin)
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

    def _roll_back(self, done: list[_Done], error: BaseException) -> None:
        restarted = isinstance(error, _RestartFailed)
        if not done and restarted:
            done = self._unfinished()
        for one in reversed(done):
            step = one.step
            if step.undo:
                if step.after != step.before:
                    write_file(step.before)
            else:
                self.world.store.take_back(step.key, step.before, one.earlier)
                for key, record in one.neighbours.items():
                    self.world.store.put_record(key, record)
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

    def _unfinished(self) -> list[_Done]:
        """Return what a run before this one wrote and never saw loaded."""
        found: list[_Done] = []
        for key, record in self._records().items():
            state = read_file(record.path)
            way, before = self.world.store.undo_target(key, state)
            # With another handler of ours in it, the file from before them is no way back.
            if way is Undo.RESTORE and not self._neighbours(key):
                found.append(_Done(Step(key, before, state)))
        return found

    def _finish_undo(self, step: Step) -> None:
        """Drop the record; the file's other handlers of ours go on from what is there now."""
        store, parse = self.world.store, self.world.parse
        gone = store.record(step.key)
        if gone is not None:
            first = History.from_json(gone.details)
            for key, other in self._neighbours(step.key).items():
                record = self._follow(other, step)
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
        if not self.settings.validate or _cri_off(planned.files) or self._pending(planned.files):
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
        pending = self._pending(planned.files)
        if pending:
            return True, pending
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
        # What a distribution writes when it starts is newer than that start.
        paths = [file.path for file in files if file.text is not None and not file.generated]
        if self._way.merged and not self._way.template:
            paths.append(_folder(self.request.drop_in_path))
        root = files[0]
        if root.text is None:
            paths.append(_folder(root.path))
        for pattern in root.data.get("imports") or ():
            full = import_pattern(self.request.config_path, str(pattern), version)
            if "*" in full:
                paths.append(_folder(full))
        return paths

    def _pending(self, files: tuple[ConfigFile, ...]) -> str | None:
        """Return why the distribution has to start anew before the handler is there.

        That is judged by what it wrote when it started the last time.
        """
        way, name = self._way, self.request.name
        if not way.generated or self.request.state == "absent":
            return None
        path = ("plugins", CRI_TABLE[files[0].version], "containerd", "runtimes", name)
        for written in files:
            content = self._state(written.path).content if written.generated else None
            if content and table(decode(written.path, content, self.world.parse).data, path):
                return None
        ours = any(table(file.data, path) for file in files if not file.generated)
        if ours:
            why = f"{way.flavour.name} puts the handler {name} into its configuration at a start."
            return why if way.merged else None
        program = self._made_by_itself()
        if program is None or not self.world.exists(program):
            return None
        return f"{way.flavour.name} makes the handler {name} itself when it starts: of {program}."

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
            daemon = self._read_daemon()
            self.world.store.put(
                self._loaded_key(),
                {"process": daemon.identity, "sha256": self._digest(planned.files)},
            )

    def _wait(self, handler: str | None, cri_off: bool = False) -> None:
        run, socket, flavour = self.world.run, self.settings.socket, self._way.flavour
        ctr = asked_by(flavour, self.world.exists)

        def question() -> Answer:
            if cri_off:
                version = run([*ctr, "--address", socket, "--timeout=5s", "version"], timeout=10)
                return Answer(version.ok, words=version.words())
            return ask(run, socket, flavour.crictl, ctr)

        wait_until_ready(question, handler, self.settings.restart_timeout)

    def _settle(self, planned: Planned, version: Version, outcome: Outcome) -> None:
        """Note that nothing was left to do, or that something is.

        Only by a run that changed nothing: what was read then is what stands there.
        """
        request, store, daemon = self.request, self.world.store, self._daemon
        key = _settled.key("containerd", request.name)
        binary = self._binary or ""
        left = outcome.changed or outcome.restart_required or outcome.warnings
        process = daemon.identity if daemon else None
        known = process and binary[:1] == "/"
        if left or not known or request.state != "present":
            store.drop(key)
            return
        if not self.settings.wish:
            # Nothing was changed, so what somebody else was told here still stands.
            return
        for path in (
            *(binary, request.config_path, request.drop_in_path, request.runtime_path),
            *self._watched(planned.files, version),
            *filter(None, [self._made_by_itself()]),
        ):
            self._marked(path)
        owner = self._way.flavour.name
        bare = (self.settings.wish, owner, process, self._marks)
        if _settled.without_words(store.get(key)) != _settled.note(*bare):
            # Asked for after the marks were taken: what changes meanwhile breaks one.
            store.put(key, _settled.note(*bare, self._words(binary)))

    def _words(self, binary: str) -> dict[str, Any] | None:
        """Return what containerd itself makes of its files, as the facts would find it."""
        path = self.request.config_path
        choice = ["--config", path] if self.world.exists(path) else []
        answer = self.world.run([binary, *choice, "config", "dump"])
        try:
            text = filled_in(answer.stdout, self._way.flavour.variables) if answer.ok else ""
            return {"version": self._version_words, **read_effective(text)} if text else None
        except ValueError:
            return None

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
            diff=[_diff(step, self._way.template) for step in changed],
            reasons=[*planned.plan.reasons, *warnings],
            warnings=warnings,
        )


@dataclass(frozen=True)
class _Done:
    """A step that was taken, and what was recorded before it: its own, and of the other handlers
    in the same file."""

    step: Step
    earlier: FileRecord | None = None
    neighbours: Mapping[str, FileRecord] = field(default_factory=dict)


class _RestartFailed(KubegpuError):
    """containerd did not come back from a restart."""


def chosen_flavour(settings: Settings, exists: Callable[[str], bool]) -> Flavour:
    """Return whose containerd is meant: the one that is named, or the one that is there."""
    if settings.flavour == "auto":
        return find_flavour(exists, settings.flavours)[0]
    known = (PLAIN, *settings.flavours)
    return next(flavour for flavour in known if flavour.name == settings.flavour)


def at_home(
    flavour: Flavour, request: Request, settings: Settings, unit: Callable[[], str]
) -> tuple[Request, Settings]:
    """Return both with the flavour's own places, where plain containerd's defaults stand."""
    if flavour is PLAIN:
        return request, settings
    if request.config_path == PLAIN.config_path:
        request = replace(request, config_path=flavour.config_path)
    if settings.unit == PLAIN.units[0]:
        settings = replace(settings, unit=unit())
    if settings.socket == PLAIN.socket:
        settings = replace(settings, socket=flavour.socket)
    if settings.restart_timeout == PLAIN.restart_timeout:
        settings = replace(settings, restart_timeout=flavour.restart_timeout)
    return request, settings


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
    return "\n".join(
        line for line in words.splitlines() if not any(map(is_secret, _NAME.findall(line)))
    )


_NAME = re.compile(r"[\w.-]+")


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


def _diff(step: Step, template: bool = False) -> dict[str, str]:
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
