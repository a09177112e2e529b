# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node whose answers have another form costs itself only: the others are planned and reported."""

from __future__ import annotations

import copy
import json
import tarfile

import pytest

from tests.integration.controller.answering_nodes import good, play

GOOD = ("gpu1", "gpu2")
FACTS, VERIFY, HEALTH = "gpu_node_facts", "gpu_node_verify", "gpu_node_health"


def hostile(module, value, *way):
    """Return the answers of a node that are good but for one value."""
    answers = copy.deepcopy(good(3))
    *path, last = way
    target = answers[module]
    for key in path:
        target = target[key]
    target[last] = value
    return answers


def node(value, *way):
    return hostile(FACTS, value, "ansible_facts", "gpu_node", *way)


def fleet_with(bad):
    return {"gpu1": good(1), "gpu2": good(2), "bad": bad}


ANSWERS = {
    "gpus": node("abc", "gpus"),
    "gpu without a vendor": node([{"vendor": []}], "gpus"),
    "cuda": node(["x"], "cuda"),
    "mig": node(1.5, "mig"),
    "exporter": node(5, "exporter"),
    "amd driver": node("x", "amd_driver"),
    "no facts": {**good(3), FACTS: {"changed": False}},
    "a fact of any name": {**good(3), FACTS: {"changed": False, "ansible_facts": ["x"]}},
}


@pytest.mark.parametrize("name", [
    "gpus",
    *(pytest.param(name, marks=pytest.mark.full(why="as gpus, by the same check"))
      for name in ANSWERS if name != "gpus"),
])  # fmt: skip
def test_facts_of_another_form_fail_their_host_and_the_others_are_planned(tmp_path, name):
    run = play(tmp_path, "plan", fleet_with(ANSWERS[name]))
    assert run.status == 2, run.screen
    assert {host: one["failed"] for host, one in run.recap().items()} == {
        "gpu1": 0, "gpu2": 0, "bad": 1,
    }  # fmt: skip
    rows = {row["node"]: row for row in json.loads((tmp_path / "plan.json").read_text())}
    assert {host: rows[host]["action"] for host in GOOD} == {"gpu1": "change", "gpu2": "change"}
    (why,) = rows["bad"]["why"]
    assert (rows["bad"]["action"], why) == ("unknown", "the node could not be read, see below")
    assert "other_form" in run.screen and "has an unexpected format" in run.screen
    assert "Traceback" not in run.screen


@pytest.mark.parametrize(
    ("playbook", "answers", "state"),
    [
        ("report", ANSWERS["gpus"], "unknown"),
        pytest.param("report", hostile(VERIFY, ["x"], "layers"), "ready", id="report-layers"),
        pytest.param(
            "report", hostile(HEALTH, 5, "gpus"), "ready", id="report-health",
            marks=pytest.mark.full(why="as the layers"),
        ),
    ],
)  # fmt: skip
def test_a_report_has_all_hosts(tmp_path, playbook, answers, state):
    run = play(tmp_path, playbook, fleet_with(answers), kubegpu_report_dir=str(tmp_path / "out"))
    assert "Traceback" not in run.screen
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    nodes = {one["name"]: one for one in report["nodes"]}
    assert set(nodes) == {*GOOD, "bad"}, run.screen
    for name in GOOD:
        assert nodes[name]["layers"] and nodes[name]["gpus"], nodes[name]
    told = json.dumps(nodes["bad"])
    assert "has an unexpected format" in told, told
    assert (nodes["bad"]["state"] == "unknown") is (state == "unknown")
    assert (run.status == 2) is (state == "unknown"), run.screen


@pytest.mark.parametrize("answers", [
    ANSWERS["gpus"],
    pytest.param(hostile(VERIFY, [{"layer": "pci"}], "layers"), id="layers"),
])  # fmt: skip
def test_verify_shows_the_layers_of_the_others(tmp_path, answers):
    run = play(tmp_path, "verify", fleet_with(answers))
    assert run.status == 2 and "Traceback" not in run.screen, run.screen
    rows = {row["node"]: row for row in json.loads((tmp_path / "verify.json").read_text())}
    assert {host: rows[host]["result"] for host in GOOD} == {"gpu1": "ok", "gpu2": "ok"}
    assert rows["bad"]["failed"] and "has an unexpected format" in rows["bad"]["causes"][0]
    assert {host: one["failed"] for host, one in run.recap().items()} == {
        "gpu1": 0, "gpu2": 0, "bad": 1,
    }  # fmt: skip


@pytest.mark.parametrize("answers", [
    ANSWERS["gpus"],
    pytest.param(hostile(HEALTH, ["x"], "gpus"), id="health"),
    pytest.param(hostile(VERIFY, ["x"], "layers"), id="layers",
                 marks=pytest.mark.full(why="as the health")),
    pytest.param(hostile("gpu_node_texts", 5, "texts"), id="texts",
                 marks=pytest.mark.full(why="as the health")),
])  # fmt: skip
def test_a_diagnosis_and_its_bundle_have_the_others(tmp_path, answers):
    bundle = tmp_path / "bundle.tar.gz"
    run = play(
        tmp_path, "diagnose", fleet_with(answers), gpu_diagnose_bundle_file=str(bundle)
    )  # fmt: skip
    assert "Traceback" not in run.screen
    hosts = json.loads((tmp_path / "diagnosis.json").read_text(encoding="utf-8"))["hosts"]
    assert {host: hosts[host]["gpus"] for host in GOOD} == {"gpu1": 2, "gpu2": 2}, run.screen
    assert hosts["bad"]["verdict"] != "ok" or answers["gpu_node_texts"]["texts"] == 5
    # Texts are for the bundle alone, which names what was not read.
    with tarfile.open(bundle) as tar:
        packed = "".join(tar.extractfile(one).read().decode() for one in tar)
    assert "other_form" in run.screen or "unexpected format" in packed


def test_a_diagnosis_without_a_bundle_ends_well(tmp_path):
    """Also with a node whose module setup answers anything: it is not asked."""
    setup = {"changed": False, "ansible_facts": {"gpu_node": "abc", "gpu_diagnose_plan": 5}}
    run = play(tmp_path, "diagnose", {"bad": {**good(3), "other": setup}, "gpu1": good(1)})
    assert run.status == 0, run.screen
    hosts = json.loads((tmp_path / "diagnosis.json").read_text(encoding="utf-8"))["hosts"]
    assert {host: one["gpus"] for host, one in hosts.items()} == {"bad": 2, "gpu1": 2}
