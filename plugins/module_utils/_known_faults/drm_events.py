# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What single lines of amdgpu, i915 and xe mean, for a log that is counted line by line. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from .matching import matches, remaining
from .rules.amd_kernel import AMD
from .rules.drm_kernel import DRM
from .rules.intel_kernel import INTEL, OTHERS

_ROWS = (*AMD, *INTEL, *DRM, *OTHERS)
#: Codes of a start that failed: over if the driver serves the GPU now.
STARTS = frozenset(row.code for row in DRM) | {"bar_not_assigned", "amd_vf_mailbox"}
# Sequence numbers and addresses in memory: lines that differ in these only mean the same.
_LONG = re.compile(r"(?<![A-Za-z])\d{5,}|0x[0-9a-f]{9,}")
_MOST_MEANINGS = 4096


def code_of(line: str) -> str:
    """Return the code of what a line means; empty if no rule knows it."""
    return _code(_LONG.sub("0", line))


@lru_cache(maxsize=_MOST_MEANINGS)
def _code(line: str) -> str:
    return next((row.code for row, _match in matches(line, _ROWS)), "")


def uncovered_codes(codes: Collection[str]) -> frozenset[str]:
    """Return those codes of one GPU of which no other one says more."""
    rows = [row for row in _ROWS if row.code in codes]
    return frozenset(row.code for row, remains in zip(rows, remaining(rows)) if remains)
