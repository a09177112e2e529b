# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Differences between a node's driver and the request, other than packages. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._core.steps import Step
from ..._hardware.kernel_drivers import kernel_drivers
from ..types import branch_of
from . import config_files
from .decision import DecisionInput, Target
from .fabric import needs, unmanaged_warning
from .installed import InstalledDriver
from .kernels import kernels_without_module, running_kernel
from .packages import module_streams
from .sources import RUNFILE
from .working import held_by_kernel_driver


def licence_token(inputs: DecisionInput) -> tuple[dict[str, Any] | None, Step | None]:
    path = inputs.request.licence.get("token_path")
    if not path or not inputs.guest:
        return None, None
    token = {"path": str(path)}
    seen = inputs.node["driver"]["configuration"]
    wanted = inputs.request.licence.get("token_sha256")
    there = config_files.TOKEN in seen
    same = there and (not wanted or seen[config_files.TOKEN] in (None, wanted))
    if same:
        return token, None
    reason = "it is another one" if there else "the guest has no licence without it"
    return token, Step("licence", "write", config_files.TOKEN, reason)


def stream_steps(inputs: DecisionInput, target: Target, streams: Mapping[str, str]) -> list[Step]:
    """Return the steps that enable or switch streams of dnf's modules.

    :param streams: the streams of the target's packages.
    """
    installed, steps = inputs.installed, []
    enabled = inputs.node["driver"].get("streams")
    before: Mapping[str, str] = enabled or {}
    if (
        enabled is None
        and installed
        and installed.source == target.source
        and installed.kernel_module
    ):
        before = module_streams(
            inputs.system, installed.source, installed.branch, installed.kernel_module, inputs.data
        )
    for module, stream in streams.items():
        old = before.get(module)
        if old == stream:
            continue
        reason = (
            f"{old} is enabled, and dnf offers the packages of one stream alone"
            if old
            else f"the packages of {stream} are in no other stream"
        )
        verb = "switch" if old else "enable"
        steps.append(Step("stream", verb, f"{module}:{stream}", reason))
    return steps


def service_steps(inputs: DecisionInput, services: Mapping[str, str]) -> list[Step]:
    driver = inputs.node["driver"]
    if not driver["loaded"]:
        # They cannot run before the module is loaded; the change itself enables them.
        return []
    return [
        Step("service", "start", unit, f"it is {driver['services'][unit]}, and must run")
        for unit in services
        if driver["services"].get(unit) not in (None, "active", "activating")
    ]


def plan_loading(inputs: DecisionInput, target: Target, *, build: bool) -> tuple[bool, Step | None]:
    """Return whether this run loads the module, and the step for it.

    :param build: whether this run builds the module for a kernel.
    """
    kernel = running_kernel(inputs.node)
    loaded = inputs.node["driver"]["loaded"]
    if not inputs.request.load or kernel is None:
        return False, None
    if target.keep and (loaded or not (kernel.get("driver") or build)):
        return False, None
    words = target.version or f"branch {target.branch}"
    reason = f"{loaded} is loaded" if loaded else "no NVIDIA module is loaded"
    return True, Step("load", "load", words, reason)


def kernel_step(inputs: DecisionInput, without: tuple[str, ...]) -> Step | None:
    """Return the step that builds or installs missing modules for kernels."""
    driver = inputs.node["driver"]
    if not without or (
        inputs.installed and inputs.installed.source == RUNFILE and not driver["dkms"]
    ):
        return None
    by = {kernel["version"]: kernel for kernel in inputs.node["kernels"]}
    bare = [name for name in without if not by[name]["headers"]]
    reason = "the driver has no module for " + (
        "it, and it has no headers" if bare == list(without) else "it"
    )
    if inputs.installed and inputs.installed.prebuilt:
        reason = "the module that was built for it is not there"
        return Step("kernel", "install", ", ".join(without), reason)
    return Step("kernel", "build", ", ".join(without), reason)


def state_warnings(
    inputs: DecisionInput, installed: InstalledDriver | None, ours: bool
) -> list[str]:
    """Return warnings about the node and its driver."""
    node = inputs.node
    found = []
    if any(gpu.guest is None for gpu in inputs.gpus) and not inputs.guest:
        found.append(
            "Whether the GPUs are virtual ones (vGPU) of this guest is unknown without root. "
            "Next step: become."
        )
    if installed is None:
        return found
    fabric = unmanaged_warning(needs(node, inputs.request), node, installed.version)
    if fabric and not ours:
        found.append(fabric)
    driver = node["driver"]
    loaded, userland = driver["loaded"], driver["userland"]
    if loaded and userland and loaded != userland:
        found.append(
            f"Module {loaded} is loaded, the libraries are {userland}: new programs fail. Next "
            "step: reboot, or reload the module while no program uses a GPU."
        )
    without = kernels_without_module(node)
    by_hand = installed.source == RUNFILE and not driver["dkms"]
    if without and ((not ours and installed.working) or by_hand):
        found.append(
            f"Kernel {', '.join(without)} has no driver module: after a boot into it there is no "
            "driver. Next step: "
            + (
                "run the runfile again for it, or use its --dkms."
                if by_hand
                else "install its headers and run dkms autoinstall, or let this collection manage "
                "the driver (nvidia_driver_branch)."
            )
        )
    if not ours and installed.held is False:
        found.append(
            f"{installed.version} is not held: an unattended upgrade can replace a part of it. "
            f'Next step: ask for its branch (nvidia_driver_branch: "{installed.branch}").'
        )
    return found


def reboot(inputs: DecisionInput, target: Target) -> dict[str, Any]:
    """Return whether the target needs a reboot, according to facts, and why."""
    node = inputs.node
    driver = node["driver"]
    loaded = driver["loaded"]
    wanted = target.version or target.branch
    differs = bool(loaded) and (
        loaded != target.version
        if target.version
        else branch_of(loaded) != target.branch or not target.keep
    )
    other_kind = (
        bool(loaded)
        and None not in (driver["kernel_module"], target.kernel_module)
        and (driver["kernel_module"] != target.kernel_module)
    )
    if differs or other_kind:
        kind = f" ({driver['kernel_module']})" if other_kind and not differs else ""
        reason = (
            f"{loaded}{kind} is loaded, {wanted} ({target.kernel_module}) is requested; reloading "
            "the module is enough where no program uses a GPU"
        )
        return {"required": True, "reason": reason}
    if held_by_kernel_driver(node):
        reason = f"{kernel_drivers(node)} holds the GPUs; the next boot comes without it"
        return {"required": True, "reason": reason}
    if not loaded and node["nouveau"]["loaded"]:
        reason = (
            f"{kernel_drivers(node)} is loaded; where it cannot be unloaded, the next boot "
            "comes without it"
        )
        return {"required": True, "reason": reason}
    if not loaded and target.keep:
        kernel = running_kernel(node)
        others = [one["version"] for one in node["kernels"] if one.get("driver")]
        if (kernel is None or not kernel.get("driver")) and others:
            reason = (
                f"the module is there for {', '.join(others)}, and {node['os']['kernel']} is "
                "running, for which there is none"
            )
            return {"required": True, "reason": reason}
    return {"required": False, "reason": ""}
