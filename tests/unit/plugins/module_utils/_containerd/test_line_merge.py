# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A change taken back by lines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.line_merge import undo_lines
from tests.tools import tiers


@pytest.mark.parametrize(
    ("base", "ours", "current", "left", "conflict"),
    [
        ("a\nb\n", "a\nX\nb\n", "a\nX\nb\nc\n", "a\nb\nc\n", False),
        ("a\nb\n", "a\nX\nb\n", "0\na\nX\nb\n", "0\na\nb\n", False),
        ("a\nb\n", "a\nX\nb\n", "a\nb\n", "a\nb\n", False),
        ("a\nb\n", "a\nX\nY\nb\n", "a\nX\n# c\nY\nb\n", "a\n# c\nb\n", False),
        ("a\nb\n", "a\nX\nY\nb\n", "a\nX\nforeign\nY\nb\n", "a\nX\nforeign\nY\nb\n", True),
        ("a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\nd\n", "a\nb\nc\nd\n", False),
        ("a\nb\nc\n", "a\nB\nc\n", "a\nother\nc\n", "a\nother\nc\n", True),
        ("a\nb\nc\n", "a\nc\n", "a\nc\nd\n", "a\nb\nc\nd\n", False),
        ("a", "a\nX\n", "a\nX\nd\n", "a\nd\n", False),
        ("a", "a\nX\n", "a\nX\n", "a", False),
        ("", "X\n", "X\nd\n", "d\n", False),
        # The old last line had no line end, and a line of somebody else's comes after it.
        ("a", "a\nX\n", "a\n# c\nX\n", "a\n# c\n", False),
        ("a\r\nb", "a\r\nb\r\nX\r\n", "a\r\nb\r\n# c\r\nX\r\n", "a\r\nb\r\n# c\r\n", False),
        # A table as a whole between ours, and one that begins in the middle of a line run.
        ("a\nb\n", "a\n[X]\n[Y]\nb\n", "a\n[X]\n[d]\ne\n[Y]\nb\n", "a\n[d]\ne\nb\n", False),
        (
            "a\nb\n",
            "a\n[X]\n[Y]\nb\n",
            "a\n[X]\ne\n[d]\n[Y]\nb\n",
            "a\n[X]\ne\n[d]\n[Y]\nb\n",
            True,
        ),
    ],
)
def test_undo_lines(base, ours, current, left, conflict):
    assert undo_lines(base, ours, current) == (left, conflict)


LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "# c\n", "d = 1\n", "[e]\n"]), max_size=8)


@settings(max_examples=200 if tiers.is_full() else 25, deadline=None)
@given(LINES, LINES, st.integers(0, 8))
def test_undoing_an_insertion_gives_the_base_back(base, block, at):
    ours = base[:at] + block + base[at:]
    assert undo_lines("".join(base), "".join(ours), "".join(ours)) == ("".join(base), False)
