# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Render a table as text. The widest columns are wrapped to the width of the screen."""

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
# Longer words are broken.
_LONGEST_WORD = 36
# How a line begins that is a command.
_COMMANDS = ("Fix: ", "ansible ", "ansible-playbook ")
# Number of rows from which "all N" replaces their names.
_MIN_FOR_ALL = 4


@dataclass(frozen=True)
class Column:
    """A column of the table.

    :param key: key of the rows.
    :param title: heading.
    :param paired: start each item on the same line as the item at the same position in the other
        paired columns.
    :param below: more keys, whose values are shown in the same cell unless they are empty.
    :param optional: leave the column out if it is empty in all rows.
    """

    key: str
    title: str
    paired: bool = False
    below: tuple[str, ...] = ()
    optional: bool = False


_CHANGES = (Column("changes", "Change", paired=True), Column("why", "Why", paired=True))
_CLUSTER = (Column("node", "Node", below=("kubernetes",)), *_CHANGES)
_NODE, _TESTS = Column("node", "Node"), Column("tests", "Tests")
_BATCH, _LEVEL = Column("batch", "Batch"), Column("level", "Level")
_OUTCOME, _LEAVE = Column("outcome", "Outcome"), Column("leave", "Pods to evict")
# Without those of which nothing is known.
_LAYERS = {
    "pci": "PCI",
    "module": "Module",
    "devices": "Devices",
    "nvml": "NVML",
    "toolkit": "Toolkit",
    "runtime": "Runtime",
    "allocatable": "Allocatable",
    "pod": "Pod",
    "metrics": "Metrics",
}
# Columns and key of the notes, by the option ``table`` of fleet_table.
TABLES: Mapping[str, tuple[tuple[Column, ...], str | None]] = {
    "plan": ((Column("node", "Node", below=("os", "gpus", "present")), *_CHANGES), "warnings"),
    "result": (
        (
            Column("node", "Node"),
            Column("driver", "Driver"),
            Column("mig", "MIG", optional=True),
            Column("cuda", "CUDA"),
            Column("toolkit", "Toolkit"),
            Column("containerd", "containerd"),
            Column("docker", "Docker"),
            Column("crio", "CRI-O", optional=True),
        ),
        "open",
    ),
    "teardown": ((Column("node", "Node", below=("gpus",)), *_CHANGES), "open"),
    "not_read": ((_NODE, Column("why", "Why")), "warnings"),
    "refused": ((_NODE, *_CHANGES), "warnings"),
    "unverified": (
        (_NODE, Column("why", "Why"), Column("next_step", "Next step")),
        None,
    ),
    "cluster": (_CLUSTER, None),
    "cluster_teardown": (_CLUSTER, None),
    "dra": (_CLUSTER, None),
    "monitoring": ((_NODE, *_CHANGES), "warnings"),
    "verification": (
        (
            _NODE,
            *(Column(key, title, optional=True) for key, title in _LAYERS.items()),
        ),
        "causes",
    ),
    "upgrade_plan": (
        (_NODE, _BATCH, Column("changes", "Change"), Column("disturbs", "Disturbs"), _LEAVE),
        "notes",
    ),
    "upgrade": (
        (_NODE, _BATCH, _OUTCOME, Column("driver", "Driver"), Column("toolkit", "Toolkit")),
        "notes",
    ),
    "acceptance_plan": ((_NODE, _LEVEL, _TESTS, Column("why", "Why"), _LEAVE), "notes"),
    "acceptance": ((_NODE, _OUTCOME, _LEVEL, Column("at", "Tested"), _TESTS), "notes"),
    "diagnosis": (
        (
            _NODE,
            Column("gpus", "GPUs"),
            Column("verdict", "Verdict"),
            Column("roots", "Root causes"),
        ),
        "notes",
    ),
    "diagnosis_nodes": (
        (
            Column("pod", "Pod"),
            _NODE,
            Column("fits", "Fits"),
            Column("because", "Because"),
        ),
        None,
    ),
}


def render(
    columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], width: int, title: str = ""
) -> str:
    """Return the table as text, with lines of at most ``width`` characters if possible.

    Values come from nodes: unprintable characters are shown as escape sequences.

    :param columns: the columns, in order.
    :param rows: one mapping for each row. A list is shown with one item a line, None as a dash.
    :param width: characters per line of the screen.
    :param title: line above the table.
    """
    columns = [one for one in columns if not one.optional or any(row.get(one.key) for row in rows)]
    cells = [[_cell(row, column) for column in columns] for row in rows]
    natural, words, texts = [], [], []
    for index, column in enumerate(columns):
        content = [
            column.title,
            *(line for row in cells for item in row[index] for line in item.splitlines()),
        ]
        natural.append(max(len(line) for line in content))
        words.append(max(len(word) for line in content for word in line.split()))
        texts.append(sum(len(line) for line in content))
    widths = _fit(natural, words, texts, width - len(_GAP) * (len(columns) - 1))
    lines = [printable(title), ""] if title else []
    lines.append(_join([column.title for column in columns], widths))
    lines.append(_join(["-" * size for size in widths], widths))
    # Rows of several lines need an empty line between them.
    spaced = any(column.below or column.paired for column in columns)
    for number, row in enumerate(cells):
        if spaced and number:
            lines.append("")
        items = [[_wrap(item, size) for item in cell] for cell, size in zip(row, widths)]
        _pair([item for item, column in zip(items, columns) if column.paired])
        wrapped = [[line for item in cell for line in item] for cell in items]
        for index in range(max(len(cell) for cell in wrapped)):
            lines.append(
                _join([cell[index] if index < len(cell) else "" for cell in wrapped], widths)
            )
    return "\n".join(lines)


def merged(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows that are equal but for their names as one, with the names as one item.

    The first column has the names. The place of a row is that of the first name.
    """
    name, *_others = columns
    keys = [*name.below, *(key for column in columns[1:] for key in (column.key, *column.below))]
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(repr([row.get(key) for key in keys]), []).append(row)
    return [
        {**same[0], name.key: ", ".join(str(row.get(name.key)) for row in same)}
        for same in found.values()
    ]


def notes(rows: Sequence[Mapping[str, Any]], key: str, name: str) -> list[str]:
    """Return the texts that rows have under ``key``, each once with the names of its rows.

    :param name: the key of a row's own name. If many rows all have a text, their number is shown
        instead of the names.
    """
    by_text: dict[str, list[str]] = {}
    for row in rows:
        for text in row.get(key) or ():
            by_text.setdefault(text, []).append(str(row.get(name)))
    every = len(rows) if len(rows) >= _MIN_FOR_ALL else None
    return [
        f"{f'all {every}' if len(names) == every else ', '.join(names)}: {text}"
        for text, names in by_text.items()
    ]


def paragraph(text: str, width: int) -> str:
    """Return a text wrapped to the screen, with the lines after the first one indented.

    A command remains one line, so that it can be copied.

    Unprintable characters are shown as escape sequences.
    """
    wrapped: list[str] = []
    for line in printable(text).splitlines() or [""]:
        indent = _INDENT if wrapped else ""
        if line.startswith(_COMMANDS):
            wrapped.append(f"{indent}{line}")
            continue
        wrapped += textwrap.wrap(
            line,
            width,
            break_on_hyphens=False,
            initial_indent=indent,
            subsequent_indent="    ",
        )
    return "\n".join(wrapped)


def _pair(cells: Sequence[list[list[str]]]) -> None:
    """Give items at the same position the same number of lines."""
    for index in range(max((len(cell) for cell in cells), default=0)):
        height = max(len(cell[index]) for cell in cells if index < len(cell))
        for cell in cells:
            if index < len(cell):
                cell[index] += [""] * (height - len(cell[index]))


def _cell(row: Mapping[str, Any], column: Column) -> list[str]:
    """Return the items of a cell. An item can have several lines."""
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
    # Continuation lines are indented, so that items can be told apart.
    indent = _INDENT if size > _NARROWEST else ""
    return [
        part
        for line in item.splitlines()
        for part in textwrap.wrap(line, size, break_on_hyphens=False, subsequent_indent=indent)
    ]


def _fit(
    natural: Sequence[int], words: Sequence[int], texts: Sequence[int], room: int
) -> list[int]:
    """Return the widths of the columns: narrow ones unwrapped, the others by their content.

    :param natural: widths without wrapping.
    :param words: length of the longest word of each column, which wrapping should not break.
    :param texts: number of characters in each column.
    :param room: characters for all columns together.
    """
    widths = list(natural)
    if sum(natural) <= room:
        return widths
    fair = max(_NARROWEST, room // (len(natural) + 1))
    least = [max(fair, min(word + len(_INDENT), _LONGEST_WORD)) for word in words]
    # Square root, because the number of lines is the length of the text divided by the width.
    weights = [math.sqrt(text + 1) for text in texts]
    wide = set(range(len(natural)))
    while wide:
        left = room - sum(width for index, width in enumerate(widths) if index not in wide)
        total = sum(weights[index] for index in wide)
        share = {index: int(left * weights[index] / total) for index in wide}
        fixed = {}
        for index in wide:
            if natural[index] <= max(share[index], left // len(wide)):
                fixed[index] = natural[index]
            elif share[index] < least[index]:
                fixed[index] = min(natural[index], least[index])
        for index, size in (fixed or share).items():
            widths[index] = size
        wide -= set(fixed or share)
    return _shrink(widths, room)


def _shrink(widths: list[int], room: int) -> list[int]:
    """Narrow the widest columns until all fit, but none below the minimum."""
    while sum(widths) > room and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _join(cells: Sequence[str], widths: Sequence[int]) -> str:
    return _GAP.join(cell.ljust(size) for cell, size in zip(cells, widths)).rstrip()
