# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layers of a node, judged from facts and answers."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import Finding
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.judge import failed, verify
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import (
    NODE_LAYERS,
    Wish,
)
from tests.unit.fixtures.node_facts import P4
from tests.unit.fixtures.verified_node import (
    GOOD,
    LOADED,
    ONE_GPU,
    fault,
    judged,
    seen,
    working,
)


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
