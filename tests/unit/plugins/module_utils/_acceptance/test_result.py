# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of a node, and the report of a run."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.marks import (
    MARK,
    TAINT,
    marks,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.result import (
    before_tests,
    begun,
    judge,
    plan_rows,
    record,
    report,
    rows,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.acceptance import (
    ACCEPTANCE,
    read_acceptance,
)
from tests.unit.plugins.module_utils._acceptance.test_plan import DRIVER, UUIDS, facts, planned

OK = {"layer": "pci", "ok": True}
HEALTHY = {
    "findings": [],
    "new": None,
    "gpus": [{"address": "0000:30:00.0", "link": {"width": 16}}],
}
AT = "2026-11-24T02:00:00+00:00"
LOW = {"code": "dcgm_failed", "severity": "error", "subject": "GPU 1", "error_id": 30,
       "cause": "The test pcie of DCGM failed for GPU 1: LOW_BANDWIDTH (error 30, triage).",
       "evidence": "", "next_step": "Run it."}  # fmt: skip


def ran(findings=(), values=None, name="dcgm"):
    return {"test": name, "findings": list(findings), "measured": values or {}, "seconds": 3,
            "not_tested": [], "version": "4.6"}  # fmt: skip


def judged(tests=(), layers=(OK,), health=(HEALTHY, HEALTHY), expect=None, gpu_node=None):
    return judge(
        planned().to_json(), gpu_node or facts(), layers=layers, health=health, tests=tests,
        expect=expect or {}, at=AT,
    )  # fmt: skip


def codes(result):
    return [one["code"] for one in result["findings"]]


def test_a_node_without_an_error_passes():
    found = judged([ran([{**LOW, "severity": "warning"}]), ran(values={"h2d": {"0": 55.0}})])
    assert found["outcome"] == "passed" and found["values"] == {"h2d": {"0": 55.0}}
    assert record(found) == {
        "passed": True, "at": AT, "level": "standard", "driver": DRIVER, "gpus": UUIDS,
        "tests": ["dcgm", "dcgm"], "causes": [], "missing": [],
    }  # fmt: skip
    assert read_acceptance({"values": {ACCEPTANCE: record(found)}}) == record(found)


def test_the_record_names_what_was_not_installed():
    plan = planned(looked={"programs": {"dcgm": "/usr/bin/dcgmi"}}).to_json()
    found = judge(plan, facts(), layers=[OK], health=[HEALTHY], tests=[ran()], expect={}, at=AT)
    assert record(found)["missing"] == ["nvbandwidth"]
    assert read_acceptance({"values": {ACCEPTANCE: record(found)}})["missing"] == ["nvbandwidth"]


def test_tests_that_began_and_did_not_end_are_a_failure():
    found = begun(planned().to_json(), facts(), at=AT)
    assert read_acceptance({"values": {ACCEPTANCE: found}}) == found
    assert found["causes"] == ["the tests started but did not finish"]
    again = planned(facts(acceptance=found))
    assert again.action == "run" and again.reason == f"it failed {AT}"
    assert marks(facts(acceptance=found), required=True)["labels"] == {MARK: "failed"}
    assert marks(facts(acceptance=found), required=True)["taints"] == [TAINT]


@pytest.mark.parametrize(
    ("looked", "outcome", "code"),
    [
        ({"users": ["python (pid 7)"]}, "blocked", "gpus_in_use"),
        ({"msg": "No Python."}, "blocked", "not_looked_at"),
        ({"msg": "No route to host", "lost_connection": True}, "unreachable", "not_looked_at"),
    ],
)
def test_work_that_came_after_the_plan_blocks_the_node(looked, outcome, code):
    found = before_tests(looked)
    assert (found["outcome"], codes(found)) == (outcome, [code])
    assert before_tests({"users": []}) == {}


def test_an_error_of_any_part_fails_it():
    sick = {"code": "gpu_lost", "severity": "error", "address": "0000:30:00.0", "cause": "Lost."}
    for given, code in (
        ({"tests": [ran([LOW])]}, "dcgm_failed"),
        ({"layers": [OK, {"layer": "container", "ok": False, "cause": "No."}]}, "container_failed"),
        ({"layers": []}, "not_verified"),
        ({"health": [{**HEALTHY, "findings": [sick]}, HEALTHY]}, "gpu_lost"),
        ({"health": [HEALTHY, {**HEALTHY, "findings": [sick], "new": [sick]}]}, "gpu_lost"),
        ({"expect": {"gpus": 8}}, "gpu_count_differs"),
    ):
        found = judged(**given)
        assert found["outcome"] == "failed" and codes(found) == [code]
        assert record(found)["causes"] and not record(found)["passed"]


def test_what_was_there_before_is_not_told_twice():
    old = {"code": "gpu_lost", "severity": "error", "address": "a", "cause": "Lost."}
    after = {**HEALTHY, "findings": [old], "new": []}
    assert codes(judged(health=[{**HEALTHY, "findings": [old]}, after])) == ["gpu_lost"]


def test_a_warning_of_the_health_is_told_and_fails_nobody():
    narrow = {"code": "pcie_width", "severity": "warning", "address": "a", "cause": "Narrow."}
    found = judged(health=[{**HEALTHY, "findings": [narrow]}, HEALTHY])
    assert found["outcome"] == "passed" and found["findings"][0]["severity"] == "warning"


def test_the_hardware_is_compared_with_what_is_expected():
    wrong = judged(
        expect={"gpus": 8, "product": "H100", "ecc": False, "link_width": 32}
    )["findings"]  # fmt: skip
    assert [one["code"] for one in wrong] == [
        "gpu_count_differs", "product_differs", "ecc_differs", "product_differs", "ecc_differs",
        "link_narrow",
    ]  # fmt: skip
    right = {"gpus": 2, "product": "tesla", "ecc": True, "link_width": 16}
    assert judged(expect=right)["outcome"] == "passed"


def reported(results, plans=None, records=None, checked=False):
    made = plans or {name: planned().to_json() for name in results}
    return report(made, results, records or {}, ended=AT, checked=checked)


def test_the_report_tells_each_host():
    done = {"passed": True, "at": "2026-11-01T00:00:00+00:00", "level": "full", "driver": "1",
            "gpus": UUIDS, "tests": ["dcgm"], "causes": []}  # fmt: skip
    plans = {
        "a": planned().to_json(),
        "b": planned(facts(acceptance={**done, "driver": DRIVER})).to_json(),
        "c": planned(looked={"users": ["python (pid 7)"]}).to_json(),
        "d": planned().to_json(),
    }
    data = reported({"a": {**judged([ran([LOW])]), "held": True}}, plans, {"b": done})
    outcomes = {name: one["outcome"] for name, one in data["hosts"].items()}
    assert outcomes == {"a": "failed", "b": "unchanged", "c": "refused", "d": "not_started"}
    assert not data["ok"] and data["hosts"]["a"]["kept"] and not data["hosts"]["c"]["kept"]
    assert (data["hosts"]["b"]["at"], data["hosts"]["b"]["level"]) == (done["at"], "full")
    shown = {row["node"]: row for row in rows(data)}
    assert "GPU 1: The test pcie of DCGM failed for GPU 1: LOW_BANDWIDTH" in shown["a"]["notes"][0]
    assert "remains drained" in shown["a"]["notes"][-1] and "taint" in shown["a"]["notes"][-1]
    without = {**judged([ran([LOW])]), "held": True, "host_run": "gpu-acceptance"}
    note = rows(reported({"a": without}))[0]["notes"][-1]
    assert "taint" not in note
    assert note.endswith("-a 'name=a state=released run=gpu-acceptance'")
    assert shown["a"]["tests"] == ["dcgmi diag"] and shown["b"]["at"] == done["at"]
    assert reported({}, {"d": plans["d"]}, checked=True)["ok"]
    gone = {"outcome": "unreachable", "at": "", "findings": []}
    lost = reported({"a": gone}, records={"a": done})
    assert lost["hosts"]["a"]["at"] == "" and lost["hosts"]["a"]["level"] == "standard"


def test_slow_twins_are_told_but_fail_nobody():
    values = {"h2d": {"0": 12.0, "1": 12.0}}
    slow = {"h2d": {"0": 12.0, "1": 5.0}}
    data = reported({"a": judged([ran(values=values)]), "b": judged([ran(values=slow)])})
    assert data["ok"] and codes(data["hosts"]["b"]) == ["bandwidth_below_twins"]
    assert codes(data["hosts"]["a"]) == []


def test_the_table_of_the_plan_has_what_leaves_and_what_is_missing():
    plans = {"a": planned(looked={"programs": {}}, level="quick").to_json(),
             "b": planned(looked={"users": ["python (pid 7)"]}).to_json()}  # fmt: skip
    first, second = plan_rows(plans)
    assert first["tests"] == ["layers and health"] and first["leave"] == ["-"]
    assert first["notes"] == ["not installed, and so not run: dcgmi diag"]
    assert second["why"] == "refused, see below"
    assert second["notes"][0].startswith("Programs use the GPUs")
