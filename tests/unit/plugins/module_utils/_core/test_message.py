# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The message of a finding: the same for errors, tables and reports."""

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import Finding
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.message import (
    TITLES,
    message,
    titled,
)

PARTS = {
    "cause": "It is broken.\n",
    "evidence": "line 1\nline 2\n",
    "next_step": "Mend it.",
    "fix": "mend --all",
    "follows": ["gpu_lost", "xid"],
}


def test_an_error_a_finding_and_a_result_have_one_message():
    expected = "It is broken.\nSeen: line 1\nline 2\nNext step: Mend it."
    assert message(PARTS) == expected
    texts = {name: PARTS[name] for name in ("cause", "evidence", "next_step")}
    assert str(KubegpuError(**texts)) == expected
    assert Finding("broken", **texts).message == expected


def test_parts_without_a_value_have_no_line():
    assert message({"cause": "It is broken.", "evidence": "", "next_step": None}) == "It is broken."
    assert message({}) == ""


def test_all_parts_as_lines_below_another_head():
    assert message(PARTS, head="xid: it is\n broken", names=TITLES, flat=True).splitlines() == [
        "xid: it is broken", "Seen: line 1 line 2", "Next step: Mend it.", "Fix: mend --all",
        "Follows from it: gpu_lost", "Follows from it: xid",
    ]  # fmt: skip


def test_one_line_with_the_next_step():
    one = message(PARTS, names=("next_step",), between=" ")
    assert one == "It is broken. Next step: Mend it."
    assert list(titled(PARTS, ("fix",))) == [("Fix", "mend --all")]
