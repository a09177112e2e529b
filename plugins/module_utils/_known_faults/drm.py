# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""AMD and Intel GPUs that no driver serves: not bound, or with an error of the driver. Pure.

Their drivers (amdgpu, i915, xe) are part of the kernel, and a container needs the device nodes
only. This collection does not install these drivers, so that each next step says what to do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._core.finding import Finding
from .._hardware.module_blocks import MODULES, blocks_of, describe_blocks, unblock_step
from .._hardware.vendors import DRIVERS
from .rules.drm_kernel import DRM

_CODES = frozenset(row.code for row in DRM)
_INSTALL = {
    "amd": "a newer kernel of the distribution, or AMD's package amdgpu-dkms (on Ubuntu "
    "amd_driver_enabled: true does it)",
    "intel": "a newer kernel of the distribution, or for Flex and Max cards Intel's package "
    "intel-i915-dkms (repository https://repositories.intel.com/gpu)",
}
_ADDRESS = re.compile(r"\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b", re.IGNORECASE)


def reported(node: Mapping[str, Any], vendor: str) -> list[Finding]:
    """Return the errors of the vendor's drivers that the facts have as problems.

    Errors of other cards, such as the graphics of a processor, are left out.
    """
    own = {gpu["address"] for gpu in vendor_gpus(node, vendor)}
    found = []
    for one in node["problems"]:
        cards = addresses(f"{one['cause']} {one['evidence']}")
        if (
            one["code"] in _CODES
            and any(f"driver {name} " in one["cause"] for name in DRIVERS[vendor])
            and (not cards or cards & own)
        ):
            found.append(Finding(one["code"], one["cause"], one["evidence"], one["next_step"]))
    return found


def addresses(text: str) -> set[str]:
    """Return the PCI addresses in a text; lines of old kernels have none."""
    return {found.lower() for found in _ADDRESS.findall(text)}


def find_unbound(node: Mapping[str, Any], vendor: str) -> Finding | None:
    """Return which GPUs are not bound to a driver that serves containers."""
    drivers = DRIVERS[vendor]
    others: dict[str | None, list[Mapping[str, Any]]] = {}
    for gpu in vendor_gpus(node, vendor):
        if gpu["kernel_driver"] not in drivers:
            others.setdefault(gpu["kernel_driver"], []).append(gpu)
    for driver, gpus in others.items():
        blocks = blocks_of(node, MODULES[vendor]) if driver is None else []
        return _unbound(driver, gpus, vendor, blocks)
    return None


def vendor_gpus(node: Mapping[str, Any], vendor: str) -> list[Mapping[str, Any]]:
    """Return the vendor's GPUs, without virtual functions for guests."""
    return [
        gpu for gpu in node["gpus"] if gpu["vendor"] == vendor and not gpu.get("virtual_function")
    ]


def _unbound(
    driver: str | None,
    gpus: Sequence[Mapping[str, Any]],
    vendor: str,
    blocks: Sequence[Mapping[str, str]],
) -> Finding:
    names = ", ".join(f"{gpu['product'] or gpu['device_id']} at {gpu['address']}" for gpu in gpus)
    are = "is" if len(gpus) == 1 else "are"
    wanted = " or ".join(DRIVERS[vendor])
    if blocks:
        cause = (
            f"{names} {are} bound to no driver, {wanted} is needed and blocked: "
            f"{describe_blocks(blocks)}."
        )
        step = unblock_step(blocks)
    elif driver is None:
        cause = f"{names} {are} bound to no driver, {wanted} is needed."
        step = "The layer module says whether that driver is loaded. " + install_step(vendor)
    elif driver == "vfio-pci":
        cause = f"{names} {are} bound to vfio-pci: reserved for virtual machines."
        step = (
            "Leave this node out of the GPU nodes, or take the card back: remove it from "
            "vfio-pci.ids (kernel command line, modprobe.d) and reboot."
        )
    else:
        cause = f"{names} {are} bound to {driver}, {wanted} is needed."
        step = f"Block {driver} for it (modprobe.d), rebuild the initial RAM disk and reboot."
    evidence = f"/sys/bus/pci/devices/{gpus[0]['address']}/driver is {driver or 'missing'}"
    return Finding("gpu_not_bound", cause, evidence, step)


def install_step(vendor: str) -> str:
    """Return what to do for a driver that is missing."""
    return f"Install {_INSTALL[vendor]}, and reboot."
