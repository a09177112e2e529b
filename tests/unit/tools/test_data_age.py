# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The data whose sources were read long ago."""

from __future__ import annotations

import datetime

import pytest

from tests.tools import data_age
from tests.tools.data_age import PageError

PAGE = """\
# Data

## Drivers

| table | content | read | variable |
| --- | --- | --- | --- |
| `_a/data.py`: `ROWS` | branches | 2026-11-22 | `x` |
| | the second part of it | 2026-01-02 | |

| file | location |
| --- | --- |
| `README.md` | a clone |

## Distributions

`_b/data.py` and its sources,
read 2026-05-01. `_c.py`: Read 2026-05-02.
"""


def test_rows_and_paragraphs_are_read():
    rows = data_age.rows_of_page(PAGE)
    assert [(str(row.date), row.where, row.name) for row in rows] == [
        ("2026-11-22", "docs/data.md:7", "`_a/data.py`: `ROWS`, branches"),
        ("2026-01-02", "docs/data.md:8", "`_a/data.py`: `ROWS`, branches, the second part of it"),
        ("2026-05-01", "docs/data.md:16", "_b/data.py"),
        ("2026-05-02", "docs/data.md:16", "_b/data.py"),
    ]


def test_a_row_without_a_date_is_named():
    with pytest.raises(PageError, match=r"docs/data.md:7: the row has no date: \| `_a/data.py`"):
        data_age.rows_of_page(PAGE.replace("2026-11-22", "lately"))


@pytest.mark.parametrize(("days", "number"), [(183, 3), (400, 0), (0, 4)])
def test_what_is_old_comes_oldest_first(days, number):
    old = data_age.older(data_age.rows_of_page(PAGE), datetime.date(2026, 11, 23), days)
    assert len(old) == number and old == sorted(old)


def test_the_command_on_the_page_and_the_rules_of_this_checkout(capsys):
    assert data_age.main(["--on", "2026-11-28"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("0 of ") and line.endswith("more than 183 days before 2026-11-28.")
    assert data_age.main(["--on", "2027-11-28"]) == 1
    out = capsys.readouterr().out
    assert "docs/data.md:" in out and "BRANCHES" in out and "rules gpu_memory_error" in out


def test_a_page_that_cannot_be_used_ends_with_2(monkeypatch, tmp_path, capsys):
    page = tmp_path / "data.md"
    page.write_text(PAGE.replace("2026-01-02", ""), encoding="utf-8")
    monkeypatch.setattr(data_age, "PAGE", page)
    assert data_age.main([]) == 2
    assert "docs/data.md:8: the row has no date" in capsys.readouterr().err
