# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.table import (
    Column,
    notes,
    paragraph,
    render,
)

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


def test_what_all_say_is_said_of_all():
    rows = [{"a": f"gpu{number}", "n": ["x"]} for number in range(12)]
    assert notes(rows, "n", "a") == ["all 12: x"]
    rows[3]["n"] = ["y"]
    assert notes(rows[:5], "n", "a") == ["gpu0, gpu1, gpu2, gpu4: x", "gpu3: y"]


def test_values_below_share_the_cell_and_empty_ones_are_left_out():
    columns = [Column("a", "Node", below=("os", "gpus", "none")), Column("b", "Why")]
    rows = [{"a": "gpu1", "os": "debian 12", "gpus": ["1x P4", "1x T4"], "none": [], "b": "x"}]
    assert render(columns, rows, 80).splitlines()[2:] == [
        "gpu1       x",
        "debian 12",
        "1x P4",
        "1x T4",
    ]


def test_rows_of_several_lines_stand_apart():
    columns = [Column("a", "Node", below=("os",)), Column("b", "Why")]
    rows = [{"a": "one", "os": "x", "b": "y"}, {"a": "two", "os": "x", "b": "y"}]
    assert render(columns, rows, 80).splitlines()[4] == ""


def test_an_item_of_several_lines_stays_beside_its_pair():
    pair = [Column("a", "Change", paired=True), Column("b", "Why", paired=True)]
    rows = [{"a": ["one", "two"], "b": ["first\nsecond", "third"]}]
    lines = render(pair, rows, 80).splitlines()
    assert next(line for line in lines if line.startswith("two")).split() == ["two", "third"]


def test_wrapped_lines_are_set_in():
    lines = render(COLUMNS, [{"a": "gpu1", "b": "word " * 12}], 40).splitlines()
    assert lines[2].split("  ")[1].startswith("word") and lines[3].strip().startswith("word")
    assert lines[3].index("word") == lines[2].index("word") + 2


def test_a_long_note_is_wrapped():
    text = paragraph("gpu1: " + "word " * 40, 60)
    assert max(len(line) for line in text.splitlines()) <= 60
    assert text.splitlines()[1].startswith("    word")


def test_an_optional_column_is_there_where_a_row_says_something():
    columns = [Column("a", "Node"), Column("b", "CRI-O", optional=True)]
    assert "CRI-O" not in render(columns, [{"a": "one", "b": []}, {"a": "two"}], 80)
    assert "CRI-O" in render(columns, [{"a": "one", "b": []}, {"a": "two", "b": ["x"]}], 80)


def test_a_table_shows_what_a_node_says_as_text():
    """A process with /dev/nvidia0 open is named so by its user; a hostname, a version likewise."""
    attack, shown = "\x1bc\x1b[8mhidden", "\\x1bc\\x1b[8mhidden"
    columns = [Column("a", "Node", below=("c",)), Column("b", "Why")]
    rows = [{"a": "gpu1\x9b", "b": [attack, "x\u202ey\u2028z"], "c": "\x7f"}]
    text = render(columns, rows, 80, f"Title {attack}")
    assert text.replace("\n", "").isprintable()
    assert text.splitlines()[0] == f"Title {shown}"
    assert text.splitlines()[-2:] == [f"gpu1\\x9b  {shown}", "\\x7f      x\\u202ey\\u2028z"]


def test_a_note_shows_what_a_node_says_as_text():
    [note] = notes([{"a": "gpu1", "n": ["in use by \x1b[2Jx (pid 4242)"]}], "n", "a")
    assert paragraph(note, 80) == "gpu1: in use by \\x1b[2Jx (pid 4242)"
