# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layers of a node, judged from facts and answers."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import Finding
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.vgpu_licence import (
    read_licence,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.judge import (
    any_failed,
    judge_node,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import (
    NODE_LAYERS,
    Request,
)
from tests.unit.fixtures.node_facts import P4
from tests.unit.fixtures.verified_node import (
    GOOD,
    LOADED,
    ONE_GPU,
    fault,
    results_of,
    state,
    working,
)


def test_all_works_and_each_layer_says_how_it_was_shown():
    results = results_of()
    assert list(results) == [layer for layer in NODE_LAYERS if layer != "devices"]
    assert all(one.ok for one in results.values())
    assert not any_failed(results.values())
    assert results["pci"].proof == "1 GPU bound to the driver nvidia"
    assert results["module"].proof == "535.104.05 is loaded, proprietary modules"
    assert results["nvml"].proof == "nvidia-smi lists 1 GPU, driver 535.104.05, CUDA 12.2"
    assert results["toolkit"].proof == (
        "nvidia-container-runtime 1.20.0; CDI specification /var/run/cdi/nvidia.yaml for driver "
        "535.104.05"
    )
    assert results["runtime"].proof == (
        "crictl info names the handler nvidia; ctr ran 'nvidia-smi -L' in the image x: 1 GPU"
    )


def test_an_entry_has_the_fields_of_the_contract():
    (entry,) = [
        one.entry("gpu1") for one in judge_node(working(), state(), Request(layers=("pci",)))
    ]
    assert entry["node"] == "gpu1"
    assert {"layer", "ok", "cause", "evidence", "next_step", "proof"} < set(entry)


def test_a_node_without_gpu_is_not_tried():
    results = results_of(working(gpus=[]))
    assert {one.ok for one in results.values()} == {None}
    assert results["pci"].code == "no_gpu"


def guest(status):
    licence = read_licence("VGPU", "NVIDIA Virtual Compute Server", status)
    vgpu = {"guest": True, "host_driver_version": None, "host_driver_branch": None}
    gpu = {**P4, "kernel_driver": "nvidia", "vgpu": {**vgpu, "licence": licence}}
    return results_of(working(gpus=[gpu]))["nvml"]


@pytest.mark.parametrize(
    "status", ["Unlicensed", "Unlicensed (Restricted)", "Unlicensed (Unrestricted)"]
)
def test_a_guest_without_a_licence(status):
    nvml = guest(status)
    assert (nvml.ok, nvml.code) == (False, "vgpu_unlicensed")
    assert status in nvml.evidence and "nvidia-gridd" in nvml.next_step


def test_a_guest_with_its_licence():
    nvml = guest("Licensed (Expiry: 2026-7-7 16:1:44 GMT)")
    assert nvml.ok and nvml.proof.endswith(
        "licence status: Licensed (Expiry: 2026-7-7 16:1:44 GMT)"
    )
    assert guest("N/A").ok


# -- pci --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("driver", "word"),
    [(None, "no driver"), ("vfio-pci", "virtual machines"), ("nouveau", "blacklist nouveau")],
)
def test_a_gpu_that_is_bound_elsewhere(driver, word):
    result = fault("pci", working(gpus=[{**P4, "kernel_driver": driver}]))
    assert word in f"{result.cause} {result.next_step}"
    assert "Tesla P4 at 0000:00:05.0" in result.cause


def test_gpus_that_should_be_there():
    assert fault("pci", request=Request(gpus=2)).code == "gpu_count"
    assert results_of(request=Request(gpus=1))["pci"].ok
    result = results_of(working(gpus=[]), request=Request(gpus=2))["pci"]
    assert result.ok is False and "0 NVIDIA GPUs" in result.cause


def test_functions_given_to_guests_and_cards_of_others_do_not_count():
    gpu = {**P4, "kernel_driver": "nvidia"}
    guest = {**P4, "address": "0000:00:05.4", "virtual_function": True, "kernel_driver": "vfio-pci"}
    # A card for the screen: no driver for containers serves it.
    radeon = {**P4, "address": "0000:00:02.0", "vendor": "amd", "kernel_driver": "radeon"}
    assert not any_failed(results_of(working(gpus=[gpu, guest, radeon])).values())


# -- module -----------------------------------------------------------------------------------


def test_no_driver_and_what_rests_on_it():
    facts = working(driver__loaded=None, driver__installed=None, driver__userland=None, nvml=None)
    facts["container_toolkit"]["cdi_spec"] = None
    results = results_of(facts)
    assert results["module"].code == "driver_not_loaded"
    assert results["nvml"].ok is None and "module" in results["nvml"].cause
    assert results["toolkit"].ok and results["runtime"].ok


def test_the_diagnosis_of_the_driver_is_passed_on():
    facts = working(driver__loaded=None, nvml=None)
    finding = Finding("secure_boot", "Secure Boot.", "words", "Enrol the key.")
    result = results_of(facts, state(diagnosis=finding))["module"]
    assert (result.code, result.evidence) == ("secure_boot", "words")


def test_s9_10_libraries_of_another_version():
    result = fault("module", working(driver__userland="535.183.01"))
    assert result.code == "driver_library_mismatch"
    assert result.evidence == "module 535.104.05, libraries 535.183.01"
    # The module on the disk is the loaded one: a reboot would load it again.
    assert "dkms status" in result.next_step and "Reboot" not in result.next_step


def test_a_driver_that_waits_for_a_reboot():
    assert fault("module", working(driver__installed="580.95.05")).code == "pending_reboot"


def test_another_driver_than_asked_for():
    assert fault("module", request=Request(driver="580.95.05")).code == "other_driver"
    assert results_of(request=Request(driver=LOADED))["module"].ok


def test_what_cannot_be_told_is_no_fault():
    assert results_of(working(driver__installed=None, driver__userland=None))["module"].ok


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
    result = fault("nvml", working(nvml=None), state(smi=Result(18, words + "\n", "")))
    assert result.code == code
    assert words in result.evidence


@pytest.mark.parametrize(
    ("pynvml", "said", "how", "step"),
    [
        (None, "nvidia-smi -q -x was ended by signal 11.", "nvidia-smi -q -x fails", "-q -x on"),
        ("12.0", "NVML (pynvml) did not answer in 60 seconds", "pynvml fails", "nvidia-smi -q on"),
        (None, "", "nvidia-smi -q -x fails", "-i for one GPU"),
    ],
)
def test_what_failed_and_what_answered_are_told_apart(pynvml, said, how, step):
    """State with Debian's nvidia-smi 535 and 550: -q -x died, -L listed all GPUs."""
    problem = {"code": "driver_not_answering", "cause": "", "evidence": said, "next_step": ""}
    facts = working(nvml=None, problems=[problem] if said else [], python__pynvml=pynvml)
    result = fault("nvml", facts, state(smi=ONE_GPU))
    assert result.code == "driver_not_answering"
    assert result.cause == f"{how}, with driver {LOADED}; nvidia-smi -L answers, with 1 GPU."
    assert (said or "no answer") in result.evidence and "GPU 0" not in result.evidence
    assert step in result.next_step


def test_nvidia_smi_that_hangs_or_is_not_there():
    result = fault("nvml", working(nvml=None), state(smi=Result(124, "", "")))
    assert "did not answer in time" in result.evidence
    result = fault("nvml", working(nvml=None), state(smi=Result(127, "", "no such program")))
    assert result.code == "nvidia_smi_missing"


def test_a_gpu_that_the_driver_does_not_count_is_named():
    gpus = [{**P4, "address": f"0000:00:0{n}.0", "kernel_driver": "nvidia"} for n in (5, 6)]
    result = fault("nvml", working(gpus=gpus))
    assert "0000:00:06.0" in result.evidence
    assert "counts 1 GPU, and the PCI bus has 2" in result.cause


# -- toolkit ----------------------------------------------------------------------------------


def test_no_toolkit():
    facts = working(container_toolkit__version=None, container_toolkit__cdi_spec=None)
    what = state(runtime=Result(127, "", "nvidia-container-runtime: no such program"))
    result = fault("toolkit", facts, what)
    assert result.code == "toolkit_missing" and "kubegpu.nodes.site" in result.next_step
    result = fault("toolkit", what=what)
    assert "1.20.0-1 is installed, but" in result.cause
    # To the package manager all is there.
    assert "again" in result.next_step and "site" not in result.next_step


def test_a_toolkit_that_does_not_answer():
    what = state(runtime=Result(1, "", "cannot execute: required file not found"))
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
    """State with the real 1.20.0: the runtime does not even say its version with the first two."""
    facts = working(container_toolkit__config={setting: value})
    result = fault("toolkit", facts, state(runtime=answer))
    assert result.code == "toolkit_config_invalid"
    assert setting in result.cause and repr(value) in result.cause
    assert "packages" not in result.next_step


@pytest.mark.parametrize(
    "config",
    [{"nvidia-container-runtime.log-level": "loud"}, {"nvidia-container-cli.no-cgroup": "x"}],
)
def test_a_setting_that_the_toolkit_goes_on_without_is_no_fault(config):
    assert results_of(working(container_toolkit__config=config))["toolkit"].ok


def test_a_configuration_that_is_no_toml():
    result = fault("toolkit", working(container_toolkit__config=None))
    assert result.code == "toolkit_config_invalid"
    facts = working(container_toolkit__config=None)
    assert results_of(facts, state(config_exists=False))["toolkit"].ok


def test_a_cdi_specification_of_another_driver():
    old = {"path": "/etc/cdi/nvidia.yaml", "driver_version": "470.57.02"}
    result = fault("toolkit", working(container_toolkit__cdi_spec=old))
    assert result.code == "cdi_stale" and "470.57.02" in result.cause


def test_a_cdi_specification_is_missed_only_where_one_is_needed():
    facts = working(container_toolkit__cdi_spec=None)
    assert results_of(facts)["toolkit"].ok
    assert fault("toolkit", facts, request=Request(cdi=True)).code == "cdi_missing"
    facts["container_toolkit"]["config"] = {"nvidia-container-runtime.mode": "cdi"}
    assert fault("toolkit", facts).code == "cdi_missing"


def test_a_cdi_specification_without_devices():
    what = state(cdi=Result(0, "INFO[0000] Found 0 CDI devices\n", ""))
    assert fault("toolkit", what=what).code == "cdi_invalid"
    assert results_of(what=state(cdi=Result(127, "", "")))["toolkit"].ok


def test_a_toolkit_that_does_not_find_the_driver():
    words = "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: "
    what = state(cli=Result(1, "", words + "cannot open shared object file"))
    assert fault("toolkit", what=what).code == "driver_libraries_missing"
