# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans the changes of one run and validates them with the installed containerd."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from .._core.errors import KubegpuError
from .._host.files import FileState
from .._record.file_record import Undo
from .._record.transaction import FileChange
from .._runtime.config_file import ConfigFile, decode
from .config import Effective
from .data import Version
from .host import Host
from .plan import plan_present
from .record import HandlerRecord, extend_record
from .types import FileEdit, Plan, State
from .undo import plan_absent, record_without
from .verify import completed_runtimes, refuse_duplicate_tables, verify
from .voided import Voided, find_voided


@dataclass(frozen=True)
class Planned:
    """The file changes of one run, and the files and effective configuration after them."""

    changes: tuple[FileChange, ...]
    plan: Plan
    files: tuple[ConfigFile, ...]
    effective: Effective | None
    # Settings of the current files that a later one replaces.
    voided: Voided | None = None


class Preparation:
    """Plans the file changes of one run."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def present(self, version: Version) -> Planned:
        """Plan the changes that add or correct the handler."""
        state = self.host.read_state(version)
        if self.host.settings.validate:
            try:
                state = replace(state, effective=self.host.dump(state.files))
            except KubegpuError as error:
                raise KubegpuError(
                    f"containerd cannot load {self.host.request.config_path} as it is; nothing "
                    "was written.",
                    evidence=error.evidence,
                    next_step="Correct the file first: the running containerd would not come "
                    "back from a restart either.",
                ) from error
        plan = plan_present(self.host.request, state, self.host.parse)
        for edit in plan.edits:
            if self.host.placement.template:
                fragment = decode(edit.path, (edit.after or "").encode(), self.host.parse)
                refuse_duplicate_tables(
                    self.host.placement.distribution.name, state.root, fragment, state.drop_in
                )
        changes = tuple(self._write_change(edit) for edit in plan.edits)
        return replace(self._validated(state, plan, changes), voided=find_voided(state))

    def _write_change(self, edit: FileEdit) -> FileChange:
        before = self.host.states[edit.path]
        key = self.host.record_key(edit.path)
        record = self.host.store.record(key)
        earlier = None if record is None else HandlerRecord.from_json(record.details)
        twin = self.host.current_twin(key, before)
        if record is None and twin is not None:
            # Both handlers share the original text of the file.
            earlier = replace(HandlerRecord.from_json(twin.details), changes=())
        handler_record = extend_record(
            earlier,
            edit,
            edited_by_others=record is not None and not record.continues(before.sha256),
            reset=record is not None and before.sha256 == record.before_sha256,
        )
        content = self.host.own_content(edit.path, before.content, edit.after or "")
        details = handler_record.to_json()
        change = FileChange(key, before, replace(before, content=content), False, details, twin)
        others = self.host.other_handlers(key).items()
        return replace(
            change, related={other: self.host.advanced(one, change) for other, one in others}
        )

    def absent(self, version: Version) -> Planned:
        """Plan the changes that remove the handler."""
        state = self.host.read_state(version)
        known = {file.path for file in (*state.files, state.drop_in)}
        restored: dict[str, FileState] = {}
        handler_records: dict[str, HandlerRecord] = {}
        undone: list[str] = []
        for key, record in self.host.records().items():
            if record.path not in known:
                self.host.warnings.append(
                    f"An earlier run also changed {record.path}, which containerd does not load "
                    "from here: give its config_path to undo that."
                )
                continue
            undone.append(key)
            undo, target = self.host.store.undo_target(key, self.host.states[record.path])
            shared = bool(self.host.other_handlers(key))
            if undo is Undo.RESTORE and not shared:
                restored[record.path] = target
            elif undo is not Undo.NOTHING:
                handler_records[record.path] = HandlerRecord.from_json(
                    record.details, shared=shared
                )
        overlay = {path: state.content for path, state in restored.items()}
        rest = replace(
            state,
            files=tuple(self._overlaid(file, overlay) for file in state.files),
            drop_in=self._overlaid(state.drop_in, overlay),
        )
        plan = plan_absent(self.host.request, rest, handler_records, self.host.parse, bool(undone))
        edits = {edit.path: edit for edit in plan.edits}
        changes = []
        for path in sorted({*restored, *edits}, key=lambda path: path != state.root.path):
            before = self.host.states[path]
            if path in restored:
                after = restored[path]
            else:
                content = self.host.own_content(path, before.content, edits[path].after)
                after = FileState(path) if content is None else replace(before, content=content)
            changes.append(self._undo_change(self.host.record_key(path), before, after))
        for key in undone:
            if key not in {change.key for change in changes}:
                current = self.host.states[self.host.records()[key].path]
                changes.append(self._undo_change(key, current, current))
        reasons = [f"{path} is restored to its original content." for path in restored]
        plan = replace(plan, reasons=(*reasons, *plan.reasons))
        return self._validated(state, plan, tuple(changes), restored=not edits)

    def _undo_change(self, key: str, before: FileState, after: FileState) -> FileChange:
        """Return the change; the records of other handlers in the file follow its new content."""
        change = FileChange(key, before, after, undo=True)
        gone = self.host.store.record(key)
        if gone is None:
            return change
        related = {}
        for other, one in self.host.other_handlers(key).items():
            record = self.host.advanced(one, change)
            rest = HandlerRecord.from_json(record.details)
            removed = HandlerRecord.from_json(gone.details)
            try:
                handler_record = record_without(gone.path, rest, removed, self.host.parse)
                edited = record.edited or handler_record.base != rest.base
            except (KubegpuError, ValueError):
                # The file cannot be edited, or the line merge is not TOML: it must not be
                # restored as a whole.
                handler_record, edited = rest, True
            related[other] = replace(
                record,
                # A text that contains the removed handler must not be restored.
                edited=edited,
                made_directories=tuple(
                    dict.fromkeys((*gone.made_directories, *record.made_directories))
                ),
                details=handler_record.to_json(),
            )
        return replace(change, related=related)

    def _overlaid(self, file: ConfigFile, overlay: Mapping[str, bytes | None]) -> ConfigFile:
        if file.path not in overlay:
            return file
        if file.path == self.host.file_state(self.host.request.drop_in_path).path:
            return self.host.own_file(overlay[file.path])
        return decode(file.path, overlay[file.path], self.host.parse)

    def _validated(
        self, state: State, plan: Plan, changes: tuple[FileChange, ...], *, restored: bool = False
    ) -> Planned:
        """Return the planned changes after containerd has validated them.

        :param restored: whether the files are restored to their original state.
        :raises KubegpuError: the effective configuration would not be the intended one.
        """
        changed = {
            change.after.path: change.after.content
            for change in changes
            if change.after.content != change.before.content
        }
        files = (
            self.host.load(state.version, state.builtin_imports, changed)
            if changed
            else state.files
        )
        if not self.host.settings.validate:
            return Planned(changes, plan, files, None)
        before = state.effective
        if before is None:
            try:
                before = self.host.dump(state.files)
            except KubegpuError as error:
                self.host.warnings.append(f"The current configuration cannot be loaded: {error}")
        if not changed:
            return Planned(changes, plan, files, before)
        after = self.host.dump(files)
        if self.host.request.state == "absent" and after.default not in after.runtimes:
            self.host.warnings.append(
                f"The default runtime is {after.default!r}, as it was before this module changed "
                "it, and does not exist: correct default_runtime_name."
            )
        if before is not None:
            completed = completed_runtimes(state.all_changes)
            verify(self.host.request, plan, before, after, completed, restored)
        return Planned(changes, plan, files, after)
