# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the node's record says of its CUDA toolkits. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .link import Link

# The value of the node's record, the beginning of the keys of its files, the set of packages.
RECORD = "cuda_toolkit"
FILES = "cuda_toolkit::"
SET = "cuda-toolkit"


@dataclass(frozen=True)
class Memory:
    """What the node's record says of its CUDA toolkits.

    ``link``: what stood there before our first change of it, ``target``: what we set it to.
    ``choices``: what we added to the alternatives. ``runfiles``: the folders that we installed by
    runfile. ``pending``: folders whose installer was begun and did not come to its end.
    """

    link: Link | None = None
    target: str = ""
    choices: tuple[str, ...] = ()
    runfiles: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "link": None if self.link is None else self.link.to_json(),
            "target": self.target,
            "choices": list(self.choices),
            "runfiles": list(self.runfiles),
            "pending": list(self.pending),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Memory | None:
        if data is None:
            return None
        return cls(
            None if data["link"] is None else Link.from_json(data["link"]),
            data["target"],
            tuple(data["choices"]),
            tuple(data["runfiles"]),
            tuple(data["pending"]),
        )

    def begun(self, path: str) -> Memory:
        """Return the record before an installer runs for the folder ``path``."""
        return replace(self, pending=tuple(dict.fromkeys((*self.pending, path))))

    def ended(self, path: str, *, installed: bool) -> Memory:
        """Return the record after it."""
        mine = (*self.runfiles, path) if installed else self.runfiles
        return replace(
            self,
            pending=tuple(one for one in self.pending if one != path),
            runfiles=tuple(dict.fromkeys(mine)),
        )
