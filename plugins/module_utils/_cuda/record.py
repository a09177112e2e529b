# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the node's record holds about its CUDA toolkits. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .link import Link

# Key of the record, prefix of the keys of its files, and name of the package set.
RECORD = "cuda_toolkit"
FILES = "cuda_toolkit::"
SET = "cuda-toolkit"


@dataclass(frozen=True)
class Record:
    """What earlier runs changed on the node.

    :param link: the link before the first change; None if it was never changed.
    :param target: where the module set the link to.
    :param choices: the alternatives that the module added.
    :param runfiles: the folders of toolkits installed from runfiles.
    :param pending: the folders of installers that started and did not finish.
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
    def from_json(cls, data: Mapping[str, Any] | None) -> Record | None:
        if data is None:
            return None
        return cls(
            None if data["link"] is None else Link.from_json(data["link"]),
            data["target"],
            tuple(data["choices"]),
            tuple(data["runfiles"]),
            tuple(data["pending"]),
        )

    def with_pending(self, path: str) -> Record:
        """Return the record with an installer started for the folder ``path``."""
        return replace(self, pending=tuple(dict.fromkeys((*self.pending, path))))

    def with_finished(self, path: str, *, installed: bool) -> Record:
        """Return the record with the installer for ``path`` finished."""
        runfiles = (*self.runfiles, path) if installed else self.runfiles
        return replace(
            self,
            pending=tuple(one for one in self.pending if one != path),
            runfiles=tuple(dict.fromkeys(runfiles)),
        )
