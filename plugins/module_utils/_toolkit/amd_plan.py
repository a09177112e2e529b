# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide what AMD's container toolkit needs on a node, with a reason for each step. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from .._core.errors import Refusal
from .._core.steps import Step
from .._core.versions import package_numbers
from .._distro.images import amd_image
from .._distro.support import MANAGERS, unsupported
from .._hardware.vendors import container_gpus
from .._record.converged import settings_fingerprint
from .._repository.amd_data import ARCHITECTURES, KEY_FINGERPRINTS
from .._repository.entry import accepted_keys, name_refusal, plan_entry
from . import amd_data
from .amd_cdi_checks import stale
from .amd_types import PREFIX, AmdToolkitPlan, AmdToolkitRequest

_DRIVER = "amdgpu"


def plan_amd_toolkit(node: Mapping[str, Any], request: AmdToolkitRequest) -> AmdToolkitPlan:
    """Return what has to be done so that toolkit, CDI and Docker are as requested.

    :param node: the facts ``gpu_node``.
    """
    if not container_gpus(node, "amd"):
        return AmdToolkitPlan("none", reasons=("No AMD GPU of this node is for containers.",))
    refusal = _refusal(node, request)
    if refusal:
        return AmdToolkitPlan.refused(refusal)
    wanted, why = _version(node, request)
    action, package_step = _packages(node, request, wanted, why)
    repository, repository_step = _repository(node, request)
    if amd_image(node["os"]):
        # What is installed is kept; a hold means nothing to an image.
        package_step, repository, repository_step = None, None, None
    cdi_step = _cdi(node, request)
    docker, docker_step, docker_notes = _docker(node, request, action)
    steps = [
        step for step in (repository_step, package_step, cdi_step, docker_step) if step is not None
    ]
    return AmdToolkitPlan(
        action=action,
        version=wanted.rstrip("*"),
        packages={amd_data.PACKAGE: wanted},
        hold=request.hold,
        change_packages=package_step is not None,
        repository=repository,
        cdi=cdi_step is not None,
        docker=docker,
        fingerprint=_fingerprint(node, request),
        programs=amd_data.programs(node["os"]["package_manager"]),
        steps=tuple(steps),
        reasons=tuple(f"{step.step}: {step.reason}" for step in steps)
        or (f"AMD's toolkit {wanted.rstrip('*')} is as requested.",),
        warnings=docker_notes,
    )


def _toolkit(node: Mapping[str, Any]) -> Mapping[str, Any]:
    toolkit: Mapping[str, Any] = node["amd_container_toolkit"]
    return toolkit


def _refusal(node: Mapping[str, Any], request: AmdToolkitRequest) -> Refusal | None:
    system = node["os"]
    name = f"{system['id']} {system['version']}"
    variable = f"{PREFIX}repository"
    refusal = name_refusal(request.manage_repository, request.repository_name, variable)
    if refusal:
        return refusal
    image = amd_image(system)
    if image and _packages(node, request, *_version(node, request))[0] != "none":
        return image
    if system["package_manager"] not in MANAGERS:
        return Refusal(
            f"{name} installs packages with {system['package_manager'] or 'an unknown tool'}.",
            "install amd-container-toolkit manually, and use the modules amd_cdi_specification and "
            "docker_runtime, which work there.",
        )
    old = unsupported(system, request.controller)
    if old:
        return old
    if system["arch"] not in ARCHITECTURES:
        return Refusal(
            f"AMD publishes its container toolkit for {', '.join(ARCHITECTURES)}, and not "
            f"for {system['arch']}.",
            f"set {PREFIX}enabled: false, and give containers the devices (docs/amd-intel.md).",
        )
    if request.manage_repository and _address(node, request) is None:
        return Refusal(
            f"AMD publishes its container toolkit for {amd_data.SUPPORTED}, and not for {name}.",
            f"name a mirror that has it ({PREFIX}repository: url, and suite with apt), set up a "
            f"repository yourself ({PREFIX}repository: manage: false), or set {PREFIX}enabled: "
            "false and give containers the devices (docs/amd-intel.md).",
        )
    installs = _toolkit(node)["version"] is None
    if installs and _DRIVER not in node["kernel_drivers"] and not request.driver_planned:
        return Refusal(
            f"The kernel module {_DRIVER} is not loaded, and the package of AMD's container "
            "toolkit does not install without it.",
            f"load it (modprobe {_DRIVER}), or install it (amd_driver_enabled: true); the layer "
            "module of kubegpu.nodes.verify says why it is not there.",
            f"/sys/module/{_DRIVER} does not exist",
        )
    return None


def _version(node: Mapping[str, Any], request: AmdToolkitRequest) -> tuple[str, str]:
    """Return the version as a pattern, and why this one."""
    installed = _toolkit(node)["version"]
    if request.version:
        # A version without the packaging revision: 1.3.0 of 1.3.0~24.04 and of 1.3.0-1.el9.
        exact = any(mark in request.version for mark in "~-*")
        return request.version if exact else f"{request.version}*", "requested"
    if installed:
        return str(installed), "installed already, and no version was requested"
    return f"{amd_data.PINNED_VERSION}*", "the version that this release pins"


def _packages(
    node: Mapping[str, Any], request: AmdToolkitRequest, wanted: str, why: str
) -> tuple[str, Step | None]:
    toolkit = _toolkit(node)
    installed, shown = toolkit["version"], wanted.rstrip("*")
    if installed is None:
        reason = f"not installed; {shown} is {why}"
        return "install", Step("packages", "install", f"toolkit {shown}", reason)
    if not fnmatchcase(installed, wanted):
        older = package_numbers(installed) < package_numbers(shown)
        action = "upgrade" if older else "downgrade"
        reason = f"{installed} is installed; {shown} is {why}"
        return action, Step("packages", action, f"toolkit {shown}", reason)
    if toolkit["interrupted"]:
        reason = "a run was killed, and files that the package's scripts removed are not restored"
        return "none", Step("packages", "repair", f"toolkit {shown}", reason)
    if toolkit["held"] is not None and bool(toolkit["held"]) != request.hold:
        reason = (
            "an unattended upgrade would remove /etc/cdi and settings of Docker"
            if request.hold
            else f"{PREFIX}hold is false"
        )
        verb = "hold" if request.hold else "unhold"
        return "none", Step("packages", verb, f"toolkit {shown}", reason)
    return "none", None


def _address(node: Mapping[str, Any], request: AmdToolkitRequest) -> amd_data.Archive | None:
    """Return the repository: AMD's own, or a mirror."""
    own = amd_data.archive(node["os"])
    apt = node["os"]["package_manager"] == "apt"
    suite = request.repository_suite or (own.suite if own else "" if apt else "/")
    url = request.repository_url or (own.url if own else "")
    if not url or not suite:
        return None
    if own is None:
        return amd_data.Archive(url, suite, ("main",) if apt else (), check_metadata=apt)
    return amd_data.Archive(url, suite, own.components, own.check_metadata)


def _repository(
    node: Mapping[str, Any], request: AmdToolkitRequest
) -> tuple[dict[str, Any] | None, Step | None]:
    address, own = _address(node, request), amd_data.archive(node["os"])
    if not request.manage_repository or address is None:
        return None, None
    wanted = {
        "name": request.repository_name,
        "suite": address.suite,
        "components": list(address.components),
        "key_fingerprints": accepted_keys(request.key_fingerprints, KEY_FINGERPRINTS),
        "replaces": [own.url] if own else [],
        "check_metadata": address.check_metadata,
    }
    url = address.url.rstrip("/")
    return plan_entry(node["repositories"], wanted, url, "AMD's container toolkit")


def _cdi(node: Mapping[str, Any], request: AmdToolkitRequest) -> Step | None:
    """Return the step that makes the specification, where devices are other than it has."""
    toolkit = _toolkit(node)
    spec, nodes = toolkit["cdi_spec"] or {}, toolkit["render_nodes"]
    if amd_data.CDI_PATH in toolkit["interrupted"]:
        # The step before restores it.
        return None
    reason = stale(spec.get("nodes"), spec.get("made_for"), nodes) if request.cdi else None
    return Step("cdi", "refresh", amd_data.CDI_KIND, reason) if reason else None


def _fingerprint(node: Mapping[str, Any], request: AmdToolkitRequest) -> str:
    path = amd_data.programs(node["os"]["package_manager"])["runtime"]
    return settings_fingerprint(
        {
            "name": request.docker_runtime_name,
            "cdi": request.docker_cdi,
            "path": path,
            "set_default": request.docker_set_default,
            "restart": request.docker_restart,
        }
    )


def _docker(
    node: Mapping[str, Any], request: AmdToolkitRequest, action: str
) -> tuple[bool, Step | None, tuple[str, ...]]:
    """Return whether Docker's module is called, and the step that the facts show, and notes."""
    runtime, name = node["runtimes"]["docker"], request.docker_runtime_name
    if request.docker == "false":
        return False, None, ()
    if runtime is None:
        asked = request.docker == "true"
        note = "Docker is requested, but not installed. Next step: install it, then run again."
        return False, None, (note,) if asked else ()
    notes = _docker_notes(runtime, request)
    path = amd_data.programs(node["os"]["package_manager"])["runtime"]
    entry = (runtime["runtimes"] or {}).get(name)
    there = entry.get("path") if isinstance(entry, Mapping) else entry
    if entry is None:
        return (
            True,
            Step("docker", "add", f"runtime {name}", "the runtime is not configured"),
            notes,
        )
    if there and there != path:
        return True, Step("docker", "change", f"runtime {name}", f"it runs {there}"), notes
    if request.docker_set_default and runtime["default_runtime"] != name:
        reason = f"default is {runtime['default_runtime']}"
        return True, Step("docker", "default", f"runtime {name}", reason), notes
    converged = (runtime.get("converged") or {}).get(name) == _fingerprint(node, request)
    return action in ("upgrade", "downgrade") or not converged, None, notes


def _docker_notes(runtime: Mapping[str, Any], request: AmdToolkitRequest) -> tuple[str, ...]:
    numbers = package_numbers(runtime["version"] or "")
    if not numbers or numbers[:1] >= amd_data.CDI_SINCE or not request.cdi:
        return ()
    return (
        f"Docker {runtime['version']} has no CDI: use --runtime={request.docker_runtime_name} with "
        "-e AMD_VISIBLE_DEVICES, or Docker 25 or later.",
    )
