# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Name the data whose sources were read long ago.

``python -m tests.tools.data_age`` reads the dates in docs/data.md, which has a row for each table,
and those of the rules of ``_known_faults``. It prints each row that is older than half a year, the
oldest first, and one line with the numbers. Exit status: 0 where nothing is older, 1 where
something is, 2 where a row of docs/data.md has no date or an option is wrong.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Makes this checkout the collection.
importlib.import_module("tests.conftest")
_FAULTS = "ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults"
tables = importlib.import_module(f"{_FAULTS}.rules.tables")

PAGE = Path(__file__).parents[2] / "docs" / "data.md"
DAYS = 183
_DATE = re.compile(r"\b(\d{4}-\d\d-\d\d)\b")
_READ = re.compile(r"\bread (?:on )?(\d{4}-\d\d-\d\d)", re.IGNORECASE)
_NAME = re.compile(r"`([^`]+)`")


class PageError(Exception):
    """A row of the page has no date."""


@dataclass(frozen=True, order=True)
class Row:
    """Data, where it is named, and the day on which its sources were read."""

    date: datetime.date
    where: str
    name: str


def rows_of_page(text: str) -> list[Row]:
    """Return the rows of the tables with a column ``read``, and the paragraphs that say it.

    :raises PageError: a row has no date.
    """
    found: list[Row] = []
    column, heading = None, ""
    for number, paragraph in _paragraphs(text):
        where = f"docs/data.md:{number}"
        if paragraph.startswith("#"):
            heading = paragraph.lstrip("# ")
        if not paragraph.startswith("|"):
            column = None
            name = _NAME.search(paragraph)
            found += [
                Row(datetime.date.fromisoformat(date), where, name[1] if name else heading)
                for date in _READ.findall(paragraph)
            ]
            continue
        cells = [cell.strip() for cell in paragraph.strip("|").split("|")]
        if "read" in cells:
            column = cells.index("read")
        elif column is not None and not paragraph.startswith("| ---"):
            date = _DATE.search(cells[column])
            if date is None:
                raise PageError(f"{where}: the row has no date: {paragraph[:80]}")
            name_of = f"{cells[0] or found[-1].name}, {cells[1]}"
            found.append(Row(datetime.date.fromisoformat(date[1]), where, name_of))
    return found


def _paragraphs(text: str) -> Iterable[tuple[int, str]]:
    """Return paragraphs, rows of tables and empty lines, with the number of the first line."""
    start, lines = 0, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        alone = not line.strip() or line.startswith(("|", "#"))
        if lines and alone:
            yield start, " ".join(lines)
            lines = []
        if alone:
            yield number, line.strip()
        else:
            start = start if lines else number
            lines.append(line.strip())


def rows_of_rules(rules: Iterable[Any]) -> list[Row]:
    """Return a row for each source of the rules, with their codes."""
    codes: dict[tuple[str, str], list[str]] = {}
    for rule in rules:
        codes.setdefault((rule.date, rule.source), []).append(rule.code)
    return [
        Row(datetime.date.fromisoformat(date), source, f"rules {', '.join(dict.fromkeys(names))}")
        for (date, source), names in codes.items()
    ]


def older(rows: Iterable[Row], today: datetime.date, days: int) -> list[Row]:
    """Return the rows that are more than so many days old, the oldest first."""
    return sorted(row for row in rows if (today - row.date).days > days)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is old; return the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--days", type=int, default=DAYS, help="age from which on a row is named")
    parser.add_argument(
        "--on",
        type=datetime.date.fromisoformat,
        default=datetime.datetime.now(datetime.timezone.utc).date(),
        metavar="DATE",
        help="the day from which is counted, today by default",
    )
    options = parser.parse_args(arguments)
    try:
        rows = [*rows_of_page(PAGE.read_text(encoding="utf-8")), *rows_of_rules(tables.FAILURES)]
    except PageError as error:
        print(error, file=sys.stderr)
        return 2
    old = older(rows, options.on, options.days)
    for row in old:
        print(f"{row.date}  {row.where}: {row.name}")
    print(f"{len(old)} of {len(rows)} rows were read more than {options.days} days before", end=" ")
    print(f"{options.on}.")
    return int(bool(old))


if __name__ == "__main__":
    sys.exit(main())
