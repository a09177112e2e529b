# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a report says of hosts after an upgrade or an acceptance."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubegpu.nodes.plugins.filter.rollout import rollout
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.types import BAD
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.build import build
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.sources import (
    host_sources,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.types import Request
from tests.unit.fixtures import fleet as made

FLEET = made.fleet()
FOUND = {"code": "pdb_blocks", "cause": "The budget does not let the pod go.", "next_step": "Wait."}


def report(hosts):
    sources = host_sources([*hosts], hosts, applied=True)
    return build(sources, Request(generated=made.TIME))


def upgraded(outcome, name="gpu-06", **result):
    """Return a node whose driver is to be upgraded, after the playbook upgrade."""
    own = {**FLEET[name], "gpu_upgrade_plan": {"run": "r1"}}
    return own if outcome is None else {**own, "gpu_upgrade_result": {"outcome": outcome, **result}}


def actions(hosts):
    return {one["id"]: one for one in report(hosts)["actions"]}


@pytest.mark.parametrize("outcome", [*BAD, "released", None])
def test_a_host_that_the_upgrade_left_as_it_was_still_differs_from_its_plan(outcome):
    hosts = {"done": upgraded("done"), "other": upgraded(outcome)}
    assert [one["node"] for one in actions(hosts)["plan_differs"]["nodes"]] == ["other"]


@pytest.mark.parametrize(
    ("outcome", "result", "ids", "state"),
    [
        ("done", {"findings": [FOUND]}, [], "ready"),
        ("unchanged", {}, [], "ready"),
        ("failed", {"findings": [FOUND]}, ["pdb_blocks"], "failed"),
        ("unreachable", {"findings": [FOUND]}, ["upgrade_unreachable", "pdb_blocks"], "failed"),
        ("rolled_back", {"rolled_back_because": "A GPU does not answer."},
         ["upgrade_rolled_back"], "attention"),
        ("blocked", {"findings": [FOUND]}, ["pdb_blocks"], "attention"),
        ("refused", {"findings": []}, ["upgrade_refused"], "attention"),
        ("not_started", {"stopped": "1 failed (gpu1)"}, ["upgrade_not_started"], "attention"),
    ],
)  # fmt: skip
def test_how_an_upgrade_ended(outcome, result, ids, state):
    (node,) = report({"gpu-01": upgraded(outcome, "gpu-01", **result)})["nodes"]
    assert [one["id"] for one in node["causes"]] == ids and node["state"] == state
    assert node["upgrade"] == outcome.replace("_", " ")
    because = result.get("rolled_back_because") or result.get("stopped")
    assert because is None or node["causes"][0]["evidence"] == because


def test_hosts_that_were_not_begun_are_one_action():
    hosts = {name: upgraded("not_started", stopped="1 failed (gpu1)") for name in ("a", "b")}
    action = actions(hosts)["upgrade_not_started"]
    assert [one["node"] for one in action["nodes"]] == ["a", "b"]
    assert action["fix"] == "ansible-playbook kubegpu.nodes.upgrade"


def test_a_message_of_several_lines_is_a_cause_and_evidence():
    result = {"failed": True, "msg": "Task failed: It did not build.\nSeen: gcc\nLine 2"}
    finding = rollout({"name": "Install"}, "finding", result=result)
    assert finding["next_step"] == "Fix what the cause names, and run again."
    found = report({"gpu-01": upgraded("failed", "gpu-01", findings=[finding])})
    (node,) = found["nodes"]
    assert node["causes"][0]["evidence"] == "Seen: gcc\nLine 2"
    assert found["summary"]["sentence"] == (
        "0 of 1 node is ready for GPU containers; 1 is not: gpu-01 (Install: It did not build)."
    )


def test_each_batch_has_the_layers_of_its_own_verification():
    """The first batch's result has the hosts of later batches without layers."""
    hosts = copy.deepcopy({name: FLEET[name] for name in ("gpu-01", "gpu-02", "gpu-03")})
    rows = {name: {"node": name, "layers": made.layers(name)} for name in hosts}
    for name, own in hosts.items():
        seen = [rows[name] if one == name else {"node": one, "layers": []} for one in hosts]
        own["gpu_verify_result"] = {"rows": seen, "cluster": {}}
        own["gpu_upgrade_result"] = {"outcome": "done"}
    found = report(hosts)
    assert all(len(node["layers"]) == len(made.LAYERS) for node in found["nodes"])


@pytest.mark.parametrize(("outcome", "shown"), [("done", False), ("failed", True)])
def test_what_the_cluster_said_before_the_release_of_a_node_is_not_shown(outcome, shown):
    (node,) = report({"gpu-01": upgraded(outcome, "gpu-01", findings=[FOUND])})["nodes"]
    assert (node["place"] is not None) is shown
    assert ("cluster" in [one["what"] for one in node["unseen"]]) is not shown


def after_tests(outcome, *findings, passed=None):
    """Return a node after the playbook accept."""
    own = copy.deepcopy(FLEET["gpu-01"])
    if passed is not None:
        own["ansible_facts"]["gpu_node"]["acceptance"] = {
            "passed": passed, "at": "2026-11-24T02:00:00+00:00", "level": "quick", "driver": "580",
            "gpus": [], "tests": ["dcgm"], "causes": [one["cause"] for one in findings],
        }  # fmt: skip
    return {**own, "gpu_acceptance_result": {"outcome": outcome, "findings": list(findings)}}


SLOW = {"code": "dcgm_error", "severity": "error", "subject": "GPU 0", "cause": "LOW_BANDWIDTH",
        "evidence": "3 GB/s", "next_step": "Check the slot."}  # fmt: skip

LOST = {"code": "task_failed", "severity": "error", "subject": "",
        "cause": "Run the tests: No route to host", "next_step": "Run accept again."}  # fmt: skip


@pytest.mark.parametrize(
    ("own", "found", "state"),
    [
        (after_tests("passed", passed=True), [], "ready"),
        (after_tests("unchanged", passed=True), [], "ready"),
        (after_tests("failed", SLOW, passed=False),
         [("dcgm_error", "GPU 0", "error"), ("not_accepted", "acceptance", "error")], "failed"),
        (after_tests("passed", {**SLOW, "severity": "warning"}, passed=True),
         [("dcgm_error", "GPU 0", "warning")], "attention"),
        (after_tests("passed", {**SLOW, "severity": "info"}, passed=True), [], "ready"),
        (after_tests("refused", {**SLOW, "subject": ""}), [("dcgm_error", "acceptance", "warning")],
         "attention"),
        (after_tests("not_started"), [("not_tested", "acceptance", "warning")], "attention"),
        (after_tests("blocked", {**FOUND, "severity": "error"}),
         [("pdb_blocks", "acceptance", "warning")], "attention"),
        (after_tests("unreachable", LOST), [("task_failed", "acceptance", "error")], "failed"),
    ],
)  # fmt: skip
def test_how_an_acceptance_ended(own, found, state):
    (node,) = report({"gpu-01": own})["nodes"]
    assert [(one["id"], one["subject"], one["severity"]) for one in node["causes"]] == found
    assert node["state"] == state and node["acceptance"] == found_outcome(own)


def found_outcome(own):
    return own["gpu_acceptance_result"]["outcome"].replace("_", " ")


def test_a_layer_that_the_tests_found_too_is_told_once():
    own = copy.deepcopy(FLEET["infer-01"])
    (layer,) = (one for row in own["gpu_verify_result"]["rows"] if row["node"] == "infer-01"
                for one in row["layers"] if one["ok"] is False)  # fmt: skip
    finding = {**layer, "severity": "error", "subject": ""}
    own["gpu_acceptance_result"] = {"outcome": "failed", "findings": [finding]}
    (node,) = report({"infer-01": own})["nodes"]
    assert [one["id"] for one in node["causes"]] == ["handler_missing"]
