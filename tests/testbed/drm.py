# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-in for the kernel's drivers of AMD and Intel GPUs: what sysfs shows of their cards.

``files/drm`` mounts it over the node's sysfs, and makes the device nodes, which are those of
/dev/null: a container may be given them, and nothing computes.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.testbed.fleet import Node, PciDevice
from tests.testbed.pci import DRIVERS, NVIDIA

_TOP = "opt/standin"
# The first number of a device, and of the first card and render node.
_MAJOR, _FIRST = 226, {"card": 0, "renderD": 128}


def files(node: Node) -> dict[str, tuple[bytes, int]]:
    """Path -> content and mode."""
    found = {}
    for number, gpu in _bound(node):
        found[f"{_TOP}/module/{DRIVERS[gpu.vendor]}/initstate"] = "live"
        for folder in _folders(number, gpu):
            found[f"{folder}/device"] = f"0x{gpu.device:04x}"
            if DRIVERS[gpu.vendor] == "amdgpu":
                found[f"{folder}/current_compute_partition"] = "SPX"
                found[f"{folder}/current_memory_partition"] = "NPS1"
            for kind, first in _FIRST.items():
                path = f"{folder}/drm/{kind}{first + number}/dev"
                found[path] = f"{_MAJOR}:{first + number}"
    return {path: (f"{text}\n".encode(), 0o444) for path, text in found.items()}


def links(node: Node) -> dict[str, str]:
    """Symbolic links and their targets."""
    return {
        f"{_folders(number, gpu)[1]}/driver": f"../../../bus/pci/drivers/{DRIVERS[gpu.vendor]}"
        for number, gpu in _bound(node)
    }


def _bound(node: Node) -> Iterator[tuple[int, PciDevice]]:
    if node.driver:
        yield from enumerate(gpu for gpu in node.gpus if gpu.vendor != NVIDIA)


def _folders(number: int, gpu: PciDevice) -> tuple[str, str]:
    """The card's folder on the bus, and among the cards: a kernel links one to the other."""
    return f"{_TOP}/pci/{gpu.address}", f"{_TOP}/class-drm/card{number}/device"
