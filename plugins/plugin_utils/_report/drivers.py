# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The drivers of a node in the rows of the tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.module_blocks import (
    MODULES,
    blocks_of,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.vendors import (
    DRIVERS,
    IN_KERNEL,
    NAMES,
    gpu_vendor,
    gpu_vendors,
)

#: What a node waits for, with the reason.
REBOOT, RESTART = "reboot", "restart"


def present_driver(node: Mapping[str, Any]) -> list[str]:
    """Return the driver version, or the loaded and the installed one if they differ."""
    driver = node["driver"]
    loaded, installed = driver.get("loaded"), driver.get("installed")
    module_type = f" {driver['kernel_module']}" if driver.get("kernel_module") else ""
    if loaded and installed in (None, loaded):
        return [f"driver {loaded}{module_type}"]
    texts = [f"driver {loaded}{module_type} is loaded"] if loaded else []
    if installed:
        texts.append(f"driver {installed} is installed" + ("" if loaded else ", not loaded"))
    return texts


def driver_text(
    node: Mapping[str, Any] | None,
    driver: Mapping[str, Any],
    result: Mapping[str, Any] | None,
    predicted: bool,
) -> list[str]:
    """Return NVIDIA's driver after the run, and whether the run changed it."""
    changed = bool(result and result.get("changed"))
    if predicted and changed and driver.get("action") == "remove":
        texts = ["none"]
    elif predicted and changed and driver.get("branch"):
        version = driver["version"] or f"branch {driver['branch']}"
        texts = [f"{version} {driver['kernel_module'] or ''}".rstrip()]
    else:
        texts = [text.partition(" ")[2] for text in present_driver(node)] if node else []
        if node and changed and not texts:
            texts = ["none"]
    if driver:
        texts.append("changed" if changed else "unchanged")
    return texts


def amd_driver_text(
    node: Mapping[str, Any] | None,
    plans: Mapping[str, Mapping[str, Any]],
    results: Mapping[str, Mapping[str, Any]],
    predicted: bool,
) -> list[str]:
    """Return the loaded module of AMD, or the packages that will be there."""
    plan = plans.get("AMD driver")
    if not plan:
        return []
    changed = bool((results.get("AMD driver") or {}).get("changed"))
    loaded = (node or {}).get("kernel_drivers", {}).get("amdgpu")
    version = (loaded or {}).get("version") or "of the kernel"
    text = f"amdgpu {version}" if loaded else "none"
    if predicted and changed:
        text = f"amdgpu-dkms {plan['version']}"
    return [text, "changed" if changed else "unchanged"]


def driver_pending(
    driver: Mapping[str, Any] | None, result: Mapping[str, Any] | None
) -> list[dict[str, str]]:
    """Return whether a reboot is pending for the driver, with the reason."""
    reboot: Mapping[str, Any] = (driver or {}).get("reboot") or {}
    required, reason = reboot.get("required"), reboot.get("reason")
    if result and "reboot_required" in result:
        # The module tried to do without, which the plan can only predict.
        required, reason = result["reboot_required"], result.get("reboot_reason") or reason
    return [{"pending": REBOOT, "reason": reason or "the driver needs it"}] if required else []


def pending_text(one: Mapping[str, Any]) -> str:
    """Return what is pending on a node, as the tables show it."""
    what = " ".join(filter(None, (one["pending"], one.get("daemon"))))
    return f"{what}: {one['reason']}"


def unmanaged(node: Mapping[str, Any], plans: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return that the driver is left alone; a role that is switched off has an empty plan."""
    if gpu_vendor(node["gpus"]) != "nvidia" or plans.get("driver") != {}:
        return []
    return ["driver: not managed (nvidia_driver_enabled: false)"]


def in_kernel(node: Mapping[str, Any]) -> str:
    """Return why nothing is done on a node with AMD or Intel GPUs."""
    vendors = [vendor for vendor in gpu_vendors(node["gpus"]) if vendor in IN_KERNEL]
    drivers = dict.fromkeys(
        str(gpu["kernel_driver"])
        for gpu in node["gpus"]
        if gpu["kernel_driver"] in DRIVERS.get(gpu["vendor"], ())
    )
    names = " and ".join(NAMES[vendor] for vendor in vendors)
    if drivers:
        return f"{names}: the kernel's driver {' and '.join(drivers)} serves it, nothing to do here"
    if any(blocks_of(node, MODULES[vendor]) for vendor in vendors):
        return f"{names}: no driver serves it, its kernel module is blocked, see below"
    own = "amd_driver_enabled: true installs AMD's" if "amd" in vendors else "install one"
    return f"{names}: no driver serves it; {own}, see below"
