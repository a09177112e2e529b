# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of the edits of ``daemon.json``, by which they are undone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Edit:
    """One member that was set, as JSON text: the old value (None: absent) and the new one."""

    path: tuple[str, ...]
    before: str | None
    after: str


@dataclass(frozen=True)
class Record:
    """The edits of one file by runtime name, and the objects that were made to hold them.

    ``made`` has the old JSON text in the place of each object; None: there was none.
    """

    names: Mapping[str, tuple[Edit, ...]] = field(default_factory=dict)
    made: tuple[tuple[tuple[str, ...], str | None], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "names": {
                name: [[list(e.path), e.before, e.after] for e in edits]
                for name, edits in self.names.items()
            },
            "made": [[list(path), raw] for path, raw in self.made],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        return cls(
            {
                name: tuple(Edit(tuple(path), before, after) for path, before, after in edits)
                for name, edits in data.get("names", {}).items()
            },
            tuple((tuple(path), raw) for path, raw in data.get("made", [])),
        )
