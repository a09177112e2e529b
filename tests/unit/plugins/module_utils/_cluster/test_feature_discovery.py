# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GPU feature discovery is waited for and verified like the plugin; the cluster is a stand-in."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.options import read_expected
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.read import Reader
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.result import build_result
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.wait import wait
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.manifests import (
    manifests,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.options import (
    read_request,
)
from tests.unit.fixtures.cluster_objects import GPU, PLUGIN_LABELS, daemonset, node, pod
from tests.unit.fixtures.standin_cluster import StandinCluster, Time

# As the role applies it.
NAME = "kubegpu-gpu-feature-discovery"
LABELS = next(
    one["spec"]["template"]["metadata"]["labels"]
    for one in manifests(read_request({"feature_discovery": True}))
    if one["metadata"]["name"] == NAME
)
SELECTOR = {"app.kubernetes.io/name": LABELS["app.kubernetes.io/name"]}
MARKER = {"kubegpu.nodes/gpu": "nvidia"}
PLUGIN = daemonset(selector={"app.kubernetes.io/name": "nvidia-device-plugin"})
DISCOVERY = daemonset(
    NAME, labels=LABELS, selector=SELECTOR, container_name="gpu-feature-discovery",
    image="registry.example/anything:v1", nodeSelector=MARKER,
)  # fmt: skip
EXPECTED = {"gpu1": {"name": "n1", "resources": {GPU: 2}}}
# What the real 0.20.0 said with the NodeFeature API and no token, and then ended.
NO_TOKEN = (
    "I1122 10:00:00 main.go:170] Start running\n"
    "E1122 10:00:00 main.go:123] failed to create clientsets: create client configuration: create "
    "in-cluster client configuration: open /var/run/secrets/kubernetes.io/serviceaccount/token: no "
    "such file or directory\n"
)
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def ready(name="discovery-n1", where="n1", restarts=0, labels=LABELS, owner=""):
    status = {**READY, "containerStatuses": [
        {"name": "gpu-feature-discovery", "restartCount": restarts,
         "state": {"running": {"startedAt": "2026-11-22T10:00:00Z"}}},
    ]}  # fmt: skip
    made = pod(name, where, namespace="kubegpu", labels=labels, status=status)
    if owner:
        made["metadata"]["ownerReferences"] = [
            {"kind": "DaemonSet", "name": owner, "controller": True}
        ]
    return made


def crashed(restarts, name="discovery-n1", where="n1"):
    made = ready(name, where)
    made["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    made["status"]["containerStatuses"] = [
        {"name": "gpu-feature-discovery", "restartCount": restarts,
         "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
         "state": {"waiting": {"reason": "CrashLoopBackOff",
                               "message": "back-off 10s restarting failed container"}}},
    ]  # fmt: skip
    return made


def plugin_pod(where="n1"):
    return ready(f"plugin-{where}", where, labels=PLUGIN_LABELS)


def cluster(*pods, sets=(PLUGIN, DISCOVERY), nodes=None, log=NO_TOKEN):
    return StandinCluster(
        nodes=nodes or [node("n1", gpus=2, labels=MARKER)],
        daemonsets=list(sets),
        pods=[plugin_pod(), *pods],
        log=log,
    )


def waited(kube, expected=None, timeout=30, at=None, **options):
    time = Time(at)
    requests = read_expected(expected or EXPECTED)
    snapshot, seconds = wait(
        Reader(kube), requests, timeout, sleep=time.sleep, clock=time.monotonic, **options
    )
    return {**build_result(snapshot, requests), "notes": snapshot.notes}, seconds


def test_discovery_that_runs_is_not_waited_for():
    kube = cluster(ready())
    told, seconds = waited(kube)
    assert (told["missing"], seconds, kube.texts) == ([], 0, [])
    assert [entry["ok"] for entry in told["layers"]] == [True]
    assert [one["name"] for one in told["discovery_pods"]] == ["discovery-n1"]


def test_discovery_that_fails_ends_the_wait_early_with_its_words():
    """Both pods were in CrashLoopBackOff, and the run ended well."""
    kube = cluster(crashed(0))
    told, seconds = waited(
        kube, timeout=300,
        at=lambda now: kube.objects.update(pods=[plugin_pod(), crashed(int(now // 10))]),
    )  # fmt: skip
    assert 20 <= seconds < 24
    (missing,) = told["missing"]
    assert (missing["part"], missing["code"]) == ("feature_discovery", "discovery_no_token")
    assert "GPU feature discovery does not run on n1" in missing["cause"]
    assert "failed to create clientsets" in missing["evidence"]
    assert missing["pod"] == "kubegpu/discovery-n1" and missing["next_step"]
    # The node offers its GPUs, which the layer still says.
    good, bad = told["layers"]
    assert (good["ok"], good["layer"], bad["ok"]) == (True, "allocatable", False)
    assert (bad["layer"], bad["subject"]) == ("allocatable", "GPU feature discovery")
    assert "failed to create clientsets" in "\n".join(told["discovery_pods"][0]["log"])


def test_words_that_nobody_knows_are_told_all_the_same():
    kube = cluster(crashed(3), log="E1122 main.go:123] something new\n")
    told, _seconds = waited(kube, timeout=0)
    (missing,) = told["missing"]
    assert missing["code"] == "pod_failed"
    assert missing["evidence"] == "E1122 main.go:123] something new"


def test_discovery_that_comes_late_is_good():
    kube = cluster()
    told, seconds = waited(
        kube, timeout=60,
        at=lambda now: kube.objects.update(pods=[plugin_pod(), *([ready()] if now >= 9 else [])]),
    )  # fmt: skip
    assert told["missing"] == [] and 9 <= seconds < 20


def test_a_pod_that_is_ready_between_two_ends_is_looked_at_again():
    """It has no probe: a container that has just been started counts as ready."""
    kube = cluster(ready())
    told, seconds = waited(
        kube, timeout=300, rollout=True,
        at=lambda now: kube.objects.update(pods=[plugin_pod(), crashed(int(now // 10))]),
    )  # fmt: skip
    assert [one["part"] for one in told["missing"]] == ["feature_discovery"]
    # One that stays costs one look more.
    told, seconds = waited(cluster(ready()), rollout=True)
    assert told["missing"] == [] and 0 < seconds <= 6


def test_no_pod_is_told_with_what_keeps_it_off():
    (missing,) = waited(cluster(), timeout=0)[0]["missing"]
    assert (missing["code"], missing["pod"]) == ("discovery_not_started", None)
    other = [node("n1", gpus=2)]
    told, seconds = waited(cluster(nodes=other), timeout=300)
    (missing,) = told["missing"]
    assert (missing["code"], seconds) == ("discovery_selects_not", 0)
    assert "kubegpu.nodes/gpu=nvidia" in missing["cause"]


def test_a_node_of_another_plugin_needs_no_discovery():
    """The cluster is divided by nvidia_device_plugin_pods.node_selector (docs/device-plugin.md)."""
    ours = daemonset(selector={"app.kubernetes.io/name": "ours"}, nodeSelector={"pool": "a"})
    theirs = daemonset("nvidia-device-plugin", labels={"app": "theirs"}, selector={"app": "theirs"})
    discovery = copy.deepcopy(DISCOVERY)
    discovery["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "a"}
    kube = StandinCluster(
        nodes=[node("n1", gpus=2, labels={**MARKER, "pool": "b"})],
        daemonsets=[ours, theirs, discovery],
        pods=[ready("theirs-1", "n1", labels={"app": "theirs"})],
        log=NO_TOKEN,
    )
    assert waited(kube, timeout=0)[0]["missing"] == []


def test_the_quota_of_a_priority_class_is_known():
    # github.com/openebs-archive/cstor-operators/issues/196, of a GKE cluster.
    words = (
        "Error creating: insufficient quota to match these scopes: [{PriorityClass In "
        "[system-node-critical system-cluster-critical]}]"
    )
    event = {"type": "Warning", "reason": "FailedCreate", "message": words, "metadata": {}}
    kube = cluster()
    kube.objects["events"] = [event]
    (missing,) = waited(kube, timeout=0)[0]["missing"]
    assert missing["code"] == "priority_class_quota"
    assert "nvidia_device_plugin_pods.priority_class" in missing["next_step"]
    # The plugin's own pods are kept off by the same.
    kube = StandinCluster(nodes=[node("n1", labels=MARKER)], daemonsets=[PLUGIN], events=[event])
    (missing,) = waited(kube, timeout=0)[0]["missing"]
    assert (missing["part"], missing["code"]) == ("device_plugin", "priority_class_quota")
    assert missing["evidence"].endswith(words)


@pytest.mark.parametrize(
    "kube",
    [
        # Not deployed, or somebody else's.
        cluster(sets=(PLUGIN,)),
        cluster(sets=(PLUGIN, daemonset("gpu-feature-discovery", "gpu-operator", labels={},
                                        image="nvcr.io/nvidia/gpu-feature-discovery:v0.8.2"))),
    ],
)  # fmt: skip
def test_no_discovery_and_that_of_others_is_not_judged(kube):
    told, seconds = waited(kube)
    assert (told["missing"], seconds) == ([], 0)


def test_a_node_whose_plugin_fails_is_told_once():
    kube = cluster(crashed(0), nodes=[node("n1", labels=MARKER)])
    (missing,) = waited(kube, timeout=0)[0]["missing"]
    assert missing["part"] == "device_plugin"


def test_a_node_without_a_gpu_should_have_none():
    nodes = [node("n1", gpus=2, labels=MARKER), node("n2")]
    kube = cluster(ready(), ready("discovery-n2", "n2"), nodes=nodes)
    (missing,) = waited(kube, {**EXPECTED, "web": {"name": "n2", "resources": {}}})[0]["missing"]
    assert (missing["key"], missing["code"]) == ("web", "discovery_without_gpu")


def test_pods_of_one_selector_are_told_apart_by_their_owner():
    """All DaemonSets of NVIDIA's chart have the same selector (templates/_helpers.tpl)."""
    chart = "kubegpu-nvidia-device-plugin-chart"
    labels = {"app.kubernetes.io/name": "nvidia-device-plugin"}
    sets = (
        daemonset(chart, labels=labels, selector=labels),
        daemonset(f"{chart}-gpu-feature-discovery", labels=labels, selector=labels,
                  container_name="gpu-feature-discovery-ctr"),
    )  # fmt: skip
    sets[1]["spec"]["template"]["spec"]["containers"][0]["command"] = ["gpu-feature-discovery"]
    kube = StandinCluster(
        nodes=[node("n1", gpus=2)],
        daemonsets=list(sets),
        pods=[
            ready("a", labels=labels, owner=chart),
            ready("b", labels=labels, owner=f"{chart}-gpu-feature-discovery"),
        ],
    )
    told, _seconds = waited(kube)
    assert told["missing"] == []
    assert [one["name"] for one in told["plugin_pods"]] == ["a"]
    assert [one["name"] for one in told["discovery_pods"]] == ["b"]


def test_a_rollout_of_discovery_is_waited_for_too():
    behind = copy.deepcopy(DISCOVERY)
    behind["metadata"]["generation"] = 2
    behind["status"]["observedGeneration"] = 1
    told, seconds = waited(cluster(ready(), sets=(PLUGIN, behind)), rollout=True)
    assert told["missing"] == [] and seconds >= 30
    assert told["notes"] == (
        f"Not all pods of GPU feature discovery kubegpu/{NAME} are there yet: of 1, 0 are of the "
        "newest template and 1 are available.",
    )
