# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Both ways of asking the driver, against stand-ins of one machine: an A100 with MIG, and a T4.

The stand-ins were written after the documentation of NVML and a public record of
``nvidia-smi -q -x`` 535.54.03; no GPU was at hand.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.nvml import (
    from_nvml,
    from_smi,
    lacks_names,
    with_smi_names,
)

MIB = 1024 * 1024

SMI_STANDIN_535_54_03 = """\
<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
  <timestamp>Fri Aug  4 11:44:30 2023</timestamp>
  <driver_version>535.54.03</driver_version>
  <cuda_version>12.2</cuda_version>
  <attached_gpus>2</attached_gpus>
  <gpu id="00000000:3B:00.0">
    <product_name>NVIDIA A100-SXM4-80GB</product_name>
    <persistence_mode>Enabled</persistence_mode>
    <mig_mode><current_mig>Enabled</current_mig><pending_mig>Disabled</pending_mig></mig_mode>
    <mig_devices>
      <mig_device>
        <index>0</index>
        <gpu_instance_id>3</gpu_instance_id>
        <compute_instance_id>0</compute_instance_id>
        <fb_memory_usage><total>19968 MiB</total><used>12 MiB</used></fb_memory_usage>
      </mig_device>
    </mig_devices>
    <serial>1650522003820</serial>
    <uuid>GPU-a</uuid>
    <minor_number>1</minor_number>
    <fabric><state>N/A</state><status>N/A</status></fabric>
    <fb_memory_usage><total>81920 MiB</total><used>50 MiB</used></fb_memory_usage>
    <compute_mode>Exclusive_Process</compute_mode>
    <ecc_mode><current_ecc>Enabled</current_ecc><pending_ecc>Enabled</pending_ecc></ecc_mode>
  </gpu>
  <gpu id="00000001:AF:00.0">
    <product_name>Tesla T4</product_name>
    <persistence_mode>Disabled</persistence_mode>
    <mig_mode><current_mig>N/A</current_mig><pending_mig>N/A</pending_mig></mig_mode>
    <mig_devices>None</mig_devices>
    <serial>N/A</serial>
    <uuid>GPU-b</uuid>
    <minor_number>0</minor_number>
    <fb_memory_usage><total>15360 MiB</total><used>0 MiB</used></fb_memory_usage>
    <compute_mode>Default</compute_mode>
    <ecc_mode><current_ecc>N/A</current_ecc><pending_ecc>N/A</pending_ecc></ecc_mode>
  </gpu>
</nvidia_smi_log>
"""


# In the form of real outputs: datadog-agent #33120 (A100 80GB, 535.216.01), go-dcgm #30.
SMI_LIST = """\
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-a)
  MIG 2g.20gb     Device  0: (UUID: MIG-a)
GPU 1: Tesla T4 (UUID: GPU-b)
"""


class NVMLError(Exception):
    """With the number of an error, as pynvml's."""

    def __init__(self, text: str, value: int = 0) -> None:
        super().__init__(text)
        self.value = value


class StandinNvml:
    """Speaks as pynvml does, for the same two devices; what is missing raises."""

    NVMLError = NVMLError

    def __init__(self, as_bytes: bool = False) -> None:
        self.open = 0
        self._as_bytes = as_bytes
        self._devices: dict[str, dict[str, Any]] = {
            "A100": {
                "PciInfo": SimpleNamespace(busId=self._text("00000000:3B:00.0")),
                "MemoryInfo": SimpleNamespace(total=81920 * MIB),
                "MigMode": [1, 0],
                "ComputeMode": 3,
                "EccMode": [1, 1],
                "UUID": self._text("GPU-a"),
                "Name": self._text("NVIDIA A100-SXM4-80GB"),
                "Serial": self._text("1650522003820"),
                "MinorNumber": 1,
                "PersistenceMode": 1,
                "MaxMigDeviceCount": 7,
            },
            "T4": {
                "PciInfo": SimpleNamespace(busId=self._text("00000001:AF:00.0")),
                "MemoryInfo": SimpleNamespace(total=15360 * MIB),
                "ComputeMode": 0,
                "UUID": self._text("GPU-b"),
                "Name": self._text("Tesla T4"),
                "MinorNumber": 0,
                "PersistenceMode": 0,
            },
            "MIG": {
                "MemoryInfo": SimpleNamespace(total=19968 * MIB),
                "UUID": self._text("MIG-a"),
                "Name": self._text("NVIDIA A100-SXM4-80GB MIG 2g.20gb"),
                "GpuInstanceId": 3,
                "ComputeInstanceId": 0,
            },
        }

    def _text(self, text: str) -> Any:
        return text.encode() if self._as_bytes else text

    def nvmlInit(self) -> None:
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 12020

    def nvmlSystemGetDriverVersion(self) -> Any:
        return self._text("535.54.03")

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return ["A100", "T4"][index]

    def nvmlDeviceGetMigDeviceHandleByIndex(self, _handle: str, index: int) -> str:
        if index:
            raise NVMLError("Not Found")
        return "MIG"

    def __getattr__(self, name: str) -> Any:
        def ask(handle: str) -> Any:
            try:
                return self._devices[handle][name[len("nvmlDeviceGet") :]]
            except KeyError:
                raise NVMLError("Not Supported") from None

        if not name.startswith("nvmlDeviceGet"):
            raise AttributeError(name)
        return ask


A100 = {
    "address": "0000:3b:00.0",
    "uuid": "GPU-a",
    "name": "NVIDIA A100-SXM4-80GB",
    "serial": "1650522003820",
    "minor_number": 1,
    "memory_total": 81920,
    "persistence_mode": "enabled",
    "compute_mode": "exclusive_process",
    "ecc_mode": "enabled",
    "mig_mode": "enabled",
    "mig_mode_pending": "disabled",
    # It has no state of a fabric, whether NVSwitches are there or not.
    "fabric": None,
    "licence": None,
}
MIG = {"index": 0, "gpu_instance_id": 3, "compute_instance_id": 0, "memory_total": 19968}
T4 = {
    "address": "0001:af:00.0",
    "uuid": "GPU-b",
    "name": "Tesla T4",
    "serial": None,
    "minor_number": 0,
    "memory_total": 15360,
    "persistence_mode": "disabled",
    "compute_mode": "default",
    "ecc_mode": None,
    "mig_mode": None,
    "mig_mode_pending": None,
    "mig_devices": [],
    "fabric": None,
    "licence": None,
}


def expected(**mig: str | None) -> dict[str, Any]:
    return {
        "driver_version": "535.54.03",
        "cuda_version": "12.2",
        "devices": [{**A100, "mig_devices": [{**MIG, **mig}]}, T4],
    }


def test_nvidia_smi() -> None:
    assert from_smi(SMI_STANDIN_535_54_03) == expected(uuid=None, name=None)


def test_nvidia_smi_tells_the_profiles_of_mig_devices_in_its_list() -> None:
    """Without them nobody knows which resources the plugin offers of them with strategy mixed."""
    fact = from_smi(SMI_STANDIN_535_54_03)
    assert lacks_names(fact)
    named = with_smi_names(fact, SMI_LIST)
    assert named == expected(uuid="MIG-a", name="NVIDIA A100-SXM4-80GB MIG 2g.20gb")
    assert not lacks_names(named)
    assert not lacks_names(from_nvml(StandinNvml()))


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("  MIG 1g.24gb-me  Device  0: (UUID: MIG-a)", "MIG 1g.24gb-me"),
        ("  MIG 1g.24gb+me.all Device  0: (UUID: MIG-a)", "MIG 1g.24gb+me.all"),
        ("  MIG 1c.3g.40gb  Device  0: (UUID: MIG-GPU-a/1/0)", "MIG 1c.3g.40gb"),
        # Another device, no device, another text: nothing is guessed.
        ("  MIG 1g.24gb     Device  1: (UUID: MIG-a)", None),
        ("  No MIG devices", None),
        ("", None),
    ],
)
def test_names_of_mig_devices(line: str, name: str | None) -> None:
    text = SMI_LIST.replace("  MIG 2g.20gb     Device  0: (UUID: MIG-a)", line)
    (mig,) = with_smi_names(from_smi(SMI_STANDIN_535_54_03), text)["devices"][0]["mig_devices"]
    assert mig["name"] == (f"NVIDIA A100-SXM4-80GB {name}" if name else None)


@pytest.mark.parametrize("as_bytes", [False, True])
def test_nvml_says_the_same(as_bytes: bool) -> None:
    nvml = StandinNvml(as_bytes)
    assert from_nvml(nvml) == expected(uuid="MIG-a", name="NVIDIA A100-SXM4-80GB MIG 2g.20gb")
    assert nvml.open == 0


class FabricInfo(ctypes.Structure):
    """pynvml's structure, as far as it is looked at."""

    _fields_ = [("status", ctypes.c_uint), ("state", ctypes.c_ubyte)]


class FabricNvml(StandinNvml):
    """An H100 behind NVSwitches; ``only`` is the one function that this driver has."""

    def __init__(self, state: int, status: int, only: str) -> None:
        super().__init__()
        self._answer, self._only = (state, status), only
        self.c_nvmlGpuFabricInfoV_t = self.c_nvmlGpuFabricInfo_t = FabricInfo

    def __getattr__(self, name: str) -> Any:
        if "FabricInfo" not in name:
            return super().__getattr__(name)

        def fill(_handle: str, place: Any) -> int:
            if name != f"nvmlDeviceGet{self._only}":
                raise NVMLError("Function Not Found")
            place._obj.state, place._obj.status = self._answer
            return 0

        return fill


# Made after nvidia-smi's documentation, and what users of HGX H100 show of ``nvidia-smi -q``.
@pytest.mark.parametrize("only", ["GpuFabricInfoV", "GpuFabricInfo"])
@pytest.mark.parametrize(
    ("state", "status", "smi_state", "smi_status", "fabric"),
    [
        (3, 0, "Completed", "Success", {"state": "completed", "status": "success"}),
        (2, 0, "In Progress", "N/A", {"state": "in_progress", "status": None}),
        (1, 0, "Not Started", "N/A", {"state": "not_started", "status": None}),
        (0, 0, "N/A", "N/A", None),
        (0, 0, "Not Supported", "N/A", None),
    ],
)
def test_fabric(
    state: int,
    status: int,
    smi_state: str,
    smi_status: str,
    fabric: dict[str, Any] | None,
    only: str,
) -> None:
    found = from_nvml(FabricNvml(state, status, only))["devices"]
    assert [device["fabric"] for device in found] == [fabric, fabric]
    text = SMI_STANDIN_535_54_03.replace(
        "<state>N/A</state><status>N/A</status>",
        f"<state>{smi_state}</state><status>{smi_status}</status>",
    )
    assert from_smi(text)["devices"][0]["fabric"] == fabric


def test_a_registration_that_failed() -> None:
    found = from_nvml(FabricNvml(3, 999, "GpuFabricInfo"))["devices"][0]
    assert found["fabric"] == {"state": "completed", "status": "error 999"}


def test_nvml_is_closed_after_an_error() -> None:
    nvml = StandinNvml()
    nvml.nvmlDeviceGetCount = None  # type: ignore[method-assign,assignment]
    with pytest.raises(TypeError):
        from_nvml(nvml)
    assert nvml.open == 0


@pytest.mark.parametrize("text", ["", "No devices were found", "<html/>"])
def test_no_xml(text: str) -> None:
    with pytest.raises(ValueError, match="nvidia-smi printed"):
        from_smi(text)


def test_texts_are_cut() -> None:
    """Seen: a product name of 20 MB went into the facts. NVML's own longest text has 96 bytes."""
    text = SMI_STANDIN_535_54_03.replace("Tesla T4", "T" * 1_000_000)
    assert from_smi(text)["devices"][1]["name"] == "T" * 256
    nvml = StandinNvml()
    nvml._devices["T4"]["Name"] = "T" * 1_000_000
    assert from_nvml(nvml)["devices"][1]["name"] == "T" * 256


def test_a_document_that_is_too_long_is_not_parsed() -> None:
    with pytest.raises(ValueError, match="printed 10000000 characters"):
        from_smi("<" * 10_000_000)


LAUGHS = """[
 <!ENTITY a "ha"> <!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"> <!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">
]"""


@pytest.mark.parametrize(
    "doctype",
    [
        f"<!DOCTYPE nvidia_smi_log {LAUGHS}>",
        # Passed a filter that took <!DOCTYPE ...> out of the text once.
        f"<!DOC<!DOCTYPE>TYPE nvidia_smi_log {LAUGHS}>",
        '<!DOCTYPE nvidia_smi_log [<!ENTITY a SYSTEM "file:///etc/hostname">]>',
        '<!DOCTYPE nvidia_smi_log [<!ENTITY % a "x">]>',
    ],
)
def test_entities_are_refused(doctype: str) -> None:
    (old,) = (line for line in SMI_STANDIN_535_54_03.splitlines() if "DOCTYPE" in line)
    text = SMI_STANDIN_535_54_03.replace(old, doctype).replace("Tesla T4", "&c;&a;")
    with pytest.raises(ValueError, match=r"declares the entity|no XML"):
        from_smi(text)
