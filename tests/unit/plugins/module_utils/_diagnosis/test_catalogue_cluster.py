# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each cause of the catalogue of a cluster and its pods: it is the only root.

Where no test node can have a state, its record is named: PodSecurity (Kubernetes 1.23 and later).
"""

from __future__ import annotations

import json
from functools import partial

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.asked_pods import (
    Name,
    explain_missing,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.pods import pod_view
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.join import diagnose
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.rules.tables import (
    FAILURES,
)
from tests.unit.fixtures.cluster_objects import UNHEALTHY, daemonset, node, pod
from tests.unit.fixtures.diagnosed_node import (
    MARKER,
    asked,
    host,
    off_the_bus,
    offer,
    only_root,
    plugin_pod,
    refused,
)


def pods_of_plugin(status=None, log="", events=()):
    return offer(node(labels=MARKER), plugin_pod(log, status, events))


CRASHED = {
    "phase": "Running",
    "containerStatuses": [
        {
            "name": "plugin",
            "restartCount": 7,
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
            "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
        }
    ],
}
VIOLATES = (
    'pods "kubegpu-nvidia-device-plugin-" is forbidden: violates PodSecurity "baseline:latest": '
    'hostPath volumes (volume "device-plugins")'
)
OURS = daemonset(nodeSelector=MARKER, selector={"app.kubernetes.io/name": "nvidia-device-plugin"})
OPERATORS = daemonset(
    "nvidia-device-plugin-daemonset", "gpu-operator", selector={"app": "nvidia-device-plugin"},
    labels={"app": "nvidia-device-plugin", "app.kubernetes.io/managed-by": "gpu-operator"},
)  # fmt: skip
OPERATORS_POD = pod_view(pod("theirs", namespace="gpu-operator",
                             labels={"app": "nvidia-device-plugin"}))  # fmt: skip
CLUSTER = {
    "node_unknown": (lambda: offer(None), "node_unknown"),
    "no_plugin": (lambda: offer(node(labels=MARKER), daemonsets=()), "no_plugin"),
    "plugin_selects_not": (lambda: offer(node()), "plugin_selects_not"),
    "plugin_tolerates_not": (
        lambda: offer(node(labels=MARKER, taints=[
            {"key": "team", "value": "a", "effect": "NoSchedule"}])),
        "plugin_tolerates_not",
    ),
    "runtime_class_missing": (
        lambda: offer(node(labels=MARKER), events={
            "kubegpu/kubegpu-nvidia-device-plugin": [
                'FailedCreate: pods "x" is forbidden: pod rejected: RuntimeClass "nvidia" not '
                "found"
            ]}),
        "runtime_class_missing",
    ),
    "operator_conflict": (
        lambda: offer(node(gpus=1, labels=MARKER), plugin_pod(), OPERATORS_POD,
                      daemonsets=(OURS, OPERATORS), count=1),
        "operator_conflict",
    ),
    "plugin_crash_loop": (
        lambda: pods_of_plugin(CRASHED, "E1122 main.go:123] something new\n"), "plugin_crash_loop"
    ),
    "plugin_socket_lost": (
        lambda: pods_of_plugin(log="I1122 server.go:216] Registered device plugin for "
                               "'nvidia.com/gpu' with Kubelet\n"),
        "not_registered",
    ),
    "gpu_marked_unhealthy": (
        lambda: offer(node(gpus=1, capacity=2, labels=MARKER),
                      plugin_pod(UNHEALTHY.replace("79", "69")), count=2),
        "gpu_unhealthy",
    ),
    "node_not_ready": (
        lambda: offer(node(gpus=1, ready=False, message="container runtime is down")),
        "node_not_ready",
    ),
    "pod_security, recorded of Kubernetes 1.25": (
        lambda: offer(node(labels=MARKER), events={
            "kubegpu/kubegpu-nvidia-device-plugin": [f"FailedCreate: {VIOLATES}"]}),
        "pod_security",
    ),
}  # fmt: skip
WORDS = {row.code: row.example for row in FAILURES}
CLUSTER.update({
    code: (partial(pods_of_plugin, CRASHED, WORDS[code]), code)
    for code in (
        "plugin_gave_up", "mig_not_uniform", "mig_strategy_unknown", "discovery_no_token",
        "discovery_no_rights", "discovery_no_api",
    )
})  # fmt: skip


@pytest.mark.parametrize("name", CLUSTER)
def test_each_cause_of_a_cluster_is_the_only_root(name):
    made, code = CLUSTER[name]
    one = only_root(diagnose([host(offered=[made()])], asked=True))
    print(f"{name}: {json.dumps(one, indent=1)}")
    assert (one["id"], one["host"]) == (code, "gpu1"), one


def train(count=1, **more):
    return pod("train", "", gpus=count, phase="Pending", **more)


DIFFER = (
    'Pod "train-x" is invalid: spec.containers[0].resources.requests: Invalid value: "1": must be '
    "equal to nvidia.com/gpu limit"
)
QUOTA = (
    'pods "train-x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, '
    "used: requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=4"
)
HELD = node(gpus=2, cordoned=True)
HELD["metadata"]["annotations"] = {"kubegpu.nodes/maintenance": '{"run": "gpu-upgrade"}'}
ACCEPTANCE = {"key": "kubegpu.nodes/acceptance", "value": "pending", "effect": "NoSchedule"}
ACCEPTING = node(gpus=2, cordoned=True, taints=[ACCEPTANCE])
ACCEPTING["metadata"]["annotations"] = {"kubegpu.nodes/maintenance": '{"run": "gpu-acceptance"}'}
TAINTED = node(gpus=2, taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}])
ADMISSION = {
    "phase": "Failed",
    "reason": "UnexpectedAdmissionError",
    "message": "Pod Allocate failed due to rpc error: code = Unavailable, which is unexpected",
}
REQUIRE = (
    "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.6, please update "
    "your driver to a newer version, or use an earlier cuda container"
)
PODS = {
    "all_taken": (
        lambda: asked(train(), node(gpus=2), others=[pod("other", gpus=2)]), "all_taken"
    ),
    "asks_too_many": (lambda: asked(train(4), node(gpus=2)), "asks_too_many"),
    "no_node_matches, a taint": (lambda: asked(train(), TAINTED), "no_node_matches"),
    "no_node_matches, a label": (
        lambda: asked(train(nodeSelector={"zone": "a"}), node(gpus=2)), "no_node_matches"
    ),
    "no_node_matches, a cordon": (
        lambda: asked(train(), node(gpus=2, cordoned=True)), "no_node_matches"
    ),
    "asks_no_gpu": (lambda: asked(pod("train"), node(gpus=2)), "asks_no_gpu"),
    "requests_differ": (lambda: refused(DIFFER), "gpu_request_differs"),
    "quota": (lambda: refused(QUOTA), "quota_exceeded"),
    "pod_security, recorded of Kubernetes 1.25": (lambda: refused(VIOLATES), "pod_security"),
    "admission_failed": (
        lambda: asked(pod("train", gpus=1, phase="Failed", status=ADMISSION), node(gpus=1)),
        "admission_failed",
    ),
    "image_too_new": (
        lambda: asked(pod("train", gpus=1, phase="Pending"), node(gpus=1), log=REQUIRE),
        "unmet_requirement",
    ),
    "cuda_driver_insufficient": (
        lambda: asked(
            pod("train", gpus=1, phase="Failed"), node(gpus=1),
            log="CUDA driver version is insufficient for CUDA runtime version",
        ),
        "cuda_driver_insufficient",
    ),
    "held_by_upgrade": (lambda: asked(train(), HELD), "held_by_upgrade"),
    "held_by_acceptance": (lambda: asked(train(), ACCEPTING), "held_by_acceptance"),
    "node_not_accepted": (
        lambda: asked(train(), node(gpus=2, taints=[ACCEPTANCE])), "node_not_accepted"
    ),
    "node_not_ready": (lambda: asked(train(), node(gpus=2, ready=False)), "node_not_ready"),
    "gpu_not_offered": (lambda: asked(train(), node()), "gpu_not_offered"),
    "something else is missing": (lambda: asked(train(), node(gpus=2)), "not_scheduled"),
    "there is no such pod": (
        lambda: explain_missing(Name("default", "train"), ()), "pod_unknown"
    ),
    "the API server refuses it, in words that are not known": (
        lambda: refused("admission webhook denied the request"), "pod_not_created"
    ),
}  # fmt: skip


def failed(reason, message="", **status):
    status = {"phase": "Failed", "reason": reason, "message": message, **status}
    return asked(pod("train", gpus=1, phase="Failed", status=status), node(gpus=1))


ENDED = [{"name": "c", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]
NEW = {"type": "Warning", "reason": "FailedMount", "message": "something new"}
PODS.update(
    {
        code: (
            partial(asked, pod("train", gpus=1, phase="Failed"), node(gpus=1), log=WORDS[code]),
            code,
        )
        for code in ("cuda_driver_mismatch", "forward_compatibility")
    }
)
PODS.update({
    "gpu_limit_missing": (lambda: refused(WORDS["gpu_limit_missing"]), "gpu_limit_missing"),
    "priority_class_quota": (
        lambda: refused(WORDS["priority_class_quota"]), "priority_class_quota"
    ),
    "no_healthy_devices": (
        lambda: failed("UnexpectedAdmissionError", WORDS["no_healthy_devices"]),
        "no_healthy_devices",
    ),
    "allocation_failed": (
        lambda: failed("UnexpectedAdmissionError", WORDS["allocation_failed"]), "allocation_failed"
    ),
    "taken_at_admission": (
        lambda: failed("OutOfnvidia.com/gpu", WORDS["taken_at_admission"]), "taken_at_admission"
    ),
    "out_of_memory": (lambda: failed("", containerStatuses=ENDED), "out_of_memory"),
    "pod_waits": (
        lambda: asked(pod("train", gpus=1, phase="Pending"), node(gpus=1), events=[NEW]),
        "pod_waits",
    ),
})  # fmt: skip


@pytest.mark.parametrize("name", PODS)
def test_each_cause_of_a_pod_is_the_only_root(name):
    made, code = PODS[name]
    one = only_root(diagnose([host(node="n1")], [made()], asked=True))
    print(f"{name}: {json.dumps(one, indent=1)}")
    assert (one["id"], one["pod"]) == (code, "default/train"), one


def test_a_pod_that_nothing_is_wrong_with():
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    fine = asked(pod("train", gpus=1, status=ready), node(gpus=1))
    result = diagnose([host(node="n1")], [fine], asked=True)
    assert (result["ok"], result["findings"]) == (True, [])


def test_a_pod_follows_from_what_is_wrong_with_its_node():
    waiting = asked(train(), node())
    result = diagnose([off_the_bus()], [waiting], asked=True)
    one = only_root(result)
    assert (one["id"], one["host"]) == ("gpu_lost", "gpu1") and "gpu_not_offered" in one["follows"]
    assert result["pods"][0]["roots"] == ["gpu_lost"]


def test_a_pod_with_its_gpu_on_another_node_does_not_follow():
    failed = asked(pod("train", "n2", gpus=1, phase="Failed", status=ADMISSION), node("n2", gpus=1))
    result = diagnose([off_the_bus()], [failed], asked=True)
    assert [one["id"] for one in result["findings"]] == ["gpu_lost", "admission_failed"]


def test_the_table_of_nodes_says_why_not():
    row = asked(train(), TAINTED, node("n2"), node("n3", gpus=1, ready=False))
    assert [(one["name"], one["fits"]) for one in row["nodes"]] == [("n1", False), ("n3", False)]
    assert "does not tolerate its taint team=a:NoSchedule" in row["nodes"][0]["because"][0]


def test_a_node_is_released_by_the_run_that_holds_it():
    (one,) = diagnose([host(node="n1")], [asked(train(), HELD)], asked=True)["findings"]
    assert one["fix"] == (
        "ansible-playbook kubegpu.nodes.upgrade -e gpu_upgrade_run=gpu-upgrade "
        "-e gpu_upgrade_release=true"
    )
    (one,) = diagnose([host(node="n1")], [asked(train(), ACCEPTING)], asked=True)["findings"]
    assert "kubegpu.nodes.accept" in one["fix"] and "upgrade" not in one["next_step"]
