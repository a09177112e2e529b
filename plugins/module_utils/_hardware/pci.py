# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the GPUs among the PCI functions of sysfs, and their vGPU capability. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .pci_data import (
    AMD_DISCRETE,
    AMD_PRODUCTS,
    BRIDGE_CLASS,
    DISPLAY_ONLY,
    FIRST_MAXWELL_ID,
    FIRST_NVSWITCH_ID,
    GPU_CLASSES,
    INTEL_PRODUCTS,
    NVIDIA,
    NVIDIA_PRODUCTS,
    NVIDIA_RANGES,
    NVIDIA_SUBSYSTEM_PRODUCTS,
    VENDORS,
    VGPU_SUBSYSTEMS,
)

UNKNOWN = "unknown"
_HEX = re.compile(r"0x(?P<digits>[0-9a-f]+)\Z", re.IGNORECASE | re.ASCII)

# The configuration space, with the vendor-specific capability of a virtual GPU. Without root the
# kernel returns only the first 64 bytes, and the capabilities follow after them.
_WHOLE = 256
_STATUS = 0x06
_HAS_CAPABILITIES = 0x10
_FIRST_CAPABILITY = 0x34
_VENDOR_SPECIFIC = 0x09
_SIGNATURE = b"VF"
_SIGNATURE_AT = 3
_FIRST_RECORD = 5
_RECORD_HEADER = 2
_HOST_DRIVER_RECORD = 0
_FIELD = 10


@dataclass(frozen=True)
class PciFunction:
    """A PCI function of sysfs. Ids are four lower-case hexadecimal digits."""

    address: str
    vendor_id: str
    device_id: str
    pci_class: str
    subsystem_vendor_id: str | None = None
    subsystem_device_id: str | None = None
    driver: str | None = None
    virtual_function: bool = False
    config: bytes | None = None

    @property
    def vendor(self) -> str | None:
        return VENDORS.get(self.vendor_id)

    @property
    def silent(self) -> bool:
        """Whether its configuration space reads as ones only: it is off the bus."""
        return bool(self.config) and set(self.config or b"") == {0xFF}

    @property
    def key(self) -> tuple[str, str | None, str | None]:
        return self.device_id, self.subsystem_vendor_id, self.subsystem_device_id


@dataclass(frozen=True)
class Vgpu:
    """Whether the function is a virtual GPU of this guest; None is unknown."""

    guest: bool | None = None
    host_driver_version: str | None = None
    host_driver_branch: str | None = None


def hex_id(text: str | None) -> str | None:
    """Return ``0x10DE`` as ``10de``; for a class, the first four digits."""
    if text is None:
        return None
    match = _HEX.match(text.strip())
    if not match:
        return None
    digits = match["digits"].lower()
    # 0x030200: class, subclass, programming interface.
    return digits[:4] if len(digits) >= 4 else digits.zfill(4)


def find_gpus(functions: Sequence[PciFunction]) -> list[dict[str, Any]]:
    """Return the fact ``gpus``, in PCI order.

    Audio, USB and bridge functions, integrated graphics, management chips, and a display card next
    to a compute card are left out.
    """
    gpus = [function for function in functions if _is_gpu(function)]
    if any(gpu.vendor_id == NVIDIA and gpu.key not in DISPLAY_ONLY for gpu in gpus):
        gpus = [gpu for gpu in gpus if gpu.key not in DISPLAY_ONLY]
    return [_describe(gpu) for gpu in sorted(gpus, key=lambda gpu: gpu.address)]


def count_nvswitches(functions: Sequence[PciFunction]) -> int:
    return sum(
        function.vendor_id == NVIDIA
        and function.pci_class == BRIDGE_CLASS
        and int(function.device_id, 16) >= FIRST_NVSWITCH_ID
        for function in functions
    )


def generation(vendor: str, device_id: str) -> str:
    """Return the generation of the id, or else of its range, or else ``unknown``."""
    if vendor == "amd":
        return AMD_PRODUCTS.get(device_id, (None, UNKNOWN))[1]
    if vendor == "intel":
        return INTEL_PRODUCTS.get(device_id, (None, UNKNOWN))[1]
    number = int(device_id, 16)
    for first, last, name in NVIDIA_RANGES:
        if first <= number <= last:
            return name
    return UNKNOWN


def product(vendor: str, key: tuple[str, str | None, str | None]) -> str | None:
    """Return the product's name by id and subsystem, or else by id; None if it is unknown."""
    device_id = key[0]
    if vendor == "amd":
        return AMD_PRODUCTS.get(device_id, (None,))[0]
    if vendor == "intel":
        return INTEL_PRODUCTS.get(device_id, (None,))[0]
    return (
        NVIDIA_SUBSYSTEM_PRODUCTS.get(key)
        or VGPU_SUBSYSTEMS.get(key)
        or NVIDIA_PRODUCTS.get(device_id)
    )


def is_legacy(vendor: str, device_id: str) -> bool:
    """Return whether only unmaintained drivers support this GPU."""
    return vendor == "nvidia" and int(device_id, 16) < FIRST_MAXWELL_ID


def read_vgpu(config: bytes | None) -> Vgpu:
    """Return the vGPU data of the vendor-specific capability in a configuration space."""
    if config is None or len(config) < _WHOLE or config[:2] == b"\xff\xff":
        return Vgpu()
    for capability in _vendor_capabilities(config):
        if capability[_SIGNATURE_AT : _SIGNATURE_AT + 2] == _SIGNATURE:
            version, branch = _host_driver(capability)
            return Vgpu(True, version, branch)
    return Vgpu(False)


def _is_gpu(function: PciFunction) -> bool:
    vendor = function.vendor
    if vendor is None or function.pci_class not in GPU_CLASSES[vendor]:
        return False
    number = int(function.device_id, 16)
    if vendor == "amd":
        return function.device_id in AMD_PRODUCTS or AMD_DISCRETE[0] <= number <= AMD_DISCRETE[1]
    if vendor == "intel":
        # Integrated graphics is on the root bus, but a card passed through to a guest may be too.
        root_bus = function.address.split(":")[-2:-1] == ["00"]
        return function.device_id in INTEL_PRODUCTS or not root_bus
    return True


def _describe(gpu: PciFunction) -> dict[str, Any]:
    vendor = gpu.vendor or ""
    vgpu = read_vgpu(gpu.config) if vendor == "nvidia" else Vgpu()
    if vgpu.guest is None and gpu.key in VGPU_SUBSYSTEMS:
        vgpu = Vgpu(True)
    return {
        "address": gpu.address,
        "vendor": vendor,
        "vendor_id": gpu.vendor_id,
        "device_id": gpu.device_id,
        "subsystem_vendor_id": gpu.subsystem_vendor_id,
        "subsystem_device_id": gpu.subsystem_device_id,
        "class": gpu.pci_class,
        "generation": generation(vendor, gpu.device_id),
        "product": product(vendor, gpu.key),
        "kernel_driver": gpu.driver,
        "virtual_function": gpu.virtual_function,
        "vgpu": {
            "guest": vgpu.guest,
            "host_driver_version": vgpu.host_driver_version,
            "host_driver_branch": vgpu.host_driver_branch,
            # Of the driver, which is asked later.
            "licence": None,
        },
    }


def _vendor_capabilities(config: bytes) -> list[bytes]:
    found = []
    # An invalid chain can loop.
    visited: set[int] = set()
    position = config[_FIRST_CAPABILITY] if config[_STATUS] & _HAS_CAPABILITIES else 0
    while position and position not in visited and position + 2 < _WHOLE:
        visited.add(position)
        kind, following, length = config[position : position + 3]
        if kind == 0xFF:
            break
        if kind == _VENDOR_SPECIFIC:
            found.append(config[position : position + length])
        position = following
    return found


def _host_driver(capability: bytes) -> tuple[str | None, str | None]:
    position = _FIRST_RECORD
    while position + _RECORD_HEADER <= len(capability):
        kind, length = capability[position], capability[position + 1]
        if kind == _HOST_DRIVER_RECORD:
            start = position + _RECORD_HEADER
            fields = capability[start : start + 2 * _FIELD]
            return _text(fields[:_FIELD]), _text(fields[_FIELD:])
        if length < _RECORD_HEADER:
            break
        position += length
    return None, None


def _text(field: bytes) -> str | None:
    return field.split(b"\0", 1)[0].decode("ascii", "replace").strip() or None
