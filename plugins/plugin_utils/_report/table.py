# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A table as text: columns as wide as their content, the widest ones wrapped to the screen."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable

_GAP = "  "
_INDENT = "  "
_NARROWEST = 12
# A longer word is broken rather than given a column of its own width.
_LONGEST_WORD = 36
# Fewer names are shorter than words for them.
_ALL_SAY_IT = 4


@dataclass(frozen=True)
class Column:
    """A column: the rows' key and the words above it."""

    key: str
    title: str
    # Items of the paired columns that have the same place begin on the same line.
    paired: bool = False
    # Keys whose values stand below, where they say anything: one cell instead of narrow columns.
    below: tuple[str, ...] = ()
    # Left out where no row says anything.
    optional: bool = False


def render(
    columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], width: int, title: str = ""
) -> str:
    """Return the table as text of at most ``width`` characters a line, where that is possible.

    What is in a row comes from a node: characters that are not printable are shown as escapes.

    :param columns: what is shown, in order.
    :param rows: one mapping a row; a list is shown one item a line, None as a dash.
    :param width: characters that the screen has.
    :param title: a line above the table.
    """
    columns = [one for one in columns if not one.optional or any(row.get(one.key) for row in rows)]
    cells = [[_cell(row, column) for column in columns] for row in rows]
    natural, words, texts = [], [], []
    for index, column in enumerate(columns):
        said = [
            column.title,
            *(line for row in cells for item in row[index] for line in item.splitlines()),
        ]
        natural.append(max(len(line) for line in said))
        words.append(max(len(word) for line in said for word in line.split()))
        texts.append(sum(len(line) for line in said))
    widths = _fit(natural, words, texts, width - len(_GAP) * (len(columns) - 1))
    lines = [printable(title), ""] if title else []
    lines.append(_join([column.title for column in columns], widths))
    lines.append(_join(["-" * size for size in widths], widths))
    # Rows of several lines run into each other without a line between them.
    apart = any(column.below or column.paired for column in columns)
    for number, row in enumerate(cells):
        if apart and number:
            lines.append("")
        items = [[_wrap(item, size) for item in cell] for cell, size in zip(row, widths)]
        _pair([item for item, column in zip(items, columns) if column.paired])
        wrapped = [[line for item in cell for line in item] for cell in items]
        for index in range(max(len(cell) for cell in wrapped)):
            lines.append(
                _join([cell[index] if index < len(cell) else "" for cell in wrapped], widths)
            )
    return "\n".join(lines)


def notes(rows: Sequence[Mapping[str, Any]], key: str, name: str) -> list[str]:
    """Return what rows have to say under ``key``, each text once with the rows that say it.

    :param name: the rows' key for their own name. Where all of several say the same, their number
        stands for their names.
    """
    said: dict[str, list[str]] = {}
    for row in rows:
        for text in row.get(key) or ():
            said.setdefault(text, []).append(str(row.get(name)))
    every = len(rows) if len(rows) >= _ALL_SAY_IT else None
    return [
        f"{f'all {every}' if len(names) == every else ', '.join(names)}: {text}"
        for text, names in said.items()
    ]


def paragraph(text: str, width: int) -> str:
    """Return a text wrapped to the screen, the lines after the first one set in.

    Characters that are not printable are shown as escapes.
    """
    wrapped: list[str] = []
    for line in printable(text).splitlines() or [""]:
        indent = _INDENT if wrapped else ""
        wrapped += textwrap.wrap(
            line,
            width,
            break_on_hyphens=False,
            initial_indent=indent,
            subsequent_indent="    ",
        )
    return "\n".join(wrapped)


def _pair(cells: Sequence[list[list[str]]]) -> None:
    """Give items with the same place the same number of lines."""
    for index in range(max((len(cell) for cell in cells), default=0)):
        height = max(len(cell[index]) for cell in cells if index < len(cell))
        for cell in cells:
            if index < len(cell):
                cell[index] += [""] * (height - len(cell[index]))


def _cell(row: Mapping[str, Any], column: Column) -> list[str]:
    """Return the items of a cell, each with its lines in it."""
    more = [row.get(key) for key in column.below]
    return [
        *_items(row.get(column.key)),
        *(item for value in more if value not in (None, "", []) for item in _items(value)),
    ]


def _items(value: Any) -> list[str]:
    if value is None or value in ("", []):
        return ["-"]
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, (list, tuple)):
        return [line for item in value for line in _items(item)]
    return [printable(str(value).strip()) or "-"]


def _wrap(item: str, size: int) -> list[str]:
    # What goes on from the line above is set in a little, so that items can be told apart.
    indent = _INDENT if size > _NARROWEST else ""
    return [
        part
        for line in item.splitlines()
        for part in textwrap.wrap(line, size, break_on_hyphens=False, subsequent_indent=indent)
    ]


def _fit(
    natural: Sequence[int], words: Sequence[int], texts: Sequence[int], room: int
) -> list[int]:
    """Return the columns' widths: narrow ones as they are, the others by how much is in them.

    :param natural: the widths without wrapping.
    :param words: the longest word of each column, which wrapping had better not break.
    :param texts: how many characters stand in each column.
    :param room: the characters that there are for all of them.
    """
    widths = list(natural)
    if sum(natural) <= room:
        return widths
    fair = max(_NARROWEST, room // (len(natural) + 1))
    least = [max(fair, min(word + len(_INDENT), _LONGEST_WORD)) for word in words]
    # The root of the text: lines grow with text divided by width.
    weights = [math.sqrt(text + 1) for text in texts]
    wide = set(range(len(natural)))
    while wide:
        left = room - sum(width for index, width in enumerate(widths) if index not in wide)
        total = sum(weights[index] for index in wide)
        share = {index: int(left * weights[index] / total) for index in wide}
        settled = {}
        for index in wide:
            if natural[index] <= max(share[index], left // len(wide)):
                settled[index] = natural[index]
            elif share[index] < least[index]:
                settled[index] = min(natural[index], least[index])
        for index, size in (settled or share).items():
            widths[index] = size
        wide -= set(settled or share)
    return _shrink(widths, room)


def _shrink(widths: list[int], room: int) -> list[int]:
    """Take from the widest columns until all fit, but leave each readable."""
    while sum(widths) > room and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _join(cells: Sequence[str], widths: Sequence[int]) -> str:
    return _GAP.join(cell.ljust(size) for cell, size in zip(cells, widths)).rstrip()
