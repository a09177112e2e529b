# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of a failed task as the parts of an error. Pure.

Nothing else takes a message apart: what reads a failure reads its parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.errors import KubegpuError
from .._core.failure import parts
from .._core.finding import Subject, read_finding, safe_text
from .answers import of_task

#: Of a task that failed without a text.
NO_MESSAGE = "The task returned no message."


def result_parts(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return cause, evidence, next step, code and names of a failed result, where they have values.

    A node can have made it: they are texts of a limited length, without secrets. The result of
    another program has a message only: its first line is the cause, the others are the evidence.
    """
    found = read_finding(result, _clean, Subject())
    if found.cause:
        error = found.error()
    else:
        message = _clean(result.get("msg")) or _clean(result.get("module_stderr")) or NO_MESSAGE
        head, _line, rest = of_task(message).partition("\n")
        error = KubegpuError(head, evidence=rest.strip())
    return {name: value for name, value in parts(error).items() if value}


def result_message(result: Mapping[str, Any]) -> str:
    """Return the whole message of a failed result."""
    return of_task(str(result.get("msg") or "").strip()) or NO_MESSAGE


def _clean(value: Any) -> str:
    return safe_text(value) if isinstance(value, str) else ""
