# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the node's record holds about MIG. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .types import Layout

# Key of the record, and prefix of the keys of its files.
RECORD = "nvidia_mig"
FILES = "nvidia_mig::"


@dataclass(frozen=True)
class Record:
    """What earlier runs changed on the node.

    :param found: the layout of each GPU before the first change, by UUID.
    :param stopped: units that a change stopped and has not started again.
    """

    found: Mapping[str, Layout] = field(default_factory=dict)
    stopped: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "found": {uuid: layout.to_json() for uuid, layout in self.found.items()},
            "stopped": list(self.stopped),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Record | None:
        if data is None:
            return None
        return cls(
            {uuid: Layout.from_json(layout) for uuid, layout in data["found"].items()},
            tuple(data["stopped"]),
        )

    def with_change(self, layouts: Mapping[str, Layout], stopped: Iterable[str]) -> Record:
        """Return the record with a change that begins. What was found first stays."""
        return Record({**layouts, **self.found}, tuple(dict.fromkeys((*self.stopped, *stopped))))

    def finished(self) -> Record:
        """Return the record after a change, with all units started again."""
        return replace(self, stopped=())
