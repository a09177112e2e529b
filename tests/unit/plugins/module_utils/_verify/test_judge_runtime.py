# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer runtime, judged from facts and answers."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import Finding
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.judge import judge_node
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import (
    Request,
)
from tests.unit.fixtures.node_facts import P4
from tests.unit.fixtures.verified_node import (
    SMI,
    container,
    device,
    fault,
    results_of,
    runtime,
    state,
    working,
)


def test_no_runtime():
    assert fault("runtime", what=state(runtimes=())).code == "no_container_runtime"


def test_a_handler_that_is_not_there():
    result = fault("runtime", what=state(runtimes=(runtime(listed=False, handlers=("runc",)),)))
    assert (result.code, result.subject.part) == ("handler_missing", "containerd")
    assert result.evidence == "crictl info names runc"


def test_s11_the_default_counts_only_where_it_is_asked_for():
    assert results_of()["runtime"].ok
    result = fault("runtime", request=Request(default=("containerd",)))
    assert result.code == "not_default"
    assert "nvidia_container_toolkit_containerd_set_default: true" in result.next_step
    good = state(runtimes=(runtime(default="nvidia"),))
    assert results_of(what=good, request=Request(default=("containerd",)))["runtime"].ok


def test_s11_each_runtimes_default_is_its_own():
    docker = runtime(name="docker", source="docker info")
    both = state(runtimes=(runtime(default="nvidia"), docker))
    runtimes = judge_node(working(), both, Request(default=("containerd",)))[-2:]
    assert [(one.subject.part, one.ok) for one in runtimes] == [
        ("containerd", True),
        ("docker", True),
    ]
    result = judge_node(working(), both, Request(default=("containerd", "docker")))[-1]
    assert (result.subject.part, result.code) == ("docker", "not_default")
    assert "nvidia_container_toolkit_docker_set_default: true" in result.next_step
    assert "device plugin" not in result.cause + result.next_step


def test_a_configuration_that_containerd_cannot_load_is_told_though_it_runs():
    problem = {"code": "containerd_config_invalid", "cause": "It cannot.", "evidence": "toml: x",
               "next_step": "Correct it."}  # fmt: skip
    assert fault("runtime", working(problems=[problem])).code == "containerd_config_invalid"
    docker = runtime(name="docker")
    assert results_of(working(problems=[problem]), state(runtimes=(docker,)))["runtime"].ok


def test_s9_an_image_that_is_too_new():
    words = "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.3, please"
    result = fault("runtime", what=state(runtimes=(runtime(container(Result(1, "", words))),)))
    assert result.code == "unmet_requirement"
    assert "545.23.06" in result.next_step and "CUDA 12.2 or older" in result.next_step


def test_verify_and_diagnose_have_one_cause_of_a_dockerd_without_gpus():
    waits = Finding("docker_restart_required", "A restart is pending.", "old", "Restart it.")
    words = 'could not select device driver "" with capabilities: [[gpu]].'
    ran = runtime(container(Result(125, "", words)), name="docker", pending=waits)
    tried = fault("runtime", what=state(runtimes=(ran,)))
    looked = fault("runtime", what=state(runtimes=(runtime(name="docker", fault=waits),)))
    assert tried.code == looked.code == "docker_restart_required"
    assert tried.next_step == looked.next_step and words in tried.evidence
    # Another failure of the container, and one that works, are what they are.
    other = replace(ran, containers=(container(Result(1, "", "no space left on device")),))
    assert fault("runtime", what=state(runtimes=(other,))).code != "docker_restart_required"
    assert results_of(what=state(runtimes=(runtime(name="docker", pending=waits),)))["runtime"].ok


def test_a_container_that_sees_too_few():
    result = fault("runtime", what=state(runtimes=(runtime(container(Result(0, "", ""))),)))
    assert result.code == "gpu_count_in_container"
    assert "sees 0 GPUs, and should see 1" in result.cause


def test_s10_a_chosen_gpu():
    gpus = [{**P4, "address": f"0000:00:0{n}.0", "kernel_driver": "nvidia"} for n in (5, 6)]
    facts = working(gpus=gpus)
    facts["nvml"]["devices"] = [device(), device("0000:00:06.0")]
    two = Result(0, SMI + "GPU 1: Tesla P4 (UUID: GPU-2)\n", "")
    good = runtime(container(two), container(Result(0, SMI, ""), devices="0"))
    assert "of 0" in results_of(facts, state(runtimes=(good,)))["runtime"].proof
    bad = runtime(container(two), container(two, devices="0"))
    assert fault("runtime", facts, state(runtimes=(bad,))).code == "gpu_count_in_container"


def test_what_a_container_should_say():
    said = container(Result(0, "a\nTest PASSED\n", ""), counts_gpus=False, expect="^Test PASSED$")
    assert (
        "said '^Test PASSED$'" in results_of(what=state(runtimes=(runtime(said),)))["runtime"].proof
    )
    other = container(Result(0, "Test FAILED\n", ""), counts_gpus=False, expect="^Test PASSED$")
    assert fault("runtime", what=state(runtimes=(runtime(other),))).code == "not_as_expected"
    known = container(
        Result(0, "no CUDA-capable device is detected", ""), counts_gpus=False, expect="PASS"
    )
    assert fault("runtime", what=state(runtimes=(runtime(known),))).code == "no_cuda_device"


def test_a_container_that_fails_for_an_unknown_reason_has_a_command_to_try():
    said = replace(container(Result(1, "", "something new")), manual="docker run x nvidia-smi -L")
    result = fault("runtime", what=state(runtimes=(runtime(said),)))
    assert result.code == "container_failed"
    assert "on the node as root (docker run x nvidia-smi -L), and see" in result.next_step


def test_a_container_that_does_not_end():
    result = fault("runtime", what=state(runtimes=(runtime(container(Result(124, "", ""))),)))
    assert result.code == "timed_out"


def test_a_container_that_only_waits_for_the_driver_is_no_second_failure():
    words = "nvidia-container-cli: initialization error: nvml error: driver not loaded"
    facts = working(driver__loaded=None, nvml=None)
    what = state(runtimes=(runtime(container(Result(1, "", words))),))
    assert fault("module", facts, what).code == "driver_not_loaded"
    assert results_of(facts, what)["runtime"].code == "needs_driver"
    assert results_of(working(), what)["runtime"].code == "driver_not_loaded"


def test_a_container_that_only_waits_for_the_toolkit_is_no_second_failure():
    words = "fork/exec /usr/bin/nvidia-container-runtime: no such file or directory"
    lost = runtime(container(Result(1, "", words)))
    what = state(runtime=Result(127, "", "no such program"), runtimes=(lost,))
    assert fault("toolkit", what=what).code == "toolkit_missing"
    assert results_of(what=what)["runtime"].code == "needs_toolkit"
    assert fault("runtime", what=state(runtimes=(lost,))).code == "runtime_missing"


def test_check_mode_and_missing_images():
    not_tried = container(None, skipped=Finding("check_mode", "Would run it."))
    result = results_of(what=state(runtimes=(runtime(not_tried),)))["runtime"]
    assert (result.ok, result.cause) == (None, "Would run it.")
    missing = container(None, skipped=Finding("image_missing", "No image.", "x", "Bring it."))
    assert fault("runtime", what=state(runtimes=(runtime(missing),))).code == "image_missing"


def test_each_runtime_has_a_verdict_of_its_own():
    runtimes = (
        runtime(),
        runtime(name="docker", listed=False),
        runtime(name="x", idle="It rests."),
    )
    found = [
        one for one in judge_node(working(), state(runtimes=runtimes)) if one.layer == "runtime"
    ]
    assert [(one.subject.part, one.ok) for one in found] == [
        ("containerd", True), ("docker", False), ("x", None),
    ]  # fmt: skip
