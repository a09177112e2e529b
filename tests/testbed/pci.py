# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-in for GPUs: a PCI tree with real ids, as files to mount over the one in sysfs."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from tests.testbed.fleet import PciDevice

NVIDIA = 0x10DE
# The driver that a vendor's GPUs are bound to here.
DRIVERS = {NVIDIA: "nvidia", 0x1002: "amdgpu", 0x8086: "i915"}


def tree(devices: Iterable[PciDevice]) -> dict[str, bytes]:
    """Path below /sys/bus/pci/devices -> content."""
    files: dict[str, bytes] = {}
    for one in devices:
        vendor, device = one.subsystem
        for name, text in {
            "vendor": f"0x{one.vendor:04x}",
            "device": f"0x{one.device:04x}",
            "class": f"0x{one.class_code:06x}",
            "subsystem_vendor": f"0x{vendor:04x}",
            "subsystem_device": f"0x{device:04x}",
            "numa_node": "-1",
        }.items():
            files[f"{one.address}/{name}"] = f"{text}\n".encode()
        files[f"{one.address}/config"] = config_space(one)
    return files


def config_space(device: PciDevice) -> bytes:
    """256 bytes with a power management, an MSI and a PCI Express capability in a chain."""
    space = bytearray(256)
    struct.pack_into("<HHHH", space, 0x00, device.vendor, device.device, 0x0007, 0x0010)
    space[0x08] = 0xA1
    space[0x09:0x0C] = device.class_code.to_bytes(3, "little")
    struct.pack_into("<HH", space, 0x2C, *device.subsystem)
    space[0x34] = 0x60
    struct.pack_into("<BBH", space, 0x60, 0x01, 0x68, 0x0003)
    struct.pack_into("<BBH", space, 0x68, 0x05, 0x78, 0x0080)
    struct.pack_into("<BBH", space, 0x78, 0x10, 0x00, 0x0002)
    return bytes(space)
