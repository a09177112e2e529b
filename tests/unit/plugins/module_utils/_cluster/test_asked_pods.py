# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which pods a name stands for, what is read of them, and where a pod could be placed."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.allocation import node_states
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.asked_pods import (
    explain_pods,
    read_names,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.read import Reader
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.scheduling import candidates
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.errors import KubeError
from tests.unit.fixtures.cluster_objects import GPU, node, pod
from tests.unit.fixtures.standin_cluster import StandinCluster


def ask(*names, log="", fails=None, nodes=(), **objects):
    cluster = StandinCluster(log=log, nodes=list(nodes), **objects)
    cluster.fails = fails or {}
    reader = Reader(cluster)
    states = node_states(nodes, objects.get("pods", ()))
    rows = explain_pods(reader, read_names(names, "pods"), states, {})
    return [(row["name"], [one["code"] for one in row["findings"]]) for row in rows], reader


def owned(name, owner, kind="ReplicaSet", **more):
    made = pod(name, "", gpus=1, phase="Pending", **more)
    made["metadata"]["ownerReferences"] = [{"kind": kind, "name": owner, "controller": True}]
    return made


def test_a_pod_by_its_name_and_not_by_the_beginning_of_it():
    rows, _reader = ask(
        "default/train", nodes=[node(gpus=2)], pods=[pod("train", ""), pod("train-2", "")]
    )
    assert rows == [("train", ["asks_no_gpu"])]


def test_the_pods_of_a_deployment_and_of_a_job():
    pods = [
        owned("web-5d4b8c9f7-a", "web-5d4b8c9f7"), owned("web-5d4b8c9f7-b", "web-5d4b8c9f7"),
        owned("webhook-1", "webhook"),
        owned("train-x", "train", "Job"),
    ]  # fmt: skip
    rows, _reader = ask("default/web", "default/train", nodes=[node()], pods=pods)
    assert rows == [
        ("web-5d4b8c9f7-a", ["gpu_not_offered"]),
        ("web-5d4b8c9f7-b", ["gpu_not_offered"]),
        ("train-x", ["gpu_not_offered"]),
    ]


def test_a_workload_whose_name_begins_alike_is_another_one():
    pods = [
        owned("web-frontend-7c9d-a", "web-frontend-7c9d5f6b8"),
        owned("web-frontend-0", "web-frontend", "StatefulSet"),
        owned("web-29401230-b", "web-29401230", "Job"), owned("web-0", "web", "StatefulSet"),
    ]  # fmt: skip
    events = [event("exceeded quota: x", "web-frontend-7c9d5f6b8")]
    rows, _reader = ask("default/web", nodes=[node()], pods=pods, events=events)
    assert [name for name, _codes in rows] == ["web-0", "web-29401230-b"]
    assert ask("default/web", pods=pods[:2], events=events)[0] == [("web", ["pod_unknown"])]


def test_a_deployment_of_thousands_is_shown_by_some_that_are_not_ready():
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    pods = [owned(f"web-1-{number:03}", "web-5d4b8c9f7", status=ready) for number in range(100)]
    pods += [owned(f"web-1-x{number}", "web-5d4b8c9f7") for number in range(7)]
    rows, _reader = ask("default/web", nodes=[node(gpus=200)], pods=pods)
    assert [name for name, _codes in rows] == [f"web-1-x{number}" for number in range(5)]


def event(message, name="web-5d4b8c9f7", reason="FailedCreate"):
    return {"metadata": {}, "reason": reason, "message": message, "type": "Warning",
            "involvedObject": {"kind": "ReplicaSet", "name": name}}  # fmt: skip


def test_pods_that_could_not_be_made():
    quota = (
        "exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, used: "
        "requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=4"
    )
    events = [event("other", "webhook"), event("x", reason="Killing"), event(quota)]
    assert ask("default/web", events=events)[0] == [("web", ["quota_exceeded"])]
    assert ask("default/web", events=events[:2])[0] == [("web", ["pod_unknown"])]


def test_events_that_may_not_be_read_are_told():
    denied = KubeError("You may not list events.", status=403)
    rows, reader = ask("default/web", fails={("list", "events"): denied})
    assert rows == [("web", ["pod_unknown"])]
    assert reader.notes == ["The events of default cannot be read: You may not list events."]


def test_a_pod_that_runs_and_has_lost_its_gpu_says_so_in_its_log():
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    pods = [pod("train", gpus=1, status=ready)]
    lost = "Failed to initialize NVML: Unknown Error\n"
    events = [event("Back-off pulling image", "train", "BackOff")]
    assert ask("default/train", log=lost, nodes=[node(gpus=1)], pods=pods, events=events)[0] == [
        ("train", ["nvml_unknown_error"])
    ]
    assert ask("default/train", log="ok", nodes=[node(gpus=1)], pods=pods, events=events)[0] == [
        ("train", [])
    ]


def test_a_pod_that_has_ended_well_has_nothing():
    done = [pod("train", phase="Succeeded")]
    assert ask("default/train", pods=done)[0] == [("train", [])]


@pytest.mark.parametrize("name", ["train", "default/", "/train", "a/b/c", ""])
def test_a_wrong_name(name):
    with pytest.raises(InputError) as raised:
        read_names([name], "pods")
    assert "NAMESPACE/NAME" in raised.value.next_step and repr(name) in raised.value.cause


KEPT_OFF = {
    "taint": (
        node(gpus=2, taints=[{"key": "a", "value": "", "effect": "NoExecute"}]),
        "does not tolerate its taint a:NoExecute",
    ),
    "label": (node(gpus=2, labels={"zone": "b"}), "lacks the label zone=a"),
    "cordon": (node(gpus=2, cordoned=True, labels={"zone": "a"}), "it is cordoned"),
    "ready": (node(gpus=2, ready=False, message="no disk", labels={"zone": "a"}), "no disk"),
    "count": (node(gpus=1, labels={"zone": "a"}), "offers 1 nvidia.com/gpu"),
}


@pytest.mark.parametrize(("made", "said"), KEPT_OFF.values(), ids=KEPT_OFF)
def test_what_keeps_a_pod_off_a_node(made, said):
    wanted = pod("train", "", gpus=2, nodeSelector={"zone": "a"})
    (found,) = candidates(wanted, {GPU: 2}, node_states([made], []).values())
    assert said in " ".join(found.to_json()["because"]) and not found.to_json()["fits"]


def test_what_does_not_keep_a_pod_off():
    soft = {"key": "a", "value": "", "effect": "PreferNoSchedule"}
    hard = {"key": "b", "value": "x", "effect": "NoSchedule"}
    # The state of the node is told by itself.
    of_state = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}
    wanted = pod("train", "", gpus=2, tolerations=[{"key": "b", "operator": "Exists"}])
    states = node_states([node(gpus=2, taints=[soft, hard, of_state])], [])
    (found,) = candidates(wanted, {GPU: 2}, states.values())
    assert found.to_json() == {"name": "n1", "fits": True, "because": []}


@pytest.mark.parametrize("record", ["no json", "[]", "{}"])
def test_a_node_in_maintenance_whose_record_cannot_be_read(record):
    held = copy.deepcopy(node(gpus=2, cordoned=True))
    held["metadata"]["annotations"] = {"kubegpu.nodes/maintenance": record}
    state = node_states([held], [])["n1"]
    assert state.held == "that is unknown"
    (found,) = candidates(pod("train", "", gpus=1), {GPU: 1}, [state])
    assert "cordoned by the run that is unknown" in found.to_json()["because"][0]
