# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the GPUs and the NVSwitch bridges of a node from sysfs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._hardware.pci import PciFunction, hex_id
from .._hardware.pci_data import VENDORS
from .._nvidia.fabric import BRIDGED_BOARDS

if TYPE_CHECKING:
    from .._host.reader import NodeReader

_PCI = "/sys/bus/pci/devices"
# Vendor and class: Mellanox, InfiniBand controller.
_BRIDGE_KIND = ("15b3", "0207")
# Bytes to read of the vital product data and of the configuration space.
_VPD = 1024
_CONFIG_SPACE = 256


def read_functions(reader: NodeReader) -> list[PciFunction]:
    """Return the PCI functions of GPU vendors."""
    functions = []
    for address in reader.list_dir(_PCI):
        folder = f"{_PCI}/{address}"
        vendor = hex_id(reader.read_line(f"{folder}/vendor"))
        if vendor not in VENDORS:
            continue
        device = hex_id(reader.read_line(f"{folder}/device"))
        pci_class = hex_id(reader.read_line(f"{folder}/class"))
        if vendor is None or device is None or pci_class is None:
            continue
        # The rest, hundreds of bridges and network functions, needs no details.
        is_gpu_class = pci_class[:2] in ("03", "12")
        functions.append(
            PciFunction(
                address=address,
                vendor_id=vendor,
                device_id=device,
                pci_class=pci_class,
                subsystem_vendor_id=(
                    hex_id(reader.read_line(f"{folder}/subsystem_vendor")) if is_gpu_class else None
                ),
                subsystem_device_id=(
                    hex_id(reader.read_line(f"{folder}/subsystem_device")) if is_gpu_class else None
                ),
                driver=reader.link_name(f"{folder}/driver") if is_gpu_class else None,
                virtual_function=is_gpu_class and reader.link_name(f"{folder}/physfn") is not None,
                config=reader.read_bytes(f"{folder}/config", _CONFIG_SPACE)
                if is_gpu_class
                else None,
            )
        )
    return functions


def read_bridges(reader: NodeReader, gpus: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the number of NVSwitch bridges; 0 if the GPUs are of a board without bridges.

    A bridge is a network function with ``SW_MNG`` in its vital product data. Only root can read
    that: otherwise the result is None.
    """
    if not any(gpu["vendor"] == "nvidia" and gpu["device_id"] in BRIDGED_BOARDS for gpu in gpus):
        return 0
    found = 0
    for address in reader.list_dir(_PCI):
        folder = f"{_PCI}/{address}"
        kinds = (hex_id(reader.read_line(f"{folder}/{name}")) for name in ("vendor", "class"))
        if tuple(kinds) != _BRIDGE_KIND:
            continue
        data = reader.read_bytes(f"{folder}/vpd", _VPD)
        if data is None:
            return None
        found += b"SW_MNG" in data
    return found
