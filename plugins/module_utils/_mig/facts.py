# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read MIG profiles and instances from the output of nvidia-smi, and the layout at boot."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .boot_paths import UNIT, WANTS
from .record import RECORD, Record

if TYPE_CHECKING:
    from .._host.reader import NodeReader

# Seconds for one command.
_SECONDS = 60
_NAME = r"MIG (?P<name>\d\S{0,62})"
_PROFILE_ROW = re.compile(
    rf"^\|\s+(?P<gpu>\d+)\s+{_NAME}\s+(?P<id>\d+)\s+\d+/(?P<count>\d+)\s", re.M | re.ASCII
)
_PLACEMENTS = re.compile(
    r"^GPU\s+(?P<gpu>\d+)\s+Profile ID\s+(?P<id>\d+)\s+Placements?\s*:\s*"
    r"\{(?P<starts>[\d,\s]*)\}:(?P<size>\d+)",
    re.M | re.ASCII,
)
_INSTANCE_ROW = re.compile(
    rf"^\|\s+(?P<gpu>\d+)\s+{_NAME}\s+\d+\s+(?P<id>\d+)\s+(?P<start>\d+):(?P<size>\d+)\s+\|",
    re.M | re.ASCII,
)
_COMPUTE_ROW = re.compile(
    rf"^\|\s+(?P<gpu>\d+)\s+(?P<instance>\d+)\s+{_NAME}\s+\d+\s+(?P<id>\d+)\s+\d+:\d+\s+\|",
    re.M | re.ASCII,
)
_MANAGER = "nvidia-mig-manager.service"
_CAPABILITY = re.compile(r"^gpu(?P<gpu>\d+)/gi(?P<instance>\d+)/\S+ (?P<minor>\d+)$", re.M)


def with_mig(reader: NodeReader, fact: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fact ``nvml`` with profiles and GPU instances of its devices.

    At most four commands are run, and only if a device has MIG. The values are None for a device
    without MIG, and where nvidia-smi did not tell.
    """
    devices = fact["devices"]
    outputs = dict.fromkeys(("-lgip", "-lgipp", "-lgi", "-lci"))
    if any(device["mig_mode"] is not None for device in devices):
        enabled = any(device["mig_mode"] == "enabled" for device in devices)
        for option in outputs if enabled else ("-lgip", "-lgipp"):
            answer = reader.run(["nvidia-smi", "mig", option], timeout=_SECONDS)
            outputs[option] = None if answer is None else answer.stdout
    profiles = parse_profiles(outputs["-lgip"] or "", outputs["-lgipp"] or "")
    instances = parse_instances(outputs["-lgi"], outputs["-lci"])
    found = []
    for index, device in enumerate(devices):
        has_mig = device["mig_mode"] is not None
        known: list[dict[str, Any]] | None = None
        if device["mig_mode"] == "enabled" and instances is not None:
            known = instances.get(index, [])
        elif device["mig_mode"] == "disabled":
            known = []
        found.append(
            {
                **device,
                "mig_profiles": profiles.get(index) if has_mig else None,
                "gpu_instances": known,
            }
        )
    return {**fact, "devices": found}


def parse_profiles(listed: str, placements: str) -> dict[int, list[dict[str, Any]]]:
    """Return the profiles by GPU from ``nvidia-smi mig -lgip`` and ``-lgipp``.

    A profile whose placements are unknown is left out.
    """
    places = {
        (row["gpu"], row["id"]): (
            [int(start) for start in row["starts"].split(",") if start.strip()],
            int(row["size"]),
        )
        for row in _PLACEMENTS.finditer(placements)
    }
    found: dict[int, list[dict[str, Any]]] = {}
    for row in _PROFILE_ROW.finditer(listed):
        starts, size = places.get((row["gpu"], row["id"]), ([], 0))
        if starts:
            found.setdefault(int(row["gpu"]), []).append(
                {
                    "name": row["name"],
                    "id": int(row["id"]),
                    "count": int(row["count"]),
                    "starts": starts,
                    "size": size,
                }
            )
    return found


def parse_instances(
    listed: str | None, compute: str | None
) -> dict[int, list[dict[str, Any]]] | None:
    """Return the GPU instances by GPU from ``nvidia-smi mig -lgi`` and ``-lci``.

    None if nvidia-smi told neither instances nor that there are none, for example without root.
    """
    found: dict[int, list[dict[str, Any]]] = {}
    for row in _INSTANCE_ROW.finditer(listed or ""):
        parts = [
            {"id": int(part["id"]), "profile": part["name"]}
            for part in _COMPUTE_ROW.finditer(compute or "")
            if (part["gpu"], part["instance"]) == (row["gpu"], row["id"])
        ]
        found.setdefault(int(row["gpu"]), []).append(
            {
                "id": int(row["id"]),
                "profile": row["name"],
                "start": int(row["start"]),
                "size": int(row["size"]),
                "compute_instances": parts,
            }
        )
    if not found and "No GPU instances found" not in (listed or ""):
        return None
    return found


def read_capabilities(reader: NodeReader) -> dict[str, tuple[int, int]] | None:
    """Return minor number of the GPU and ID of the GPU instance by device file of a capability.

    None if the kernel module has no list of them.
    """
    text = reader.read_text("/proc/driver/nvidia-caps/mig-minors")
    if text is None:
        return None
    return {
        f"/dev/nvidia-caps/nvidia-cap{row['minor']}": (int(row["gpu"]), int(row["instance"]))
        for row in _CAPABILITY.finditer(text)
    }


def read_setup(
    reader: NodeReader, record: Mapping[str, Any] | None, checksums: Mapping[str, str | None]
) -> dict[str, Any]:
    """Return the fact ``mig``: record, files for the boot, and another manager of MIG.

    :param record: the node's record; None if it cannot be read.
    :param checksums: sha256 of each of ``BOOT_PATHS`` that exists.
    """
    values: Mapping[str, Any] = (record or {}).get("values") or {}
    mine = Record.from_json(values.get(RECORD))
    manager = any(
        reader.is_link(f"/etc/systemd/system/{folder}/{_MANAGER}")
        for folder in reader.list_dir("/etc/systemd/system")
        if folder.endswith((".wants", ".requires"))
    )
    return {
        "managed": mine is not None,
        "unfinished": list(mine.stopped) if mine else [],
        "waiting": dict(mine.waiting) if mine else {},
        "at_boot": dict(checksums),
        "enabled": reader.is_link(f"{WANTS}/{UNIT}"),
        "manager": manager,
    }
