# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the node's record holds about the exporter. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Key of the record, and prefix of the keys of its files.
RECORD = "gpu_exporter"
FILES = "gpu_exporter::"


@dataclass(frozen=True)
class Record:
    """What earlier runs set up on the node.

    :param method: the method that the node has.
    :param gpus: PCI addresses of the GPUs that the node is expected to have.
    :param units: units that were enabled and were not before.
    :param output: the file that the program writes; empty: none.
    :param page: address of the exporter's metrics on the host; empty: it has none.
    """

    method: str
    gpus: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    output: str = ""
    page: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "gpus": list(self.gpus),
            "units": list(self.units),
            "output": self.output,
            "page": self.page,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Record | None:
        if not isinstance(data, Mapping) or not data.get("method"):
            return None
        return cls(
            data["method"],
            tuple(data.get("gpus") or ()),
            tuple(data.get("units") or ()),
            data.get("output") or "",
            data.get("page") or "",
        )
