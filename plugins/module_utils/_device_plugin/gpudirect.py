# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Flags of the device plugin whose devices a node does not have. Pure.

Source, seen 2026-11-28 in excerpts: github.com/NVIDIA/nvidia-container-toolkit
(internal/discover/gds.go and mofed.go), by which devices that are missing are left out. Unverified:
that NVIDIA's GPU operator sets the flags by the modules that are loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._hardware.gpudirect_modules import GPUDIRECT_MODULES
from .._hardware.vendors import container_gpus
from .config import Config
from .settings import is_true
from .types import Request

# Flag, variable of the environment, kernel module.
_FLAGS = (
    ("gdsEnabled", "GDS_ENABLED", "nvidia_fs"),
    ("mofedEnabled", "MOFED_ENABLED", "ib_uverbs"),
    ("gdrcopyEnabled", "GDRCOPY_ENABLED", "gdrdrv"),
)
_SHOWN = 5


def unserved(request: Request, hosts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a warning for each flag that is on for nodes without its kernel module."""
    warnings = []
    for flag, variable, module in _FLAGS:
        lacking = [
            name
            for name in sorted(hosts)
            if _lacks(hosts[name]["gpu_node"], module)
            and _is_on(
                request, request.config(str(hosts[name].get("config") or "")), flag, variable
            )
        ]
        if lacking:
            warnings.append(
                f"{_some(lacking)}: {flag} is on and the kernel module {module} is not loaded, so "
                f"that containers get no {GPUDIRECT_MODULES[module]}. Load it, or choose a config "
                "without the flag there (nvidia_device_plugin_config)"
            )
    return warnings


def _lacks(node: Mapping[str, Any], module: str) -> bool:
    """Return whether the plugin runs on the node without the module; facts may be older."""
    loaded = node.get("gpudirect_modules")
    return loaded is not None and module not in loaded and bool(container_gpus(node))


def _is_on(request: Request, config: Config | None, flag: str, variable: str) -> bool:
    # The plugin reads variables before its file.
    if variable in request.environment:
        return is_true(request.environment[variable])
    return config is not None and is_true(config.data["flags"].get(flag))


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
