# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The GPU vendors of a node, and the GPUs that containers can use. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: In the order of precedence where a node has one vendor.
VENDORS = ("nvidia", "amd", "intel")
#: The kernel drivers by which containers use the GPUs of a vendor.
DRIVERS = {"nvidia": ("nvidia",), "amd": ("amdgpu",), "intel": ("i915", "xe")}
#: Vendors whose user space belongs to the image: a container needs the device nodes only.
IN_KERNEL = ("amd", "intel")
#: How messages name a vendor.
NAMES = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}


def gpu_vendor(gpus: Sequence[Mapping[str, Any]]) -> str:
    """Return the vendor of the node's GPUs, or ``none``.

    NVIDIA takes precedence: a server with an NVIDIA card and an on-board Intel chip is an NVIDIA
    node.
    """
    found = {gpu.get("vendor") for gpu in gpus}
    return next((vendor for vendor in VENDORS if vendor in found), "none")


def gpu_vendors(gpus: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the vendors whose GPUs the node offers; empty for a node without GPUs.

    A second vendor counts if a driver for containers serves one of its GPUs: an old Radeon card
    next to NVIDIA's, bound to ``radeon``, is there for the screen.
    """
    first = gpu_vendor(gpus)
    bound = {
        gpu.get("vendor")
        for gpu in gpus
        if gpu.get("kernel_driver") in DRIVERS.get(str(gpu.get("vendor")), ())
    }
    return [vendor for vendor in VENDORS if vendor == first or vendor in bound]


def passed_through(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the GPUs of all vendors that are reserved for virtual machines."""
    return [
        gpu
        for gpu in node.get("gpus") or ()
        if str(gpu.get("kernel_driver") or "").startswith("vfio")
    ]


def container_gpus(node: Mapping[str, Any], vendor: str = "nvidia") -> list[Mapping[str, Any]]:
    """Return a vendor's GPUs for containers: those not passed through to a virtual machine.

    They are none if the vendor is not one of :func:`gpu_vendors`.
    """
    gpus = node.get("gpus") or ()
    if vendor not in gpu_vendors(gpus):
        return []
    passed = passed_through(node)
    return [gpu for gpu in gpus if gpu.get("vendor") == vendor and gpu not in passed]
