# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find a GPU that is lost, or has to be reset, from what a loaded driver says of it. Pure.

One such GPU can make nvidia-smi fail for all of them: the driver is not the fault then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._core.finding import ERROR, Finding
from .._hardware.nvml import bus_address
from .rules.xids_data import REBOOT_STEP, RESET_STEP

# Of nvidia-smi (NVIDIA/open-gpu-kernel-modules#387, akash-network/support#209), NVML and the
# kernel's log. Other errors of a handle, such as missing permissions, are no fault of the GPU.
_HANDLE = (
    r"Unable to determine the device handle for gpu ?(?P<address>[0-9a-f:.]{7,16}): (?:Unknown "
    r"Error|GPU is lost)"
)
_LOST = re.compile(
    rf"{_HANDLE}|GPU is lost|fallen off the bus|\bXid=79\b|GPU of index \d+: Unknown Error", re.I
)
_RESET = re.compile(r"GPU requires reset", re.I)
_ADDRESS = re.compile(
    r"\bGPU ?(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])\b", re.I
)


def lost_gpu(evidence: str) -> Finding:
    """Return the finding for a GPU that is lost, by what shows it."""
    cause = "A GPU does not answer on the bus any more."
    return Finding("gpu_lost", cause, evidence, REBOOT_STEP, severity=ERROR)


def reset_gpu(evidence: str, which: str = "A GPU") -> Finding:
    """Return the finding for a GPU that has to be reset, by what shows it."""
    cause = f"{which} has to be reset before it can be used again."
    return Finding("recovery_action", cause, evidence, RESET_STEP, severity=ERROR)


def broken_gpu(node: Mapping[str, Any], error: str, silent: Sequence[str] = ()) -> Finding | None:
    """Return the finding for GPUs that are lost or have to be reset; None if there are none.

    :param node: the fact ``gpu_node`` without its problems.
    :param error: what NVML or ``nvidia-smi`` says.
    :param silent: the addresses of the GPUs whose PCI configuration space reads as ones only.
    """
    nvml = node["nvml"]
    listed = {one["address"] for one in (nvml or {"devices": ()})["devices"]}
    # With an answer of the driver the GPU has come back since.
    off = [address for address in silent if address not in listed]
    lost = bool(off or _LOST.search(error))
    if not lost and not _RESET.search(error):
        return None
    named = off or _addresses(node, error)
    if not named:
        unlisted = [one["address"] for one in node["gpus"] if _is_unlisted(one, listed)]
        # Where nobody answers, it is one of them.
        named = unlisted if nvml is not None or len(unlisted) == 1 else []
    which = " and ".join(named)
    others = "the other GPUs answer" if nvml is not None else "nvidia-smi fails for all GPUs"
    loaded = f"driver {node['driver']['loaded']} is loaded"
    evidence = error or "its PCI configuration space reads as ones only"
    if not lost:
        title = f"GPU {which} has" if which else "A GPU has"
        return Finding(
            "recovery_action",
            f"{title} to be reset before it can be used again; {loaded}, {others}.",
            evidence,
            RESET_STEP,
        )
    many = len(named) > 1
    title = f"GPU {which} {'do' if many else 'does'}" if which else "A GPU does"
    return Finding(
        "gpu_lost",
        f"{title} not answer on the bus any more; {loaded}, {others}.",
        evidence,
        REBOOT_STEP,
    )


def _addresses(node: Mapping[str, Any], error: str) -> list[str]:
    """Return the GPUs that the text names, as sysfs names them."""
    named = [bus_address(match["address"]) for match in _ADDRESS.finditer(error)]
    known = {gpu["address"] for gpu in node["gpus"]}
    return [one for one in dict.fromkeys(named) if one is not None and one in known]


def _is_unlisted(gpu: Mapping[str, Any], listed: set[str]) -> bool:
    return bool(gpu["kernel_driver"] == "nvidia" and gpu["address"] not in listed)
