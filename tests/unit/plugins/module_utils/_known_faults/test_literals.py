# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Words without which a rule is not searched: a match without them would be lost."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.explain import explain
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.literals import required
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.rules.tables import (
    FAILURES,
)

PATTERNS = tuple(dict.fromkeys(row.pattern for row in FAILURES))


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"Error relocating (?:nvidia|libcuda): x", {"error relocating "}),
        (r"(?:abc|defg)h?", {"abc", "defg"}),
        (r"abc|\d+", set()),
        (r"(?:abcd)?efg", {"efg"}),
        (r"abcd?", {"abc"}),
        (r"abcd*e", {"abc"}),
        (r"abcd+e", {"abcd"}),
        (r"x{0,3}abc{2,4}", {"abc"}),
        (r"(?!abcdef)ghi(?=jklmno)", {"ghi"}),
        (r"(?<!abcdef)(?P<name>ghi)", {"ghi"}),
        (r"[]abc]def[^]x]", {"def"}),
        (r"\[drm\] \*ERROR\* x", {"[drm] *error* x"}),
        (r"\bab\b.", set()),
    ],
)
def test_words_of_a_pattern(pattern, words):
    assert required(pattern) == words


def test_nearly_all_rules_name_words():
    without = [pattern for pattern in PATTERNS if not required(pattern)]
    assert not without, "these are searched in each text: give them a word"


@given(st.data())
def test_what_a_rule_matches_has_one_of_its_words(data):
    pattern = data.draw(st.sampled_from(PATTERNS))
    expression = re.compile(pattern, re.IGNORECASE | re.DOTALL)
    text = data.draw(st.from_regex(expression, alphabet=st.characters(max_codepoint=126)))
    assert any(word in text.lower() for word in required(pattern))


def test_a_text_of_the_largest_size_is_read_in_a_second():
    line = "Nov 28 10:00:00 node1 kubelet[12]: the device plugin of nvidia.com/gpu says {}\n"
    text = "".join(line.format(number) for number in range(3600))
    start = time.process_time()
    assert explain(text) == []
    assert time.process_time() - start < 1.0
