# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reverts a change line by line: a three-way merge. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher


def undo_lines(base: str, ours: str, current: str) -> tuple[str, bool]:
    """Return ``current`` with the change from ``base`` to ``ours`` reverted, line by line.

    :returns: the text, and whether some of our lines stay because they were edited since.
    """
    base_lines, our_lines, lines = (
        text.splitlines(keepends=True) for text in (base, ours, current)
    )
    where: dict[int, int] = {}
    for block in SequenceMatcher(None, our_lines, lines, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            where[block.a + offset] = block.b + offset
    conflict = False
    patches: list[tuple[int, int, list[str]]] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(
        None, base_lines, our_lines, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            continue
        patch = _patch(base_lines[i1:i2], j1, j2, where, lines, len(our_lines))
        if patch is None:
            conflict = True
        else:
            patches.append(patch)
    for start, end, old in sorted(patches, key=lambda patch: patch[:2], reverse=True):
        for at, line in enumerate(old):
            # The old last line had no line end, and may no longer be the last one.
            if not line.endswith("\n") and (at + 1 < len(old) or end < len(lines)):
                old[at] = line + ("\r\n" if "\r\n" in current else "\n")
        lines[start:end] = old
    return "".join(lines), conflict


def _patch(
    old: list[str], j1: int, j2: int, where: Mapping[int, int], lines: list[str], total: int
) -> tuple[int, int, list[str]] | None:
    """Return start and end of the lines to replace and their replacement; None for a conflict."""
    mapped = [where[index] for index in range(j1, j2) if index in where]
    if len(mapped) == j2 - j1 and mapped:
        start, end = mapped[0], mapped[-1] + 1
    else:
        # Lines that we deleted, or that were deleted since: locate them by their neighbours.
        before, after = j1 - 1, j2
        start = where[before] + 1 if before in where else (0 if before < 0 else -1)
        end = where[after] if after in where else (len(lines) if after >= total else -1)
        if not mapped and j1 == j2:
            if start < 0 and end < 0:
                return None
            start = end = start if start >= 0 else end
        elif start < 0 or end < 0 or old:
            return None
    foreign: list[str] = []
    whole = False
    for index in range(start, end):
        if index in mapped:
            whole = False
            continue
        # Comments and whole tables stay; a single value would move into another table.
        whole = whole or lines[index].lstrip().startswith("[")
        if not whole and lines[index].strip() and not lines[index].lstrip().startswith("#"):
            return None
        foreign.append(lines[index])
    return start, end, [*old, *foreign]
