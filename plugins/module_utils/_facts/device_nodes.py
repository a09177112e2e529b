# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the kernel drivers and device nodes of AMD and Intel GPUs."""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._core.finding import Finding
from .._hardware.pci import PciFunction
from .._hardware.vendors import DRIVERS, IN_KERNEL

if TYPE_CHECKING:
    from .._host.reader import NodeReader

_NAMES = tuple(name for vendor in IN_KERNEL for name in DRIVERS[vendor])


def read_kernel_drivers(reader: NodeReader, gpus: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fact ``kernel_drivers``: the loaded drivers by name."""
    if not _is_concerned(gpus):
        return {}
    # A driver that belongs to the kernel has no version of its own.
    return {
        name: {"version": reader.read_line(f"/sys/module/{name}/version")}
        for name in _NAMES
        if reader.is_dir(f"/sys/module/{name}")
    }


def read_device_nodes(
    reader: NodeReader, functions: Sequence[PciFunction], gpus: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the fact ``device_nodes``, with those of integrated graphics.

    AMD's device plugin offers these, too, so that they count for what a node offers.
    """
    if not _is_concerned(gpus):
        return []
    groups = _groups(reader)
    found = []
    if any(function.driver == "amdgpu" for function in functions):
        found.append(_device_node(reader, groups, "/dev/kfd", "amdgpu"))
    for function in functions:
        if function.driver not in _NAMES:
            continue
        folder = f"/sys/bus/pci/devices/{function.address}"
        for name in reader.list_dir(f"{folder}/drm"):
            if name.startswith("renderD"):
                one = _device_node(reader, groups, f"/dev/dri/{name}", function.driver)
                one.update(
                    address=function.address,
                    device_id=function.device_id,
                    partition=_partition(reader, folder),
                )
                found.append(one)
    return found


def read_errors(reader: NodeReader, gpus: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Return the errors of these drivers in the kernel's log."""
    if not _is_concerned(gpus):
        return []
    # Imported only with such a GPU: the node compiles each imported file.
    from .._known_faults.drm_log import INTEREST, kernel_findings  # noqa: PLC0415
    from .._known_faults.kernel_lines import kernel_lines  # noqa: PLC0415

    return kernel_findings(kernel_lines(reader, interest=INTEREST))


def _is_concerned(gpus: Sequence[Mapping[str, Any]]) -> bool:
    return any(gpu["vendor"] in IN_KERNEL for gpu in gpus)


def _device_node(
    reader: NodeReader, groups: Mapping[int, str], path: str, driver: str
) -> dict[str, Any]:
    status = reader.status(path)
    return {
        "path": path,
        "driver": driver,
        "address": None,
        "device_id": None,
        "partition": None,
        "character_device": status is not None and stat.S_ISCHR(status.st_mode),
        "group": None if status is None else groups.get(status.st_gid, str(status.st_gid)),
        "mode": None if status is None else f"{stat.S_IMODE(status.st_mode):04o}",
    }


def _partition(reader: NodeReader, folder: str) -> str | None:
    """Return how an Instinct card is divided, such as ``spx_nps1``; None for other cards."""
    parts = [
        reader.read_line(f"{folder}/current_{kind}_partition") for kind in ("compute", "memory")
    ]
    return "_".join(part.lower() for part in parts if part) if all(parts) else None


def _groups(reader: NodeReader) -> dict[int, str]:
    rows = (line.split(":") for line in (reader.read_text("/etc/group") or "").splitlines())
    return {int(row[2]): row[0] for row in rows if len(row) > 2 and row[2].isdigit()}
