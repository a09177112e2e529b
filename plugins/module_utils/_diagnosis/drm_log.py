# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Errors of the kernel's drivers for AMD and Intel GPUs in the kernel's log. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .._core.finding import Finding
from .known_errors import explain
from .known_errors_drm_data import DRM

#: Lines of the kernel's log about these drivers.
INTEREST = re.compile(r"\b(?:amdgpu|i915|xe)\b")
_ORDER = {row.code: number for number, row in enumerate(DRM)}


def kernel_findings(lines: Sequence[str]) -> list[Finding]:
    """Return the errors of these drivers, those of firmware first."""
    found: dict[tuple[str, str], Finding] = {}
    for line in lines:
        for finding in explain(line):
            if finding.code in _ORDER:
                found.setdefault((finding.code, finding.cause), finding)
    return sorted(found.values(), key=lambda one: _ORDER[one.code])
