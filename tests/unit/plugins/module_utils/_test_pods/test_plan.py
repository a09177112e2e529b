# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.allocation import node_states
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.pods import pod_view
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.predicates import (
    deciding,
    partial,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._test_pods.plan import (
    check_node,
    choose_resource,
    is_done,
    is_leftover,
    judge,
    pod_manifest,
    pod_name,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._test_pods.types import (
    Request,
    Sample,
    Target,
)
from tests.unit.fixtures.cluster_objects import GPU, node, pod

REQUEST = Request("image", "Test PASSED", tolerations=({"operator": "Exists"},))
TARGET = Target("host1", "n1", "n1", GPU, 1)


def state(pods=(), **made):
    return node_states([node(**{"gpus": 2, **made})], pods)["n1"]


def ended(log="", phase="Succeeded", node_name="n1", **status):
    made = pod("gpu-verify-n1-1", node_name, phase=phase, status=status)
    return replace(pod_view(made), log=log)


@given(st.text(alphabet="abcXYZ0189.-_ ", min_size=1, max_size=300), st.text(max_size=8))
def test_a_pods_name_is_always_valid(name, run):
    made = pod_name(name, run)
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", made) and len(made) <= 63


def test_the_pod_that_is_made():
    request = replace(REQUEST, runtime_class="nvidia", command=("a",), env={"X": 1})
    made = pod_manifest(TARGET, request, "run1", "me 1")
    assert "nodeName" not in made["spec"]  # the scheduler takes part
    assert made["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "n1"}
    (container,) = made["spec"]["containers"]
    assert container["resources"] == {"limits": {GPU: "1"}}
    assert made["spec"]["runtimeClassName"] == "nvidia"
    assert made["spec"]["activeDeadlineSeconds"] == REQUEST.timeout
    assert made["spec"]["automountServiceAccountToken"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["env"] == [{"name": "X", "value": "1"}]


def test_pods_of_amd_and_intel_run_their_own_sample_without_a_runtime_class():
    sample = Sample("busybox", ("sh", "-c", "ls"), (), "renderD")
    request = replace(
        REQUEST,
        runtime_class="nvidia",
        auto_class=True,
        samples={"amd.com/": sample, "gpu.intel.com/": replace(sample, image="other")},
    )
    assert request.of(GPU) is request
    made = request.of("amd.com/gpu")
    assert (made.image, made.command, made.expect) == ("busybox", sample.command, "renderD")
    assert made.runtime_class == ""
    assert request.of("gpu.intel.com/xe").image == "other"
    # A class that was asked for is kept.
    assert replace(request, auto_class=False).of("amd.com/gpu").runtime_class == "nvidia"


@pytest.mark.parametrize(
    ("made", "pods", "ok", "code"),
    [
        ({}, [], "made", None),
        ({}, [pod("a", gpus=1)], "made", None),
        ({}, [pod("a", gpus=1), pod("b", gpus=1)], None, "all_taken"),
        ({"gpus": 0}, [], False, "plugin_missing"),
        ({"gpus": 0, "capacity": 2}, [pod("a", gpus=1)], False, "plugin_missing"),
        ({"ready": False}, [], None, "node_not_ready"),
        ({"cordoned": True}, [], None, "node_cordoned"),
    ],
)
def test_s14_whether_a_pod_is_made_tells_taken_from_missing(made, pods, ok, code):
    result = check_node(TARGET, state(pods, **made), REQUEST)
    if ok == "made":
        assert result is None
    else:
        assert (result.ok, result.finding.code) == (ok, code)


def test_s14_the_pods_that_have_the_gpus_are_named():
    pods = [pod("a", gpus=1), pod("b", gpus=1, namespace="team")]
    result = check_node(TARGET, state(pods), REQUEST)
    assert result.finding.cause == (
        "All 2 nvidia.com/gpu of n1 are taken, by the pods default/a, team/b."
    )


def test_a_taint_that_is_not_tolerated():
    taint = {"key": "team", "value": "a", "effect": "NoExecute"}
    request = replace(REQUEST, tolerations=())
    assert check_node(TARGET, state(taints=[taint]), request).finding.code == "taint_not_tolerated"
    assert check_node(TARGET, state(taints=[taint]), REQUEST) is None


def test_the_log_is_what_proves():
    result = judge(TARGET, REQUEST, ended("[Vector addition]\nTest PASSED\nDone\n"), state(), 1)
    assert result.ok and "'Test PASSED'" in result.proof
    result = judge(TARGET, REQUEST, ended("Done\n"), state(), 1)
    assert (result.ok, result.finding.code) == (False, "not_as_expected")
    assert result.finding.evidence == "Done"


def container_status(**state_):
    return {"containerStatuses": [{"name": "test", "state": state_}]}


@pytest.mark.parametrize(
    ("view", "code", "seen"),
    [
        (
            ended(
                phase="Failed",
                **container_status(
                    terminated={
                        "exitCode": 128, "reason": "StartError",
                        "message": "nvidia-container-cli: requirement error: unsatisfied "
                        "condition: cuda>=12.3, please update your driver to a newer version",
                    }
                ),
            ),
            "unmet_requirement",
            "cuda>=12.3",
        ),
        (
            ended(
                "CUDA driver version is insufficient for CUDA runtime version\n", phase="Failed",
                **container_status(terminated={"exitCode": 1, "reason": "Error"}),
            ),
            "cuda_driver_insufficient",
            "insufficient",
        ),
        (
            ended(
                phase="Pending",
                **container_status(
                    waiting={"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
                ),
            ),
            "image_pull_failed",
            "Back-off",
        ),
        (ended("still at it\n", phase="Running"), "timed_out", "still at it"),
        (ended(phase="Failed", reason="DeadlineExceeded"), "timed_out", "empty"),
        (
            ended(
                phase="Failed", reason="UnexpectedAdmissionError",
                message="Allocate failed due to requested number of devices unavailable for "
                "nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected",
            ),
            "allocation_failed",
            "Requested: 1",
        ),
        (
            ended(
                "boom\n", phase="Failed",
                **container_status(terminated={"exitCode": 3, "reason": "Error"}),
            ),
            "pod_failed",
            "boom",
        ),
        (ended(phase="Pending"), "pod_not_started", "no failure"),
        (None, "pod_gone", ""),
    ],
)  # fmt: skip
def test_why_a_pod_did_not_pass(view, code, seen):
    result = judge(replace(TARGET, facts=partial("535.104.05")), REQUEST, view, state(), 130)
    assert (result.ok, result.finding.code) == (False, code)
    assert seen in result.finding.evidence
    assert result.finding.next_step


@pytest.mark.parametrize(
    ("no_cgroups", "said"),
    [(True, "no-cgroups"), (False, "device")],
)
def test_facts_of_the_node_decide_why_a_test_pod_has_no_gpu(no_cgroups, said):
    """The same message; a pod that was just started lost nothing to a reload of systemd."""
    view = ended("Failed to initialize NVML: Unknown Error", phase="Failed")
    config = {"nvidia-container-cli.no-cgroups": no_cgroups, "debug": "/var/log/x"}
    node = {
        "driver": {"loaded": "580.95.05", "userland": "580.95.05", "installed": "580.95.05"},
        "container_toolkit": {"config": config, "cdi_spec": None},
    }
    found = judge(replace(TARGET, facts=deciding(node)), REQUEST, view, state(), 130).finding
    assert said in found.message
    assert "daemon-reload" not in found.cause
    assert found.confidence != "possible"


def test_only_what_predicates_ask_is_passed_on():
    node = {
        "os": {"kernel": "6.8.0", "machine_id": "secret"},
        "driver": {"loaded": "1", "packages": {"a": "b"}},
        "container_toolkit": {"config": {"debug": "x"}, "version": "1.17"},
        "gpus": [{"vendor": "nvidia"}],
        "nvswitches": 4,
    }
    assert deciding(node) == {
        "os": {"kernel": "6.8.0"},
        "driver": {"loaded": "1"},
        "container_toolkit": {"config": {"nvidia-container-cli.no-cgroups": False}},
        "nvswitches": 4,
    }


def unplaced(message):
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                 "message": message}  # fmt: skip
    return ended(phase="Pending", node_name="", conditions=[condition])


SHORT = "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match selector."


@pytest.mark.parametrize(
    ("message", "now", "ok", "code"),
    [
        (SHORT, state([pod("a", gpus=2)]), None, "all_taken"),
        (SHORT, state(gpus=0), False, "plugin_missing"),
        ("0/3 nodes are available: 3 Insufficient cpu.", state(), None, "node_full"),
        ("0/3 nodes are available: 3 node(s) didn't match", state(), False, "not_scheduled"),
    ],
)
def test_s14_a_pod_that_is_not_placed(message, now, ok, code):
    view = unplaced(message)
    assert not is_done(view, 5, 20) and is_done(view, 21, 20)
    result = judge(TARGET, REQUEST, view, now, 21)
    assert (result.ok, result.finding.code) == (ok, code)


@pytest.mark.parametrize(
    ("wanted", "made", "name"),
    [
        ({GPU: 2}, {}, GPU),
        ({GPU: 0, "nvidia.com/gpu.shared": 8}, {"resource": "nvidia.com/gpu.shared"},
         "nvidia.com/gpu.shared"),
        ({GPU: 2}, {"resource": "nvidia.com/mig-1g.5gb"}, "nvidia.com/mig-1g.5gb"),
        ({GPU: 2}, {"gpus": 0}, GPU),
        ({}, {"gpus": 0}, GPU),
    ],
)  # fmt: skip
def test_which_resource_is_tested(wanted, made, name):
    assert choose_resource(state(**made), wanted) == name


NOON = 1795348800.0  # 2026-11-22T12:00:00Z
DEADLINE = REQUEST.timeout


@pytest.mark.parametrize(
    ("alive", "now", "left"),
    [
        # Its own process is asked, whatever time it is.
        (False, NOON, True),
        (True, NOON + 10 * DEADLINE, False),
        # That of another machine cannot be: by the server's clock it may still be at work, or not.
        (None, NOON, False),
        (None, NOON - 3600, False),
        (None, NOON + DEADLINE + 290, False),
        (None, NOON + DEADLINE + 310, True),
        (None, None, False),
    ],
)
def test_what_a_run_left_behind(alive, now, left):
    """The controller whose clock is an hour behind makes the same pod as any other (L12)."""
    made = pod_manifest(TARGET, REQUEST, "run1", "elsewhere 1 1")
    # As the API server writes it.
    made["metadata"]["creationTimestamp"] = "2026-11-22T12:00:00Z"
    assert is_leftover(made, now, alive) is left


def test_no_time_of_a_controller_s_clock_is_in_a_pod():
    made = pod_manifest(TARGET, REQUEST, "run1", "elsewhere 1 1")
    assert made["metadata"]["annotations"] == {"kubegpu.nodes/owner": "elsewhere 1 1"}


@pytest.mark.parametrize("change", [{"creationTimestamp": "yesterday"}, {}])
def test_what_no_run_made_so_is_left_over(change):
    made = {"metadata": {"creationTimestamp": "2026-11-22T12:00:00Z", **change}, "spec": {}}
    if change:
        made["spec"]["activeDeadlineSeconds"] = 5
    assert is_leftover(made, NOON, None)
    assert not is_leftover(made, NOON, True)
