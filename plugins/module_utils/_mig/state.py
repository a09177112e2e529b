# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The GPUs of a node with their MIG state, from the facts, and who uses them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .data import table_profiles
from .layout import Instance, Layout
from .types import PROFILE, Gpu, Profile

if TYPE_CHECKING:
    from .._known_faults.evidence_types import DeviceUser

_MODES = {"enabled": True, "disabled": False}
_DEVICE, _CAPABILITY = "/dev/nvidia", "/dev/nvidia-caps/"


@dataclass(frozen=True)
class Usage:
    """The processes with a device of the driver open.

    ``capabilities`` has minor number of the GPU and ID of the instance by device file; None where
    the kernel module does not list them.
    """

    users: tuple[DeviceUser, ...] = ()
    capabilities: Mapping[str, tuple[int, int]] | None = None

    def of_gpu(self, gpu: Gpu) -> tuple[DeviceUser, ...]:
        """Return who uses the GPU or an instance on it."""
        return tuple(
            user for user in self.users if any(self._is_on(gpu, device) for device in user.devices)
        )

    def of_instances(self, gpu: Gpu, instances: Collection[Instance]) -> tuple[DeviceUser, ...]:
        """Return who uses one of the instances; all users of the GPU if that is unknown."""
        if self.capabilities is None:
            return self.of_gpu(gpu)
        places = {(gpu.minor, one.number) for one in instances}
        return tuple(
            user
            for user in self.users
            if any(self.capabilities.get(device) in places for device in user.devices)
        )

    def instances(self, gpu: Gpu) -> tuple[Instance, ...]:
        """Return the instances of the GPU that are in use."""
        existing = gpu.layout.instances if gpu.layout else ()
        if self.capabilities is None:
            return ()
        return tuple(one for one in existing if self.of_instances(gpu, (one,)))

    def _is_on(self, gpu: Gpu, device: str) -> bool:
        if gpu.minor is None:
            # Which device file is this GPU's is unknown: it could be each of them.
            return device[len(_DEVICE) :].isdigit() or device.startswith(_CAPABILITY)
        if device == f"{_DEVICE}{gpu.minor}":
            return True
        return (self.capabilities or {}).get(device, (None,))[0] == gpu.minor


def read_gpus(node: Mapping[str, Any]) -> tuple[Gpu, ...]:
    """Return NVIDIA's GPUs of the fact ``gpu_node``.

    In the order of nvidia-smi if the driver answers, else in the order of the PCI bus.
    """
    functions = {gpu["address"]: gpu for gpu in node["gpus"] if gpu["vendor"] == "nvidia"}
    waiting = node["mig"]["waiting"]
    if node["nvml"] is None:
        return tuple(
            _gpu(index, address, function, None)
            for index, (address, function) in enumerate(functions.items())
        )
    return tuple(
        replace(
            _gpu(index, device["address"] or "", functions.get(device["address"], {}), device),
            pending_why=waiting.get(device["uuid"]),
        )
        for index, device in enumerate(node["nvml"]["devices"])
    )


def _gpu(
    index: int, address: str, function: Mapping[str, Any], device: Mapping[str, Any] | None
) -> Gpu:
    device_id = str(function.get("device_id") or "")
    board = "".join(
        str(function.get(f"subsystem_{part}_id") or "") for part in ("device", "vendor")
    ).lower()
    state = device or {}
    enabled = _MODES.get(state.get("mig_mode") or "")
    listed = state.get("gpu_instances")
    profiles = read_profiles(state.get("mig_profiles") or ())
    return Gpu(
        index=index,
        address=address,
        uuid=state.get("uuid") or "",
        name=state.get("name") or function.get("product") or "unknown",
        device_id=device_id,
        board=board,
        generation=function.get("generation") or "unknown",
        minor=state.get("minor_number"),
        layout=None if enabled is None else Layout(enabled, read_instances(listed or ())),
        pending=_MODES.get(state.get("mig_mode_pending") or ""),
        instances_known=listed is not None,
        profiles=profiles or table_profiles(device_id, board),
        from_table=not profiles,
    )


def read_profiles(listed: Sequence[Mapping[str, Any]]) -> tuple[Profile, ...]:
    """Return the profiles of the fact ``mig_profiles``."""
    return tuple(
        Profile(one["name"], tuple(one["starts"]), one["size"], one["count"]) for one in listed
    )


def read_instances(listed: Sequence[Mapping[str, Any]]) -> tuple[Instance, ...]:
    """Return the instances of the fact ``gpu_instances``."""
    found = []
    for one in listed:
        parts = tuple(sorted(part["profile"] for part in one["compute_instances"]))
        found.append(
            Instance(
                one["start"],
                one["size"],
                one["profile"],
                None if _is_whole(parts) else parts,
                one["id"],
            )
        )
    return tuple(sorted(found, key=lambda one: one.start))


def _is_whole(parts: Sequence[str]) -> bool:
    """Return whether these compute instances are one that has all of its GPU instance.

    nvidia-smi lists the one of ``1g.10gb+me`` as ``1g.10gb``; a part has a name as ``1c.3g.20gb``.
    """
    if len(parts) != 1:
        return False
    match = PROFILE.match(parts[0])
    return match is not None and match["compute"] is None
