# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``dcgmi diag`` prints, in the forms of DCGM 3 and 4 (made after their schemas)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.dcgm import (
    judge_diag,
    read_diag,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.types import to_json
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.rules.dcgm_errors import (
    DCGM_ERRORS,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.gate import judge


def diag(*results, **more):
    states = [str(one["status"]).lower() for one in results]
    summary = next((one for one in ("fail", "warn", "pass") if one in states), "skip").title()
    software = {"name": "software", "results": [{"entity_id": 0, "status": "Pass"}]}
    memory = {"name": "memory", "results": list(results), "test_summary": {"status": summary}}
    categories = [{"category": "Deployment", "tests": [software]},
                  {"category": "Hardware", "tests": [memory]}]  # fmt: skip
    return {"DCGM Diagnostic": {"test_categories": categories},
            "metadata": {"version": "4.6"}, **more}  # fmt: skip


def answer(data, rc=0, before=""):
    return {"rc": rc, "stdout": before + json.dumps(data), "stderr": ""}


RECORDED = Path(__file__).parents[3] / "fixtures" / "acceptance"

FOUR = {
    "entity_group": "GPU", "entity_group_id": 1, "entity_id": 1, "status": "Fail",
    "warnings": [{"warning": "GPU 1 has bad\x1b memory", "error_id": 52, "error_severity": 2}],
}  # fmt: skip
THREE = {"gpu_id": "1", "status": "FAIL", "warnings": [{"warning": "GPU 1 has bad\x1b memory"}]}


def number_of(found):
    """Return DCGM's number of an error, as the result of the module has it."""
    shown = to_json(found)
    assert "names" not in shown and shown["subject"] == found.subject.place
    return shown.get("error_id")


def read(given, level=2):
    return read_diag(given, level=level, timeout="gpu_acceptance_timeout", otherwise="without it")


@pytest.mark.parametrize(
    ("result", "which"), [(FOUR, ": FAULTY_MEMORY (error 52, isolate)"), (THREE, "")]
)
def test_a_failed_test_is_a_finding_whatever_the_exit_status_is(result, which):
    for status in (0, 226):
        (found,) = judge_diag(answer(diag(result), status, "warning: library\n"))
        assert found.code == "dcgm_failed" and found.evidence == "GPU 1 has bad\\x1b memory"
        assert found.cause == f"The test memory of DCGM failed for GPU 1{which}."


def failed(number, severity=None, status="Fail"):
    warning = {"warning": "w", "error_id": number, "error_severity": severity}
    return {**FOUR, "status": status, "warnings": [warning]}


@pytest.mark.parametrize(
    ("number", "told", "action", "severity", "step"),
    [
        (52, None, "isolate", "error", "RMA"),
        (85, None, "reset", "error", "--gpu-reset"),
        (30, None, "triage", "error", "nvidia-bug-report.sh"),
        (55, None, "config", "error", "Correct the setting"),
        (42, None, "monitor", "warning", "Watch this GPU"),
        # The release that ran says something else than the table, or knows more than it.
        (42, 2, "isolate", "error", "RMA"),
        (9999, 4, "triage", "error", "nvidia-bug-report.sh"),
        (9999, None, "unknown", "error", "Read the message"),
        (52, "2", "isolate", "error", "RMA"),
        (52, True, "isolate", "error", "RMA"),
    ],
)
def test_the_severity_of_an_error_is_the_next_step(number, told, action, severity, step):
    (found,) = read(answer(diag(failed(number, told)))).judged
    assert (number_of(found), found.details["action"], found.severity) == (number, action, severity)
    assert step in found.next_step and f"(error {number}, {action})" in found.cause


def test_a_test_that_warns_fails_nobody_and_says_so():
    warned = answer(diag(failed(52, 2, "Warn")))
    (found,) = read(warned).judged
    assert (found.code, found.severity) == ("dcgm_warned", "warning")
    assert judge_diag(warned) == []


def test_two_errors_of_a_gpu_are_two_findings():
    both = {**FOUR, "warnings": [{"warning": "a", "error_id": 52}, {"warning": "b", "error_id": 30},
                                 {"warning": "c", "error_id": 52}]}  # fmt: skip
    found = read(answer(diag(both))).judged
    assert [(number_of(one), one.evidence) for one in found] == [(52, "a c"), (30, "b")]


def test_what_was_skipped_is_told():
    both = ({"entity_id": 0, "status": "Skip"}, {"entity_id": 1, "status": "Pass"})
    some = read(answer(diag(*both)))
    assert some.skipped == ("memory",) and [one.severity for one in some.judged] == ["info"]
    assert some.version == "4.6"


@pytest.mark.parametrize("status", ["Skip", "Not Run"])
def test_above_the_first_level_a_test_of_the_software_is_no_test_of_a_gpu(status):
    data = diag({"entity_id": 0, "status": status})
    (found,) = read(answer(data)).judged
    assert (found.code, found.severity) == ("dcgm_nothing_tested", "error")
    assert [one.severity for one in read(answer(data), level=1).judged] == ["info"]
    data["DCGM Diagnostic"]["test_categories"].pop(0)
    (found,) = read(answer(data), level=1).judged
    assert (found.code, found.severity) == ("dcgm_nothing_tested", "error")


@pytest.mark.parametrize(
    ("before", "after"),
    [("{0x7f} loaded\n", ""), ('{"level": "info"}\n', "\n} end {"), ("{" * 40, ""), ("", "{")],
)
def test_braces_of_others_do_not_hide_the_result(before, after):
    given = answer(diag(FOUR), before=before)
    given["stdout"] += after
    assert [one.code for one in read(given).judged] == ["dcgm_failed"]


def test_the_table_has_each_number_once():
    assert set(DCGM_ERRORS) == set(range(133))
    assert DCGM_ERRORS[30] == ("LOW_BANDWIDTH", "triage")
    assert len({name for name, _severity in DCGM_ERRORS.values()}) == len(DCGM_ERRORS)


def test_a_text_in_the_place_of_warnings_is_one():
    (found,) = read(answer(diag({**THREE, "warnings": "one text"}))).judged
    assert found.evidence == "one text" and number_of(found) is None


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


def recorded(name, **more):
    """Return the result of an output of a public report; SOURCES.md has their addresses."""
    return read_diag(
        {"rc": 0, "stdout": (RECORDED / name).read_text(), "stderr": ""},
        level=2, timeout="gpu_acceptance_timeout", otherwise="without it", **more,
    )  # fmt: skip


def test_a_test_that_passed_with_a_warning_says_so():
    (found,) = recorded("dcgm-284-pass-warning.json", gpus=1).judged
    assert (found.code, found.severity, found.subject.part) == (
        "dcgm_warned",
        "warning",
        "GPU 0",
    )
    assert "passed and warns for GPU 0" in found.cause and number_of(found) == 5
    assert found.evidence.startswith("Couldn't allocate at least 75.0%")


def test_an_error_of_no_gpu_is_told_once_with_its_number():
    (found,) = recorded("dcgm-summary-only.json", gpus=2).judged
    assert (found.code, found.severity, found.subject.part) == ("dcgm_failed", "error", "")
    assert (number_of(found), found.details["action"]) == (34, "triage")
    assert found.evidence.startswith("The fabric manager is not running")
    assert "nvidia-bug-report.sh" in found.next_step


FABRIC = {"warning": "fabric manager", "error_id": 108, "error_severity": 1}
LIBRARY = {"warning": "libcublas is missing", "error_id": 22, "error_severity": 4}


def summarized(status, warnings, *results):
    memory = {"name": "memory", "results": list(results),
              "test_summary": {"status": status, "warnings": warnings}}  # fmt: skip
    if not results:
        del memory["results"]
    return {"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [memory]}]}}


def gpu(number, status, *warnings):
    more = {"warnings": list(warnings)} if warnings else {}
    return {"entity_group": "GPU", "entity_id": number, "status": status, **more}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        # What DCGM wants to be watched only keeps nobody out, but ended the test of all.
        (summarized("Fail", [FABRIC], gpu(0, "Fail")), [("dcgm_failed", "error", "", 108)]),
        # Without any result of a GPU.
        (summarized("Fail", [LIBRARY]),
         [("dcgm_failed", "error", "", 22), ("dcgm_nothing_tested", "error", "", None)]),
        # The summary alone says that it failed.
        (summarized("Fail", [], gpu(0, "Pass")), [("dcgm_failed", "error", "", None)]),
        # Some releases repeat the errors of GPUs in it.
        (summarized("Fail", [LIBRARY, FABRIC], gpu(0, "Fail", LIBRARY)),
         [("dcgm_failed", "error", "GPU 0", 22), ("dcgm_failed", "error", "", 108)]),
        (summarized("Pass", [FABRIC], gpu(0, "Pass")), [("dcgm_warned", "warning", "", 108)]),
        (summarized("Skip", [LIBRARY], gpu(0, "Skip")),
         [("dcgm_nothing_tested", "error", "", None)]),
        (summarized("Skip", [LIBRARY]), [("dcgm_nothing_tested", "error", "", None)]),
    ],
)  # fmt: skip
def test_the_summary_of_a_test_counts(data, expected):
    found = read(answer(data)).judged
    assert [(o.code, o.severity, o.subject.part, number_of(o)) for o in found] == expected
    if "libcublas" in json.dumps(data):
        assert any("libcublas" in one.evidence for one in found)


@pytest.mark.parametrize(
    ("results", "gpus", "codes"),
    [
        ([gpu(0, "Pass"), gpu(1, "Pass")], 2, []),
        ([gpu(0, "Pass"), gpu(1, "Skip")], 2, ["dcgm_incomplete", "dcgm_skipped"]),
        ([gpu(0, "Pass")], 2, ["dcgm_incomplete"]),
        ([{"gpu_ids": "0,1", "status": "PASS"}], 2, []),
        ([{"gpu_ids": 0, "status": "PASS"}], 2, ["dcgm_incomplete"]),
        # Nothing says of which GPUs it is.
        ([{"status": "PASS"}], 2, []),
        # Other entities than GPUs are not counted.
        ([gpu(0, "Pass"), {"entity_group": "CPU", "entity_id": 1, "status": "Pass"}], 2,
         ["dcgm_incomplete"]),
    ],
)  # fmt: skip
def test_a_gpu_without_a_result_was_not_tested(results, gpus, codes):
    test = {"name": "memory", "results": results}
    # DCGM 3 has null between its tests.
    data = {"DCGM GPU Diagnostic": {
        "test_categories": [{"category": "Hardware", "tests": [test, None]}]}}  # fmt: skip
    found = read_diag(answer(data), level=2, timeout="t", otherwise="o", gpus=gpus)
    assert [one.code for one in found.judged] == codes


def test_a_result_that_is_cut_is_none():
    text = json.dumps(diag(FOUR))
    (found,) = read({"rc": 226, "stdout": text[: len(text) - 20], "stderr": ""}).judged
    assert found.code == "dcgm_not_run"


def test_the_gate_of_the_upgrade_takes_no_skipped_test_for_a_pass():
    data = summarized("Skip", [], gpu(0, "Skip"))
    assert [one.code for one in judge_diag(answer(data))] == ["dcgm_nothing_tested"]
