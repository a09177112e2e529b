# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a node offers no GPUs: one test a cause, from what an API server says of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.allocation import node_states
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.causes import find_shortfall
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.options import read_expected
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.pods import (
    add_events,
    pod_view,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.types import View
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.workloads import recognize
from tests.unit.fixtures.cluster_objects import (
    GPU,
    NO_NVML,
    PLUGIN_LABELS,
    UNHEALTHY,
    daemonset,
    node,
    pod,
)

MARKER = {"kubegpu.nodes/gpu": "nvidia"}
OURS = daemonset(nodeSelector=MARKER)


def plugin_pod(log="", status=None, events=(), labels=None, **spec):
    made = pod(
        "plugin-1", namespace="kubegpu", status=status,
        labels=PLUGIN_LABELS if labels is None else labels, **spec,
    )  # fmt: skip
    return replace(add_events(pod_view(made), events), log=log)


def cause(node_object, *pods, daemonsets=(OURS,), operators=(), count=4, events=None, **known):
    (expected,) = read_expected({"n1": {"resources": {GPU: count} if count else {}, **known}})
    parts = [*recognize(daemonsets, "DaemonSet"), *recognize(operators, "Deployment")]
    view = View(parts, {"n1": list(pods)} if pods else {}, events or {})
    state = node_states([node_object], [])["n1"] if node_object else None
    return find_shortfall(expected, state, view)


def waiting(reason, message=""):
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", "containerStatuses": [{"name": "plugin", "state": state}]}


def test_all_is_as_expected():
    assert cause(node(gpus=4, labels=MARKER), plugin_pod()) is None


CPX, XE = "amd.com/cpx_nps4", "gpu.intel.com/xe"


@pytest.mark.parametrize(
    ("known", "offers", "good"),
    [
        # ROCm/k8s-device-plugin#184 (2026): the plugin finds 64 parts, the kubelet reports 0.
        ({"resources": {}, "some_of": ["amd"]}, {"amd.com/gpu": 0}, False),
        ({"resources": None, "some_of": ["amd"]}, {"amd.com/gpu": 0}, False),
        ({"resources": None, "some_of": ["amd"]}, {}, False),
        ({"resources": None, "some_of": ["amd"]}, {"amd.com/gpu": 64}, True),
        ({"resources": None, "some_of": ["amd"]}, {CPX: 1}, True),
        # GPUs of another vendor do not stand for them.
        ({"resources": None, "some_of": ["amd"]}, {GPU: 8, "amd.com/gpu": 0}, False),
        ({"resources": {GPU: 1}, "some_of": ["amd"]}, {GPU: 1, "amd.com/gpu": 0}, False),
        ({"resources": {GPU: 1}, "some_of": ["amd"]}, {GPU: 1, CPX: 8}, True),
        ({"resources": {GPU: 1}, "some_of": ["amd"]}, {GPU: 0, CPX: 8}, False),
        ({"resources": {}, "some_of": ["intel"]}, {XE: 0}, False),
        ({"resources": {}, "some_of": ["intel"]}, {XE: 2}, True),
        ({"resources": {}, "some_of": ["nvidia"]}, {GPU: 0}, False),
        ({"resources": {}, "some_of": ["nvidia"]}, {"nvidia.com/mig-1g.10gb": 7}, True),
        # Without a vendor, any GPU will do.
        ({"resources": None}, {GPU: 0}, False),
        ({"resources": None}, {XE: 1}, True),
    ],
)
def test_of_an_unknown_number_none_is_not_right(known, offers, good):
    there = node()
    there["status"]["allocatable"] = {name: str(count) for name, count in offers.items()}
    there["status"]["capacity"] = dict(there["status"]["allocatable"])
    short = cause(there, daemonsets=(), count=0, **known)
    assert (short is None) is good
    assert good or short.finding.code == "no_plugin"


def cards(*vendors):
    drivers = {"nvidia": "nvidia", "amd": "amdgpu", "intel": "i915"}
    return [{"vendor": vendor, "kernel_driver": drivers[vendor]} for vendor in vendors]


@pytest.mark.parametrize(
    ("some_of", "vendors", "offers", "lacks"),
    [
        # Any number of NVIDIA's, while AMD's parts are counted by nobody: neither stands for the
        # other.
        (["amd"], ["nvidia", "amd"], {GPU: 0, CPX: 8}, "nvidia"),
        (["amd"], ["nvidia", "amd"], {CPX: 8}, "nvidia"),
        (["amd"], ["nvidia", "amd"], {GPU: 2, CPX: 0}, "amd"),
        (["amd"], ["nvidia", "amd"], {GPU: 2, CPX: 8}, ""),
        (["amd"], ["nvidia", "amd"], {"nvidia.com/mig-1g.10gb": 7, CPX: 8}, ""),
        (["amd"], ["amd"], {CPX: 8}, ""),
        ([], ["nvidia", "intel"], {XE: 1}, "nvidia"),
        ([], ["nvidia", "intel"], {GPU: 1}, ""),
    ],
)
def test_of_two_vendors_one_does_not_stand_for_the_other(some_of, vendors, offers, lacks):
    there = node()
    there["status"]["allocatable"] = {name: str(count) for name, count in offers.items()}
    there["status"]["capacity"] = dict(there["status"]["allocatable"])
    amd = daemonset("kubegpu-amd-device-plugin", image="rocm/k8s-device-plugin:1.31.0.9")
    short = cause(
        *(there, plugin_pod()), daemonsets=(OURS, amd), count=0, resources=None, some_of=some_of,
        gpus=cards(*vendors),
    )  # fmt: skip
    assert bool(short) is bool(lacks)


def test_of_a_foreign_plugin_another_vendors_gpus_are_not_the_offer():
    foreign = daemonset("nvidia-device-plugin-daemonset", namespace="kube-system", labels={})
    there = node()
    wanted = {GPU: 4, "amd.com/gpu": 8}
    for offers, good in (
        ({GPU: "0", "amd.com/gpu": "8"}, False),
        ({GPU: "4", "amd.com/gpu": "0"}, False),
        ({GPU: "9", "amd.com/gpu": "2"}, True),
    ):
        there["status"]["allocatable"] = there["status"]["capacity"] = offers
        short = cause(there, plugin_pod(), daemonsets=(foreign,), count=0, resources=wanted)
        assert (short is None) is good, offers


@pytest.mark.parametrize(
    ("offers", "words"),
    [({"amd.com/gpu": "0"}, "offers no amd.com/gpu."), ({}, "offers no GPU of amd.")],
)
def test_a_plugin_that_runs_and_a_kubelet_that_has_none_of_its_gpus(offers, words):
    """ROCm/k8s-device-plugin#184 (2026): the plugin finds 64 parts, the kubelet reports 0."""
    there = node()
    there["status"]["allocatable"] = there["status"]["capacity"] = offers
    amd = daemonset("kubegpu-amd-device-plugin", image="rocm/k8s-device-plugin:1.31.0.9")
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    short = cause(there, plugin_pod(status=status), daemonsets=(amd,), count=0, some_of=["amd"])
    assert short.finding.code == "not_registered" and words in short.finding.cause
    assert "expected at least 1, capacity 0" in short.finding.evidence


def test_a_host_that_the_cluster_does_not_have():
    short = cause(None, machine_id="abc")
    assert short.finding.code == "node_unknown" and short.final
    assert "the machine id abc or the name n1" in short.finding.cause


def test_a_node_that_is_not_ready():
    short = cause(node(gpus=4, ready=False, message="container runtime is down"))
    assert short.finding.code == "node_not_ready"
    assert short.finding.evidence == "container runtime is down"


def test_no_plugin_in_the_cluster():
    short = cause(node(labels=MARKER), daemonsets=())
    assert short.finding.code == "no_plugin" and short.final
    assert "site" in short.finding.next_step


def test_an_operator_that_deployed_none():
    operator = daemonset("gpu-operator", image="nvcr.io/nvidia/gpu-operator:v1", labels={})
    short = cause(node(), daemonsets=(), operators=(operator,))
    assert "operator" in short.finding.cause and "ClusterPolicy" in short.finding.next_step


def test_the_label_is_missing():
    short = cause(node())
    assert short.finding.code == "plugin_selects_not"
    assert "lacks kubegpu.nodes/gpu=nvidia" in short.finding.cause


def test_the_taint_is_not_tolerated():
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    short = cause(node(labels=MARKER, taints=[taint]))
    assert short.finding.code == "plugin_tolerates_not"
    assert "gpu=yes:NoSchedule" in short.finding.cause


def test_the_daemonset_may_make_no_pod():
    words = 'FailedCreate: pods "x" is forbidden: exceeded quota'
    short = cause(node(labels=MARKER), events={"kubegpu/kubegpu-nvidia-device-plugin": (words,)})
    assert (short.finding.code, short.finding.evidence) == ("plugin_not_started", words)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (waiting("ImagePullBackOff", "Back-off pulling image"), "image_pull_failed"),
        (waiting("CreateContainerConfigError", 'configmap "x" not found'), "container_config"),
    ],
)
def test_the_plugins_container_does_not_start(status, code):
    short = cause(node(labels=MARKER), plugin_pod(status=status))
    assert short.finding.code == code
    assert short.finding.evidence and short.finding.next_step


ERROR = {"terminated": {"exitCode": 1, "reason": "Error"}}


@pytest.mark.parametrize(
    ("restarts", "state", "last", "ready", "code"),
    [
        (3, {"waiting": {"reason": "CrashLoopBackOff"}}, ERROR, False, "plugin_crash_loop"),
        (3, ERROR, ERROR, False, "plugin_crash_loop"),
        (0, ERROR, {}, False, "pod_failed"),
        # It ended at earlier boots of the node.
        (3, {"running": {}}, ERROR, True, "not_registered"),
    ],
)
def test_the_plugin_ends_again_and_again(restarts, state, last, ready, code):
    container = {"name": "plugin", "restartCount": restarts, "state": state, "lastState": last}
    status = {
        "phase": "Running", "containerStatuses": [container],
        "conditions": [{"type": "Ready", "status": str(ready)}],
    }  # fmt: skip
    short = cause(node(labels=MARKER), plugin_pod("exit\n", status=status))
    assert short.finding.code == code


def test_the_handler_is_missing():
    event = {
        "type": "Warning", "reason": "FailedCreatePodSandBox",
        "message": "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get "
        'sandbox runtime: no runtime for "nvidia" is configured',
    }  # fmt: skip
    short = cause(node(labels=MARKER), plugin_pod(events=[event], status={"phase": "Pending"}))
    assert short.finding.code == "handler_missing"
    assert "no runtime for" in short.finding.evidence


@pytest.mark.parametrize(
    ("spec", "known", "code"),
    [
        ({}, {"driver": ""}, "plugin_without_driver"),
        ({}, {"driver": "580.95.05", "default_runtime": "runc"}, "default_runtime"),
        ({}, {}, "default_runtime"),
        ({}, {"driver": "580.95.05", "default_runtime": "nvidia"}, "runtime_changed"),
        ({"runtimeClassName": "nvidia"}, {"driver": "580.95.05"}, "could_not_reach_nvml"),
    ],
)
def test_s13_which_of_the_causes_it_is_that_nvml_is_not_found(spec, known, code):
    short = cause(node(labels=MARKER), plugin_pod(NO_NVML, **spec), **known)
    assert short.finding.code == code
    assert "could not load NVML library" in short.finding.evidence
    assert short.pod == "kubegpu/plugin-1"


def test_a_plugin_where_no_gpu_is():
    short = cause(node(), plugin_pod(NO_NVML, labels={}), count=0)
    assert short.finding.code == "plugin_without_gpu"
    assert "n1, which has no GPU" in short.finding.cause
    assert "nodeSelector" in short.finding.next_step
    assert cause(node(), count=0) is None


def test_gpus_that_are_unhealthy():
    short = cause(node(gpus=3, capacity=4, labels=MARKER), plugin_pod(UNHEALTHY))
    assert short.finding.code in ("gpu_unhealthy", "gpu_lost")
    assert "Xid=79" in short.finding.evidence


def test_how_many_gpus_are_unhealthy_is_told():
    """internal/plugin/server.go:279 of k8s-device-plugin v0.20.0, whatever the Xid was."""
    log = "I1121 10:09:00 server.go:279] 'nvidia.com/gpu' device marked unhealthy: GPU-1\n"
    short = cause(node(gpus=3, capacity=4, labels=MARKER), plugin_pod(log))
    assert short.finding.code == "gpu_unhealthy"
    assert short.finding.cause == "1 of 4 nvidia.com/gpu on n1 are unhealthy."
    # Where the node's status does not show it, the plugin's words do.
    short = cause(node(labels=MARKER), plugin_pod(log))
    assert (short.finding.code, "GPU-1" in short.finding.cause) == ("gpu_unhealthy", True)


@pytest.mark.parametrize(
    "reason",
    [
        "XidCriticalError: Xid=69 on Device=GPU-1; marking device as unhealthy.",
        "Error waiting for event: Unknown Error; Marking all devices as unhealthy",
        "unable to get device handle from UUID: Not Found; marking it as unhealthy",
        "Marking device GPU-1 as unhealthy: Unknown Error",
    ],
)
def test_why_a_gpu_is_unhealthy_is_the_evidence(reason):
    """The plugin gives the reason (internal/rm/health.go) before it marks (plugin/server.go)."""
    log = f"{reason}\n'nvidia.com/gpu' device marked unhealthy: GPU-1\n"
    short = cause(node(gpus=3, capacity=4, labels=MARKER), plugin_pod(log))
    assert (short.finding.code, short.finding.evidence) == ("gpu_unhealthy", reason)


def test_another_number_than_expected():
    short = cause(node(gpus=2, labels=MARKER), plugin_pod())
    assert short.finding.code == "wrong_count"
    assert short.finding.evidence == f"{GPU}: expected 4, capacity 2, allocatable 2"


def test_a_plugin_that_has_not_started_yet_is_no_reason_to_delete_its_pod():
    short = cause(node(labels=MARKER), plugin_pod(status=waiting("ContainerCreating")))
    assert short.finding.code == "plugin_starting"
    assert "kubegpu/plugin-1 has not started yet" in short.finding.cause
    assert "allocatable 0" in short.finding.evidence
    assert "Delete" not in short.finding.next_step


def test_a_plugin_that_runs_and_offers_nothing():
    short = cause(node(labels=MARKER), plugin_pod("starting\nregistered\n"))
    assert short.finding.code == "not_registered"
    assert short.finding.evidence == "starting | registered"


def test_a_plugin_that_has_registered_and_a_node_that_reports_none():
    """NVIDIA/k8s-device-plugin#1228: capacity and allocatable are 0 after the registration."""
    log = (
        "I0409 server.go:245] Starting GRPC server for 'nvidia.com/gpu'\n"
        "I0409 server.go:260] Registered device plugin for 'nvidia.com/gpu' with Kubelet\n"
    )
    there = node(labels=MARKER)
    there["status"]["allocatable"] = there["status"]["capacity"] = {GPU: "0"}
    short = cause(there, plugin_pod(log))
    assert short.finding.code == "not_registered"
    assert "Registered device plugin" in short.finding.evidence
    assert "delete" in short.finding.next_step.lower() and "kubelet" in short.finding.next_step


def test_what_a_foreign_plugin_shares_is_not_judged():
    theirs = daemonset("theirs", labels={})
    assert cause(node(gpus=40), plugin_pod(labels={}), daemonsets=(theirs,)) is None
    assert cause(node(gpus=40, labels=MARKER), plugin_pod()).finding.code == "wrong_count"


APP = PLUGIN_LABELS["app.kubernetes.io/name"]
AMD_LABELS = {
    "app.kubernetes.io/name": "amd-device-plugin",
    "app.kubernetes.io/managed-by": "kubegpu.nodes",
}
AMD = daemonset(
    "kubegpu-amd-device-plugin",
    labels=AMD_LABELS,
    image="mirror.example/amd:1",
    selector={"app.kubernetes.io/name": "amd-device-plugin"},
    nodeSelector={"kubegpu.nodes/gpu-amd": "true"},
)


def amd_cause(*pods, labels=None, gpus=0, count=2):
    """Of a node that has all of NVIDIA's GPUs and some of AMD's."""
    made = node(gpus=4, labels=MARKER if labels is None else labels)
    for part in ("capacity", "allocatable"):
        made["status"][part]["amd.com/gpu"] = str(gpus)
    resources = {GPU: 4, "amd.com/gpu": count}
    (expected,) = read_expected({"n1": {"resources": resources}})
    nvidia = daemonset(nodeSelector=MARKER, selector={"app.kubernetes.io/name": APP})
    view = View(recognize([nvidia, AMD], "DaemonSet"), {"n1": [plugin_pod(), *pods]}, {})
    return find_shortfall(expected, node_states([made], [])["n1"], view)


def test_of_two_vendors_the_plugin_of_the_one_that_is_missing_is_looked_at():
    short = amd_cause()
    assert short.finding.code == "plugin_selects_not"
    assert "kubegpu-amd-device-plugin" in short.finding.cause
    assert "kubegpu.nodes/gpu-amd=true" in short.finding.cause
    labels = {**MARKER, "kubegpu.nodes/gpu-amd": "true"}
    assert amd_cause(labels=labels).finding.code == "plugin_not_started"
    its = plugin_pod(labels=AMD_LABELS)
    short = amd_cause(its, labels=labels, gpus=1)
    assert short.finding.code == "wrong_count"
    assert "amd_device_plugin_" in short.finding.next_step
    assert amd_cause(its, labels=labels, gpus=2) is None


def test_a_plugin_of_amd_on_a_node_without_gpu_goes_with_its_own_label():
    short = cause(node(), plugin_pod(labels=AMD_LABELS), daemonsets=(AMD,), count=0)
    assert short.finding.code == "plugin_without_gpu"
    assert "kubegpu.nodes/gpu-amd-" in short.finding.next_step
