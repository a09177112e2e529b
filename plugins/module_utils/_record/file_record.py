# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a module changed on a file and what stood there before: pure bookkeeping.

A record is made before the file is written, so that a run that dies in between leaves a record
whose ``before`` is what stands there: nothing is lost, and the next run goes on from it.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Undo(Enum):
    """How a recorded change is undone."""

    NOTHING = "nothing"  # the file is as it was before us
    RESTORE = "restore"  # nobody edited since: the very bytes, mode, owner and ACL come back
    REMOVE_LINES = "remove_lines"  # somebody edited since, or no record: take out our lines only


Attributes = tuple[tuple[str, bytes], ...]


def attributes_to_json(attributes: Attributes | None) -> dict[str, str] | None:
    """Return extended attributes as the record keeps them; None stays None."""
    if attributes is None:
        return None
    return {name: base64.b64encode(value).decode() for name, value in attributes}


def attributes_from_json(data: dict[str, str] | None) -> Attributes | None:
    """Return what :func:`attributes_to_json` was given.

    :raises ValueError: a value is no base64.
    """
    if data is None:
        return None
    return tuple(
        sorted((name, base64.b64decode(value, validate=True)) for name, value in data.items())
    )


@dataclass(frozen=True)
class FileRecord:
    """One file that one named change wrote.

    ``before_*`` describe the file before the first of our writes (``before_sha256`` None: there
    was no file), ``after_*`` what our last write left. ``edited`` says that somebody else wrote
    between two of our writes, so that the old bytes may not come back. ``from_sha256`` is what
    stood there when our last write began: a run that was killed before its rename leaves it.
    ``details`` is what the module needs in order to take out its own lines (JSON values).
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
    # No file has this sum: a record without the field is compared with nothing.
    from_sha256: str | None = ""
    after_mode: int | None = None
    after_uid: int | None = None
    after_gid: int | None = None
    # POSIX ACL and user.* attributes, in base64 by name; None: not known.
    before_attributes: dict[str, str] | None = None
    after_attributes: dict[str, str] | None = None
    # What a newer release has written beside these; it is kept.
    more: dict[str, Any] = field(default_factory=dict)

    def undo(self, current_sha256: str | None) -> Undo:
        """Return what taking this change back means for the file as it stands."""
        if current_sha256 == self.before_sha256:
            return Undo.NOTHING
        if current_sha256 in (self.after_sha256, self.from_sha256) and not self.edited:
            return Undo.RESTORE
        return Undo.REMOVE_LINES

    def continues(self, current_sha256: str | None) -> bool:
        """Return whether the file is one that we left, or the one from before us."""
        return current_sha256 in (self.after_sha256, self.before_sha256, self.from_sha256)

    def restored_mode(self, current: int | None) -> int | None:
        """Return the mode of before us, or the one that somebody set since our last write."""
        return self.before_mode if self.after_mode in (None, current) else current

    def restored_owner(self, uid: int | None, gid: int | None) -> tuple[int | None, int | None]:
        """Return the owner of before us, or the one that somebody set since our last write."""
        if self.after_uid is None or (self.after_uid, self.after_gid) == (uid, gid):
            return self.before_uid, self.before_gid
        return uid, gid

    def restored_attributes(self, current: dict[str, str] | None) -> dict[str, str] | None:
        """Return ACL and attributes of before us, or those that somebody set since."""
        ours = self.after_attributes in (None, current)
        return self.before_attributes if ours and self.before_attributes is not None else current

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
