# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide what AMD's driver needs on a node, with a reason for each step. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.errors import Refusal
from .._core.steps import Step
from .._distro.images import amd_image, immutable
from .._distro.kernel_packages import kernel_headers
from .._distro.support import unsupported
from .._distro.upstream import package_base
from .._hardware.module_blocks import (
    MODULES,
    NOMODESET,
    blocks_of,
    describe_blocks,
    unblock_step,
)
from .._hardware.vendors import container_gpus
from .._nvidia.driver_branches import driver_data
from .._packages.types import fits
from .._repository.amd_data import ARCHITECTURES, KEY_FINGERPRINTS, ubuntu_suite
from .._repository.entry import accepted_keys, name_refusal, plan_entry
from . import amd_data
from .amd_types import PREFIX, AmdDriverPlan, AmdDriverRequest
from .plan.kernels import missing_headers, relevant_kernels
from .plan.packages import headers
from .plan.sources import system_of

_MANUALLY = "docs/amd-intel.md has what to do manually"
_NO_REBOOT: Mapping[str, Any] = {"required": False, "reason": ""}


def plan_amd_driver(node: Mapping[str, Any], request: AmdDriverRequest) -> AmdDriverPlan:
    """Return what has to be done so that the driver is as requested.

    :param node: the facts ``gpu_node``.
    """
    if not container_gpus(node, "amd"):
        return AmdDriverPlan("none", reasons=("No AMD GPU of this node is for containers.",))
    image = immutable(node["os"])
    if image and amd_data.MODULE in node["kernel_drivers"]:
        reason = f"{amd_data.MODULE} is loaded, and belongs to the image of the system: kept."
        return AmdDriverPlan("none", reasons=(reason,))
    refusal = amd_image(node["os"]) or _refusal(node, request)
    if refusal:
        return AmdDriverPlan.refused(refusal)
    wanted = _wanted(node, request)
    action, package_step = _packages(node, request, wanted)
    repository, repository_step = _repository(node, request)
    load_step = _load(node)
    reboot = _reboot(node, action)
    steps = [one for one in (repository_step, package_step, load_step) if one is not None]
    if reboot["required"] and request.reboot:
        steps.append(Step("module", "reboot", amd_data.MODULE, reboot["reason"]))
    meta, exact = headers(node, system_of(node, driver_data()), driver_data())
    return AmdDriverPlan(
        action=action,
        version=_shown(wanted, request),
        packages={**({meta: None} if meta else {}), **wanted},
        optional={**exact, **_more_modules(node)},
        hold=request.hold,
        change_packages=package_step is not None,
        repository=repository,
        load=load_step is not None,
        reboot=reboot,
        reboot_allowed=request.reboot,
        steps=tuple(steps),
        reasons=tuple(f"{step.step}: {step.reason}" for step in steps)
        or (f"AMD's driver {_shown(wanted, request)} is as requested.",),
        warnings=(
            *_not_built(node, action),
            *(missing_headers(node) if action != "none" else ()),
            *_blocked_later(node),
        ),
    )


def _installed(node: Mapping[str, Any]) -> Mapping[str, str]:
    packages: Mapping[str, str] = node["amd_driver"]["packages"]
    return packages if amd_data.PACKAGES[0] in packages else {}


def _refusal(node: Mapping[str, Any], request: AmdDriverRequest) -> Refusal | None:
    system = node["os"]
    name = f"{system['id']} {system['version']}"
    variable = f"{PREFIX}repository"
    refusal = name_refusal(request.manage_repository, request.repository_name, variable)
    if refusal:
        return refusal
    if system["package_manager"] != "apt":
        return Refusal(
            f"AMD's driver is installed by this collection with apt alone, and {name} has "
            f"{system['package_manager'] or 'none that is known'}.",
            f"set {PREFIX}enabled: false; {_MANUALLY}.",
        )
    old = unsupported(system, request.controller)
    if old:
        return old
    if system["arch"] not in ARCHITECTURES:
        return Refusal(
            f"AMD publishes its driver for {', '.join(ARCHITECTURES)}, and not for "
            f"{system['arch']}.",
            f"set {PREFIX}enabled: false.",
        )
    if request.manage_repository and _address(node, request) is None:
        return Refusal(
            f"AMD publishes its driver for {amd_data.SUPPORTED}, and not for {name}.",
            f"name a mirror that has it ({PREFIX}repository: url and suite), set up a repository "
            f"yourself ({PREFIX}repository: manage: false), or set {PREFIX}enabled: false and use "
            "the kernel's own driver.",
        )
    if not relevant_kernels(node):
        return Refusal(
            f"The running kernel {system['kernel']} is not on this disk, so that no module can be "
            "built for it.",
            "install the driver on the host of this container.",
        )
    return _blocked(node) or _unsigned(node, request)


def _blocked(node: Mapping[str, Any]) -> Refusal | None:
    """Return why the module would not be loaded, or be lost with the next boot."""
    blocks = blocks_of(node, MODULES["amd"])
    if not blocks or amd_data.MODULE in node["kernel_drivers"]:
        return None
    return Refusal(
        f"The kernel module {amd_data.MODULE} is not loaded, and it is blocked "
        f"({describe_blocks(blocks)}): what is installed here would not be loaded at boot.",
        f"{unblock_step(blocks)} Then run again. Where AMD's GPU operator installs the driver, it "
        f"writes such a file: set {PREFIX}enabled: false there.",
    )


def _blocked_later(node: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the warning that a loaded module is lost with the next boot."""
    # A loaded module runs with nomodeset already: amdgpu.modeset=1 overrides it.
    blocks = [one for one in blocks_of(node, MODULES["amd"]) if one["setting"] != NOMODESET]
    if not blocks:
        return ()
    return (
        f"{amd_data.MODULE} is loaded, and it is blocked ({describe_blocks(blocks)}): a boot does "
        f"not load it by itself. Next step: {unblock_step(blocks)}",
    )


def _unsigned(node: Mapping[str, Any], request: AmdDriverRequest) -> Refusal | None:
    """Return why a module that is built here would not be loaded by the kernel."""
    # A driver of the kernel has no version of its own: that one was built here, and is loaded.
    built = (node["kernel_drivers"].get(amd_data.MODULE) or {}).get("version")
    if node["secure_boot"] is not True or request.key_enrolled or built:
        return None
    return Refusal(
        "Secure Boot is on, and modules that DKMS builds on this node load only with an enrolled "
        "key; AMD has no signed ones.",
        "make the key and enrol it: update-secureboot-policy --new-key, mokutil --import "
        "/var/lib/shim-signed/mok/MOK.der (choose a password), reboot, and at the console: Enroll "
        f"MOK, Continue, the password; then set {PREFIX}key_enrolled: true. Or switch Secure Boot "
        "off in the firmware.",
    )


def _wanted(node: Mapping[str, Any], request: AmdDriverRequest) -> dict[str, str | None]:
    """Return the packages with their versions: those of a release, or those that are there."""
    installed = _installed(node)
    if installed and not request.release:
        return dict(installed)
    pattern = amd_data.version_pattern(request.release or amd_data.PINNED_RELEASE)
    return dict.fromkeys(amd_data.PACKAGES, pattern)


def _shown(wanted: Mapping[str, str | None], request: AmdDriverRequest) -> str:
    """Return the release of the packages, or the version of those that are kept."""
    pattern = str(wanted[amd_data.PACKAGES[0]])
    return (request.release or amd_data.PINNED_RELEASE) if "*" in pattern else pattern


def _packages(
    node: Mapping[str, Any], request: AmdDriverRequest, wanted: Mapping[str, str | None]
) -> tuple[str, Step | None]:
    installed, held = _installed(node), node["amd_driver"]["held"]
    release = request.release or amd_data.PINNED_RELEASE
    if not installed:
        why = "requested" if request.release else "the release that this collection pins"
        reason = f"amdgpu-dkms is not installed; {release} is {why}"
        return "install", Step("packages", "install", f"amdgpu {release}", reason)
    differs = [name for name, text in wanted.items() if not fits(text, installed.get(name))]
    if differs:
        there = installed[amd_data.PACKAGES[0]]
        older = amd_data.build_number(there) < amd_data.build_number(str(wanted[differs[0]]))
        action = "upgrade" if older else "downgrade"
        reason = f"{there} is installed; {release} is requested"
        return action, Step("packages", action, f"amdgpu {release}", reason)
    if held is not None and bool(held) != request.hold:
        verb = "hold" if request.hold else "unhold"
        reason = (
            "an unattended upgrade would replace the module under the running one"
            if request.hold
            else f"{PREFIX}hold is false"
        )
        return "none", Step("packages", verb, "amdgpu-dkms", reason)
    return "none", None


def _address(node: Mapping[str, Any], request: AmdDriverRequest) -> tuple[str, str] | None:
    """Return address and suite of the repository: AMD's own, or a mirror."""
    own = ubuntu_suite(node["os"])
    suite = request.repository_suite or own
    release = request.release or amd_data.PINNED_RELEASE
    url = request.repository_url or (amd_data.address(release) if own else "")
    return (url.rstrip("/"), suite) if url and suite else None


def _repository(
    node: Mapping[str, Any], request: AmdDriverRequest
) -> tuple[dict[str, Any] | None, Step | None]:
    found = _address(node, request)
    # What is installed and kept needs none.
    kept = bool(_installed(node)) and not request.release
    if not request.manage_repository or found is None or kept:
        return None, None
    url, suite = found
    wanted = {
        "name": request.repository_name,
        "suite": suite,
        "components": ["main"],
        "key_fingerprints": accepted_keys(request.key_fingerprints, KEY_FINGERPRINTS),
        "replaces": [],
        "check_metadata": True,
    }
    return plan_entry(node["repositories"], wanted, url, "AMD's driver")


def _more_modules(node: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the packages with modules of Ubuntu's kernels that amdgpu depends on."""
    if package_base(node["os"])["id"] != "ubuntu":
        return {}
    return {f"linux-modules-extra-{one['version']}": None for one in relevant_kernels(node)}


def _load(node: Mapping[str, Any]) -> Step | None:
    if amd_data.MODULE in node["kernel_drivers"]:
        return None
    reason = f"/sys/module/{amd_data.MODULE} does not exist"
    return Step("module", "load", amd_data.MODULE, reason)


def _reboot(node: Mapping[str, Any], action: str) -> Mapping[str, Any]:
    """Return whether a reboot is needed.

    A loaded amdgpu often has the console, and is not unloaded.
    """
    if amd_data.MODULE not in node["kernel_drivers"]:
        return _NO_REBOOT
    if action != "none":
        reason = "amdgpu is loaded already; the new module takes its place at the next boot"
    elif node["amd_driver"]["pending_reboot"]:
        reason = "the loaded amdgpu is not the one that is installed"
    else:
        return _NO_REBOOT
    return {"required": True, "reason": reason}


def _not_built(node: Mapping[str, Any], action: str) -> tuple[str, ...]:
    """Return warnings for kernels for which DKMS has not built the installed driver."""
    if action != "none":
        return ()
    built = [one["kernel"] for one in node["amd_driver"]["dkms"] if one["state"] == "installed"]
    return tuple(
        f"amdgpu-dkms is installed, and DKMS has no module for kernel {one['version']}"
        f"{'' if one['headers'] else ', whose headers are not installed'}. Next step: "
        f"apt-get install {kernel_headers(node['os'], one['version'])}, then dkms autoinstall -k "
        f"{one['version']}; /var/lib/dkms/amdgpu/*/build/make.log says why a build failed."
        for one in relevant_kernels(node)
        if one["version"] not in built
    )
