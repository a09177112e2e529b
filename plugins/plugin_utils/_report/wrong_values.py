# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The row of a node whose variables have wrong values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import PARTS as OF_ERROR

from .steps import row_step


def refused_values(wrong: Sequence[Mapping[str, Any]], known: Sequence[str]) -> dict[str, Any]:
    """Return the part of a row for wrong values. Their messages are shown below the table.

    :param known: the parts that have a plan.
    """
    steps = [
        {"part": one["part"], **row_step("variables", "refused", one["variable"], one["message"])}
        for one in wrong
    ]
    reasons: dict[str, list[str]] = {}
    for one in wrong:
        reasons.setdefault(one["part"], []).append(one["message"])
    return {
        **{
            part: {"action": "refuse", "reasons": messages}
            for part, messages in reasons.items()
            if part in known
        },
        "action": "refuse",
        "steps": steps,
        "changes": [f"{one['part']}: refused" for one in wrong],
        "refusals": [
            {name: one[name] for name in ("part", *OF_ERROR) if one.get(name)}
            for one in wrong
            if one.get("cause")
        ],
        "why": [
            f"{one['variable']} {one.get('why') or 'has a wrong value'}".strip() + ", see below"
            for one in wrong
        ],
        "warnings": [one["message"] for one in wrong],
    }
