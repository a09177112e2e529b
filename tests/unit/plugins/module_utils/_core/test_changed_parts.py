# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The changed lines of two texts, as a diff shows them."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.changed_parts import changed_parts


def lines(count, name="line"):
    return "".join(f"{name} {number}\n" for number in range(count))


def test_only_what_changes_is_shown_with_three_lines_around_it():
    before = lines(40)
    after = before.replace("line 20\n", "line 20\nnew\n").replace("line 35\n", "")
    assert changed_parts(before, after) == (
        "[... 18 lines ...]\nline 18\nline 19\nline 20\nline 21\nline 22\nline 23\n"
        "[... 8 lines ...]\nline 32\nline 33\nline 34\nline 35\nline 36\nline 37\nline 38\n"
        "line 39\n",
        "[... 18 lines ...]\nline 18\nline 19\nline 20\nnew\nline 21\nline 22\nline 23\n"
        "[... 8 lines ...]\nline 32\nline 33\nline 34\nline 36\nline 37\nline 38\nline 39\n",
    )


@pytest.mark.parametrize("text", ["", "x\n", lines(5)])
def test_a_new_file_is_shown_whole(text):
    assert changed_parts("", text) == ("", text)
    assert changed_parts(text, "") == (text, "")


TEXTS = st.lists(st.sampled_from("abc"), max_size=40)


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_what_is_left_out_is_the_same_on_both_sides(head, old, new, tail):
    before = "".join(f"{x}\n" for x in (*head, *old, *tail))
    after = "".join(f"{x}\n" for x in (*head, *new, *tail))
    left_out = [
        list(omitted(whole, part))
        for whole, part in zip((before, after), changed_parts(before, after))
    ]
    assert left_out[0] == left_out[1]


def omitted(whole, part):
    """Yield the lines that a part of a text leaves out; the others stand in it in their order."""
    rest = whole.splitlines()
    for line in part.splitlines():
        number = re.fullmatch(r"\[\.\.\. (\d+) lines \.\.\.\]", line)
        if number:
            count = int(number[1])
            yield rest[:count]
            del rest[:count]
        else:
            assert rest.pop(0) == line
    assert rest == []


def test_two_large_files_that_differ_everywhere_take_no_time():
    begin = time.process_time()
    changed_parts("}\n" * 100_000 + "a\n", "{\n}\n" * 100_000)
    assert time.process_time() - begin < 5
