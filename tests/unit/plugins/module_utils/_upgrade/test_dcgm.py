# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``dcgmi diag`` prints, in the forms of DCGM 3 and 4 (made after their schemas)."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.dcgm import judge_diag
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.gate import judge


def diag(*results, **more):
    tests = [
        {"name": "software", "results": [{"entity_id": 0, "status": "Pass"}]},
        {"name": "memory", "results": list(results), "test_summary": {"status": "Fail"}},
    ]
    return {"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": tests}]},
            "metadata": {"version": "4.6"}, **more}  # fmt: skip


def answer(data, rc=0, before=""):
    return {"rc": rc, "stdout": before + json.dumps(data), "stderr": ""}


FOUR = {
    "entity_group": "GPU", "entity_group_id": 1, "entity_id": 1, "status": "Fail",
    "warnings": [{"warning": "GPU 1 has bad\x1b memory", "error_id": 52, "error_severity": 2}],
}  # fmt: skip
THREE = {"gpu_id": "1", "status": "FAIL", "warnings": [{"warning": "GPU 1 has bad\x1b memory"}]}


@pytest.mark.parametrize("result", [FOUR, THREE])
def test_a_failed_test_is_a_finding_whatever_the_exit_status_is(result):
    for status in (0, 226):
        (found,) = judge_diag(answer(diag(result), status, "warning: library\n"))
        assert found.code == "dcgm_failed" and found.evidence == "GPU 1 has bad\\x1b memory"
        assert found.cause == "The test memory of DCGM failed for GPU 1."


@pytest.mark.parametrize("status", ["Pass", "Skip", "Not Run", "Warn"])
def test_what_is_no_failure_is_no_finding(status):
    assert judge_diag(answer(diag({"entity_id": 0, "status": status}), 226)) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rc": 127, "stdout": "", "stderr": "dcgmi: not found"}, "not installed"),
        ({"rc": 124, "stdout": "", "stderr": ""}, "did not end in time"),
        ({"rc": 137, "stdout": "{", "stderr": ""}, "did not end in time"),
        ({"rc": 255, "stdout": "Error: unable to connect", "stderr": ""}, "exit status 255"),
        (answer({"DCGM Diagnostic": {"runtime_error": "busy"}}, 217), "exit status 217"),
        (answer({"other": 1}), "no result"),
        ({"rc": 0, "stdout": "[" * 100000 + "{", "stderr": ""}, "no result"),
        ({}, "not installed"),
    ],
)
def test_without_a_result_nothing_is_known(given, words):
    (found,) = judge_diag(given)
    assert found.code == "dcgm_not_run" and words in found.cause and found.next_step


def test_it_is_judged_only_if_it_is_asked_for():
    row = {"ready": True}
    assert judge(["health"], row=row, layers=[], health=[], diag=answer(diag(FOUR))) == []
    found = judge(["dcgm"], row=row, layers=[], health=[], diag=answer(diag(FOUR)))
    assert [one.code for one in found] == ["dcgm_failed"]
