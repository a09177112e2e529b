# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the variables of the acceptance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.checks import check_at_least, wrong_value
from .._core.errors import InputError
from .._core.options import argument_spec, read_arguments
from .data import BANDWIDTH_TESTS, FROM_LEVEL, GPU_BURN, LEVELS, TOOLS
from .types import AUTO, NEVER, REQUIRED, Request

PREFIX = "gpu_acceptance_"
_TOOL = {"choices": [AUTO, REQUIRED, NEVER]}
ARGUMENTS: dict[str, dict[str, Any]] = argument_spec(
    Request,
    level={"choices": list(LEVELS)},
    dcgm=_TOOL,
    nvbandwidth=_TOOL,
    gpu_burn=_TOOL,
    programs={"options": {tool: {"type": "str"} for tool in TOOLS}},
    expect={
        "options": {
            "gpus": {"type": "int"},
            "product": {"type": "str"},
            "ecc": {"type": "bool"},
            "link_width": {"type": "int"},
        }
    },
)


def read_request(given: Mapping[str, Any]) -> Request:
    """Return the request of the variables' values, by their names without the prefix.

    :raises InputError: a value is wrong.
    """
    values = read_arguments(ARGUMENTS, given, PREFIX)
    check_at_least(f"{PREFIX}burn_minutes", values["burn_minutes"])
    check_at_least(f"{PREFIX}timeout", values["timeout"], 0)
    _check_burn_ends(values)
    values["thresholds"] = read_thresholds(values["thresholds"] or {})
    values["expect"] = {
        name: value for name, value in (values["expect"] or {}).items() if value is not None
    }
    return Request(**values)


def _check_burn_ends(values: Mapping[str, Any]) -> None:
    timeout, seconds = values["timeout"], values["burn_minutes"] * 60
    burns = values["gpu_burn"] != NEVER and LEVELS.index(values["level"]) >= LEVELS.index(
        FROM_LEVEL[GPU_BURN]
    )
    if burns and 0 < timeout <= seconds:
        raise InputError(
            f"{PREFIX}timeout is {timeout}, and gpu_burn burns for {seconds} seconds "
            f"({PREFIX}burn_minutes).",
            next_step=f"Give more seconds, or fewer minutes, or leave {PREFIX}timeout at 0.",
            names={"variable": f"{PREFIX}timeout"},
        )


def read_thresholds(given: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the least bandwidths; None switches one off.

    :raises InputError: a name is unknown, or a value is no number.
    """
    found: dict[str, float | None] = {}
    for name, value in given.items():
        variable = f"{PREFIX}thresholds.{name}"
        if name not in BANDWIDTH_TESTS:
            raise wrong_value(variable, f"one of {', '.join(BANDWIDTH_TESTS)}", name)
        try:
            number = None if value is None else float(value)
            good = number is None or (not isinstance(value, bool) and 0 <= number < 1e6)
        except (TypeError, ValueError):
            number, good = None, False
        if not good:
            raise wrong_value(variable, "a number of GB/s, or null", value)
        found[str(name)] = number
    return found


def read_test(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a test, by the fields of ``apply.Test``.

    :raises InputError: a value is wrong.
    """
    for name in ("timeout", "minutes"):
        check_at_least(name, given[name])
    if not 1 <= given["diag_level"] <= 4:
        raise wrong_value("diag_level", "a number from 1 to 4", given["diag_level"])
    limits = read_thresholds(given["thresholds"])
    names = ("test", "program", "timeout", "diag_level", "minutes", "gpus", "facts")
    return {
        **{name: given[name] for name in names},
        "thresholds": {name: value for name, value in limits.items() if value is not None},
    }
