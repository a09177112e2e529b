# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The exit status of nvidia-smi, which is that of NVML. Data, not code.

It is the only sign of a fault where nothing was printed. What it means has a rule by its message;
those of two numbers have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..codes import MISMATCH
from ..types import Rule
from .xids_data import RESET_STEP

READ = "2026-11-23"
_SOURCE = "nvidia-smi(1): return value; nvml.h of github.com/NVIDIA/go-nvml 2f9e261"
_PROGRAM = "nvidia-smi"
_CODES = {
    6: "no_devices",
    9: "driver_not_loaded",
    14: "inforom_corrupt",
    15: "gpu_lost",
    17: "gpu_access_blocked",
    18: MISMATCH,
}


def _pattern(number: int) -> str:
    return (
        r"\bnvidia-smi\b[^\n:]{0,40}? (?:ended|exited|failed) with (?:exit )?(?:status|code) "
        rf"{number}\b"
    )


def _example(number: int) -> str:
    return f"nvidia-smi -q -x ended with status {number}"


def of_status(rows: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return the rules for a status, of which those with a message have the words of its rule."""
    told = [
        replace(
            row,
            pattern=_pattern(number),
            where=_PROGRAM,
            cause=row.cause.replace("GPU {address}", "a GPU"),
            example=_example(number),
            source=_SOURCE,
            date=READ,
            context="",
            covers=(),
        )
        for number, code in _CODES.items()
        for row in rows
        if row.code == code
    ]
    return (*told, *_OWN)


_OWN = (
    Rule(
        "power_cable",
        _pattern(8),
        _PROGRAM,
        "A GPU has no external power (status 8 of nvidia-smi).",
        "Drain the node, switch it off, and check the card's power cables.",
        _example(8),
        _SOURCE,
        READ,
    ),
    Rule(
        "recovery_action",
        _pattern(16),
        _PROGRAM,
        "A GPU has to be reset before it can be used again (status 16 of nvidia-smi).",
        RESET_STEP,
        _example(16),
        _SOURCE,
        READ,
    ),
)
