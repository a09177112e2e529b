# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which node is tested, with what, and what marks it in the cluster."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.marks import MARK, marks
from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.options import (
    read_request,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.plan import (
    Host,
    plan_host,
    plan_without_gpus,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.result import report
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.acceptance import (
    ACCEPTANCE,
    read_acceptance,
)
from tests.unit.fixtures.node_facts import installed, node

UUIDS = ["GPU-a", "GPU-b"]
DRIVER = "580.126.09"
PROGRAMS = {"dcgm": "/usr/bin/dcgmi", "nvbandwidth": "/opt/nvbandwidth/nvbandwidth",
            "gpu_burn": "/opt/gpu-burn/gpu_burn"}  # fmt: skip
DONE = {"passed": True, "at": "2026-11-23T10:00:00+00:00", "level": "standard", "driver": DRIVER,
        "gpus": UUIDS, "tests": ["dcgm"], "causes": [], "missing": []}  # fmt: skip
IDLE = {"node": "gpu1", "findings": [], "evicted": [], "waiting": []}


def facts(uuids=None, name="Tesla T4", mig=None, **changes):
    devices = [
        {"uuid": uuid, "address": f"0000:3{number}:00.0", "name": name, "mig_mode": mig,
         "ecc_mode": "enabled", "memory_total": 15360, "mig_devices": []}
        for number, uuid in enumerate(UUIDS if uuids is None else uuids)
    ]  # fmt: skip
    nvml = {"driver_version": DRIVER, "cuda_version": "13.0", "devices": devices}
    return installed(driver__loaded=DRIVER, nvml=nvml, **changes)


def planned(gpu_node=None, looked=None, drain=..., failure="", **options):
    host = Host(
        "gpu1", gpu_node or facts(), {"programs": PROGRAMS, "users": [], **(looked or {})},
        IDLE if drain is ... else drain, failure,
    )  # fmt: skip
    return plan_host(read_request(options), host)


def codes(found):
    return [one.code for one in found.findings]


@pytest.mark.parametrize(
    ("level", "tests"),
    [
        ("quick", [("dcgm", 1, 600)]),
        ("standard", [("dcgm", 2, 1800), ("nvbandwidth", 2, 900)]),
        ("burn_in", [("dcgm", 3, 10800), ("nvbandwidth", 3, 900), ("gpu_burn", 3, 3900)]),
        ("full", [("dcgm", 4, 43200), ("nvbandwidth", 4, 900), ("gpu_burn", 4, 3900)]),
    ],
)
def test_the_level_says_what_is_run(level, tests):
    found = planned(level=level)
    assert found.action == "run" and found.reason == "it was not accepted yet"
    assert [(one["test"], one["diag_level"], one["timeout"]) for one in found.tests] == tests
    assert {one["gpus"] for one in found.tests} == {2}


def test_limits_are_those_of_the_product_unless_others_are_given():
    (dcgm, bandwidth) = planned(facts(name="NVIDIA H100 80GB HBM3"), thresholds={"d2h": None,
                                "p2p": 400}, timeout=7).tests  # fmt: skip
    assert bandwidth["thresholds"] == {"h2d": 52, "p2p": 400} and dcgm["timeout"] == 7


def test_a_missing_program_is_left_out_and_told():
    found = planned(looked={"programs": {"dcgm": "/usr/bin/dcgmi"}}, level="full")
    assert [one["test"] for one in found.tests] == ["dcgm"]
    assert found.missing == ("nvbandwidth", "gpu_burn")
    assert planned(level="full", gpu_burn="never", looked={"programs": {}}).missing == (
        "dcgm", "nvbandwidth",
    )  # fmt: skip


def test_a_required_program_is_not_left_out():
    found = planned(looked={"programs": {"dcgm": "/usr/bin/dcgmi"}}, nvbandwidth="required")
    assert found.action == "refuse" and codes(found) == ["tool_missing"]
    assert "gpu_acceptance_nvbandwidth" in found.findings[0].cause


def test_a_level_without_any_program_is_refused_but_the_quick_one_needs_none():
    assert codes(planned(looked={"programs": {}})) == ["no_tool"]
    found = planned(looked={"programs": {}}, level="quick")
    assert found.action == "run" and found.tests == () and found.missing == ("dcgm",)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"gpu_node": node()}, "driver_not_ready"),
        ({"gpu_node": facts(uuids=[])}, "driver_not_ready"),
        ({"gpu_node": facts(mig="enabled")}, "mig_is_on"),
        ({"looked": {"users": ["python (pid 7)"]}}, "gpus_in_use"),
        ({"drain": {**IDLE, "evicted": [{"namespace": "ml", "name": "web"}]}}, "gpus_in_use"),
        ({"drain": {**IDLE, "waiting": [{"namespace": "ml", "name": "web"}]}}, "gpus_in_use"),
        ({"drain": {**IDLE, "findings": [{"code": "unmanaged_pod", "cause": "x", "pod": "a/b"}]}},
         "gpus_in_use"),
        ({"drain": {**IDLE, "findings": [{"code": "held_by_other", "cause": "r2"}]}},
         "held_by_other"),
        ({"failure": "It did not answer."}, "not_looked_at"),
    ],
)  # fmt: skip
def test_what_refuses_a_node(given, code):
    found = planned(**given)
    assert found.action == "refuse" and codes(found) == [code] and found.findings[0].cause


def test_pods_leave_only_if_they_may():
    drain = {**IDLE, "evicted": [{"namespace": "ml", "name": "web"}],
             "findings": [{"code": "pdb_blocks", "cause": "The budget."}]}  # fmt: skip
    assert codes(planned(drain=drain)) == ["gpus_in_use"]
    host = Host("gpu1", facts(), {"programs": PROGRAMS}, {**drain, "findings": []})
    found = plan_host(read_request({"drain": True}), host)
    assert found.action == "run" and found.leave == ("ml/web",)
    blocked = plan_host(
        read_request({"drain": True}), Host("gpu1", facts(), {"programs": PROGRAMS}, drain)
    )
    assert codes(blocked) == ["pdb_blocks"]


@pytest.mark.parametrize(
    ("done", "options", "reason"),
    [
        ({}, {}, ""),
        ({}, {"level": "quick"}, ""),
        ({}, {"level": "burn_in"}, "at the level standard only"),
        ({}, {"again": True}, "gpu_acceptance_again is set"),
        ({"passed": False}, {}, "it failed 2026-11-23"),
        ({"driver": "570.1"}, {}, "its driver was 570.1, and is 580.126.09"),
        ({"gpus": ["GPU-a", "GPU-c"]}, {}, "its GPUs are others"),
        ({"level": "of a later release"}, {}, "only"),
    ],
)
def test_a_node_is_not_tested_twice_without_a_reason(done, options, reason):
    found = planned(facts(acceptance={**DONE, **done}), **options)
    assert found.action == ("run" if reason else "none") and reason in found.reason
    if not reason:
        assert "accepted 2026-11-23T10:00:00+00:00 at the level standard" in found.reason


@pytest.mark.parametrize(
    ("options", "variable"),
    [
        ({"level": "much"}, "gpu_acceptance_level"),
        ({"burn_minutes": 0}, "gpu_acceptance_burn_minutes"),
        ({"timeout": -1}, "gpu_acceptance_timeout"),
        ({"timeout": 3600, "level": "burn_in"}, "gpu_acceptance_timeout"),
        ({"thresholds": {"h2d": "fast"}}, "gpu_acceptance_thresholds.h2d"),
        ({"thresholds": {"h2d": True}}, "gpu_acceptance_thresholds.h2d"),
        ({"thresholds": {"h3d": 1}}, "gpu_acceptance_thresholds.h3d"),
        ({"expect": {"cards": 8}}, "gpu_acceptance_expect"),
        ({"expect": {"gpus": "many"}}, "gpu_acceptance_expect.gpus"),
        ({"programs": {"nccl": "/x"}}, "gpu_acceptance_programs"),
        ({"dcgm": "present"}, "gpu_acceptance_dcgm"),
    ],
)
def test_a_wrong_value_names_its_variable(options, variable):
    with pytest.raises(InputError, match=variable):
        read_request(options)


@pytest.mark.parametrize("level", ["burn_in", "standard"])
def test_a_short_limit_of_time_is_refused_only_where_gpu_burn_burns_longer(level):
    assert read_request({"timeout": 3601, "level": level}).timeout == 3601
    given = {"timeout": 60, "level": level, "gpu_burn": "never"}
    assert read_request(given).timeout == 60


# Marks in the cluster


def test_a_new_node_has_the_taint_where_it_is_asked_for():
    assert marks(facts(), required=False) == {
        "labels": {}, "annotations": {}, "taints": [], "drop_taints": [],
    }  # fmt: skip
    assert marks(facts(), required=True)["taints"] == [
        {"key": MARK, "value": "pending", "effect": "NoSchedule"}
    ]


def test_a_pass_takes_the_taint_away_whoever_set_it():
    for required in (True, False):
        found = marks(facts(acceptance=DONE), required=required)
        assert found["labels"] == {MARK: "passed"} and found["taints"] == []
        assert found["drop_taints"] == [MARK]
        assert json.loads(found["annotations"][MARK]) == {
            "at": DONE["at"], "level": "standard", "driver": DRIVER,
        }  # fmt: skip


def test_a_failure_keeps_it():
    found = marks(facts(acceptance={**DONE, "passed": False}), required=True)
    assert found["labels"] == {MARK: "failed"} and len(found["taints"]) == 1
    assert found["drop_taints"] == []
    assert marks(facts(acceptance={**DONE, "passed": False}), required=False)["taints"] == []


def test_other_gpus_bring_it_back_and_another_driver_does_not():
    other = facts(acceptance={**DONE, "gpus": ["GPU-c"]})
    assert (
        len(marks(other, required=True)["taints"]) == 1
        and marks(other, required=True)["labels"] == {}
    )
    assert marks(facts(acceptance={**DONE, "driver": "1"}), required=True)["taints"] == []
    # A driver that does not answer says nothing about the GPUs.
    assert marks(facts(uuids=[], acceptance=DONE), required=True)["taints"] == []


def test_a_node_without_nvidia_gpus_is_never_marked():
    assert marks(node(gpus=[]), required=True)["taints"] == []


@pytest.mark.parametrize(
    "broken",
    [None, [], {}, {"passed": 1}, {**DONE, "at": None}, {**DONE, "gpus": "x"}, "text"],
)
def test_a_record_of_something_else_counts_as_none(broken):
    assert read_acceptance({"values": {ACCEPTANCE: broken}}) is None
    assert read_acceptance({"values": {ACCEPTANCE: DONE}}) == DONE
    assert read_acceptance(None) is None and read_acceptance({}) is None


@pytest.mark.parametrize(
    ("expected", "others", "action", "code"),
    [
        (8, True, "refuse", "gpu_count_differs"),
        (8, False, "refuse", "gpu_count_differs"),
        (0, False, "refuse", "no_gpu"),
        (0, True, "skip", "no_gpu"),
    ],
)
def test_a_node_without_gpus_is_not_passed_in_silence(expected, others, action, code):
    found = plan_without_gpus(expected, others=others)
    assert found.action == action and codes(found) == [code]
    data = report({"n": found.to_json()}, {}, {}, ended="", checked=False)
    assert data["ok"] is (action == "skip")
    assert data["hosts"]["n"]["outcome"] == ("refused" if action == "refuse" else "not_tested")
