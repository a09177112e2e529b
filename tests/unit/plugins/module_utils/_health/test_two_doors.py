# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A line of the kernel has one code, whoever reads it: health by itself, others by ``explain``."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.explain import explain
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.kernel_events import notes
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.reader import read
from tests.reports.corpus import cases

KERNEL = ("nvidia_kernel", "amd_kernel", "intel_kernel", "xids")
#: What health counts by the code of a rule; the others are Xids and versions.
CODED = ("driver", "kernel_driver")
CASES = [one for one in cases() if one.name.partition("/")[0] in KERNEL]


def counted(text):
    """Return line and code of what health counts in a text."""
    return [
        (line, note.key[3])
        for line in read(text).split("\n")
        for note in notes(line)
        if note.key[0] in CODED
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_line_of_the_corpus_has_one_code(case):
    differs = {
        line: (code, [one.code for one in explain(line)])
        for line, code in counted(case.text)
        if [one.code for one in explain(line)][:1] != [code]
    }
    assert differs == {}


def test_the_corpus_has_such_lines():
    assert len([one for case in CASES for one in counted(case.text)]) > 150
