# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A failed result as parts: one function reads it, and a node can have written it."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core import message as own
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import failure
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.results import (
    NO_MESSAGE,
    result_parts,
)

ERROR = KubegpuError(
    "The file is not valid.",
    evidence="line 3\nline 4",
    next_step="Correct it.",
    code="file_invalid",
    names={"path": "/etc/x"},
)
PARTS = {
    "cause": "The file is not valid.", "evidence": "line 3\nline 4", "next_step": "Correct it.",
    "code": "file_invalid", "names": {"path": "/etc/x"},
}  # fmt: skip


def test_an_error_of_the_collection_keeps_its_parts_however_its_message_is_worded(monkeypatch):
    assert result_parts(failure(ERROR)) == PARTS
    monkeypatch.setattr(own, "TITLES", {"evidence": "Vu", "next_step": "Ensuite"})
    reworded = failure(ERROR)
    assert "Ensuite: Correct it." in reworded["msg"] and result_parts(reworded) == PARTS


@pytest.mark.parametrize(
    ("result", "parts"),
    [
        ({"msg": "Task failed: No route\nto\nhost"}, {"cause": "No route", "evidence": "to\nhost"}),
        ({"module_stderr": "No python"}, {"cause": "No python"}),
        ({}, {"cause": NO_MESSAGE}),
        ({"msg": None, "cause": ["x"], "next_step": {"a": 1}}, {"cause": NO_MESSAGE}),
        # Without a cause the other parts are not those of an error.
        ({"msg": "m", "next_step": "rm -rf /"}, {"cause": "m"}),
    ],
)
def test_the_message_of_another_program(result, parts):
    assert result_parts(result) == parts


def test_what_a_node_writes_is_bounded_printable_and_without_secrets():
    hostile = "\x1b[2Jtoken=abcdef " + "x " * 100_000
    given = dict.fromkeys(("cause", "evidence", "next_step", "code"), hostile)
    found = result_parts({**given, "names": {hostile: hostile, "good": 5}, "severity": hostile})
    names = found.pop("names")
    assert set(found) == set(given)
    for text in (*found.values(), *names, *names.values()):
        assert len(text) <= 2000 + 20 and "\x1b" not in text and "abcdef" not in text
    assert "good" in names or len(names) == 1
