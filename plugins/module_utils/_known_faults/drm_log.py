# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Errors of the kernel's drivers for AMD and Intel GPUs in the kernel's log. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .._core.finding import Finding
from .drm import addresses
from .matching import finding, matches
from .rules.drm_kernel import DRM, FIRMWARE_FAILED, FIRMWARE_MISSING

#: Lines of the kernel's log that say what failed, and which card started. The drivers write dozens
#: of others for each card.
INTEREST = re.compile(
    r"Initialized (?:amdgpu|i915|xe) |\b(?:amdgpu|i915|xe)\b.{0,80}?(?:Direct firmware load"
    r"|\*ERROR\* .{0,80}?(?:GuC|HuC|GSC|DMC)|Fatal error during|probe (?:of|with) "
    r"|not properly supported)"
)
#: The file is missing, and the card serves containers.
OPTIONAL = "drm_firmware_optional"
# Linux, drivers/gpu/drm/drm_drv.c, drm_dev_register(): with a date before 6.14.
_STARTED = re.compile(
    r"Initialized (?:amdgpu|i915|xe) [\d. ]{1,40}for (?P<address>[0-9a-f:.]{7,16}) on minor"
)
_ORDER = {**{row.code: number for number, row in enumerate(DRM)}, OPTIONAL: len(DRM)}
# What loads without them computes: they are for video, and for saving power.
_OTHER_UNITS = ("HuC", "GSC", "DMC")


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
    return sorted(found.values(), key=lambda one: _ORDER[one.code])


def _judge(found: Finding, serves: bool) -> Finding | None:
    """Return what an error means; None if it is over.

    :param serves: whether the card started after it.
    """
    details = found.details
    if found.code == FIRMWARE_FAILED:
        # Without GuC i915 starts, and submits no work.
        return _optional(found, details["what"]) if _is_other(details["what"]) else found
    if not serves:
        return found
    if found.code == FIRMWARE_MISSING:
        return _optional(found, f"firmware {details['file']}")
    return None


def _is_other(what: str) -> bool:
    return what.lower().startswith(tuple(unit.lower() for unit in _OTHER_UNITS))


def _optional(found: Finding, what: str) -> Finding:
    """Return the finding of firmware without which the driver serves the card."""
    details = found.details
    return Finding(
        "drm_firmware_optional",
        f"The driver {details['driver']} serves the GPU {details['address']} without a part of "
        f"its functions: {what}.",
        found.evidence,
        "Containers can use the GPU. Where what is missing is needed (video, saving power, "
        "protected memory), install a newer firmware package.",
    )
