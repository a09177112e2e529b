# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Errors of the kernel's drivers for AMD and Intel GPUs in the kernel's log. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from .._core.finding import Finding
from .drm import addresses
from .matching import finding, matches
from .rules.drm_kernel import DRM, FIRMWARE_FAILED, FIRMWARE_MISSING, OPTIONAL, STARTED

#: Lines of the kernel's log that say what failed, and which card started. The drivers write dozens
#: of others for each card.
INTEREST = re.compile(
    r"Initialized (?:amdgpu|i915|xe) |\b(?:amdgpu|i915|xe)\b.{0,80}?(?:Direct firmware load"
    r"|\*ERROR\* .{0,80}?(?:GuC|HuC|GSC|DMC)"
    r"|(?:GuC|HuC|GSC) firmware .{0,120}?failed|Fatal error during|probe (?:of|with) "
    r"|not properly supported)"
)
_STARTED = re.compile(STARTED.replace("?:ADDRESS", "?P<address>[0-9a-f:.]{7,16}"))
_ORDER = (*dict.fromkeys(row.code for row in DRM if row.code != OPTIONAL), OPTIONAL)


def kernel_findings(lines: Sequence[str]) -> list[Finding]:
    """Return the errors of these drivers, those of firmware first.

    A start that failed is left out if the card started later.
    """
    started: dict[str, int] = {}
    for number, line in enumerate(lines):
        match = _STARTED.search(line)
        if match:
            started[match["address"]] = number
    found: dict[tuple[str, str], Finding] = {}
    for number, line in enumerate(lines):
        for row, match in matches(line, DRM):
            cards = addresses(line)
            serves = bool(cards) and all(started.get(card, -1) > number for card in cards)
            judged = _judge(finding(row, match), serves)
            if judged is not None:
                found.setdefault((judged.code, judged.cause), judged)
    return sorted(found.values(), key=lambda one: _ORDER.index(one.code))


def _judge(found: Finding, serves: bool) -> Finding | None:
    """Return what an error means; None if it is over.

    :param serves: whether the card started after it.
    """
    # Without GuC i915 starts, and submits no work.
    guc = "_guc_" in found.details.get("file", "")
    if not serves or guc or found.code in (FIRMWARE_FAILED, OPTIONAL):
        return found
    return _optional(found) if found.code == FIRMWARE_MISSING else None


def _optional(found: Finding) -> Finding:
    """Return the finding of firmware without which the driver serves the card."""
    row = next(row for row in DRM if row.code == OPTIONAL)
    details = {**found.details, "file": f"firmware {found.details['file']}", "what": ""}
    return replace(
        found,
        code=OPTIONAL,
        cause=row.cause.format(**details),
        next_step=row.next_step,
        severity=row.severity,
    )
