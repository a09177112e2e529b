# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Edit ``daemon.json`` and note each edit, so that it can be undone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._formats.json_edit import OBJECT, Document, parse
from .record import Edit, Record


@dataclass(frozen=True)
class EditResult:
    """The edited file, its record, and why each thing was changed or kept."""

    document: Document
    record: Record
    reasons: tuple[str, ...] = ()


class Editor:
    """Edits one runtime's settings and keeps its record up to date."""

    def __init__(self, document: Document, record: Record, name: str) -> None:
        self.document = document
        self._name = name
        self._edits = list(record.names.get(name, ()))
        self._others = {key: edits for key, edits in record.names.items() if key != name}
        self._made = list(record.made)
        self._reasons: list[str] = []

    def say(self, reason: str) -> None:
        self._reasons.append(reason)

    def ensure(self, path: Sequence[str]) -> None:
        """Make an object at ``path`` if there is none, or an empty one."""
        node = self.document.get(path)
        if node is not None and node.kind == OBJECT and node.members:
            return
        key = tuple(path)
        if all(made != key for made, _raw in self._made):
            self._made.append((key, self.document.raw(path)))
        self.document = self.document.ensure_object(path)

    def put(self, path: Sequence[str], value: Any) -> None:
        """Set a value; one that is equal already remains as it is written."""
        node = self.document.get(path)
        if node is not None and plain(node.data()) == value:
            return
        key = tuple(path)
        before = self.document.raw(path)
        raw = self.document.dump(value, path)
        self.document = self.document.set(path, raw)
        where = ".".join(path)
        self.say(f"{where} is set" if node is None else f"{where} is changed")
        earlier = next((edit for edit in self._edits if edit.path == key), None)
        if earlier is not None:
            self._edits.remove(earlier)
            if _same(before, earlier.after):
                before = earlier.before
        if before is None or not _same(before, raw):
            self._edits.append(Edit(key, before, raw))

    def drop(self, path: Sequence[str], reason: str) -> None:
        """Delete a member, whoever wrote it."""
        self.document = self.document.delete(path)
        self._edits = [edit for edit in self._edits if edit.path != tuple(path)]
        self.say(reason)

    def revert(self, path: Sequence[str], reason: str) -> None:
        """Undo this runtime's recorded edits of one member."""
        for edit in [edit for edit in self._edits if edit.path == tuple(path)]:
            self._undo(edit, reason)

    def revert_all(self) -> None:
        for edit in reversed(list(self._edits)):
            self._undo(edit, "undone")
        self._edits = []

    def prune(self) -> None:
        """Restore what was in the place of objects that are empty again."""
        for path, raw in reversed(list(self._made)):
            node = self.document.get(path)
            if node is not None and node.kind == OBJECT and node.members:
                continue
            if node is not None:
                if raw is None and path:
                    self.document = self.document.delete(path)
                elif raw:
                    self.document = self.document.set(path, raw)
            self._made.remove((path, raw))

    def result(self) -> EditResult:
        names = dict(self._others)
        if self._edits:
            names[self._name] = tuple(self._edits)
        # Without edits the file has its old objects again.
        made = tuple(self._made) if names else ()
        return EditResult(self.document, Record(names, made), tuple(self._reasons))

    def _undo(self, edit: Edit, reason: str) -> None:
        where = ".".join(edit.path)
        self._edits.remove(edit)
        if edit.path[0] == "features" and self._others:
            # All runtimes share the switch: another managed name takes the edit over.
            other = next(iter(self._others))
            self._others[other] = (*self._others[other], edit)
            self.say(f"{where} is kept: {other} may need it")
            return
        raw = self.document.raw(edit.path)
        # Another managed name may have replaced this edit's value: it then restores the older one.
        for other, edits in self._others.items():
            self._others[other] = tuple(
                replace(e, before=edit.before)
                if e.path == edit.path and e.before is not None and _same(e.before, edit.after)
                else e
                for e in edits
            )
        if raw is None:
            return
        if not _same(raw, edit.after):
            self.say(f"{where} was changed since: kept")
        elif edit.before is None:
            self.document = self.document.delete(edit.path)
            self.say(f"{where}: {reason}")
        else:
            self.document = self.document.set(edit.path, edit.before)
            self.say(f"{where}: {reason}")


def _same(left: str | None, right: str | None) -> bool:
    """Return whether two JSON texts are equal but for their layout."""
    if left is None or right is None:
        return left is right
    if not left or not right:
        return left == right
    one, other = parse(left, "").root, parse(right, "").root
    return one is not None and other is not None and one.shape() == other.shape()


def plain(value: Any) -> Any:
    """Return JSON data for the module's result; a number becomes the text it is written as."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value if isinstance(value, (str, bool)) or value is None else value.text
