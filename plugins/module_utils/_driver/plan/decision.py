# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Input and target of the driver's decision. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..._nvidia.driver_branches import DriverData
from ..types import Request
from .gpu_support import Gpu
from .installed import InstalledDriver
from .sources import DISTRO, NVIDIA, RUNFILE, System

PLACES = {
    DISTRO: "the distribution's own archive",
    NVIDIA: "NVIDIA's repository",
    RUNFILE: "the runfile given",
}


@dataclass(frozen=True)
class Target:
    """The driver that the node gets. ``keep``: it is installed already."""

    branch: str
    version: str | None
    kernel_module: str | None
    source: str | None
    keep: bool = False
    runfile: Mapping[str, Any] | None = None
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class DecisionInput:
    """Input of the decision. ``back``: the previous version was requested."""

    node: Mapping[str, Any]
    request: Request
    data: DriverData
    gpus: tuple[Gpu, ...]
    system: System
    installed: InstalledDriver | None
    back: bool = False

    @property
    def requested_kernel_module(self) -> str:
        return "" if self.request.kernel_module == "auto" else self.request.kernel_module

    @property
    def guest(self) -> bool:
        return any(gpu.guest for gpu in self.gpus)


def capitalize_first(text: str) -> str:
    """Return the text with an upper-case first letter."""
    return text[:1].upper() + text[1:]
