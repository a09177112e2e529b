# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The requests for the device plugins of AMD and Intel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .objects import PluginRequest, default_tolerations

AUTO = "auto"


@dataclass(frozen=True)
class AmdRequest(PluginRequest):
    """AMD's device plugin (github.com/ROCm/k8s-device-plugin). Fields are the role's options."""

    image: str = "docker.io/rocm/k8s-device-plugin"
    version: str = "1.31.0.10"
    tolerations: Sequence[Mapping[str, Any]] = default_tolerations("amd.com/gpu")
    #: ``single`` offers all devices as amd.com/gpu, ``mixed`` by the partition's name.
    naming: str = "single"
    health: bool = False
    labeller: bool = False
    labeller_version: str = "labeller-1.31.0.10"
    #: More arguments of the plugin.
    arguments: Sequence[str] = ()


@dataclass(frozen=True)
class IntelRequest(PluginRequest):
    """Intel's GPU plugin (github.com/intel/intel-device-plugins-for-kubernetes)."""

    image: str = "docker.io/intel/intel-gpu-plugin"
    version: str = "0.36.0"
    tolerations: Sequence[Mapping[str, Any]] = default_tolerations(
        "gpu.intel.com/i915", "gpu.intel.com/xe"
    )
    #: The number of containers that share a GPU.
    shared: int = 1
    allocation_policy: str = "none"
    monitoring: bool = False
    #: Device ids such as 0x56c0; ``auto`` stands for the cards in this collection's table.
    allow_ids: Sequence[str] = (AUTO,)
    #: More arguments of the plugin.
    arguments: Sequence[str] = ()
