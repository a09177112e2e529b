# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Removes a runtime handler from containerd's configuration. Pure.

A file without later edits is restored as a whole. In a file that was edited since, our lines are
removed by a three-way merge; changes that are no longer found as lines are reverted by key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .._runtime.config_file import ConfigFile, Parser, parse_text, table
from .config import fold, meaning
from .data import CRI_NAMES, DEFAULT, RUNTIMES, Path
from .edit import FILE_HEAD, Editor
from .handler import expected_handlers
from .line_merge import undo_lines
from .record import HandlerRecord
from .types import Change, FileEdit, Plan, Request, State
from .values import copy, prune, remove, value_at

# Keys of a new file that are not part of the handler.
_SCAFFOLD = frozenset({("version",), ("imports",)})


def plan_absent(
    request: Request,
    state: State,
    handler_records: Mapping[str, HandlerRecord],
    parse: Parser,
    recorded: bool = False,
) -> Plan:
    """Return the edits that remove the handler from files without record or edited since.

    :param handler_records: by path, the recorded files that cannot be restored as a whole.
    :param recorded: there is a record, so that nothing outside of it is removed.
    """
    request.check()
    undo = _Undo(request, state, parse)
    known = {file.path: file for file in (*state.files, state.drop_in) if not file.generated}
    for path, handler_record in handler_records.items():
        file = known.get(path)
        if file is not None and file.text is not None:
            undo.recorded(file, handler_record)
    if not recorded:
        for file in known.values():
            if file.text is not None:
                undo.unrecorded(file)
        undo.no_dangling_default(known)
    return undo.plan()


class _Undo:
    def __init__(self, request: Request, state: State, parse: Parser) -> None:
        self.request = request
        self.state = state
        self.parse = parse
        self.edits: dict[str, FileEdit] = {}
        self.reasons: list[str] = []

    def plan(self) -> Plan:
        # The importing file is first: it must never import a file that does not exist.
        edits = sorted(self.edits.values(), key=lambda edit: edit.path != self.state.root.path)
        return Plan(tuple(edit for edit in edits if edit.before != edit.after), tuple(self.reasons))

    def recorded(self, file: ConfigFile, handler_record: HandlerRecord) -> None:
        text = file.text or ""
        changes = tuple(self.present_path(file, change) for change in handler_record.changes)
        if handler_record.base is not None and not handler_record.shared:
            merged, conflict = undo_lines(handler_record.base, handler_record.ours or "", text)
            if not conflict and self.only_ours(file, merged, changes):
                self.add_edit(file, merged, changes)
                return
        if handler_record.shared or handler_record.base is None:
            handler = self.handler()
            changes = tuple(
                change
                for change in changes
                if change.path not in _SCAFFOLD
                and (change.path[2:4] != RUNTIMES or change.path[: len(handler)] == handler)
            )
        after = by_meaning(file, changes, self.parse, self.reasons)
        if (
            handler_record.base is None
            and not handler_record.shared
            and self.is_leftover(after, handler_record.ours)
        ):
            self.add_edit(file, None, changes)
        else:
            self.add_edit(file, after, changes)

    def handler(self) -> Path:
        return (*self.state.cri, *RUNTIMES, self.request.name)

    def present_path(self, file: ConfigFile, change: Change) -> Change:
        """Return the change with the current name of its table (``containerd config migrate``)."""
        path = change.path
        if (
            path[0] == "plugins"
            and len(path) > 2
            and path[1] in CRI_NAMES
            and not table(file.data, path[:2])
        ):
            return Change(self.state.cri + path[2:], change.before, change.after)
        return change

    def only_ours(self, file: ConfigFile, text: str, changes: tuple[Change, ...]) -> bool:
        """Return whether the text equals the file without our changes."""
        try:
            data = parse_text(text, self.parse)
        except ValueError:
            return False
        rest, old = copy(data), copy(file.data)
        for change in changes:
            if change.after and _same(value_at(data, change.path), change.after):
                return False
            remove(rest, change.path)
            remove(old, change.path)
        return bool(prune(rest) == prune(old))

    @staticmethod
    def is_leftover(text: str, ours: str | None) -> bool:
        """Return whether a file that we created holds nothing but our lines."""
        known = {line.strip() for line in (ours or "").splitlines()} | {""}
        return all(line.strip() in known for line in text.splitlines())

    def add_edit(self, file: ConfigFile, text: str | None, changes: tuple[Change, ...]) -> None:
        self.edits[file.path] = FileEdit(file.path, file.text, text, changes)
        if text != file.text:
            self.reasons.append(f"The lines of this module are removed from {file.path}.")

    def unrecorded(self, file: ConfigFile) -> None:
        """Remove a handler without record if it equals the one that this module writes."""
        path = self.handler()
        found = table(file.data, path)
        if not found:
            return
        # The runtime that it inherited from is unknown: runc may have been added since.
        wanted = expected_handlers(self.request, self.state)
        if not any(_same_handler(found, one) for one in wanted):
            self.reasons.append(
                f"The handler {self.request.name} in {file.path} is not as this module writes it, "
                "and there is no record of it: it is kept."
            )
            return
        editor = Editor(self.parse)
        editor.open(file)
        editor.delete(file.path, path)
        for edit in editor.edits():
            text = edit.after or ""
            data = parse_text(text, self.parse)
            lines = {line.strip() for line in text.splitlines() if line.strip().startswith("#")}
            bare = prune(data).keys() <= {"version"} and lines <= {FILE_HEAD.strip()}
            gone = file.path == self.state.drop_in.path and bare
            self.add_edit(file, None if gone else text, edit.changes)

    def no_dangling_default(self, known: Mapping[str, ConfigFile]) -> None:
        """Remove a default that names the removed handler."""
        if not self.edits:
            return
        texts = {path: file.text for path, file in known.items()}
        texts.update({path: edit.after for path, edit in self.edits.items()})
        datas = {
            path: parse_text(text, self.parse) for path, text in texts.items() if text is not None
        }
        if any(table(data, self.handler()) for data in datas.values()):
            return
        default = self.state.cri + DEFAULT
        for path, data in datas.items():
            if value_at(data, default) != (self.request.name,):
                continue
            editor = Editor(self.parse)
            editor.open(ConfigFile(path, texts[path], data))
            editor.delete(path, default)
            for edit in editor.edits():
                first = self.edits.get(path)
                self.edits[path] = FileEdit(path, known[path].text, edit.after, edit.changes)
                if first is not None:
                    self.edits[path] = FileEdit(
                        path, first.before, edit.after, first.changes + edit.changes
                    )
            self.reasons.append(
                f"default_runtime_name = {self.request.name!r} is removed from {path}: it would "
                "name a runtime that no longer exists. The original value is unknown."
            )


def by_meaning(
    file: ConfigFile, changes: tuple[Change, ...], parse: Parser, reasons: list[str]
) -> str:
    """Return the file's text with those changes reverted that it still contains.

    :param reasons: receives a sentence for each change that was edited since.
    """
    editor = Editor(parse)
    editor.open(file)
    for change in reversed(changes):
        found = value_at(file.data, change.path)
        if not _same(found, change.after):
            if found != change.before:
                reasons.append(
                    f"{'.'.join(change.path)} in {file.path} was edited since, so it is kept."
                )
            continue
        if not change.before:
            editor.delete(file.path, change.path)
        elif isinstance(change.before[0], Mapping):
            editor.delete(file.path, change.path)
            editor.set_table(file.path, change.path, change.before[0])
        else:
            editor.set(file.path, change.path, change.before[0])
    for edit in editor.edits():
        return edit.after or ""
    return file.text or ""


def record_without(
    path: str, rest: HandlerRecord, gone: HandlerRecord, parse: Parser
) -> HandlerRecord:
    """Return the record of a file's other handler after ``gone`` was removed from the file.

    The other handler takes over what ``gone`` changed besides its own handler, and its base loses
    the changes of ``gone``.
    """
    base = rest.base
    if base is not None and base != gone.base:
        file = ConfigFile(path, base, parse_text(base, parse))
        base = by_meaning(file, gone.changes, parse, [])
    earlier = {change.path: change for change in gone.changes}
    changes = []
    for change in rest.changes:
        first = earlier.pop(change.path, change)
        follows = first is not change and first.after == change.before
        changes.append(Change(change.path, first.before, change.after) if follows else change)
    left = (change for change in earlier.values() if _shared_by_handlers(change))
    return replace(rest, base=base, changes=(*left, *changes))


def _shared_by_handlers(change: Change) -> bool:
    """Return whether a change belongs to the file or to runc rather than to one handler."""
    return change.path in _SCAFFOLD or change.path[2:5] == (*RUNTIMES, "runc")


def _same(found: tuple[Any, ...], wanted: tuple[Any, ...]) -> bool:
    return bool(prune(list(found)) == prune(list(wanted)))


def _same_handler(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    def plain(handler: Mapping[str, Any]) -> dict[str, Any]:
        data: dict[str, Any] = meaning(handler)
        return {**data, "options": fold(table(data, ("options",)))}

    return plain(found) == plain(wanted)
