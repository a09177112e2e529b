# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Driver branches and kernel modules that serve the GPUs of a node. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from ..._core.versions import version_numbers
from ..._hardware.pci_data import FIRST_MAXWELL_ID, VGPU_SUBSYSTEMS
from ..._nvidia.driver_branches import (
    BRANCHES,
    KINDS,
    LTSB,
    NEW_FEATURE,
    OPEN,
    OPEN_DEFAULT_FROM,
    OPEN_FROM,
    PRODUCTION,
    PROPRIETARY,
    READ,
    DriverData,
)
from ..._nvidia.gpu_drivers_data import UNLISTED
from ..types import branch_of

_FIRST_TURING_ID = 0x1E00
# A branch that ends within this many days is worth a warning.
SOON = 120
_ORDER = (LTSB, PRODUCTION, NEW_FEATURE)


@dataclass(frozen=True)
class Gpu:
    """A GPU with its data. ``name`` is product and address.

    ``minimum``: the lowest versions that serve it, one for each branch. A branch between two of
    them does not serve it, each one above the last does. Empty: any version of its branches.
    """

    name: str
    generation: str
    first: str | None
    last: str | None
    minimum: tuple[str, ...]
    modules: tuple[str, ...]
    known: bool
    guest: bool | None
    host_version: str | None = None
    host_branch: str | None = None

    @property
    def legacy(self) -> bool:
        """Return whether only unmaintained drivers serve it."""
        return self.last is not None and int(self.last) < OPEN_FROM

    def problem(self, branch: str, version: str | None = None) -> str | None:
        """Return why the branch, or the exact version, does not serve this GPU."""
        number = int(branch)
        if self.last is not None and number > int(self.last):
            return f"{self.name} ({self.generation}) is served up to branch {self.last}"
        if self.first is not None and number < int(self.first):
            return f"{self.name} ({self.generation}) needs branch {self.first} or newer"
        needed = self._needed(version_numbers(version) if version else (number, 10**6))
        return f"{self.name} needs driver {needed} or newer" if needed else None

    def _needed(self, seen: tuple[int, ...]) -> str | None:
        """Return the lowest version that serves it, if the given one does not."""
        ordered = sorted(self.minimum, key=version_numbers)
        same = [version for version in ordered if version_numbers(version)[0] == seen[0]]
        above = [version for version in ordered if version_numbers(version) > seen]
        if same and version_numbers(same[-1]) <= seen:
            return None
        return above[0] if above else None

    def kernel_modules(self, branch: str, data: DriverData) -> tuple[str, ...]:
        """Return the kernel modules of a branch that work with this GPU."""
        of_branch = data.branches.get(branch, {}).get("modules", (OPEN, PROPRIETARY))
        return tuple(
            kernel_module
            for kernel_module in self.modules
            if kernel_module in of_branch and (kernel_module != OPEN or int(branch) >= OPEN_FROM)
        )


def find_gpus(node: Mapping[str, Any], data: DriverData) -> tuple[Gpu, ...]:
    """Return the node's NVIDIA GPUs, without virtual functions for guests."""
    return tuple(
        _gpu(gpu, data)
        for gpu in node["gpus"]
        if gpu["vendor"] == "nvidia" and not gpu["virtual_function"]
    )


def _gpu(gpu: Mapping[str, Any], data: DriverData) -> Gpu:
    device = gpu["device_id"]
    generation, known = gpu["generation"], True
    if generation not in data.gpus or generation == "unknown":
        number = int(device, 16)
        known = device in data.gpus
        if number < FIRST_MAXWELL_ID:
            generation, known = "fermi", True
        elif number < _FIRST_TURING_ID:
            generation = "volta"
        else:
            generation = "unknown"
    if device in UNLISTED and device not in data.gpus:
        known = False
    row = {**data.gpus[generation], **data.gpus.get(device, {})}
    minimum = row.get("minimum") or ()
    vgpu = gpu["vgpu"]
    guest = vgpu["guest"]
    key = (device, gpu["subsystem_vendor_id"], gpu["subsystem_device_id"])
    if guest is None and key in VGPU_SUBSYSTEMS:
        guest = True
    return Gpu(
        name=f"{gpu['product'] or 'NVIDIA ' + device} at {gpu['address']}",
        generation={"fermi": "before Kepler"}.get(generation, generation),
        first=row["first"],
        last=row["last"],
        minimum=(minimum,) if isinstance(minimum, str) else tuple(minimum),
        modules=tuple(row["modules"]),
        known=known,
        guest=guest,
        host_version=vgpu["host_driver_version"],
        host_branch=vgpu["host_driver_branch"],
    )


def describe_gpus(gpus: Iterable[Gpu]) -> str:
    """Return the products of the GPUs as text, with counts."""
    counted: dict[str, list[str]] = {}
    for gpu in gpus:
        product, _at, address = gpu.name.partition(" at ")
        counted.setdefault(product, []).append(address)
    return ", ".join(
        f"{len(found)} x {product}" if len(found) > 1 else product
        for product, found in counted.items()
    )


def kernel_modules(gpus: Sequence[Gpu], branch: str, data: DriverData) -> tuple[str, ...]:
    """Return the kernel modules of the branch that work with all of the GPUs."""
    return tuple(
        kernel_module
        for kernel_module in (OPEN, PROPRIETARY)
        if all(kernel_module in gpu.kernel_modules(branch, data) for gpu in gpus)
    )


def default_kernel_module(possible: Sequence[str], branch: str) -> str:
    """Return the default kernel modules: open ones from 560 on, if they serve the GPUs."""
    preferred = OPEN if int(branch) >= OPEN_DEFAULT_FROM else PROPRIETARY
    return preferred if preferred in possible else possible[0]


def problem(
    gpus: Sequence[Gpu],
    branch: str,
    data: DriverData,
    *,
    version: str | None = None,
    asked: str = "",
) -> str | None:
    """Return why a branch does not serve all GPUs with the requested modules; None if it does."""
    for gpu in gpus:
        found = gpu.problem(branch, version)
        if found:
            return found
    possible = kernel_modules(gpus, branch, data)
    if not possible:
        for gpu in gpus:
            if not gpu.kernel_modules(branch, data):
                return (
                    f"branch {branch} has no kernel modules for {gpu.name} ({gpu.generation}), "
                    f"which needs {' or '.join(gpu.modules)} ones"
                )
        return (
            f"in branch {branch} no one kind of kernel modules serves all of {describe_gpus(gpus)}"
        )
    if asked and asked not in possible:
        against = [gpu for gpu in gpus if asked not in gpu.modules]
        if against:
            return (
                f"{against[0].name} ({against[0].generation}) works with {possible[0]} kernel "
                f"modules only"
            )
        return f"branch {branch} has no {asked} kernel modules"
    return None


def serving(gpus: Sequence[Gpu], data: DriverData, asked: str = "") -> tuple[str, ...]:
    """Return the branches that serve all of the GPUs, the newest first."""
    good = [branch for branch in data.branches if problem(gpus, branch, data, asked=asked) is None]
    return tuple(sorted(good, key=int, reverse=True))


def conflict(gpus: Sequence[Gpu], data: DriverData) -> tuple[Gpu, Gpu] | None:
    """Return two GPUs that no driver branch serves together."""
    for one, other in combinations(gpus, 2):
        if serving((one,), data) and serving((other,), data) and not serving((one, other), data):
            return one, other
    return None


def supported(branch: str, data: DriverData, today: str) -> bool:
    row = data.branches.get(branch, {})
    end = row.get("end")
    if end:
        return bool(end >= (today or READ))
    return bool(row.get("supported", False))


def support_warning(branch: str, data: DriverData, today: str) -> str | None:
    """Return a warning about a branch whose support has ended or ends soon."""
    row = data.branches.get(branch)
    if row is None:
        return (
            f"Driver branch {branch} is not in this release's table: whether it is still "
            "supported is not known. Next step: add it to nvidia_driver_branches."
        )
    ending = end_of_support(branch, data, today)
    return f"{ending}: plan the change to a newer one." if ending else None


def end_of_support(branch: str, data: DriverData, today: str) -> str:
    """Return when the support of a branch ended, or ends soon; empty otherwise."""
    row = data.branches.get(branch)
    if row is None:
        return ""
    end = row["end"]
    if not supported(branch, data, today):
        when = f"ended on {end}" if end else "has ended (no document says on which day)"
        return f"The support of driver branch {branch} {when}"
    left = (_date(end) - _date(today or READ)).days if end else SOON + 1
    return (
        f"The support of driver branch {branch} ends on {end}, in {left} days"
        if left <= SOON
        else ""
    )


def choose(offered: Sequence[str], data: DriverData, today: str) -> str | None:
    """Return the best of the branches: supported, long-term before production, then newest.

    A branch of which the built-in table has no version comes last: a repository may not have it
    yet. A branch that the user has added counts.
    """
    if not offered:
        return None
    alive = [branch for branch in offered if supported(branch, data, today)]
    if alive:
        return min(
            alive,
            key=lambda branch: (
                branch in BRANCHES and newest_known(branch, data) is None,
                _rank(data.branches[branch]["kind"]),
                -int(branch),
            ),
        )
    return max(offered, key=int)


def describe(branch: str, data: DriverData) -> str:
    row = data.branches.get(branch)
    if row is None:
        return "not in the table"
    words = KINDS[row["kind"]]
    return f"{words}, supported until {row['end']}" if row["end"] else words


def newest_known(branch: str, data: DriverData) -> str | None:
    """Return the newest known version of a branch."""
    newest = data.branches.get(branch, {}).get("newest")
    return str(newest) if newest else None


def host_branch(gpus: Iterable[Gpu]) -> str | None:
    """Return the branch of the vGPU host's driver as a number: 535 of ``r535_00``."""
    for gpu in gpus:
        if gpu.host_version:
            return branch_of(gpu.host_version)
    return None


def _rank(kind: str) -> int:
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER)


def _date(text: str) -> datetime.date:
    year, month, day = (int(part) for part in text[:10].split("-"))
    return datetime.date(year, month, day)
