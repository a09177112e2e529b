# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The diagnosis from the variables of its hosts, and what role and playbook make of it."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.kubegpu.nodes.plugins.filter.rollout import rollout
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis import show
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._diagnose import diagnose_hosts
from tests.unit.fixtures.cluster_objects import node, pod
from tests.unit.fixtures.diagnosed_node import ADDRESS, asked, facts, health, host, smi
from tests.unit.fixtures.health_node import smi_gpu

OFFERS = {"layer": "allocatable", "ok": False, "code": "no_plugin", "cause": "There is none.",
          "evidence": "seen", "next_step": "Deploy one.", "proof": "", "subject": ""}  # fmt: skip


def diagnosed(**cluster):
    """Return the result for gpu1 that is ill, gpu2 that failed, and gpu3 that was not read."""
    ill = health(answer=smi(smi_gpu(ADDRESS, remapped_row_failure="Yes", gpu_temp_tlimit="-2 C")))
    layers = host().layers
    hostvars = {
        "gpu1": {
            "ansible_facts": {"gpu_node": facts()},
            "gpu_diagnose_plan": {"health": ill, "root": True},
        },
        "gpu2": {
            "ansible_facts": {"gpu_node": facts()},
            "kubegpu_failure": {"cause": "nvidia-smi", "evidence": "Traceback"},
        },
    }
    rows = [{"node": name, "layers": layers} for name in ("gpu1", "gpu2")]
    return diagnose_hosts(["gpu1", "gpu2", "gpu3"], hostvars, rows, cluster)


def test_what_each_host_is_diagnosed_from():
    result = diagnosed()
    assert [(one["id"], one["host"], one["gpu"]) for one in result["findings"]] == [
        ("row_remap_failed", "gpu1", ADDRESS), ("gpu_hot", "gpu1", ADDRESS),
    ]  # fmt: skip
    assert {name: one["verdict"] for name, one in result["hosts"].items()} == {
        "gpu1": "error", "gpu2": "partly read", "gpu3": "not read",
    }  # fmt: skip
    unseen = {(row["host"], row["why"]) for row in result["unseen"]}
    assert ("gpu2", "nvidia-smi") in unseen and ("gpu3", "its facts could not be read") in unseen
    assert ("", "kubegpu_kube has neither kubeconfig nor host") in unseen


def test_facts_of_another_form_cost_their_own_host_its_diagnosis_only():
    hostvars = {
        "cached": {"ansible_facts": {"gpu_node": {"gpus": []}}},
        "gpu2": {"ansible_facts": {"gpu_node": facts()}},
    }
    result = diagnose_hosts([*hostvars], hostvars, [], {})
    verdicts = {name: one["verdict"] for name, one in result["hosts"].items()}
    assert verdicts == {"cached": "not read", "gpu2": "ok"}
    (why,) = (row["why"] for row in result["unseen"] if row["host"] == "cached")
    assert (
        "have an unexpected format" in why
        and "gpu_node has no os" in why
        and "cache of facts" in why
    )


def test_what_a_cluster_adds():
    waiting = asked(pod("train", "", gpus=1, phase="Pending"), node(gpus=2, cordoned=True))
    result = diagnosed(
        layers=[{**OFFERS, "node": "gpu2"}], node_of={"gpu2": "n2", "gpu1": None}, pods=[waiting]
    )
    assert result["hosts"]["gpu2"] == {
        "verdict": "error", "gpus": 1, "node": "n2", "roots": ["no_plugin"], "devices": [],
    }  # fmt: skip
    (one,) = (one for one in result["findings"] if one["pod"])
    assert (one["id"], one["host"], one["subject"]) == ("no_node_matches", "", "pod default/train")
    assert [row for row in result["unseen"] if row["what"] == "its node in Kubernetes"]

    rows = {row["node"]: row for row in show.rows(result)}
    assert set(rows) == {"gpu1", "gpu2", "gpu3", "pod default/train"}
    assert rows["gpu1"]["roots"] == ["row_remap_failed", "gpu_hot"]
    (note,) = rows["pod default/train"]["notes"]
    assert note.startswith("error: No node with 1 nvidia.com/gpu takes the pod default/train.")
    assert "\nSeen: n1: it is cordoned" in note and "\nNext step: " in note
    assert show.node_rows(result) == [
        {"pod": "default/train", "node": "n1", "fits": False, "because": ["it is cordoned"]}
    ]


def test_remarks_are_in_the_result_and_not_in_the_table():
    quiet = host(facts(nvml__devices=[{"address": ADDRESS, "persistence_mode": "disabled"}]))
    hostvars = {"gpu1": {"ansible_facts": {"gpu_node": quiet.facts}}}
    result = diagnose_hosts(["gpu1"], hostvars, [], {})
    assert [one["severity"] for one in result["findings"]] == ["info"]
    row, cluster = show.rows(result)
    assert (row["verdict"], row["roots"], row["notes"]) == ("ok", [], [])
    assert (cluster["node"], cluster["verdict"]) == ("cluster", "not read")
    assert cluster["notes_last"] == [
        "not checked: the cluster (kubegpu_kube has neither kubeconfig nor host)"
    ]


@pytest.mark.parametrize(
    ("fail_on", "hosts"),
    [
        ("error", {"gpu1"}),
        ("warning", {"gpu1"}),
        ("info", {"gpu1"}),
        ("never", set()),
    ],
)
def test_which_hosts_fail(fail_on, hosts):
    found = rollout(diagnosed(), "diagnosis_failures", fail_on=fail_on, hosts=["gpu1", "gpu2"])
    assert set(found) == hosts
    if fail_on == "error":
        assert found["gpu1"] == [f"gpu1: GPU {ADDRESS}: row_remap_failed"]


def test_a_pod_without_a_host_fails_the_first_one():
    waiting = asked(pod("train", "", gpus=1, phase="Pending"), node())
    result = diagnose_hosts(["gpu8", "gpu9"], {}, [], {"pods": [waiting]})
    found = rollout(result, "diagnosis_failures", fail_on="error", hosts=["gpu8", "gpu9"])
    assert found == {"gpu8": ["pod default/train: gpu_not_offered"]}


def test_the_next_diagnosis_misses_a_gpu_that_this_one_has():
    found = rollout(diagnosed(), "diagnosis_baselines")
    assert list(found) == ["gpu1"]
    gone = smi(status="not_asked", rc=None)
    seen = health(gpus=(), answer=gone, baseline={**found["gpu1"]})
    assert [one["code"] for one in seen["findings"]] == ["gpu_missing"]


@pytest.mark.parametrize(
    "content",
    [None, [], "text", {"hosts": []}, {"hosts": {"gpu1": None}},
     {"hosts": {"gpu1": {"devices": 3}}}, {"hosts": {"gpu1": {"devices": [{"address": 3}, "x"]}}}],
)  # fmt: skip
def test_a_file_that_is_no_result_is_no_baseline(content):
    assert rollout(content, "diagnosis_baselines") == {}


def test_a_severity_that_there_is_not():
    with pytest.raises(AnsibleFilterError, match="unknown severity 'fatal'"):
        rollout(diagnosed(), "diagnosis_failures", fail_on="fatal", hosts=["gpu1"])
