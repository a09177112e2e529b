# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The changed parts of two texts, for a diff. Pure."""

from __future__ import annotations

import difflib

# Lines around a change, as diff shows them.
_CONTEXT = 3
# Pairs of lines that are compared; with more of them, all between the first and the last change is
# shown as changed.
_MOST_PAIRS = 1_000_000


def changed_parts(before: str, after: str) -> tuple[str, str]:
    """Return the differences of two texts with three lines of context, for a diff.

    What is left out on both sides is one line that says how much it is.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    left = 0
    while left < min(len(old), len(new)) and old[left] == new[left]:
        left += 1
    right = 0
    while right < min(len(old), len(new)) - left and old[-1 - right] == new[-1 - right]:
        right += 1
    inner = (old[left : len(old) - right], new[left : len(new) - right])
    if len(inner[0]) * len(inner[1]) > _MOST_PAIRS:
        blocks = []
    else:
        matcher = difflib.SequenceMatcher(None, *inner)
        blocks = [
            (block.a + left, block.b + left, block.size) for block in matcher.get_matching_blocks()
        ][:-1]
    same = [(0, 0, left), *blocks, (len(old) - right, len(new) - right, right)]
    return _cut(old, [(a, size) for a, _b, size in same]), _cut(
        new, [(b, size) for _a, b, size in same]
    )


def _cut(lines: list[str], same: list[tuple[int, int]]) -> str:
    """Return the lines without the inner part of unchanged regions."""
    shown: list[str] = []
    at = 0
    for index, (start, size) in enumerate(same):
        shown += lines[at:start]
        head = _CONTEXT if index else 0
        tail = _CONTEXT if index < len(same) - 1 else 0
        left_out = size - head - tail
        if left_out > _CONTEXT:
            shown += lines[start : start + head]
            shown.append(f"[... {left_out} lines ...]\n")
            shown += lines[start + size - tail : start + size]
        else:
            shown += lines[start : start + size]
        at = start + size
    return "".join(shown)
