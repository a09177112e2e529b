# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node's texts may do to the terminal that shows them."""

from __future__ import annotations

import sys

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable

#: Names for a process that any user may choose, and other texts that a terminal would obey.
ATTACKS = {
    # 15 bytes: reset the terminal, hide what follows.
    "process": ("\x1bc\x1b[8mhidden", "\\x1bc\\x1b[8mhidden"),
    "clear": ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
    "c1": ("\x9b2J\x85next", "\\x9b2J\\x85next"),
    "delete": ("ok\x7f\x7fno\x08", "ok\\x7f\\x7fno\\x08"),
    "return": ("failed\rpassed", "failed\\rpassed"),
    "bidi": ("a\u202eb\u2066c\u200fd\u061ce", "a\\u202eb\\u2066c\\u200fd\\u061ce"),
    "separators": (
        "one\u2028two\u2029three\x0bfour\x0c",
        "one\\u2028two\\u2029three\\x0bfour\\x0c",
    ),
    "surrogate": ("\udc9b", "\\udc9b"),
    "tag": ("\U000e0041", "\\U000e0041"),
}


@pytest.mark.parametrize(("text", "shown"), ATTACKS.values(), ids=ATTACKS)
def test_nothing_that_a_terminal_obeys_is_left(text, shown):
    assert printable(text) == shown
    assert printable(shown) == shown


def test_every_code_of_c0_and_c1_is_escaped():
    for number in (*range(32), *range(127, 160)):
        one = printable(f"a{chr(number)}b")
        assert one == f"a{chr(number)}b" if chr(number) in "\n\t" else one.isascii()
        assert one.replace("\n", "").replace("\t", "").isprintable()


def test_nothing_that_is_not_printable_is_left():
    every = "".join(chr(number) for number in range(sys.maxunicode + 1))
    assert printable(every).replace("\n", "").replace("\t", "").isprintable()


@pytest.mark.parametrize(
    "text", ["", "NVIDIA A100-SXM4-40GB", "Größe 5 µs → 日本語 ✓", "two\n\tlines"]
)
def test_what_is_printable_stays(text):
    assert printable(text) == text


def test_lines_of_another_system_are_lines():
    assert printable("one\r\ntwo\r\n") == "one\ntwo\n"


def test_an_error_says_nothing_that_a_terminal_obeys():
    """A module's msg is shown by Ansible as it is, and says what a server or a program said."""
    attack, shown = ATTACKS["process"]
    error = KubegpuError(f"cause {attack}", evidence=f"{attack}\nsecond", next_step=attack)
    assert error.cause == f"cause {shown}"
    assert str(error) == f"cause {shown}\nSeen: {shown}\nsecond\nNext step: {shown}"
    assert str(error) == error.args[0]
