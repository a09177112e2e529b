# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the node's record holds about MIG. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .layout import Layout

# Key of the record, and prefix of the keys of its files.
RECORD = "nvidia_mig"
FILES = "nvidia_mig::"


@dataclass(frozen=True)
class Record:
    """What earlier runs changed on the node.

    :param found: the layout of each GPU before the first change, by UUID.
    :param addresses: where on the PCI bus each of these GPUs was, by UUID.
    :param stopped: units that a change stopped and has not started again.
    :param waiting: what the driver said to GPUs, by UUID, that were reset in vain: their mode takes
        effect with a reboot.
    """

    found: Mapping[str, Layout] = field(default_factory=dict)
    stopped: tuple[str, ...] = ()
    waiting: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "found": {uuid: layout.to_json() for uuid, layout in self.found.items()},
            "stopped": list(self.stopped),
            "waiting": dict(self.waiting),
            "addresses": dict(self.addresses),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Record | None:
        if data is None:
            return None
        return cls(
            {uuid: Layout.from_json(layout) for uuid, layout in data["found"].items()},
            tuple(data["stopped"]),
            # A release before these fields wrote none.
            data.get("waiting") or {},
            data.get("addresses") or {},
        )

    def with_change(
        self,
        layouts: Mapping[str, Layout],
        addresses: Mapping[str, str],
        changing: Collection[str],
        stopped: Iterable[str],
    ) -> Record:
        """Return the record with a change that begins. What was found first remains.

        :param layouts: the present layout of each GPU, by UUID.
        :param addresses: where on the PCI bus each GPU is, by UUID.
        :param changing: the UUIDs of the GPUs that change: they may be reset again.
        """
        return Record(
            {**layouts, **self.found},
            tuple(dict.fromkeys((*self.stopped, *stopped))),
            {uuid: why for uuid, why in self.waiting.items() if uuid not in changing},
            {**self.addresses, **addresses},
        )

    def finished(self, waiting: Mapping[str, str]) -> Record:
        """Return the record after a change, with all units started again."""
        return replace(self, stopped=(), waiting={**self.waiting, **waiting})
