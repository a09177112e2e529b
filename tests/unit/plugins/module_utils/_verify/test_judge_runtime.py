# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer runtime, judged from facts and answers."""

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import Finding
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.judge import verify
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import (
    Wish,
)
from tests.unit.fixtures.node_facts import P4
from tests.unit.fixtures.verified_node import (
    SMI,
    device,
    engine,
    fault,
    judged,
    seen,
    trial,
    working,
)


def test_no_runtime():
    assert fault("runtime", what=seen(engines=())).code == "no_container_runtime"


def test_a_handler_that_is_not_there():
    verdict = fault("runtime", what=seen(engines=(engine(listed=False, handlers=("runc",)),)))
    assert (verdict.code, verdict.subject) == ("handler_missing", "containerd")
    assert verdict.evidence == "crictl info names runc"


def test_s11_the_default_counts_only_where_it_is_asked_for():
    assert judged()["runtime"].ok
    verdict = fault("runtime", wish=Wish(default=("containerd",)))
    assert verdict.code == "not_default"
    assert "nvidia_container_toolkit_containerd_set_default: true" in verdict.next_step
    good = seen(engines=(engine(default="nvidia"),))
    assert judged(what=good, wish=Wish(default=("containerd",)))["runtime"].ok


def test_s11_each_runtimes_default_is_its_own():
    docker = engine(name="docker", how="docker info")
    both = seen(engines=(engine(default="nvidia"), docker))
    runtimes = verify(working(), both, Wish(default=("containerd",)))[-2:]
    assert [(one.subject, one.ok) for one in runtimes] == [("containerd", True), ("docker", True)]
    verdict = verify(working(), both, Wish(default=("containerd", "docker")))[-1]
    assert (verdict.subject, verdict.code) == ("docker", "not_default")
    assert "nvidia_container_toolkit_docker_set_default: true" in verdict.next_step
    assert "device plugin" not in verdict.cause + verdict.next_step


def test_a_configuration_that_containerd_cannot_load_is_told_though_it_runs():
    problem = {"code": "containerd_config_invalid", "cause": "It cannot.", "evidence": "toml: x",
               "next_step": "Correct it."}  # fmt: skip
    assert fault("runtime", working(problems=[problem])).code == "containerd_config_invalid"
    docker = engine(name="docker")
    assert judged(working(problems=[problem]), seen(engines=(docker,)))["runtime"].ok


def test_s9_an_image_that_is_too_new():
    words = "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.3, please"
    verdict = fault("runtime", what=seen(engines=(engine(trial(Result(1, "", words))),)))
    assert verdict.code == "unmet_requirement"
    assert "545.23.06" in verdict.next_step and "CUDA 12.2 or older" in verdict.next_step


def test_a_container_that_sees_too_few():
    verdict = fault("runtime", what=seen(engines=(engine(trial(Result(0, "", ""))),)))
    assert verdict.code == "gpu_count_in_container"
    assert "sees 0 GPUs, and should see 1" in verdict.cause


def test_s10_a_chosen_gpu():
    gpus = [{**P4, "address": f"0000:00:0{n}.0", "kernel_driver": "nvidia"} for n in (5, 6)]
    facts = working(gpus=gpus)
    facts["nvml"]["devices"] = [device(), device("0000:00:06.0")]
    two = Result(0, SMI + "GPU 1: Tesla P4 (UUID: GPU-2)\n", "")
    good = engine(trial(two), trial(Result(0, SMI, ""), devices="0"))
    assert "of 0" in judged(facts, seen(engines=(good,)))["runtime"].proof
    bad = engine(trial(two), trial(two, devices="0"))
    assert fault("runtime", facts, seen(engines=(bad,))).code == "gpu_count_in_container"


def test_what_a_container_should_say():
    said = trial(Result(0, "a\nTest PASSED\n", ""), counts=False, expect="^Test PASSED$")
    assert "said '^Test PASSED$'" in judged(what=seen(engines=(engine(said),)))["runtime"].proof
    other = trial(Result(0, "Test FAILED\n", ""), counts=False, expect="^Test PASSED$")
    assert fault("runtime", what=seen(engines=(engine(other),))).code == "not_as_expected"
    known = trial(Result(0, "no CUDA-capable device is detected", ""), counts=False, expect="PASS")
    assert fault("runtime", what=seen(engines=(engine(known),))).code == "no_cuda_device"


def test_a_container_that_does_not_end():
    verdict = fault("runtime", what=seen(engines=(engine(trial(Result(124, "", ""))),)))
    assert verdict.code == "timed_out"


def test_a_container_that_only_waits_for_the_driver_is_no_second_failure():
    words = "nvidia-container-cli: initialization error: nvml error: driver not loaded"
    facts = working(driver__loaded=None, nvml=None)
    what = seen(engines=(engine(trial(Result(1, "", words))),))
    assert fault("module", facts, what).code == "driver_not_loaded"
    assert judged(facts, what)["runtime"].code == "needs_driver"
    assert judged(working(), what)["runtime"].code == "driver_not_loaded"


def test_a_container_that_only_waits_for_the_toolkit_is_no_second_failure():
    words = "fork/exec /usr/bin/nvidia-container-runtime: no such file or directory"
    lost = engine(trial(Result(1, "", words)))
    what = seen(runtime=Result(127, "", "no such program"), engines=(lost,))
    assert fault("toolkit", what=what).code == "toolkit_missing"
    assert judged(what=what)["runtime"].code == "needs_toolkit"
    assert fault("runtime", what=seen(engines=(lost,))).code == "runtime_missing"


def test_check_mode_and_missing_images():
    not_tried = trial(None, skipped=Finding("check_mode", "Would run it."))
    verdict = judged(what=seen(engines=(engine(not_tried),)))["runtime"]
    assert (verdict.ok, verdict.cause) == (None, "Would run it.")
    missing = trial(None, skipped=Finding("image_missing", "No image.", "x", "Bring it."))
    assert fault("runtime", what=seen(engines=(engine(missing),))).code == "image_missing"


def test_each_runtime_has_a_verdict_of_its_own():
    engines = (engine(), engine(name="docker", listed=False), engine(name="x", idle="It rests."))
    found = [one for one in verify(working(), seen(engines=engines)) if one.layer == "runtime"]
    assert [(one.subject, one.ok) for one in found] == [
        ("containerd", True), ("docker", False), ("x", None),
    ]  # fmt: skip
