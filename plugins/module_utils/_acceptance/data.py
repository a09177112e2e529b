# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Levels and limits of the acceptance. Pure.

Bandwidths: github.com/Azure/azurehpc-health-checks, conf/*.conf, measured on such machines; read
2026-11-22.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

LEVELS = ("quick", "standard", "burn_in", "full")
DCGM, NVBANDWIDTH, GPU_BURN = "dcgm", "nvbandwidth", "gpu_burn"
#: The programs, and the level from which on each is run.
FROM_LEVEL: Mapping[str, str] = {DCGM: "quick", NVBANDWIDTH: "standard", GPU_BURN: "burn_in"}
TOOLS = tuple(FROM_LEVEL)
#: How each is started: a name for the search path, then other places.
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    DCGM: ("dcgmi",),
    NVBANDWIDTH: ("nvbandwidth", "/opt/nvbandwidth/nvbandwidth"),
    GPU_BURN: ("gpu_burn", "/opt/gpu-burn/gpu_burn"),
}
TITLES: Mapping[str, str] = {
    DCGM: "dcgmi diag",
    NVBANDWIDTH: "nvbandwidth",
    GPU_BURN: "gpu_burn",
}
#: The level of ``dcgmi diag`` for each level.
DIAG_LEVELS: Mapping[str, int] = {"quick": 1, "standard": 2, "burn_in": 3, "full": 4}
#: Seconds for ``dcgmi diag`` by its level, about ten times what its documentation shows.
DIAG_SECONDS: Mapping[int, int] = {1: 600, 2: 1800, 3: 10800, 4: 43200}
BANDWIDTH_SECONDS = 900
#: Seconds that gpu_burn may take besides the minutes that it burns.
BURN_SECONDS = 300
#: The tests of nvbandwidth, by the name of their limit.
BANDWIDTH_TESTS: Mapping[str, str] = {
    "h2d": "host_to_device_memcpy_ce",
    "d2h": "device_to_host_memcpy_ce",
    "p2p": "device_to_device_memcpy_read_ce",
}
#: The one that is measured between GPUs.
PAIRS = "p2p"
#: Share below the median of its kind from which on a GPU is told.
BELOW_TWINS = 0.1
#: Fewer GPUs of a kind have no median that shows which of them is slow.
FEWEST_TWINS = 3


@dataclass(frozen=True)
class Minima:
    """The least bandwidths in GB/s of a product, by the name that the driver gives it."""

    product: str
    limits: Mapping[str, float]


MINIMA = (
    Minima(r"\bH200(?! ?NVL)", {"h2d": 48, "d2h": 48, "p2p": 335}),
    Minima(r"H100 80GB HBM3", {"h2d": 52, "d2h": 52}),
    Minima(r"A100-SXM4", {"h2d": 23, "d2h": 23}),
)


def minima(product: str) -> Mapping[str, float]:
    """Return the least bandwidths of a product; empty for one that is not known."""
    return next((one.limits for one in MINIMA if re.search(one.product, product)), {})
