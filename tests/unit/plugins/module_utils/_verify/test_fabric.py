# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the GPUs of a node have joined their NVLink fabric, and how long is waited for it.

The words of the fabric manager are those that users show; no machine with NVSwitches was at hand.
"""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.fabric import (
    Fabric,
    describe,
    fabric_fault,
    wait_for_fabric,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.judge import judge_node
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import State
from tests.unit.fixtures.driver_cases import facts

DONE = {"state": "completed", "status": "success"}
COMING = {"state": "in_progress", "status": None}
MISMATCH = (
    "fabric manager NVIDIA GPU driver interface version 580.95.05 don't match with driver version "
    "580.178.04. Please update with matching NVIDIA driver package."
)


def machine(*states, switches=4, unit="active", gpu="H100", **packages):
    words = "+".join([gpu] * max(1, len(states)))
    given = facts(words, "u24", "distro 580.178.04 open held ours")
    given["nvswitches"] = switches
    given["driver"]["services"]["nvidia-fabricmanager"] = unit
    given["driver"]["packages"].update(
        {name.replace("_", "-"): text for name, text in packages.items()}
    )
    for one in given["gpus"]:
        one["kernel_driver"] = "nvidia"
    given["nvml"] = {
        "driver_version": "580.178.04",
        "cuda_version": "13.0",
        "devices": [
            {"address": one["address"], "uuid": f"GPU-{number}", "fabric": state}
            for number, (one, state) in enumerate(zip(given["gpus"], states))
        ],
    }
    return given


class FabricDriver:
    """A clock, and a driver that says one thing after the other."""

    def __init__(self, *answers, units=(), journal=""):
        self.now, self.asked = 0.0, 0
        self.answers, self.units, self.journal = answers, list(units), journal

    def run(self, argv, timeout=60, environment=None):
        if argv[0] == "journalctl":
            return Result(0, self.journal, "")
        state = self.units.pop(0) if self.units else "active"
        return Result(0 if state == "active" else 3, f"{state}\n", "")

    def devices(self):
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        return [{"fabric": state} for state in answer]

    def sleep(self, seconds):
        self.now += seconds

    def wait(self, node, timeout=60, **options):
        return wait_for_fabric(
            node, self.run, self.devices, timeout, lambda: self.now, self.sleep, **options
        )


def test_a_node_without_a_fabric_is_not_asked():
    driver = FabricDriver()
    assert driver.wait(machine(None, switches=0, unit=None)) is None
    assert fabric_fault(machine(None, switches=0, unit=None), None) is None and describe(None) == ""
    node = machine(None)
    node["nvml"] = None
    assert driver.wait(node) is None


def test_all_have_joined():
    node = machine(DONE, DONE)
    driver = FabricDriver()
    fabric = driver.wait(node)
    assert driver.asked == 0 and fabric_fault(node, fabric) is None
    assert describe(fabric) == ", fabric completed for 2 GPUs, nvidia-fabricmanager runs"
    nvml = next(one for one in judge_node(node, State(fabric=fabric)) if one.layer == "nvml")
    assert nvml.ok and "fabric completed" in nvml.proof


def test_it_is_waited_for():
    node = machine(COMING, COMING)
    driver = FabricDriver((COMING, COMING), (DONE, COMING), (DONE, DONE))
    fabric = driver.wait(node)
    assert (driver.asked, fabric.waited, fabric.not_joined) == (3, 6, ())
    assert fabric_fault(node, fabric) is None


def test_waiting_has_an_end():
    node = machine(DONE, COMING)
    fabric = FabricDriver((DONE, COMING)).wait(node, timeout=10)
    assert fabric.waited == 10
    found = fabric_fault(node, fabric)
    assert found.code == "fabric_not_ready" and "1 of 2 GPUs has not" in found.cause
    assert "in progress" in found.evidence and "10 s" in found.evidence
    assert "journalctl --unit nvidia-fabricmanager" in found.next_step
    nvml = next(one for one in judge_node(node, State(fabric=fabric)) if one.layer == "nvml")
    assert (nvml.ok, nvml.code) == (False, "fabric_not_ready")


def test_a_registration_that_failed():
    node = machine({"state": "completed", "status": "error 999"})
    fabric = FabricDriver().wait(node)
    assert fabric.waited == 0
    assert "completed (error 999)" in fabric_fault(node, fabric).evidence


@pytest.mark.parametrize(
    ("state", "code"), [("gpu_is_lost", "gpu_lost"), ("gpu_requires_reset", "recovery_action")]
)
def test_a_fault_in_the_place_of_the_state(state, code):
    """As the facts have it of nvidia-smi: no fabric manager can mend that."""
    node = machine(DONE, {"state": state, "status": None})
    driver = FabricDriver((DONE, COMING))
    fabric = driver.wait(node)
    assert (driver.asked, fabric.waited) == (0, 0)
    found = fabric_fault(node, fabric)
    assert found.code == code and state.replace("_", " ") in found.evidence
    assert "fabricmanager" not in found.next_step


def test_a_virtual_machine_waits_for_its_host():
    node = machine(COMING, switches=0, unit=None)
    found = fabric_fault(node, FabricDriver((COMING,)).wait(node, timeout=4))
    assert "host of this virtual machine" in found.next_step
    fabric = FabricDriver((DONE,)).wait(node)
    assert fabric_fault(node, fabric) is None and describe(fabric) == ", fabric completed for 1 GPU"


@pytest.mark.parametrize("unit", ["failed", "inactive", None])
def test_a_manager_that_does_not_run_is_not_waited_for(unit):
    node = machine(COMING, unit=unit)
    driver = FabricDriver()
    fabric = driver.wait(node)
    assert driver.asked == 0
    found = fabric_fault(node, fabric)
    assert found.code == "fabric_manager_not_running"
    assert "4 NVSwitches" in found.cause and "nvidia_driver" in found.next_step


@pytest.mark.parametrize("unit", ["failed", "inactive", None])
def test_a_manager_that_is_left_alone_may_be_down(unit):
    node = machine(DONE, unit=unit)
    fabric = FabricDriver((DONE,)).wait(node, managed="false")
    assert fabric_fault(node, fabric) is None
    # The GPUs have to join all the same.
    node = machine(COMING, unit=unit)
    found = fabric_fault(node, FabricDriver((COMING,)).wait(node, timeout=4, managed="false"))
    assert found.code == "fabric_not_ready" and "nvidia_driver_fabric" in found.next_step
    # Without a state of the GPUs, nothing is known against it.
    node = machine(None, unit=unit, gpu="A100")
    assert FabricDriver((None,)).wait(node, managed="false") is None
    found = fabric_fault(node, FabricDriver().wait(node))
    assert found.code == "fabric_manager_not_running"


def test_its_own_words_are_explained():
    node = machine(
        COMING,
        unit="failed",
        nvidia_fabricmanager_580="580.95.05-0ubuntu1",
    )
    found = fabric_fault(node, FabricDriver(journal=f"Starting...\n{MISMATCH}\n").wait(node))
    assert found.code == "fabric_manager_version"
    assert "580.95.05" in found.cause and "580.178.04" in found.cause
    assert "nvidia-fabricmanager-580 580.95.05 next to driver 580.178.04" in found.evidence
    nothing = FabricDriver(journal="error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]").wait(node)
    assert fabric_fault(node, nothing).code == "fabric_nothing_to_do"
    other = fabric_fault(node, FabricDriver(journal="out of luck\n").wait(node))
    assert other.code == "fabric_manager_not_running" and "out of luck" in other.evidence


def test_a100_has_no_state_of_its_own():
    """Then the service alone tells."""
    node = machine(None, None, gpu="A100")
    fabric = FabricDriver().wait(node)
    assert fabric_fault(node, fabric) is None and describe(fabric) == ", nvidia-fabricmanager runs"
    node = machine(None, gpu="A100", unit="activating")
    fabric = FabricDriver((None,), units=["activating", "active"]).wait(node)
    assert fabric.waited == 4 and fabric_fault(node, fabric) is None
    node = machine(None, gpu="A100", unit="inactive")
    assert fabric_fault(node, FabricDriver().wait(node)).code == "fabric_manager_not_running"


def test_gpus_that_have_joined_need_no_service_of_ours():
    node = machine(DONE, unit="inactive")
    assert fabric_fault(node, FabricDriver().wait(node)) is None


def test_imex_that_failed():
    node = machine(DONE)
    node["driver"]["services"]["nvidia-imex"] = "failed"
    assert fabric_fault(node, Fabric()).code == "imex_failed"
