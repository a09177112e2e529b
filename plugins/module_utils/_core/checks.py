# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of single values of options, with errors that name the option. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .errors import InputError
from .redact import redact

# Characters of a value that are shown.
_MAX_SHOWN = 120


def wrong_value(name: str, expectation: str, value: Any) -> InputError:
    """Return the error of a wrong value.

    Nested parts of the value are not shown: they can be secrets under any name, as in an
    environment.
    """
    if isinstance(value, Mapping):
        shown = "a mapping"
    elif isinstance(value, (list, tuple)) and not all(
        isinstance(item, (str, int, float)) for item in value
    ):
        shown = "a list of more than plain values"
    else:
        shown = redact(repr(value))
    if len(shown) > _MAX_SHOWN:
        shown = f"{shown[:_MAX_SHOWN]}..."
    return InputError(
        f"{name} has to be {expectation}.",
        evidence=f"{name}: {shown}",
        names={"variable": name},
    )


def of_variable(name: str, error: InputError) -> InputError:
    """Return an error of a value with the name of the variable that has it."""
    return InputError(
        f"{name}: {error.cause}",
        evidence=error.evidence,
        next_step=error.next_step,
        names={"variable": name},
    )


def check_expression(name: str, value: str) -> None:
    """Check a regular expression.

    :raises InputError: it is none.
    """
    try:
        re.compile(value)
    except re.error as error:
        raise InputError(
            f"{name} is not a regular expression: {value!r}.",
            evidence=str(error),
            next_step="Put a backslash before each of . * + ? ( ) [ ] { } that means itself.",
            names={"variable": name},
        ) from error


def check_at_least(name: str, value: int, least: int = 1) -> None:
    """Check a number.

    :raises InputError: it is smaller than the least one.
    """
    if value < least:
        raise InputError(
            f"{name} is {value}.",
            next_step=f"Give a number from {least}.",
            names={"variable": name},
        )
