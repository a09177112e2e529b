# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the options of ``gpu_node_health``. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .._core.checks import check_at_least, wrong_value
from .._core.errors import InputError
from .._host.bounded import HANG_ARGUMENTS, read_hang
from .._known_faults.rules.nvidia_smi import THRESHOLDS
from .._known_faults.xids import xid_table
from .baseline import check_baseline
from .types import Request

ARGUMENTS: dict[str, dict[str, Any]] = {
    "timeout": {"type": "int", "default": 60},
    "boots": {"type": "int", "default": 3},
    "thresholds": {"type": "dict", "default": {}},
    "xids": {"type": "dict", "default": {}},
    "baseline": {"type": "dict", "default": {}},
    "driver_hang": {"type": "dict", "options": HANG_ARGUMENTS},
}
_MOST_BOOTS = 20


def read_options(given: Mapping[str, Any]) -> Request:
    """Return the request.

    :raises InputError: an option has a wrong value.
    """
    check_at_least("timeout", given["timeout"])
    check_at_least("boots", given["boots"])
    if given["boots"] > _MOST_BOOTS:
        raise wrong_value("boots", f"at most {_MOST_BOOTS}", given["boots"])
    return Request(
        given["timeout"],
        given["boots"],
        _thresholds(given["thresholds"] or {}),
        xid_table(given["xids"], "xids"),
        check_baseline(given["baseline"] or {}),
        read_hang(given.get("driver_hang")),
    )


def _thresholds(given: Mapping[str, Any]) -> dict[str, float | None]:
    names = [row.name for row in THRESHOLDS]
    found: dict[str, float | None] = {}
    for name, value in given.items():
        if name not in names:
            raise InputError(
                f"thresholds: unknown threshold {name!r}.",
                next_step=f"Name one of {', '.join(names)}.",
            )
        found[name] = _number(f"thresholds.{name}", value)
    return found


def _number(name: str, value: Any) -> float | None:
    """Return the number; None, also as a template writes it, switches the threshold off."""
    if value is None or value in ("", "None", "null"):
        return None
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise wrong_value(name, "a number from 0, or null for none", value)
    return number
