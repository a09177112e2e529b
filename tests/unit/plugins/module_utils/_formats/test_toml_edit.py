# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Edits of TOML text, with a real parser as the oracle."""

from __future__ import annotations

import difflib
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._formats.toml_edit import (
    Document,
    render,
    render_key,
)
from tests.tools import tiers
from tests.unit.toml_documents import KEYS, SCALARS, documents


def at(data, path):
    for part in path:
        data = data[part]
    return data


@pytest.mark.parametrize(
    ("text", "path", "literal"),
    [
        ("a = 1", ("a",), "1"),
        ("a = 1 # one", ("a",), "1"),
        ("a.b . c = 'x'\n", ("a", "b", "c"), "'x'"),
        ('"a.b" = 2\n', ("a.b",), "2"),
        ("[t]\na = [1, # [\n 2,]\n", ("t", "a"), "[1, # [\n 2,]"),
        ('[t."u v"]\r\na = """x\r\n[n]\r\n"""\r\n', ("t", "u v", "a"), '"""x\r\n[n]\r\n"""'),
        ("a = {b = {c = 'd}'}, e = 1}\n", ("a", "b", "c"), "'d}'"),
        ("a = '''it's '' fine''''\n", ("a",), "'''it's '' fine''''"),
        ('a = "q\\"]"\n[x]\n', ("a",), '"q\\"]"'),
        ("\ufeffa = 1979-05-27 07:32:00Z\n", ("a",), "1979-05-27 07:32:00Z"),
        ("[[x]]\na = 1\n[y]\na = 2\n", ("y", "a"), "2"),
        ('"\\u0061" = 1\n', ("a",), "1"),
    ],
)
def test_find(text, path, literal):
    document = Document(text)
    assert document.literal(document.find(path)) == literal


def test_tables_below_an_array_are_not_taken_for_tables():
    document = Document("[[x]]\na = 1\n[x.y]\nb = 1\n")
    assert document.find(("x", "a")) is None
    assert document.find(("x", "y", "b")) is None
    with pytest.raises(InputError, match="array of tables"):
        document.set(("x", "c"), 1)


@pytest.mark.parametrize(
    ("text", "path", "value", "result"),
    [
        # one value is one line, and its comment stays
        ("a = 0x1  # hex\nb = 2\n", ("a",), 3, "a = 3  # hex\nb = 2\n"),
        ("[t]\n  a = 1\n\n[u]\n", ("t", "b"), True, "[t]\n  a = 1\n  b = true\n\n[u]\n"),
        ("[t]\na = 1", ("t", "b"), 2, "[t]\na = 1\nb = 2\n"),
        ("# top\n[t]\n", ("v",), 2, "v = 2\n# top\n[t]\n"),
        ("v = 1\n\n[t]\n", ("w",), [], "v = 1\nw = []\n\n[t]\n"),
        ("[t]\r\na = 1\r\n", ("t", "b"), 2, "[t]\r\na = 1\r\nb = 2\r\n"),
        # inline tables are edited inside their line
        ("r = { a = { b = 1 } } # c\n", ("r", "n", "k"), "x",
         'r = { a = { b = 1 }, n = { k = "x" } } # c\n'),
        ("r = {}\n", ("r", "k"), 1, "r = { k = 1 }\n"),
        ("r = { a = { b = 1 } }\n", ("r", "a", "b"), 2, "r = { a = { b = 2 } }\n"),
        # what dotted keys made may not be a header as well
        ("[t]\nr.a.b = 1\nz = 2\n", ("t", "r", "n", "k"), 1,
         "[t]\nr.a.b = 1\nr.n.k = 1\nz = 2\n"),
        # a new table comes after its kin, and the comments that close that
        ("[p.c.r.x]\n  a = 1\n  # b = 2\n\n[q]\n", ("p", "c", "r", "n", "k"), 1,
         "[p.c.r.x]\n  a = 1\n  # b = 2\n\n[p.c.r.n]\n  k = 1\n\n[q]\n"),
        ("[p.c.r.x]\na = 1\n# about q\n[q]\n", ("p", "c", "r", "n", "k"), 1,
         "[p.c.r.x]\na = 1\n\n[p.c.r.n]\nk = 1\n\n# about q\n[q]\n"),
        ("[p]\n  [p.c]\n    a = 1\n", ("p", "c", "r", "k"), 1,
         "[p]\n  [p.c]\n    a = 1\n\n    [p.c.r]\n      k = 1\n"),
        ("[p.c.r.x]\n", ("p", "c", "r", "k"), 1, "[p.c.r.x]\n\n[p.c.r]\nk = 1\n"),
    ],
)  # fmt: skip
def test_set(text, path, value, result):
    edited = Document(text).set(path, value)
    assert edited.text == result
    assert at(tomllib.loads(edited.text.replace("\r\n", "\n")), path) == value


def test_set_into_a_scalar_is_refused():
    with pytest.raises(InputError, match="not a table"):
        Document("a = 1\n").set(("a", "b"), 2)


@pytest.mark.parametrize(
    ("text", "path", "result"),
    [
        ("a = 1\nb = 2\n", ("a",), "b = 2\n"),
        ("[x]\na = 1\n\n[y]\nb = 1\n\n[z]\n", ("y",), "[x]\na = 1\n\n[z]\n"),
        ("[x]\na = 1\n\n[y]\n[y.z]\nb = 1\n", ("y",), "[x]\na = 1\n"),
        ("r = { a = 1, b = 2, c = 3 }\n", ("r", "a"), "r = { b = 2, c = 3 }\n"),
        ("r = { a = 1, b = 2, c = 3 }\n", ("r", "b"), "r = { a = 1, c = 3 }\n"),
        ("r = { a = 1, b = 2 }\n", ("r", "b"), "r = { a = 1 }\n"),
        ("[t]\nx.a = 1\nx.b.c = 2\ny = 3\n", ("t", "x"), "[t]\ny = 3\n"),
    ],
)
def test_delete(text, path, result):
    assert Document(text).delete(path).text == result


@pytest.mark.parametrize(
    ("text", "index", "result"),
    [
        ('d = ["a", "b", "c"]\n', 0, 'd = ["b", "c"]\n'),
        ('d = ["a", "b", "c"]\n', 2, 'd = ["a", "b"]\n'),
        ('d = ["a"] # x\n', 0, "d = [] # x\n"),
        ('d = [\n  "a", # one\n  "b",\n]\n', 1, 'd = [\n  "a", # one\n]\n'),
    ],
)
def test_delete_element(text, index, result):
    edited = Document(text).delete_element(("d",), index)
    assert edited.text == result
    wanted = tomllib.loads(text)["d"]
    del wanted[index]
    assert tomllib.loads(edited.text)["d"] == wanted


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ('i = ["a"]\n', 'i = ["a", "b"]\n'),
        ('i = [\n  "a", # x\n]\n', 'i = [\n  "a", "b", # x\n]\n'),
        ("i = []\n", 'i = ["b"]\n'),
        ("[t]\n", 'i = ["b"]\n[t]\n'),
    ],
)
def test_append_element(text, result):
    edited = Document(text).append_element(("i",), "b")
    assert edited.text == result
    assert tomllib.loads(edited.text)["i"][-1] == "b"


@pytest.mark.parametrize("text", ["a", "a =", "[a", 'a = "x', "a = {b}"])
def test_what_is_no_toml_is_refused_with_the_line(text):
    with pytest.raises(InputError, match="line 2"):
        Document(f"ok = 1\n{text}\n").sections  # noqa: B018


@given(st.text(max_size=40))
def test_strings_and_keys_are_rendered_as_they_are_read(text):
    for quote in "\"'":
        assert tomllib.loads(f"a = {render(text, quote)}")["a"] == text
        assert tomllib.loads(f"{render_key(text, quote)} = 1") == {text: 1}


@settings(max_examples=200 if tiers.is_full() else 25, deadline=None)
@given(documents(), st.lists(KEYS, min_size=1, max_size=4), SCALARS)
def test_an_edit_means_what_it_says_and_can_be_taken_back(text, path, value):
    before = tomllib.loads(text)
    path = tuple(path)
    try:
        edited = Document(text).set(path, value)
    except InputError:
        # The way leads through a plain value.
        return
    try:
        replaced = isinstance(at(before, path), dict)
    except (KeyError, TypeError):
        replaced = None
    if replaced:
        return
    after = tomllib.loads(edited.text)
    assert at(after, path) == value
    # Every line of before is still there, in its order, but for the one with the value.
    kept = difflib.SequenceMatcher(
        None, text.splitlines(), edited.text.splitlines(), autojunk=False
    ).get_matching_blocks()
    assert len(text.splitlines()) - sum(block.size for block in kept) <= 1
    if replaced is None:
        gone = tomllib.loads(edited.delete(path).text)
        assert without_empty(gone) == without_empty(before)


def without_empty(data):
    if not isinstance(data, dict):
        return data
    kept = {key: without_empty(value) for key, value in data.items()}
    return {key: value for key, value in kept.items() if value != {}}
