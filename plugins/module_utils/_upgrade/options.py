# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the variables of the rolling upgrade."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._core.checks import check_at_least, wrong_value
from .._core.options import argument_spec, read_arguments
from .types import Request

PREFIX = "gpu_upgrade_"
ARGUMENTS: dict[str, dict[str, Any]] = argument_spec(
    Request,
    canary={"type": "raw"},
    batch={"type": "raw", "default": "1"},
    max_unavailable={"type": "raw", "default": "25%"},
    pods={"choices": ["auto", "gpu", "all", "none"]},
    reboot={"choices": ["auto", "never"]},
    on_refusal={"choices": ["stop", "skip"]},
    rollback={"choices": ["try", "require", "never"]},
)
_AMOUNT = re.compile(r"([1-9]\d{0,5})(%?)\Z", re.ASCII)
_WANTED = "a number of nodes from 1 on, or a percentage such as '25%'"


def read_request(given: Mapping[str, Any]) -> Request:
    """Return the request of the variables' values, by their names without the prefix.

    :raises InputError: a value is wrong.
    """
    values = read_arguments(ARGUMENTS, given, PREFIX)
    if not values["run"]:
        raise wrong_value(f"{PREFIX}run", "a name", values["run"])
    check_at_least(f"{PREFIX}max_failed", values["max_failed"], 0)
    return Request(
        **{
            **values,
            "canary": _read_canary(values["canary"]),
            "batch": tuple(
                _read_amount("batch", one) for one in _listed(values["batch"]) or (None,)
            ),
            "max_unavailable": _read_amount("max_unavailable", values["max_unavailable"]),
        }
    )


def amount(value: str, count: int) -> int:
    """Return a number of nodes, of a percentage rounded down and at least 1."""
    number = int(value.rstrip("%"))
    return max(1, number * count // 100) if value.endswith("%") else number


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else [value]


def _read_amount(name: str, value: Any) -> str:
    text = "" if isinstance(value, bool) else str(value).strip()
    match = _AMOUNT.match(text)
    if not match or (match.group(2) and int(match.group(1)) > 100):
        more = ", or a list of these" if name == "batch" else ""
        raise wrong_value(f"{PREFIX}{name}", f"{_WANTED}{more}", value)
    return text


def _read_canary(value: Any) -> int | tuple[str, ...]:
    if isinstance(value, (list, tuple)) and all(isinstance(one, str) and one for one in value):
        return tuple(str(one) for one in value)
    text = "" if isinstance(value, bool) else str(value).strip()
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise wrong_value(
            f"{PREFIX}canary", "a number of nodes from 0 on, or a list of hosts", value
        )
    return int(text)
