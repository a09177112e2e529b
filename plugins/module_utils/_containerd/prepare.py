# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one run is about to change, checked by the installed containerd before it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from .._core.errors import KubegpuError
from .._host.files import (
    FileState,
)
from .._record.file_record import Undo
from .._record.transaction import FileChange
from .._runtime.config_file import ConfigFile, decode
from .config import (
    Effective,
)
from .data import Version
from .host import Host
from .plan import plan_present
from .record import History, continued
from .types import FileEdit, Node, Plan
from .undo import plan_absent
from .verify import completed_runtimes, refuse_twice, verify


@dataclass(frozen=True)
class Planned:
    """All that one run is about to do, and what containerd would then make of it."""

    steps: tuple[FileChange, ...]
    plan: Plan
    files: tuple[ConfigFile, ...]
    effective: Effective | None


class Preparation:
    """Plans the changes of files that one run makes."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def present(self, version: Version) -> Planned:
        node = self.host.read_node(version)
        if self.host.settings.validate:
            try:
                node = replace(node, effective=self.host.dump(node.files))
            except KubegpuError as error:
                raise KubegpuError(
                    f"containerd cannot load {self.host.request.config_path} as it stands; nothing "
                    "was written.",
                    evidence=error.evidence,
                    next_step="Correct the file first: the running containerd would not come "
                    "back from a restart either.",
                ) from error
        plan = plan_present(self.host.request, node, self.host.world.parse)
        for edit in plan.edits:
            if self.host.way.template:
                part = decode(edit.path, (edit.after or "").encode(), self.host.world.parse)
                refuse_twice(self.host.way.flavour.name, node.root, part, node.drop_in)
        steps = tuple(self._write_step(edit) for edit in plan.edits)
        return self._validated(node, plan, steps)

    def _write_step(self, edit: FileEdit) -> FileChange:
        before = self.host.states[edit.path]
        key = self.host.record_key(edit.path)
        record = self.host.world.store.record(key)
        earlier = None if record is None else History.from_json(record.details)
        twin = self.host.in_step(key, before)
        if record is None and twin is not None:
            # Both go back to the file from before the first of them.
            earlier = replace(History.from_json(twin.details), changes=())
        history = continued(
            earlier,
            edit,
            foreign=record is not None and not record.continues(before.sha256),
            fresh=record is not None and before.sha256 == record.before_sha256,
        )
        content = self.host.own_content(edit.path, before.content, edit.after or "")
        after = replace(before, content=content)
        return FileChange(key, before, after, details=history.to_json())

    def absent(self, version: Version) -> Planned:
        node = self.host.read_node(version)
        known = {file.path for file in (*node.files, node.drop_in)}
        restored: dict[str, FileState] = {}
        histories: dict[str, History] = {}
        undone: list[str] = []
        for key, record in self.host.records().items():
            if record.path not in known:
                self.host.warnings.append(
                    f"An earlier run also changed {record.path}, which containerd does not load "
                    "from here: give its config_path to undo that."
                )
                continue
            undone.append(key)
            way, target = self.host.world.store.undo_target(key, self.host.states[record.path])
            shared = bool(self.host.neighbours(key))
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
        plan = plan_absent(self.host.request, rest, histories, self.host.world.parse, bool(undone))
        edits = {edit.path: edit for edit in plan.edits}
        steps = []
        for path in sorted({*restored, *edits}, key=lambda path: path != node.root.path):
            before = self.host.states[path]
            if path in restored:
                after = restored[path]
            else:
                content = self.host.own_content(path, before.content, edits[path].after)
                after = FileState(path) if content is None else replace(before, content=content)
            steps.append(FileChange(self.host.record_key(path), before, after, undo=True))
        for key in undone:
            if key not in {step.key for step in steps}:
                state = self.host.states[self.host.records()[key].path]
                steps.append(FileChange(key, state, state, undo=True))
        reasons = [f"{path} is put back to what it was." for path in restored]
        plan = replace(plan, reasons=(*reasons, *plan.reasons))
        return self._validated(node, plan, tuple(steps), restored=not edits)

    def _overlaid(self, file: ConfigFile, overlay: Mapping[str, bytes | None]) -> ConfigFile:
        if file.path not in overlay:
            return file
        if file.path == self.host.file_state(self.host.request.drop_in_path).path:
            return self.host.own_file(overlay[file.path])
        return decode(file.path, overlay[file.path], self.host.world.parse)

    def _validated(
        self, node: Node, plan: Plan, steps: tuple[FileChange, ...], *, restored: bool = False
    ) -> Planned:
        """Return what would be done, after containerd was asked what it means.

        :param restored: whether the files come back as they were before us.
        """
        changed = {
            step.after.path: step.after.content
            for step in steps
            if step.after.content != step.before.content
        }
        files = (
            self.host.load(node.version, node.builtin_imports, changed) if changed else node.files
        )
        if not self.host.settings.validate:
            return Planned(steps, plan, files, None)
        before = node.effective
        if before is None:
            try:
                before = self.host.dump(node.files)
            except KubegpuError as error:
                self.host.warnings.append(
                    f"The configuration as it stands cannot be loaded: {error}"
                )
        if not changed:
            return Planned(steps, plan, files, before)
        after = self.host.dump(files)
        if self.host.request.state == "absent" and after.default not in after.runtimes:
            self.host.warnings.append(
                f"The default runtime is {after.default!r}, as it was before this module came, and "
                "does not exist: correct default_runtime_name."
            )
        if before is not None:
            completed = completed_runtimes(node.every)
            verify(self.host.request, plan, before, after, completed, restored)
        return Planned(steps, plan, files, after)
