# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate's judgement, when no further batch is started, and the report."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.etcd_quorum import Quorum
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.gate import (
    calls_for_rollback,
    judge,
    judge_restored,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.result import (
    not_saved,
    plan_rows,
    report,
    rows,
    taken,
    why_stop,
)

GATES = ("layers", "health", "pod")
READY = {"ready": True}


PROBLEM = {"code": "pdb_blocks", "cause": "The budget web blocks.", "next_step": "One replica."}

UNREGISTERED = {"code": "slurm_registration_invalid", "cause": "Slurm refuses it.",
                "evidence": "State=IDLE+INVALID_REG", "next_step": "slurmd -G"}  # fmt: skip


def layer(name, ok=True, **more):
    return {"layer": name, "ok": ok, "code": "", "cause": "", "evidence": "", "next_step": "",
            **more}  # fmt: skip


ALL = [layer("pci"), layer("nvml"), layer("allocatable"), layer("pod")]
WELL = {"findings": [], "new": []}
LOST = {"code": "gpu_lost", "severity": "error", "address": "0000:05:00.0", "cause": "It is lost.",
        "evidence": "Xid 79", "next_step": "power"}  # fmt: skip


def dcgm(status):
    """Return what dcgmi diag printed, with a test that ended so."""
    result = {"entity_group": "GPU", "entity_id": 0, "status": status, "warnings": []}
    tests = [{"name": "memory", "results": [result]}]
    diag = {"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": tests}]}}
    return {"rc": 226 if status == "Fail" else 0, "stdout": json.dumps(diag), "stderr": ""}


def verdict(**given):
    values = {"row": READY, "layers": ALL, "health": [WELL], **given}
    return [finding.code for finding in judge(values.pop("gates", GATES), **values)]


def test_a_good_node_passes():
    assert verdict() == []
    # A busy GPU was not tried, which is no failure.
    assert verdict(layers=[*ALL[:3], layer("pod", None)]) == []


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"row": None}, ["node_not_ready"]),
        ({"row": {"ready": False}}, ["node_not_ready"]),
        ({"row": {"ready": False, "findings": [UNREGISTERED]}}, ["slurm_registration_invalid"]),
        ({"row": {"ready": False, "findings": [PROBLEM]}}, ["node_not_ready"]),
        ({"reboot": "the driver is in use"}, ["reboot_left"]),
        ({"layers": [*ALL[:2]]}, ["not_verified"]),
        ({"layers": []}, ["not_verified", "not_verified"]),
        ({"layers": [layer("nvml", False, code="mismatch"), *ALL]}, ["mismatch"]),
        ({"layers": [*ALL, layer("pod", False)]}, ["pod_failed"]),
        ({"health": [{"findings": [LOST], "new": [LOST]}]}, ["gpu_lost"]),
        # It was like that before the change, and is told elsewhere.
        ({"health": [{"findings": [LOST], "new": []}]}, []),
        # Without a baseline all that is wrong counts.
        ({"health": [{"findings": [LOST], "new": None}]}, ["gpu_lost"]),
        ({"health": [{"new": [{**LOST, "severity": "warning"}]}]}, []),
        # The same after the soak is told once.
        ({"health": [{"new": [LOST]}, {"new": [LOST]}]}, ["gpu_lost"]),
        ({"gates": ("layers",), "health": [{"new": [LOST]}], "layers": ALL[:2]}, []),
        ({"gates": ("dcgm",), "diag": dcgm("Pass")}, []),
        ({"gates": ("dcgm",), "diag": dcgm("Fail")}, ["dcgm_failed"]),
        ({"gates": ("dcgm",), "diag": dcgm("Warn")}, []),
        ({"gates": ("dcgm",), "diag": dcgm("Skip")}, ["dcgm_nothing_tested"]),
        ({"gates": (*GATES, "dcgm"), "diag": {"rc": 127}}, ["dcgm_not_run"]),
        ({"gates": ("dcgm",), "diag": {"rc": 124, "stdout": ""}}, ["dcgm_not_run"]),
        # The task is skipped where it is not asked for.
        ({"gates": GATES, "diag": {"skipped": True}}, []),
    ],
)
def test_what_keeps_a_node_out(given, found):
    assert verdict(**given) == found


STAY = {"without_request": [], "containers": {}}
IN_USE = "The loaded module 570.1 is in use by dcgm (pid 7, container 4f2a9c1d5e6b). Stop it."
AGENT = {"namespace": "mon", "name": "dcgm-x", "sign": "RuntimeClass nvidia"}


@pytest.mark.parametrize(
    ("reboot", "stay", "evidence"),
    [
        # The node's own facts say which container it is: also of a pod without any sign.
        (IN_USE, {"containers": {"4f2a9c1d5e6b": "mon/agent", "aaaaaaaaaaaa": "x/y"},
                  "without_request": [AGENT]},
         "pods that stayed and use the driver: mon/agent"),
        (IN_USE, {"containers": {"aaaaaaaaaaaa": "x/y"}, "without_request": [AGENT]},
         "pods that stayed and may use GPUs without a request: mon/dcgm-x (RuntimeClass nvidia)"),
        (IN_USE, {}, ""),
        (IN_USE, None, ""),
        # Another reason for a reboot has nothing to do with them.
        ("the kernel has no module", {"without_request": [AGENT]}, ""),
    ],
)  # fmt: skip
def test_a_pod_that_keeps_the_driver_loaded_is_named(reboot, stay, evidence):
    (found,) = judge(GATES, row=READY, layers=ALL, health=[WELL], reboot=reboot, stay=stay)
    assert (found.code, found.evidence) == ("reboot_left", evidence)
    assert ("kubegpu.nodes/pause" in found.next_step) is bool(evidence)


def test_what_stays_on_a_node_is_taken_from_all_answers():
    rows = [{"without_request": [AGENT], "containers": {"a": "x/y"}}, {"containers": {"b": "x/z"}}]
    found = taken([{"nodes": {"gpu1": row}} for row in rows], "gpu1")
    assert found["stay"] == {
        "without_request": [AGENT], "containers": {"a": "x/y", "b": "x/z"},
    }  # fmt: skip


def test_a_finding_has_cause_evidence_and_next_step():
    (found,) = judge(GATES, row=READY, layers=ALL, health=[{"new": [LOST]}])
    assert (found.cause, found.evidence, found.next_step) == (
        "It is lost. (0000:05:00.0)", "Xid 79", "power",
    )  # fmt: skip


def limits(limit):
    return {"limit": limit, "hosts": {}}


@pytest.mark.parametrize(
    ("outcomes", "allowed", "stops"),
    [
        ({"a": "done", "b": "unchanged", "c": "blocked"}, 0, False),
        ({"a": "failed"}, 0, True),
        ({"a": "failed"}, 1, False),
        ({"a": "rolled_back", "b": "unreachable"}, 1, True),
    ],
)
def test_failures_end_the_rollout(outcomes, allowed, stops):
    assert bool(why_stop(allowed, outcomes, ["d"], [], limits(1), Quorum(), [])) is stops


def test_a_batch_waits_for_room():
    assert "x, y are out already" in why_stop(0, {}, ["a"], ["y", "x"], limits(2), Quorum(), [])
    assert not why_stop(0, {}, ["a"], ["x"], limits(2), Quorum(), [])
    # The batch itself is out already, as after an interrupted run.
    assert not why_stop(0, {}, ["x"], ["x", "y"], limits(1), Quorum(), [])


def test_a_batch_does_not_take_the_quorum():
    def stop(restarts, *away, count=3):
        quorum = Quorum(frozenset("abcde"[:count]), frozenset(away))
        return why_stop(9, {"a": "failed"}, ["b", "x"], ["a"], limits(9), quorum, restarts)

    said = "c of the control plane are not ready, and it would lose its quorum while b restart"
    assert stop(["b"], "c") == said
    # All are ready, the batch takes none away, and of five two may be spared.
    assert not stop(["b"]) and not stop([], "c") and not stop(["b"], "c", count=5)


def test_the_rollback_is_for_what_is_wrong_with_the_node():
    assert calls_for_rollback([{"code": "reboot_left"}, {"code": "gpu_lost"}])
    assert not calls_for_rollback([{"code": "gate_failed"}, {"code": "not_verified"}])
    # A hook before the change tells nothing of the change, also of one that an earlier run began.
    assert not calls_for_rollback([{"code": "early_hook_failed"}])
    # A test that failed shows something of the GPUs, one that did not run nothing.
    assert calls_for_rollback([{"code": "dcgm_failed"}])
    assert not calls_for_rollback([{"code": "dcgm_not_run"}, {"code": "dcgm_nothing_tested"}])
    assert calls_for_rollback([{"code": "hook_failed"}])


BEFORE = {"driver": "550.1", "kernel_module": "open", "source": "nvidia", "toolkit": "1.17.8",
          "cuda": ["12.4"]}  # fmt: skip


@pytest.mark.parametrize(
    ("record", "now", "missed"),
    [
        ({}, {}, []),
        # Another run has moved the driver's own record on.
        ({}, {"driver": "565.1"}, ["driver"]),
        ({}, {"driver": ""}, ["driver"]),
        ({}, {"kernel_module": "proprietary"}, ["type of the kernel module"]),
        ({}, {"toolkit": "1.18.0"}, ["container toolkit"]),
        ({}, {"cuda": ["12.6"]}, ["CUDA toolkits"]),
        # What was not there before stays.
        ({"cuda": []}, {"cuda": ["12.6"]}, []),
        ({}, {"cuda": ["12.4", "12.6"]}, []),
        ({"driver": "", "kernel_module": "", "toolkit": ""}, {}, []),
        # A record of an earlier version of the collection.
        ({"kernel_module": None}, {"kernel_module": "proprietary"}, []),
    ],
)
def test_the_rollback_has_to_arrive(record, now, missed):
    found = judge_restored({**BEFORE, **record}, {**BEFORE, **now})
    assert [one.code for one in found] == ["not_restored"] * len(missed)
    assert all(what in one.cause for what, one in zip(missed, found))


def test_a_rollback_that_did_not_arrive_is_told_with_both_versions():
    (found,) = judge_restored(BEFORE, {**BEFORE, "driver": "565.1"})
    assert "550.1" in found.cause and "565.1" in found.evidence and found.next_step


def test_what_the_drains_of_a_host_left():
    web = {"namespace": "ml", "name": "web-0"}
    answers = [
        {"nodes": {"a.example": {"findings": [], "evicted": []}}},
        {"nodes": {"a.example": {"findings": [PROBLEM], "evicted": [web]}, "b": {}}},
    ]
    assert taken(answers, "a.example") == {
        "evicted": ["ml/web-0"], "findings": [PROBLEM], "stay": STAY,
    }  # fmt: skip
    assert taken(answers, "b") == {"evicted": [], "findings": [], "stay": STAY}
    (finding,) = taken([{"msg": "No route", "failed": True}], "b")["findings"]
    assert finding["code"] == "cluster_not_asked" and finding["cause"] == "No route"


def planned(name, action="change", **more):
    return {"node": name, "action": action, "disturbs": "all", "pods": "all", "batch": 1,
            "changes": ["load load 580"], "leave": ["ml/web"], "findings": [], "blocks": [],
            **more}  # fmt: skip


def plan(*hosts, **more):
    return {"run": "gpu-upgrade", "refused": False, "findings": [], "limit": 1,
            "hosts": {one["node"]: one for one in hosts}, **more}  # fmt: skip


def told(found, results=None, **more):
    return report(found, results or {}, began="a", ended="b", **more)


def test_each_host_has_an_outcome():
    found = plan(
        planned("a"), planned("b", "none"), planned("c", "refuse", findings=[PROBLEM]),
        planned("d"), planned("e", "resume"),
    )  # fmt: skip
    results = {
        "a": {"outcome": "done", "from": {"driver": "550.1"}, "to": {"driver": "580.2"}},
        "d": {"outcome": "rolled_back", "rolled_back_because": "nvml: it did not answer"},
    }
    results["e"] = {"outcome": "not_started", "stopped": "1 failed (d)"}
    data = told(found, results)
    outcomes = {name: one["outcome"] for name, one in data["hosts"].items()}
    assert outcomes == {
        "a": "done", "b": "unchanged", "c": "refused", "d": "rolled_back", "e": "not_started",
    }  # fmt: skip
    assert not data["ok"] and data["stopped"] == "1 failed (d)"
    table = {one["node"]: one for one in rows(data)}
    assert table["a"]["driver"] == "550.1 to 580.2" and table["a"]["notes"] == []
    assert "not started: 1 failed (d)" in table["e"]["notes"]
    assert table["c"]["notes"] == ["The budget web blocks. Next step: One replica."]
    assert table["d"]["notes"] == ["restored, because: nvml: it did not answer"]


def test_a_run_is_ok_if_all_are_done_or_need_nothing():
    assert told(plan(planned("a"), planned("b", "none")), {"a": {"outcome": "done"}})["ok"]
    assert told(plan(planned("a")), checked=True)["hosts"]["a"]["outcome"] == "planned"
    assert told(plan(planned("a")), checked=True)["ok"]
    assert not told(plan(planned("a"), refused=True), checked=True)["ok"]


FULL = {"failed": False, "cause": "apt-get failed.", "evidence": "E: No space", "msg": "x"}
LOST_AT_SAVE = {"failed": False, "msg": "a became unreachable", "lost_connection": True}


@pytest.mark.parametrize(
    ("answer", "required", "outcome"),
    [
        ({"not_available": []}, True, None),
        # Of a part that is not changed.
        ({"not_available": ["nvidia-container-toolkit"]}, True, None),
        ({"not_available": ["nvidia-open"]}, True, "blocked"),
        ({"not_available": ["nvidia-open"]}, False, ""),
        (FULL, True, "blocked"),
        (FULL, False, ""),
        (LOST_AT_SAVE, True, "unreachable"),
        (LOST_AT_SAVE, False, "unreachable"),
    ],
)
def test_packages_that_are_not_saved_end_an_upgrade_only_where_a_rollback_is_required(
    answer, required, outcome
):
    noted = not_saved(answer, {"nvidia-open": "550.1-1"}, required=required)
    if outcome is None:
        assert noted == {}
        return
    (finding,) = noted["findings" if outcome else "warnings"]
    assert finding["code"] == "not_saved" and finding["next_step"]
    assert noted.get("outcome", "") == outcome
    told_by = answer.get("cause") or answer.get("msg") or "nvidia-open"
    assert told_by.rstrip(".") in finding["cause"] and ".." not in finding["cause"]
    assert finding["evidence"] == answer.get("evidence", "")


def test_a_warning_is_told_of_a_node_that_is_done():
    # No package is changed, as for a MIG layout: its rollback needs none.
    noted = {"outcome": "done", **not_saved(FULL, {}, required=True)}
    data = told(plan(planned("a"), planned("b")), {"a": noted, "b": {"outcome": "done"}})
    assert data["ok"] and data["hosts"]["a"]["warnings"] == noted["warnings"]
    first, second = rows(data)
    assert "apt-get failed" in first["notes"][0] and second["notes"] == []


@pytest.mark.parametrize("checked", [False, True])
def test_a_host_that_did_not_answer_at_the_begin_is_in_the_report(checked):
    data = told(plan(planned("a", "none"), not_read=["b"]), checked=checked)
    assert {name: one["outcome"] for name, one in data["hosts"].items()} == {
        "a": "unchanged", "b": "unreachable",
    }  # fmt: skip
    assert not data["ok"] and data["hosts"]["a"].keys() == data["hosts"]["b"].keys()
    (finding,) = data["hosts"]["b"]["findings"]
    assert finding["code"] == "not_read" and finding["next_step"]
    table = {one["node"]: one for one in rows(data)}
    assert table["b"]["batch"] == "-" and table["b"]["driver"] == "-"
    assert "took no part" in table["b"]["notes"][0]
    assert "nothing on it was changed" in table["b"]["notes"][-1]


@pytest.mark.parametrize("outcome", ["failed", "unreachable"])
@pytest.mark.parametrize(
    ("began", "words"),
    [(True, "-e gpu_upgrade_release=true"), (False, "nothing on it was changed")],
)
def test_a_node_that_failed_has_a_next_step(outcome, began, words):
    result = {"outcome": outcome, "findings": [PROBLEM], "began": began}
    (one,) = rows(told(plan(planned("a")), {"a": result}))
    assert words in one["notes"][-1]
    assert ("remains drained" in one["notes"][-1]) is began


def test_a_rollback_that_failed_is_told_as_such():
    result = {"outcome": "failed", "began": True, "rolled_back_because": "nvml: no answer"}
    (one,) = rows(told(plan(planned("a")), {"a": result}))
    assert one["notes"][0].startswith("not restored completely; it failed, because: nvml")
    # What failed came after the rollback: a hook, or giving the node back.
    (one,) = rows(told(plan(planned("a")), {"a": {**result, "passed": True}}))
    assert one["notes"][0] == "restored, because: nvml: no answer"


def test_the_table_of_the_plan():
    found = plan(planned("a", blocks=[PROBLEM]), planned("b", "none", leave=[], changes=[]))
    first, second = plan_rows(found)
    assert first["leave"] == ["ml/web"] and first["disturbs"] == "all"
    assert first["notes"] == ["The budget web blocks. Next step: One replica."]
    assert (second["changes"], second["disturbs"], second["leave"]) == (["-"], "-", ["-"])
