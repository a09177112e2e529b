# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask the known faults what CUDA's installer printed. Pure.

Their table alone: each file that a module imports is sent to the node.
"""

from __future__ import annotations

from .._known_faults.matching import all_matches
from .._known_faults.rules.compilers import COMPILERS
from .._known_faults.words import groups


def failed(output: str) -> dict[str, dict[str, str]]:
    """Return the names in each known message of an output, and its ``text``, by its code."""
    return {
        row.code: {**groups(match), "text": match.group()}
        for row, match in all_matches(output, COMPILERS, lambda _row: True)
    }
