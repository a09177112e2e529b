# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of a file's record that belongs to one handler. Pure."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .data import Path
from .line_merge import undo_lines
from .types import Change, FileEdit
from .values import copy, remove


@dataclass(frozen=True)
class HandlerRecord:
    """The changes of earlier runs to one file; ``base`` is the text without, ``ours`` with them.

    Both are None if there is no file. ``shared``: the file holds another managed handler too.
    """

    base: str | None
    ours: str | None
    changes: tuple[Change, ...] = ()
    shared: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "base": _pack(self.base),
            "ours": _pack(self.ours),
            "changes": [change.to_json() for change in self.changes],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], shared: bool = False) -> HandlerRecord:
        return cls(
            _unpack(data["base"]),
            _unpack(data["ours"]),
            tuple(Change.from_json(change) for change in data["changes"]),
            shared,
        )


def extend_record(
    earlier: HandlerRecord | None, edit: FileEdit, edited_by_others: bool, reset: bool
) -> HandlerRecord:
    """Return the record after one more edit.

    :param edited_by_others: the file was edited by others since our last edit.
    :param reset: the file is in its original state (first edit, or reverted manually).
    """
    if earlier is None or reset:
        return HandlerRecord(edit.before, edit.after, edit.changes)
    base = earlier.base
    if edited_by_others and edit.before is not None:
        base, _left = undo_lines(earlier.base or "", earlier.ours or "", edit.before)
    changes = {change.path: change for change in earlier.changes}
    for change in edit.changes:
        first = changes.get(change.path, change)
        changes[change.path] = Change(change.path, first.before, change.after)
    kept = tuple(_within(change, changes) for change in changes.values())
    return HandlerRecord(base, edit.after, tuple(change for change in kept if change is not None))


def _within(change: Change, changes: Mapping[Path, Change]) -> Change | None:
    """Fold a change of a value into the earlier change that created the table around it."""
    for path, other in changes.items():
        if len(path) < len(change.path) and change.path[: len(path)] == path and not other.before:
            return None
    if change.before or not change.after or not isinstance(change.after[0], Mapping):
        return change
    whole = copy(change.after[0])
    for path, other in changes.items():
        if len(path) > len(change.path) and path[: len(change.path)] == change.path:
            inner = path[len(change.path) :]
            remove(whole, inner)
            current = whole
            for part in inner[:-1]:
                current = current.setdefault(part, {})
            if other.after:
                current[inner[-1]] = other.after[0]
    return Change(change.path, (), (whole,))


def _pack(text: str | None) -> str | None:
    return None if text is None else base64.b64encode(zlib.compress(text.encode())).decode()


def _unpack(packed: str | None) -> str | None:
    return None if packed is None else zlib.decompress(base64.b64decode(packed)).decode()
