# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A driver is kept only if it works: it is loaded, answers, and is not blocked."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.options import read_options
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan import config_files
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.plan import plan_driver
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.types import Plan
from tests.unit.fixtures.driver_cases import facts, request

UBUNTU = ("RTX4090", "u24", "distro 580.126.09 open held unloaded")
DEBIAN = ("T4", "d12", "nvidia 580.126.09 open dkms unloaded")
RUNFILE = ("L4", "u22", "runfile 580.126.09 open dkms unloaded")
ROCKY = ("A100", "rocky9", "nvidia 580.126.09 open dkms unloaded")
FILE = "/etc/modprobe.d/gpu.conf"
COMMAND_LINE = "kernel command line"
NVML = {"driver_version": "580.126.09", "cuda_version": "13.0", "devices": [{}]}


def plan(node: dict[str, Any], **options: Any) -> Plan:
    return plan_driver(node, *read_options({**request("-"), **options}))


def blocked(node: dict[str, Any], place: str, setting: str, module: str = "nvidia") -> None:
    node["blocked_modules"] = {module: [{"place": place, "setting": setting}]}


@pytest.mark.parametrize("machine", [UBUNTU, DEBIAN, RUNFILE, ROCKY])
@pytest.mark.parametrize("modules", [["nouveau"], ["nova_drm", "nova_core"]])
def test_a_driver_beside_nouveau_is_repaired(machine, modules):
    node = facts(*machine)
    node["nouveau"] = {"loaded": True, "blocked": False, "modules": modules}
    found = plan(node)
    assert found.action == "none" and found.change and found.load
    steps = [step.step for step in found.steps]
    assert steps[-1] == "load" and {"files", "initramfs"} <= set(steps)
    assert "blacklist nouveau" in found.files[config_files.NOUVEAU]
    assert found.reboot["required"] and modules[0] in found.reboot["reason"]
    (reason,) = found.reasons
    assert f"{' and '.join(modules)} is loaded and holds the GPUs" in reason
    assert "kept" not in reason


def test_nouveau_that_took_the_gpus_before_a_loaded_driver_goes_with_a_reboot():
    node = facts("T4", "d12", "nvidia 580.126.09 open dkms")
    node["gpus"][0]["kernel_driver"] = "nouveau"
    node["nouveau"] = {"loaded": True, "blocked": False, "modules": ["nouveau"]}
    node["problems"] = [problem("driver_not_answering")]
    found = plan(node)
    assert found.action == "none" and config_files.NOUVEAU in found.files and found.change
    assert found.reboot["required"] and "nouveau holds the GPUs" in found.reboot["reason"]
    # One card may be for the screen.
    node["nvml"] = NVML
    assert not plan(node).change and not plan(node).reboot["required"]


@pytest.mark.parametrize("machine", [UBUNTU, DEBIAN, RUNFILE, ROCKY])
def test_a_driver_that_is_not_loaded_is_loaded(machine):
    found = plan(facts(*machine))
    assert [step.step for step in found.steps][-1] == "load"
    assert "its kernel module is not loaded" in found.reasons[0]
    assert not found.reboot["required"]


def test_without_permission_to_load_the_variable_is_named():
    node = facts(*DEBIAN)
    node["nouveau"] = {"loaded": True, "blocked": False, "modules": ["nouveau"]}
    found = plan(node, load=False)
    assert not found.load and found.files[config_files.NOUVEAU]
    assert found.reboot["required"]
    assert [text for text in found.warnings if "nvidia_driver_load is false" in text]


def test_where_another_kernel_has_the_module_the_reboot_is_named_and_nouveau_blocked():
    node = facts(*DEBIAN)
    other = {**node["kernels"][0], "version": "6.1.0-39-amd64", "running": False}
    node["kernels"] = [other, {**node["kernels"][0], "driver": None, "headers": False}]
    found = plan(node)
    assert "for which it has no module" in found.reasons[0]
    assert {"kernel", "files"} <= {step.step for step in found.steps}


def test_in_a_container_nobody_can_load_a_module():
    node = facts(*DEBIAN)
    for kernel in node["kernels"]:
        kernel["on_disk"] = False
    assert (plan(node).action, plan(node).change) == ("none", False)
    # A kernel may be on its disk, and another one runs: that of its host.
    node["kernels"].append({**node["kernels"][0], "running": False, "on_disk": True})
    node["nouveau"] = {"loaded": True, "blocked": False, "modules": ["nouveau"]}
    assert (plan(node).action, plan(node).change) == ("none", False)


@pytest.mark.parametrize("setting", ["", "blacklist nvidia", "install nvidia /bin/false"])
def test_where_virtual_machines_have_all_gpus_the_driver_need_not_be_loaded(setting):
    node = facts(*DEBIAN)
    node["gpus"][0]["kernel_driver"] = "vfio-pci"
    if setting:
        blocked(node, FILE, setting)
    found = plan(node)
    assert (found.action, found.change, found.load) == ("none", False, False)


def test_a_loaded_driver_without_gpus_of_its_own_need_not_answer():
    node = facts("T4", "d12", "nvidia 580.126.09 open dkms")
    node["gpus"][0]["kernel_driver"] = "vfio-pci"
    node["problems"] = [problem("driver_not_answering", "No devices were found")]
    assert plan(node).action == "none"


@pytest.mark.parametrize(
    ("place", "setting", "step"),
    [
        (FILE, "blacklist nvidia", f"out of {FILE}"),
        (FILE, "install nvidia /bin/false", f"out of {FILE}"),
        ("/lib/modprobe.d/blacklist-nvidia.conf", "alias nvidia off", "out of /lib"),
        (COMMAND_LINE, "module_blacklist=nvidia", "off the kernel command line"),
        (COMMAND_LINE, "modprobe.blacklist=nouveau,nvidia", "off the kernel command line"),
    ],
)
@pytest.mark.parametrize("stands", ["-", "nvidia 580.126.09 open dkms unloaded"])
def test_a_driver_that_is_blocked_is_refused_by_file_or_word(place, setting, step, stands):
    node = facts("T4", "d12", stands)
    blocked(node, place, setting)
    found = plan(node)
    assert found.action == "refuse" and not found.files
    text = "\n".join(found.reasons)
    assert f"{place}: {setting}" in text and step in text
    assert "nvidia_driver_load: false" in text


def test_a_blocked_driver_that_is_not_to_be_loaded_is_a_warning():
    node = facts("T4", "d12")
    blocked(node, FILE, "blacklist nvidia")
    found = plan(node, load=False)
    assert found.action == "install" and FILE in "\n".join(found.warnings)


def test_a_loaded_driver_that_is_blocked_for_the_next_boot_is_a_warning():
    node = facts("T4", "d12", "nvidia 580.126.09 open dkms")
    node["nvml"] = NVML
    for setting in ("blacklist nvidia", "install nvidia /bin/false"):
        blocked(node, FILE, setting)
        found = plan(node)
        assert not found.change and "a boot does not load it" in "\n".join(found.warnings)


def test_a_reload_that_the_kernel_would_refuse_is_refused_before():
    node = facts("T4", "d12", "nvidia 580.95.05 open dkms ours")
    blocked(node, COMMAND_LINE, "module_blacklist=nvidia_uvm", "nvidia_uvm")
    assert plan(node, version="580.126.09").action == "refuse"
    blocked(node, FILE, "blacklist nvidia")
    assert plan(node, version="580.126.09").action == "upgrade"


def test_what_counts_in_the_initial_ram_disk_only_is_named_and_no_refusal():
    node = facts(*DEBIAN)
    blocked(node, COMMAND_LINE, "rd.driver.blacklist=nvidia")
    found = plan(node)
    assert found.load and "initial RAM disk only" in "\n".join(found.warnings)


def test_a_block_in_our_own_file_is_rewritten():
    node = facts(*DEBIAN)
    blocked(node, config_files.OPTIONS, "blacklist nvidia")
    assert plan(node).load


def test_modules_of_an_unknown_kind_that_do_not_load_are_replaced_on_request():
    node = facts("B200", "d12", "runfile 580.126.09 ? unloaded")
    assert plan(node).load, "nothing says that they do not fit"
    found = plan(node, kernel_module="open")
    assert found.action == "refuse" and "nvidia_driver_replace_source" in "\n".join(found.reasons)
    found = plan(node, kernel_module="open", replace_source=True)
    assert found.action == "install" and found.kernel_module == "open"
    loaded = facts("B200", "d12", "runfile 580.126.09 ?")
    assert plan(loaded, kernel_module="open").action == "none"


def problem(code: str, cause: str = "It does not answer.") -> dict[str, str]:
    return {"code": code, "cause": cause, "evidence": "what it said", "next_step": "Check it."}


@pytest.mark.parametrize(
    ("codes", "first"),
    [
        (["driver_not_answering"], "driver_not_answering"),
        (["driver_hangs"], "driver_hangs"),
        (["driver_not_answering", "device_nodes_missing"], "device_nodes_missing"),
    ],
)
def test_a_driver_that_was_asked_and_does_not_answer_is_refused(codes, first):
    node = facts("T4", "d12", "nvidia 580.126.09 open dkms")
    node["problems"] = [problem(code, f"{code} here.") for code in codes]
    found = plan(node)
    text = "\n".join(found.reasons)
    assert found.action == "refuse" and "what it said." in text
    assert (f"{first} here: " in text) == (first != "driver_not_answering")
    assert plan(node, branch="595").action == "upgrade", "another driver was requested"
    node["nvml"] = NVML
    assert plan(node).action == "none", "it answers"


@pytest.mark.parametrize("code", ["gpu_lost", "recovery_action"])
def test_a_gpu_that_is_lost_is_named_and_the_driver_kept(code):
    """nvidia-smi fails for all GPUs then: open-gpu-kernel-modules#387, akash support#209."""
    node = facts("T4", "d12", "nvidia 580.126.09 open dkms")
    node["problems"] = [problem(code, "GPU 0000:0b:00.0 does not answer on the bus any more.")]
    found = plan(node)
    assert (found.action, found.change) == ("none", False)
    text = "\n".join(found.warnings)
    assert "GPU 0000:0b:00.0 does not answer" in text and "what it said." in text
    assert "The driver is not the cause. Next step: Check it." in text
    node["problems"].append(problem("driver_hangs"))
    assert plan(node).action == "none", "it hangs because of the GPU"
    # Asked for another driver, the run installs it, and says that the GPU stays lost.
    other = plan(node, branch="595")
    assert other.action == "upgrade" and "GPU 0000:0b:00.0" in "\n".join(other.warnings)
    node["driver"]["loaded"] = None
    assert not plan(node).warnings


def test_a_slow_start_without_the_persistence_daemon_is_a_warning():
    node = facts("T4", "d12", "nvidia 580.126.09 open dkms ours")
    node["driver"]["services"]["nvidia-persistenced"] = "inactive"
    node["problems"] = [problem("driver_hangs")]
    hang = {"program": "nvidia-smi", "pid": 7, "state": "D", "wchan": "", "seconds": 60.0}
    node["driver_hang"] = {**hang, "left": False}
    found = plan(node)
    assert ("service", "start") in [(step.step, step.action) for step in found.steps]
    assert "within 60 s, and nvidia-persistenced is inactive" in "\n".join(found.warnings)
    node["driver_hang"]["left"] = True
    assert plan(node).action == "refuse", "nothing can end it"
    node["driver_hang"]["left"] = False
    node["driver"]["services"]["nvidia-persistenced"] = "active"
    assert plan(node).action == "refuse", "the daemon has started the GPUs"


def test_a_driver_that_nobody_could_ask_is_kept():
    node = facts("T4", "d12", "nvidia 580.126.09 open dkms")
    assert not plan(node).change
    # pynvml is there, and the library of a driver in a container is not.
    node["driver"]["userland"] = None
    node["problems"] = [problem("driver_not_answering")]
    assert not plan(node).change


def test_another_user_than_root_whom_the_driver_does_not_answer_says_nothing_of_it():
    node = facts("T4", "d12", "nvidia 580.126.09 open dkms")
    node["problems"] = [problem("driver_not_answering")]
    assert plan(node).action == "refuse"
    node["driver"]["managed"] = None
    assert plan(node).action == "none"


@pytest.mark.parametrize("stands", ["loaded=580.95.05", "libs=580.95.05"])
def test_another_version_that_is_loaded_waits_for_the_reboot(stands):
    node = facts("T4", "d12", f"nvidia 580.126.09 open dkms {stands}")
    node["problems"] = [problem("driver_not_answering")]
    found = plan(node)
    assert found.action == "none"
    assert found.reboot["required"] or "reboot" in "\n".join(found.warnings)


@pytest.mark.parametrize(
    ("gpu", "stands", "wanted"),
    [
        ("B200", "nvidia 580.126.09 proprietary dkms unloaded", "open"),
        ("RTX5090", "runfile 580.126.09 proprietary dkms unloaded", "open"),
        ("V100", "nvidia 580.126.09 open dkms unloaded", "proprietary"),
    ],
)
def test_kernel_modules_that_do_not_fit_the_gpu_are_not_kept(gpu, stands, wanted):
    found = plan(facts(gpu, "d12", stands), replace_source=True)
    assert found.action != "none" and found.kernel_module == wanted
