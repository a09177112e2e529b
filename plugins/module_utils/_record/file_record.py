# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of a changed file: its state before and after. Pure.

The record is stored before the file is written. A run that is killed in between leaves a record
whose ``before`` is the current file: nothing is lost, and the next run continues from it.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Undo(Enum):
    """How a recorded change is undone."""

    NOTHING = "nothing"  # the file is in its original state
    RESTORE = "restore"  # unedited since: original bytes, mode, owner and ACL are restored
    REMOVE_LINES = "remove_lines"  # edited since, or no record: only managed lines are removed


Attributes = tuple[tuple[str, bytes], ...]


def attributes_to_json(attributes: Attributes | None) -> dict[str, str] | None:
    """Return extended attributes in the form of the record; None remains None."""
    if attributes is None:
        return None
    return {name: base64.b64encode(value).decode() for name, value in attributes}


def attributes_from_json(data: dict[str, str] | None) -> Attributes | None:
    """Return the extended attributes of :func:`attributes_to_json`.

    :raises ValueError: a value is not base64.
    """
    if data is None:
        return None
    return tuple(
        sorted((name, base64.b64decode(value, validate=True)) for name, value in data.items())
    )


@dataclass(frozen=True)
class FileRecord:
    """One file that one named change wrote.

    ``before_*`` describe the file before the first recorded write (``before_sha256`` None: there
    was no file), ``after_*`` the file after the last one. ``edited``: another program wrote between
    two recorded writes, so that the old bytes must not be restored. ``from_sha256`` is the file
    when the last write began: a run that is killed before its rename leaves that one.
    ``details`` is what the module needs to remove the managed lines (JSON values).
    """

    path: str
    before_sha256: str | None
    before_mode: int | None
    before_uid: int | None
    before_gid: int | None
    before_selinux: str | None
    backup: str | None
    after_sha256: str | None
    edited: bool = False
    made_directories: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    # No file has this checksum: a record without the field matches none.
    from_sha256: str | None = ""
    after_mode: int | None = None
    after_uid: int | None = None
    after_gid: int | None = None
    # POSIX ACL and user.* attributes, in base64 by name; None: not known.
    before_attributes: dict[str, str] | None = None
    after_attributes: dict[str, str] | None = None
    # Fields that a newer release has written; they are kept.
    more: dict[str, Any] = field(default_factory=dict)

    def undo(self, current_sha256: str | None) -> Undo:
        """Return how this change of the current file is undone."""
        if current_sha256 == self.before_sha256:
            return Undo.NOTHING
        if current_sha256 in (self.after_sha256, self.from_sha256) and not self.edited:
            return Undo.RESTORE
        return Undo.REMOVE_LINES

    def continues(self, current_sha256: str | None) -> bool:
        """Return whether the file is in a recorded state, before or after."""
        return current_sha256 in (self.after_sha256, self.before_sha256, self.from_sha256)

    def restored_mode(self, current: int | None) -> int | None:
        """Return the original mode, or the one that was set since the last recorded write."""
        return self.before_mode if self.after_mode in (None, current) else current

    def restored_owner(self, uid: int | None, gid: int | None) -> tuple[int | None, int | None]:
        """Return the original owner, or the one that was set since the last recorded write."""
        if self.after_uid is None or (self.after_uid, self.after_gid) == (uid, gid):
            return self.before_uid, self.before_gid
        return uid, gid

    def restored_attributes(self, current: dict[str, str] | None) -> dict[str, str] | None:
        """Return the original ACL and attributes, or those that were set since."""
        unchanged = self.after_attributes in (None, current)
        return (
            self.before_attributes if unchanged and self.before_attributes is not None else current
        )

    def to_json(self) -> dict[str, Any]:
        known = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "more"}
        return {
            **self.more,
            **known,
            "made_directories": list(self.made_directories),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> FileRecord:
        names = set(cls.__dataclass_fields__) - {"more"}
        known = {name: value for name, value in data.items() if name in names}
        known["more"] = {name: value for name, value in data.items() if name not in names}
        known["made_directories"] = tuple(known.get("made_directories", ()))
        return cls(**known)
