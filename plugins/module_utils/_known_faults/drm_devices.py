# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why containers cannot use the AMD or Intel GPUs of a node, once the card is bound. Pure.

No kernel module is loaded, or device nodes are missing or closed. Apart from drm.py: the facts of a
node do not need it, and each file that a module imports is sent to the node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core.finding import Finding
from .._hardware.module_blocks import MODULES, blocks_of, describe_blocks
from .._hardware.vendors import DRIVERS
from .blocked import find_blocked
from .drm import install_step, vendor_gpus

# Whether group or all users may read and write.
_GROUP_MAY = 0o060
_ALL_MAY = 0o006


def find_not_loaded(node: Mapping[str, Any], vendor: str) -> Finding | None:
    """Return why no kernel module of the vendor is loaded."""
    if any(name in node["kernel_drivers"] for name in DRIVERS[vendor]):
        return None
    blocked = find_blocked(node, vendor)
    if blocked is not None:
        return blocked
    wanted = " or ".join(DRIVERS[vendor])
    evidence = [f"/sys/module/{name} does not exist" for name in DRIVERS[vendor]]
    early = blocks_of(node, MODULES[vendor], early=True)
    if early:
        evidence.append(f"in the initial RAM disk only, {describe_blocks(early)}")
    return Finding(
        "drm_driver_not_loaded",
        f"The kernel module {wanted} is not loaded.",
        ", ".join(evidence),
        f"Load it (modprobe {DRIVERS[vendor][0]}) and check dmesg. {install_step(vendor)}",
        {"vendor": vendor, "module": DRIVERS[vendor][0]},
    )


def find_device_nodes(node: Mapping[str, Any], vendor: str) -> Finding | None:
    """Return which device nodes of the vendor's GPUs are missing, or only root may open."""
    nodes = own_nodes(node, vendor)
    missing = [one["path"] for one in nodes if one["mode"] is None]
    with_node = {one["address"] for one in nodes}
    without = [
        gpu["address"]
        for gpu in vendor_gpus(node, vendor)
        if gpu["kernel_driver"] in DRIVERS[vendor] and gpu["address"] not in with_node
    ]
    if missing or without:
        what = ", ".join([*missing, *(f"the render node of {address}" for address in without)])
        return Finding(
            "device_node_missing",
            f"A container cannot be given the GPUs: {what} {_are(missing, without)} not there.",
            "/dev/dri and /sys/bus/pci/devices/*/drm",
            f"Check dmesg | grep -E '{'|'.join(DRIVERS[vendor])}' for the reason. Where this is "
            "a container or virtual machine, the host has to pass the device nodes on.",
        )
    other = [one["path"] for one in nodes if not one["character_device"]]
    if other:
        return Finding(
            "device_node_wrong",
            f"{', '.join(other)} {_are(other)} no device.",
            "a program has made a file or folder of that name before the driver was loaded",
            "Remove it, and load the driver again or reboot.",
        )
    closed = [
        one for one in nodes if not _allows(one["mode"], _GROUP_MAY | _ALL_MAY) and one["mode"]
    ]
    if closed:
        first = closed[0]
        return Finding(
            "device_node_rights",
            f"Only root may open {', '.join(one['path'] for one in closed)}: programs of other "
            "users, in containers too, cannot use the GPU.",
            f"{first['path']}: mode {first['mode']}, group {first['group']}",
            'Give the group render the right by a udev rule (SUBSYSTEM=="kfd" or '
            'SUBSYSTEM=="drm", GROUP="render", MODE="0660"), then udevadm trigger.',
        )
    return None


def own_nodes(node: Mapping[str, Any], vendor: str) -> list[Mapping[str, Any]]:
    """Return the device nodes of the vendor's GPUs, without those of integrated graphics."""
    addresses = {gpu["address"] for gpu in vendor_gpus(node, vendor)}
    return [
        one
        for one in node["device_nodes"]
        if one["driver"] in DRIVERS[vendor] and one["address"] in {None, *addresses}
    ]


def _are(*lists: Sequence[str]) -> str:
    return "is" if sum(map(len, lists)) == 1 else "are"


def _allows(mode: str | None, bits: int) -> bool:
    """Return whether the mode lets the group, or all users, read and write."""
    number = int(mode or "0", 8) & bits
    return number & _GROUP_MAY == _GROUP_MAY or number & _ALL_MAY == _ALL_MAY
