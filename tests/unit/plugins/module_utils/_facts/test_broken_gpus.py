# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One GPU that is lost, or has to be reset, is named; the driver is not the fault then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.gather import gather
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.runtimes import RuntimePaths
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from tests.unit.fixtures.machines import DEBIAN_12, SERVER, Machine, nvidia
from tests.unit.fixtures.make_tree import make_machine, write
from tests.unit.plugins.module_utils._facts.test_gather import Node
from tests.unit.plugins.module_utils._hardware.test_nvml import NVMLError, StandinNvml

# Of people: open-gpu-kernel-modules#387 (520.61.05, four cards), akash-network/support#209
# (535.161.07, eight cards), and the message of older drivers.
RECORDED = [
    "Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error",
    "Unable to determine the device handle for GPU0000:0B:00.0: Unknown Error",
    "Unable to determine the device handle for GPU 0000:0B:00.0: GPU is lost.  Reboot the system "
    "to recover this GPU",
    "Unable to determine the device handle for gpu 0000:0B:00.0: GPU is lost.",
]
LOST, OTHER = "0000:0b:00.0", "0000:65:00.0"


def machine(tmp_path: Path, *addresses: str, loaded: str = "535.161.07") -> Path:
    """Return the tree of a machine with T4s at these addresses, and a loaded driver."""
    gpus = [nvidia(address, "1eb8", "12a2", driver="nvidia") for address in addresses]
    made = make_machine(tmp_path, Machine((*SERVER, *gpus), DEBIAN_12))
    text = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {loaded}  x\n"
    write(made, "/proc/driver/nvidia/version", text)
    return made


def problems(place: Path, library: Any = None, **answers: Result) -> list[dict[str, str]]:
    node = gather(Node(place, library, **answers), RuntimePaths())
    return [one for one in node["problems"] if one["code"] != "no_container_runtime"]


@pytest.mark.parametrize("text", RECORDED)
def test_the_gpu_that_nvidia_smi_names_is_lost(tmp_path, text):
    (found,) = problems(machine(tmp_path, LOST, OTHER), nvidia_smi=Result(255, text + "\n", ""))
    assert found["code"] == "gpu_lost" and found["evidence"] == text
    assert found["cause"].startswith(f"GPU {LOST} does not answer on the bus any more")
    assert "driver 535.161.07 is loaded, nvidia-smi fails for all GPUs" in found["cause"]
    assert "power it off and on" in found["next_step"]


@pytest.mark.parametrize(
    "text",
    [
        "Unable to determine the device handle for GPU 0000:0B:00.0: Insufficient Permissions",
        "Unable to determine the device handle for GPU 0000:0B:00.0: Insufficient External Power",
        "Unknown Error",
        "No devices were found",
    ],
)
def test_other_errors_are_no_fault_of_one_gpu(tmp_path, text):
    (found,) = problems(machine(tmp_path, LOST, OTHER), nvidia_smi=Result(255, text, ""))
    assert found["code"] == "driver_not_answering"


def test_an_address_that_the_node_does_not_have_is_not_named(tmp_path):
    text = RECORDED[0].replace("0B", "9F")
    (found,) = problems(machine(tmp_path, LOST, OTHER), nvidia_smi=Result(255, text, ""))
    assert found["code"] == "gpu_lost" and found["cause"].startswith("A GPU does not answer")


def test_a_configuration_space_of_ones_names_the_gpu_while_the_driver_hangs(tmp_path):
    place = machine(tmp_path, LOST, OTHER)
    (place / "sys/bus/pci/devices" / LOST / "config").write_bytes(b"\xff" * 256)
    (found,) = problems(place, nvidia_smi=Result(124, "", ""))
    assert found["code"] == "gpu_lost" and f"GPU {LOST} does not" in found["cause"]
    (found,) = problems(place, nvidia_smi=Result(255, "something new", ""))
    assert found["code"] == "gpu_lost" and found["evidence"] == "something new"


def test_a_gpu_for_a_virtual_machine_that_sleeps_is_not_lost(tmp_path):
    place = machine(tmp_path, LOST, OTHER)
    folder = place / "sys/bus/pci/devices" / LOST
    (folder / "config").write_bytes(b"\xff" * 256)
    (folder / "driver").unlink()
    (folder / "driver").symlink_to("../../../bus/pci/drivers/vfio-pci")
    assert problems(place, StandinNvml()) == []


class OneLost(StandinNvml):
    """NVML whose second GPU has no handle (a stand-in)."""

    text, value = "GPU is lost", 15
    lost: tuple[int, ...] = (1,)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        if index in self.lost:
            raise NVMLError(self.text, self.value)
        return super().nvmlDeviceGetHandleByIndex(index)


@pytest.mark.parametrize(("text", "value"), [("GPU is lost", 15), ("Unknown Error", 999)])
def test_nvml_is_asked_for_the_other_gpus(tmp_path, text, value):
    library = OneLost()
    library.text, library.value = text, value
    place = machine(tmp_path, "0000:3b:00.0", OTHER, loaded="535.54.03")
    node = gather(Node(place, library), RuntimePaths())
    assert [one["address"] for one in node["nvml"]["devices"]] == ["0000:3b:00.0"]
    assert set(node["nvml"]) == {"driver_version", "cuda_version", "devices"}
    found = [one for one in node["problems"] if one["code"] == "gpu_lost"]
    assert [one["evidence"] for one in found] == [f"NVML, GPU of index 1: {text}"]
    assert f"GPU {OTHER} does not" in found[0]["cause"] and "others answer" not in found[0]["cause"]
    assert "the other GPUs answer" in found[0]["cause"]


def test_where_no_gpu_has_a_handle_nvml_does_not_answer(tmp_path):
    library = OneLost()
    library.lost = (0, 1)
    node = gather(Node(machine(tmp_path, LOST), library), RuntimePaths())
    assert node["nvml"] is None
    (found,) = [one for one in node["problems"] if one["code"] == "gpu_lost"]
    assert f"GPU {LOST} does not" in found["cause"]


@pytest.mark.parametrize(
    ("text", "code"), [("GPU is lost", "gpu_lost"), ("GPU requires reset", "recovery_action")]
)
def test_a_document_with_the_fault_in_the_place_of_values(tmp_path, text, code):
    """As in k8s-test-infra's qx-gb200-lost.xml, with fewer values."""
    smi = (
        "<?xml version='1.0'?><nvidia_smi_log><driver_version>535.161.07</driver_version>"
        f"<cuda_version>12.2</cuda_version><gpu id='00000000:0B:00.0'><uuid>GPU-x</uuid>"
        f"<ecc_mode><current_ecc>{text}</current_ecc></ecc_mode></gpu>"
        "<gpu id='00000000:65:00.0'><uuid>GPU-y</uuid></gpu></nvidia_smi_log>"
    )
    (found,) = problems(machine(tmp_path, LOST, OTHER), nvidia_smi=Result(0, smi, ""))
    assert found["code"] == code and f"GPU {LOST} " in found["cause"]
    assert "the other GPUs answer" in found["cause"]
