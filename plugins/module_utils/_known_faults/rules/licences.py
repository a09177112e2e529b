# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages about the licence of a virtual GPU: nvidia-gridd, and single lines of nvidia-smi.

The whole output of nvidia-smi names the GPU: ``documents/nvidia_smi_judge.py``.
"""

from __future__ import annotations

from ..._core.finding import WARNING
from ..common import LICENCE_STEP, VGPU_UNLICENSED
from ..types import Rule

_READ = "2026-11-28"
_DAEMON = "nvidia-gridd"
_SMI = "nvidia-smi -q"
_ACQUIRED = r"License acquired successfully"
_REDUCED = (
    "the driver reduces the performance of the guest's virtual GPUs, and CUDA programs can fail "
    "with 'busy or unavailable'."
)

LICENCES = (
    Rule(
        VGPU_UNLICENSED,
        r"\bnvidia-gridd\b[^\n]{0,40}?: Failed to acquire license(?: from "
        r"(?P<server>[\w.:-]{1,253}))?",
        _DAEMON,
        "nvidia-gridd got no licence from the licence server {server}: " + _REDUCED,
        LICENCE_STEP,
        "nvidia-gridd: Failed to acquire license from 192.0.2.10",
        "github.com/NVIDIA/nvidia-docker/issues/1787",
        _READ,
        over=_ACQUIRED,
    ),
    Rule(
        VGPU_UNLICENSED,
        r"\bnvidia-gridd\b[^\n]{0,40}?: Failed to register client\b|Valid GRID license not found",
        _DAEMON,
        "nvidia-gridd got no licence: " + _REDUCED,
        LICENCE_STEP,
        "nvidia-gridd: Valid GRID license not found. GPU features and performance are restricted. "
        "To enable full functionality please configure licensing details.",
        "github.com/NVIDIA/nvidia-docker/issues/1787; a public syslog of driver 550.54.15, 2024-05",
        _READ,
        over=_ACQUIRED,
    ),
)

#: Only where the output that names the GPU is not in the text.
LICENCE_LINES = (
    Rule(
        VGPU_UNLICENSED,
        r"License Status {0,60}: {0,4}Unlicensed(?! \(Unrestricted\))",
        _SMI,
        "A virtual GPU of this guest has no licence: " + _REDUCED,
        LICENCE_STEP,
        "License Status                    : Unlicensed (Restricted)",
        "github.com/NVIDIA/gpu-operator/issues/628, 220",
        _READ,
        last_resort=True,
    ),
    Rule(
        VGPU_UNLICENSED,
        r"License Status {0,60}: {0,4}Unlicensed \(Unrestricted\)",
        _SMI,
        "A virtual GPU of this guest has no licence. It still has its full performance; some time "
        "after the driver was loaded (20 minutes according to NVIDIA's documentation) the driver "
        "reduces it.",
        LICENCE_STEP,
        "License Status                    : Unlicensed (Unrestricted)",
        "github.com/NVIDIA/DCGM, dcgmlib",
        _READ,
        severity=WARNING,
        last_resort=True,
    ),
)
