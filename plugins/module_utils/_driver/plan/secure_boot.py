# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel modules under Secure Boot: signed ones, or a key that has to be enrolled. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..._core.errors import Refusal
from ..._distro.data import major
from ..._nvidia.driver_branches import SIGNED_ELSEWHERE
from . import gpu_support as rules
from .decision import PLACES, DecisionInput, Target
from .packages import prebuilt_kernel_flavour, signed_modules
from .sources import (
    DISTRO,
    MULTIVERSE,
    NVIDIA,
    component_disabled,
    offers,
    repository_entry,
)


def check_secure_boot(inputs: DecisionInput, target: Target) -> Target:
    """Return the target with reasons or warnings about Secure Boot.

    :raises Refusal: no signed modules are available, and building them was not requested.
    """
    if inputs.node["secure_boot"] is not True:
        return target
    if target.source == DISTRO and prebuilt_kernel_flavour(inputs):
        reason = "Secure Boot is on: Ubuntu's prebuilt modules are signed with its own key."
        return replace(target, reasons=(*target.reasons, reason))
    found = signed_modules(inputs, target.source)
    if found and target.kernel_module in found["modules"]:
        return _signed_by(inputs, found, target)
    if inputs.installed and inputs.installed.loaded and inputs.node["driver"]["dkms"]:
        # A module that was built on this node is loaded, so its key is enrolled.
        return target
    key = (
        "/var/lib/shim-signed/mok/MOK.der"
        if inputs.system.id == "ubuntu"
        else "/var/lib/dkms/mok.pub"
    )
    steps = (
        f"mokutil --import {key} (choose a password), reboot, and at the console: Enroll MOK, "
        "Continue, the password"
    )
    signed_branches = _signed_ubuntu_branches(inputs)
    # Without signed modules the driver works only after a person has been at the console.
    if inputs.request.dkms == "true":
        has = ", ".join(signed_branches)
        other = f" Ubuntu's archive has signed modules of {has}." if has else ""
        warning = (
            "Secure Boot is on, and modules that are built on this node load only with an "
            f"enrolled key: {steps}.{other}"
        )
        return replace(target, warnings=(*target.warnings, warning))
    way = (
        f"let them be built here and enrol their key: nvidia_driver_dkms: true, then {steps}; or "
        "switch Secure Boot off in the firmware."
    )
    raise _unsigned(inputs, target, signed_branches, way)


def _ubuntu_has_signed(inputs: DecisionInput) -> bool:
    if inputs.system.id != "ubuntu":
        return False
    automatic = replace(inputs, request=replace(inputs.request, dkms="auto"))
    return bool(prebuilt_kernel_flavour(automatic))


def _signed_ubuntu_branches(inputs: DecisionInput) -> list[str]:
    """Return the branches of Ubuntu's archive that serve all GPUs with signed kernel modules."""
    # Whether an older branch serves a GPU that is not in the table is not known.
    if not (_ubuntu_has_signed(inputs) and all(gpu.known for gpu in inputs.gpus)):
        return []
    kernel_module = inputs.requested_kernel_module
    return [
        branch
        for branch in rules.serving(inputs.gpus, inputs.data, kernel_module)
        if offers(inputs.system, DISTRO, branch, inputs.data, kernel_module)
    ]


def _unsigned(
    inputs: DecisionInput, target: Target, signed_branches: list[str], way: str
) -> Refusal:
    """Return the refusal of unsigned kernel modules, with the signed ones that are offered."""
    kinds = _signed_kernel_modules(inputs, target)
    if kinds:
        return Refusal(
            f"Secure Boot is on, and there are signed kernel modules of branch {target.branch} for "
            f"{inputs.system.name} that are {kinds}, not {target.kernel_module}.",
            f"ask for them: nvidia_driver_kernel_module: {kinds}; or {way}",
        )
    if signed_branches:
        return Refusal(
            f"Secure Boot is on, and {PLACES[str(target.source)]} has no signed kernel modules of "
            f"branch {target.branch}.",
            f"take Ubuntu's own signed modules (nvidia_driver_source: distro, branch "
            f"{' or '.join(signed_branches)}); or {way}",
        )
    archive = (repository_entry(inputs.system, DISTRO, inputs.data) or {}).get("branches") or ()
    off = [
        branch
        for branch in rules.serving(inputs.gpus, inputs.data, inputs.requested_kernel_module)
        if _ubuntu_has_signed(inputs)
        and branch in archive
        and component_disabled(inputs.system, branch, inputs.data)
    ]
    if off:
        return Refusal(
            f"Secure Boot is on, and Ubuntu's signed kernel modules of branch {' or '.join(off)} "
            f"are in the component {MULTIVERSE}, which this node's apt does not enable.",
            f"enable {MULTIVERSE} in {inputs.node['os']['archive']['file']}; or {way}",
        )
    return Refusal(
        "Secure Boot is on, and no source has signed kernel modules for "
        f"{inputs.system.name} with kernel {inputs.node['os']['kernel']}."
        f"{_signed_elsewhere(inputs)}",
        way,
    )


def _signed_elsewhere(inputs: DecisionInput) -> str:
    """Return where else the distribution publishes signed kernel modules; empty if nowhere."""
    first, package, place = SIGNED_ELSEWHERE.get(inputs.system.id, (0, "", ""))
    number = major(inputs.system.version)
    if not package or not number.isdigit() or int(number) < first:
        return ""
    return (
        f" {package} has open ones, from {place}, which this collection does not set up; "
        "docs/driver.md says how to use it (nvidia_driver_repositories: signed)."
    )


def _signed_by(inputs: DecisionInput, signed: Mapping[str, Any], target: Target) -> Target:
    """Return the target with modules that the publisher of the repository signs."""
    by = signed["by"]
    reason = f"Secure Boot is on: these kernel modules come built and signed by {by}."
    warnings = target.warnings
    if signed.get("stream"):
        # Report: github.com/NVIDIA/yum-packaging-precompiled-kmod/issues/57.
        warnings = (
            *warnings,
            f"{by} builds these modules for each kernel of the distribution: kernel "
            f"{inputs.node['os']['kernel']} may have none yet, and facts do not show it. Next step "
            "then: boot the kernel before it, or nvidia_driver_dkms: true and enrol its key.",
        )
    if not signed["trusted"]:
        warnings = (
            *warnings,
            f"Facts do not show whether this node's firmware trusts {by}'s signature. Where it "
            "does not, the module does not load, and the run reports that. Next step then: enrol "
            f"the certificate that {by} publishes for it (mokutil --import, reboot, Enroll MOK) or "
            "nvidia_driver_dkms: true for a key of the node's own.",
        )
    return replace(target, reasons=(*target.reasons, reason), warnings=warnings)


def _signed_kernel_modules(inputs: DecisionInput, target: Target) -> str:
    """Return the kind of kernel modules that is available signed and serves the GPUs."""
    found = signed_modules(inputs, NVIDIA)
    if found is None or not offers(inputs.system, NVIDIA, target.branch, inputs.data):
        return ""
    possible = rules.kernel_modules(inputs.gpus, target.branch, inputs.data)
    return next((kind for kind in possible if kind in found["modules"]), "")
