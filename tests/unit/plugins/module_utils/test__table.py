# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.module_utils._table import Column, notes, render

COLUMNS = [Column("a", "Node"), Column("b", "Why")]


def test_columns_are_as_wide_as_their_content():
    text = render(COLUMNS, [{"a": "gpu1", "b": "x"}, {"a": "a-long-name", "b": None}], 80)
    assert text.splitlines() == [
        "Node         Why",
        "-----------  ---",
        "gpu1         x",
        "a-long-name  -",
    ]


def test_lists_are_shown_one_item_a_line():
    text = render(COLUMNS, [{"a": "gpu1", "b": ["one", "two"]}], 80, "Title")
    assert text.splitlines()[:2] == ["Title", ""]
    assert text.splitlines()[-2:] == ["gpu1  one", "      two"]


def test_wide_cells_are_wrapped_to_the_screen():
    text = render(COLUMNS, [{"a": "gpu1", "b": "word " * 40}], 40)
    assert max(len(line) for line in text.splitlines()) <= 40
    assert text.count("word") == 40


def test_no_column_becomes_unreadable():
    text = render(COLUMNS, [{"a": "n" * 30, "b": "w" * 30}], 5)
    assert "n" * 12 in text and "w" * 12 in text


def test_booleans_and_empty_values():
    assert render(COLUMNS, [{"a": True, "b": []}], 80).splitlines()[-1] == "yes   -"


def test_paired_items_begin_on_the_same_line():
    pair = [Column("a", "Change", paired=True), Column("b", "Why", paired=True)]
    rows = [{"a": ["one", "two"], "b": ["long words that wrap", "short"]}]
    lines = render(pair, rows, 24).splitlines()
    assert next(line for line in lines if line.startswith("two")).split() == ["two", "short"]


def test_notes_are_said_once_with_all_who_say_them():
    rows = [{"a": "gpu1", "n": ["x", "y"]}, {"a": "gpu2", "n": ["x"]}, {"a": "gpu3"}]
    assert notes(rows, "n", "a") == ["gpu1, gpu2: x", "gpu1: y"]
