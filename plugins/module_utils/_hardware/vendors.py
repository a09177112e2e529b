# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The GPU vendor of a node, and the GPUs that containers can use. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_VENDORS = ("nvidia", "amd", "intel")


def gpu_vendor(gpus: Sequence[Mapping[str, Any]]) -> str:
    """Return the vendor of the node's GPUs, or ``none``.

    NVIDIA takes precedence: a server with an NVIDIA card and an on-board Intel chip is an NVIDIA
    node.
    """
    found = {gpu["vendor"] for gpu in gpus}
    return next((vendor for vendor in _VENDORS if vendor in found), "none")


def container_gpus(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the GPUs for containers: NVIDIA's, unless passed through to a virtual machine."""
    return [
        gpu
        for gpu in node.get("gpus") or ()
        if gpu.get("vendor") == "nvidia"
        and not str(gpu.get("kernel_driver") or "").startswith("vfio")
    ]
