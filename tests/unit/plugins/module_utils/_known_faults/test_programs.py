# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What programs and images say, and what the facts of the node decide."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import POSSIBLE
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.explain import explain

NO_DRIVER = "RuntimeError: Found no NVIDIA driver on your system."
KFD = 'adding custom device "/dev/kfd": no such file or directory'
AMD_SPEC = "docker: Error response from daemon: AMD CDI spec not found"
ROOTLESS = (
    "docker: Error response from daemon: CDI device injection failed: unresolvable CDI devices "
    "nvidia.com/gpu=all."
)


def gpus(*vendors, **driver):
    return {"gpus": [{"vendor": one} for one in vendors], "driver": {"installed": None, **driver}}


@pytest.mark.parametrize(("facts", "code"), [
    (gpus("amd"), "image_for_other_vendor"), (gpus("intel"), "image_for_other_vendor"),
    (gpus("nvidia"), "driver_not_loaded"),
    (gpus("nvidia", "amd", loaded="580.95.05"), "no_cuda_device"),
])  # fmt: skip
def test_facts_say_why_a_program_has_no_driver(facts, code):
    (found,) = explain(NO_DRIVER, facts)

    assert (found.code, found.alternatives) == (code, ())


def test_without_facts_all_reasons_are_named():
    (found,) = explain(NO_DRIVER)

    assert found.confidence == POSSIBLE
    assert {found.code, *found.alternatives} == {
        "no_cuda_device", "driver_not_loaded", "image_for_other_vendor",
    }  # fmt: skip


@pytest.mark.parametrize(("kernel", "words"), [
    ("5.15.167.4-microsoft-standard-WSL2", "WSL 2"), ("6.10.14-linuxkit", "Docker Desktop"),
    ("6.1.0-40-amd64", "modprobe amdgpu"),
])  # fmt: skip
def test_the_kernel_says_why_kfd_is_missing(kernel, words):
    (found,) = explain(KFD, {"os": {"kernel": kernel}})

    assert found.code == "device_node_missing" and found.confidence != POSSIBLE
    assert words in f"{found.cause} {found.next_step}"


@pytest.mark.parametrize(("vendor", "code"), [
    ("nvidia", "docker_no_gpu_driver"), ("amd", "cdi_missing"),
])  # fmt: skip
def test_docker_29_takes_a_gpu_for_one_of_amd(vendor, code):
    (found,) = explain(AMD_SPEC, gpus(vendor))

    assert (found.code, found.alternatives) == (code, ())


def test_a_rootless_docker_may_not_see_the_specification():
    (found,) = explain(ROOTLESS)
    assert found.confidence == POSSIBLE and "rootless" in found.cause

    # Without a specification on the node nobody sees one.
    (found,) = explain(ROOTLESS, {"container_toolkit": {"cdi_spec": None}})
    assert found.confidence != POSSIBLE and "rootless" not in found.cause

    known = {"container_toolkit": {"cdi_spec": {"path": "/etc/cdi/nvidia.yaml"}}}
    (found,) = explain(ROOTLESS, known, seen={"rootless": True})
    assert found.confidence != POSSIBLE and "rootless" in found.cause


def test_a_specification_of_the_runtime_itself_is_on_no_disk():
    text = "failed to inject CDI devices: unresolvable CDI devices runtime.nvidia.com/gpu=all"
    (found,) = explain(text)

    assert found.code == "cdi_automatic_failed" and "--output" not in found.next_step


@pytest.mark.parametrize(("text", "code"), [
    ("sh: 1: nvidia-smi: not found", "nvidia_smi_missing"),
    ("bash: nvidia-smi: command not found", "nvidia_smi_missing"),
    ("sh: nvidia-smi: not found", "image_without_glibc"),
    ("exec /usr/bin/nvidia-smi: no such file or directory", "image_without_glibc"),
    ("nvidia-smi: libc.so.6: version `GLIBC_2.34' not found (required by /usr/lib/libnvidia-ml.so)",
     "image_glibc_too_old"),
    ("HSA_STATUS_ERROR_INVALID_ISA", "hsa_invalid_isa"),
    ("HIP error: no kernel image is available for execution on the device", "no_kernel_image"),
])  # fmt: skip
def test_what_a_loader_or_a_shell_misses(text, code):
    (found,) = explain(text)

    assert found.code == code


def test_a_program_of_the_user_with_a_newer_glibc_is_no_fault_of_the_driver():
    assert explain("./train: version `GLIBC_2.38' not found (required by ./train)") == []
