# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layers of a node, judged from facts and answers."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import Finding
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.judge import (
    NODE_LAYERS,
    Engine,
    Seen,
    Trial,
    Wish,
    failed,
    verify,
)
from tests.unit.fixtures.node_facts import P4, node

LOADED = "535.104.05"
GOOD = Result(0, "NVIDIA Container Runtime version 1.20.0\n", "")
SMI = "GPU 0: Tesla P4 (UUID: GPU-1)\n"
ONE_GPU = Result(0, SMI, "")


def device(address="0000:00:05.0", **more):
    return {"address": address, "uuid": "GPU-1", "name": "Tesla P4", **more}


def working(**changes):
    """A node on which all works, with changes."""
    facts = node(
        gpus=[{**P4, "kernel_driver": "nvidia"}],
        driver__loaded=LOADED,
        driver__installed=LOADED,
        driver__userland=LOADED,
        driver__kernel_module="proprietary",
        nvml={"driver_version": LOADED, "cuda_version": "12.2", "devices": [device()]},
        container_toolkit__version="1.20.0-1",
        container_toolkit__config={},
        container_toolkit__cdi_spec={"path": "/var/run/cdi/nvidia.yaml", "driver_version": LOADED},
    )
    for name, value in changes.items():
        *path, last = name.split("__")
        target = facts
        for key in path:
            target = target[key]
        target[last] = copy.deepcopy(value)
    return facts


def trial(result=ONE_GPU, **more):
    return Trial(
        **{"way": "ctr", "subject": "the image x", "command": ("nvidia-smi", "-L"), "counts": True,
           "result": result, **more}
    )  # fmt: skip


def engine(*trials, **more):
    return Engine(
        **{"name": "containerd", "handler": "nvidia", "listed": True,
           "handlers": ("nvidia", "runc"), "default": "runc", "how": "crictl info",
           "trials": trials or (trial(),), **more}
    )  # fmt: skip


def seen(**more):
    cdi = Result(0, "INFO Found 2 CDI devices\nnvidia.com/gpu=0\nnvidia.com/gpu=all\n", "")
    return Seen(
        **{"runtime": GOOD, "cdi": cdi, "config_there": True, "engines": (engine(),), **more}
    )


def judged(facts=None, what=None, wish=None):
    return {verdict.layer: verdict for verdict in verify(facts or working(), what or seen(), wish)}


def fault(layer, facts=None, what=None, wish=None):
    """Return the verdict of a layer that has to be the only one that failed."""
    verdicts = judged(facts, what, wish)
    assert [name for name, one in verdicts.items() if one.ok is False] == [layer]
    verdict = verdicts[layer]
    assert verdict.cause.endswith((".", "?")) and verdict.next_step.endswith(".")
    assert verdict.code and not verdict.proof
    return verdict


def test_all_works_and_each_layer_says_how_it_was_shown():
    verdicts = judged()
    assert list(verdicts) == list(NODE_LAYERS)
    assert all(one.ok for one in verdicts.values())
    assert not failed(verdicts.values())
    assert verdicts["pci"].proof == "1 GPU bound to the driver nvidia"
    assert verdicts["module"].proof == "535.104.05 is loaded, proprietary modules"
    assert verdicts["nvml"].proof == "nvidia-smi lists 1 GPU, driver 535.104.05, CUDA 12.2"
    assert verdicts["toolkit"].proof == (
        "nvidia-container-runtime 1.20.0; CDI specification /var/run/cdi/nvidia.yaml for driver "
        "535.104.05"
    )
    assert verdicts["runtime"].proof == (
        "crictl info names the handler nvidia; ctr ran 'nvidia-smi -L' in the image x: 1 GPU"
    )


def test_an_entry_has_the_fields_of_the_contract():
    (entry,) = [one.entry("gpu1") for one in verify(working(), seen(), Wish(layers=("pci",)))]
    assert entry["node"] == "gpu1"
    assert {"layer", "ok", "cause", "evidence", "next_step", "proof"} < set(entry)


def test_a_node_without_gpu_is_not_tried():
    verdicts = judged(working(gpus=[]))
    assert {one.ok for one in verdicts.values()} == {None}
    assert verdicts["pci"].code == "no_gpu"


# -- pci --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("driver", "word"),
    [(None, "no driver"), ("vfio-pci", "virtual machines"), ("nouveau", "blacklist nouveau")],
)
def test_a_gpu_that_is_bound_elsewhere(driver, word):
    verdict = fault("pci", working(gpus=[{**P4, "kernel_driver": driver}]))
    assert word in f"{verdict.cause} {verdict.next_step}"
    assert "Tesla P4 at 0000:00:05.0" in verdict.cause


def test_gpus_that_should_be_there():
    assert fault("pci", wish=Wish(gpus=2)).code == "gpu_count"
    assert judged(wish=Wish(gpus=1))["pci"].ok
    verdict = judged(working(gpus=[]), wish=Wish(gpus=2))["pci"]
    assert verdict.ok is False and "0 NVIDIA GPUs" in verdict.cause


def test_functions_given_to_guests_and_cards_of_others_do_not_count():
    gpu = {**P4, "kernel_driver": "nvidia"}
    guest = {**P4, "address": "0000:00:05.4", "virtual_function": True, "kernel_driver": "vfio-pci"}
    intel = {**P4, "address": "0000:00:02.0", "vendor": "intel", "kernel_driver": "i915"}
    assert not failed(judged(working(gpus=[gpu, guest, intel])).values())


# -- module -----------------------------------------------------------------------------------


def test_no_driver_and_what_rests_on_it():
    facts = working(driver__loaded=None, driver__installed=None, driver__userland=None, nvml=None)
    facts["container_toolkit"]["cdi_spec"] = None
    verdicts = judged(facts)
    assert verdicts["module"].code == "driver_not_loaded"
    assert verdicts["nvml"].ok is None and "module" in verdicts["nvml"].cause
    assert verdicts["toolkit"].ok and verdicts["runtime"].ok


def test_the_diagnosis_of_the_driver_is_passed_on():
    facts = working(driver__loaded=None, nvml=None)
    finding = Finding("secure_boot", "Secure Boot.", "words", "Enrol the key.")
    verdict = judged(facts, seen(diagnosis=finding))["module"]
    assert (verdict.code, verdict.evidence) == ("secure_boot", "words")


def test_s9_10_libraries_of_another_version():
    verdict = fault("module", working(driver__userland="535.183.01"))
    assert verdict.code == "driver_library_mismatch"
    assert verdict.evidence == "module 535.104.05, libraries 535.183.01"
    assert "nvidia_driver_hold" in verdict.next_step


def test_a_driver_that_waits_for_a_reboot():
    assert fault("module", working(driver__installed="580.95.05")).code == "pending_reboot"


def test_another_driver_than_asked_for():
    assert fault("module", wish=Wish(driver="580.95.05")).code == "other_driver"
    assert judged(wish=Wish(driver=LOADED))["module"].ok


def test_what_cannot_be_told_is_no_fault():
    assert judged(working(driver__installed=None, driver__userland=None))["module"].ok


# -- nvml -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch", "driver_library_mismatch"),
        ("No devices were found", "no_devices"),
        ("Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error", "gpu_lost"),
        ("something new", "driver_not_answering"),
    ],
)
def test_nvidia_smis_own_words_are_explained(words, code):
    verdict = fault("nvml", working(nvml=None), seen(smi=Result(18, words + "\n", "")))
    assert verdict.code == code
    assert words in verdict.evidence


@pytest.mark.parametrize(
    ("pynvml", "said", "how", "step"),
    [
        (None, "nvidia-smi -q -x was ended by signal 11.", "nvidia-smi -q -x fails", "-q -x on"),
        ("12.0", "NVML (pynvml) did not answer in 60 seconds", "pynvml fails", "nvidia-smi -q on"),
        (None, "", "nvidia-smi -q -x fails", "-i for one GPU"),
    ],
)
def test_what_failed_and_what_answered_are_told_apart(pynvml, said, how, step):
    """Seen with Debian's nvidia-smi 535 and 550: -q -x died, -L listed all GPUs."""
    problem = {"code": "driver_not_answering", "cause": "", "evidence": said, "next_step": ""}
    facts = working(nvml=None, problems=[problem] if said else [], python__pynvml=pynvml)
    verdict = fault("nvml", facts, seen(smi=ONE_GPU))
    assert verdict.code == "driver_not_answering"
    assert verdict.cause == f"{how}, with driver {LOADED}; nvidia-smi -L answers, with 1 GPU."
    assert (said or "no answer") in verdict.evidence and "GPU 0" not in verdict.evidence
    assert step in verdict.next_step


def test_nvidia_smi_that_hangs_or_is_not_there():
    verdict = fault("nvml", working(nvml=None), seen(smi=Result(124, "", "")))
    assert "did not answer in time" in verdict.evidence
    verdict = fault("nvml", working(nvml=None), seen(smi=Result(127, "", "no such program")))
    assert verdict.code == "nvidia_smi_missing"


def test_a_gpu_that_the_driver_does_not_count_is_named():
    gpus = [{**P4, "address": f"0000:00:0{n}.0", "kernel_driver": "nvidia"} for n in (5, 6)]
    verdict = fault("nvml", working(gpus=gpus))
    assert "0000:00:06.0" in verdict.evidence
    assert "counts 1 GPU, and the PCI bus has 2" in verdict.cause


# -- toolkit ----------------------------------------------------------------------------------


def test_no_toolkit():
    facts = working(container_toolkit__version=None, container_toolkit__cdi_spec=None)
    what = seen(runtime=Result(127, "", "nvidia-container-runtime: no such program"))
    verdict = fault("toolkit", facts, what)
    assert verdict.code == "toolkit_missing" and "kubegpu.nodes.site" in verdict.next_step
    verdict = fault("toolkit", what=what)
    assert "1.20.0-1 is installed, but" in verdict.cause
    # To the package manager all is there.
    assert "again" in verdict.next_step and "site" not in verdict.next_step


def test_a_toolkit_that_does_not_answer():
    what = seen(runtime=Result(1, "", "cannot execute: required file not found"))
    assert fault("toolkit", what=what).evidence == "cannot execute: required file not found"


@pytest.mark.parametrize("answer", [GOOD, Result(1, "", "error loading config: ...")])
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("nvidia-container-cli.no-cgroups", "true"),
        ("nvidia-container-cli.ldconfig", "/sbin/ldconfig"),
        ("nvidia-container-runtime.mode", "cdii"),
    ],
)
def test_a_setting_that_no_container_starts_with_is_named(setting, value, answer):
    """Seen with the real 1.20.0: the runtime does not even say its version with the first two."""
    facts = working(container_toolkit__config={setting: value})
    verdict = fault("toolkit", facts, seen(runtime=answer))
    assert verdict.code == "toolkit_config_invalid"
    assert setting in verdict.cause and repr(value) in verdict.cause
    assert "packages" not in verdict.next_step


@pytest.mark.parametrize(
    "config",
    [{"nvidia-container-runtime.log-level": "loud"}, {"nvidia-container-cli.no-cgroup": "x"}],
)
def test_a_setting_that_the_toolkit_goes_on_without_is_no_fault(config):
    assert judged(working(container_toolkit__config=config))["toolkit"].ok


def test_a_configuration_that_is_no_toml():
    verdict = fault("toolkit", working(container_toolkit__config=None))
    assert verdict.code == "toolkit_config_invalid"
    facts = working(container_toolkit__config=None)
    assert judged(facts, seen(config_there=False))["toolkit"].ok


def test_a_cdi_specification_of_another_driver():
    old = {"path": "/etc/cdi/nvidia.yaml", "driver_version": "470.57.02"}
    verdict = fault("toolkit", working(container_toolkit__cdi_spec=old))
    assert verdict.code == "cdi_stale" and "470.57.02" in verdict.cause


def test_a_cdi_specification_is_missed_only_where_one_is_needed():
    facts = working(container_toolkit__cdi_spec=None)
    assert judged(facts)["toolkit"].ok
    assert fault("toolkit", facts, wish=Wish(cdi=True)).code == "cdi_missing"
    facts["container_toolkit"]["config"] = {"nvidia-container-runtime.mode": "cdi"}
    assert fault("toolkit", facts).code == "cdi_missing"


def test_a_cdi_specification_without_devices():
    what = seen(cdi=Result(0, "INFO[0000] Found 0 CDI devices\n", ""))
    assert fault("toolkit", what=what).code == "cdi_invalid"
    assert judged(what=seen(cdi=Result(127, "", "")))["toolkit"].ok


def test_a_toolkit_that_does_not_find_the_driver():
    words = "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: "
    what = seen(cli=Result(1, "", words + "cannot open shared object file"))
    assert fault("toolkit", what=what).code == "driver_libraries_missing"


# -- runtime ----------------------------------------------------------------------------------


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
