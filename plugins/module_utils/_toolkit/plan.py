# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide what a node's container toolkit and runtimes need, with a reason for each step. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .._core.errors import InputError, Refusal
from .._core.failure import parts
from .._core.printable import printable
from .._core.steps import Step
from .._core.versions import package_numbers
from .._crio.plan import RUNTIMES_SETTING
from .._distro.data import best_effort
from .._distro.images import RUNTIMES, TOOLKIT, immutable, loses_settings, system_title
from .._distro.support import unsupported
from .._distro.upstream import pinned_before
from .._nvidia.toolkit import (
    CDI_REFRESH_SINCE,
    FAMILIES,
    KEY_FINGERPRINTS,
    OBSOLETE_PACKAGES,
    PACKAGES,
    PINNED_VERSION,
    Family,
)
from .._nvidia.toolkit_paths import CDI_SERVICE_PATH
from .._repository.entry import accepted_keys, check_kind, name_refusal, plan_entry
from .._runtime.toml_settings import check as check_settings
from .cdi_readers import reader_notes
from .runtimes import (
    containerd_refusal,
    converged_runtimes,
    crio_refusal,
    docker_restart,
    fingerprints,
    no_runtime,
    plan_containerd,
    plan_crio,
    plan_docker,
    toolkit_settings,
)
from .settings import faults, release_of, unknown
from .types import Request

_SETTINGS = "nvidia_container_toolkit_settings"


@dataclass(frozen=True)
class ToolkitPlan:
    """The plan of one node. ``action`` is none, install, upgrade, downgrade or refuse."""

    action: str
    version: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    hold: bool = True
    obsolete: tuple[str, ...] = ()
    change_packages: bool = False
    repository: Mapping[str, Any] | None = None
    change_config: bool = False
    # Whether the packages create the toolkit's configuration, which they leave when removed.
    config_made: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    cdi: Mapping[str, Any] | None = None
    containerd: bool = False
    docker: bool = False
    crio: bool = False
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    converged: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    reasons: tuple[str, ...] = ()
    # What is refused, with cause, evidence and next step of each.
    refusals: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        data = asdict(self)
        for name in ("obsolete", "converged", "reasons", "refusals", "warnings", "steps"):
            data[name] = list(data[name])
        for name in ("reasons", "warnings"):
            data[name] = [printable(text) for text in data[name]]
        return data


def plan_toolkit(node: Mapping[str, Any], request: Request) -> ToolkitPlan:
    """Return what has to be done so that the node's toolkit and runtimes are as requested.

    :param node: the facts ``gpu_node``.
    """
    if not any(gpu["vendor"] == "nvidia" for gpu in node["gpus"]):
        return ToolkitPlan("none", reasons=("No NVIDIA GPU is in this node: nothing to do.",))
    image = immutable(node["os"], TOOLKIT)
    if early := _early(node, request, image):
        return early
    family = FAMILIES[node["os"]["package_manager"]]
    version, why_version = _version(node, request, family)
    if refusals := _settings_refusals(node, request, version):
        return _refused(*refusals)
    action, packages, package_steps = _packages(node, request, version, why_version)
    obsolete, obsolete_step = _obsolete(node)
    if image and (action != "none" or obsolete):
        return _refused(image)
    package_steps = () if image else package_steps  # What an image has is kept, and not held.
    repository, repository_step = (None, None) if image else _repository(node, request, family)
    settings, why_settings = toolkit_settings(
        node, request, bool(node["runtimes"]["crio"]) and request.crio != "false"
    )
    config_steps = _config_steps(node, settings, why_settings)
    cdi, cdi_step, cdi_note = _cdi(node, request, version)
    changes = bool(package_steps or obsolete)
    runtimes = _runtimes(node, request, action, changes or bool(config_steps))
    software = (repository_step, obsolete_step, *package_steps)
    steps = (*software, *config_steps, cdi_step, *runtimes.steps)
    planned = tuple(step for step in steps if step is not None)
    if planned and (lost := loses_settings(node["os"], RUNTIMES)):
        return _refused(lost)
    notes = (
        *(_about_system(node["os"]) if changes or repository_step else ()),
        *(f"{_SETTINGS}: {text}" for text in unknown(request.settings, release_of(version))),
        *(cdi_note, *(reader_notes(node, version) if request.cdi else ())),
        *(*runtimes.notes, *no_runtime(node)),
    )
    return ToolkitPlan(
        action=action,
        version=version,
        packages=packages,
        hold=request.hold,
        obsolete=obsolete,
        change_packages=changes,
        repository=repository,
        change_config=bool(config_steps),
        config_made=action == "install" and _toolkit(node)["config"] is None,
        settings=settings,
        cdi=cdi,
        containerd=runtimes.containerd,
        docker=runtimes.docker,
        crio=runtimes.crio,
        fingerprints=fingerprints(request),
        converged=runtimes.converged,
        steps=planned,
        reasons=tuple(f"{step.step}: {step.reason}" for step in planned)
        or (f"Toolkit {version} and the runtimes are as requested.",),
        warnings=tuple(note for note in notes if note),
    )


def _early(node: Mapping[str, Any], request: Request, image: Refusal | None) -> ToolkitPlan | None:
    """Return the plan of a node whose system decides it; None if it does not."""
    if image and node["os"]["package_manager"] not in FAMILIES:
        return _plan_image(node, request, image)
    refusal = (
        _refusal(node, request) or containerd_refusal(node, request) or crio_refusal(node, request)
    )
    return _refused(refusal) if refusal else None


def _about_system(system: Mapping[str, Any]) -> tuple[str, str]:
    return best_effort(system), pinned_before(system)


def _plan_image(node: Mapping[str, Any], request: Request, image: Refusal) -> ToolkitPlan:
    """Return the plan of an image without a package manager: what it has is kept as it is."""
    has = [
        engine
        for engine in ("containerd", "docker", "crio")
        if request.runtime_name in ((node["runtimes"][engine] or {}).get("handlers") or {})
    ]
    toolkit = _toolkit(node)
    if not (has or toolkit["version"] or toolkit["config"] is not None or toolkit["cdi_spec"]):
        return _refused(image)
    where = f"{', '.join(has)} have it" if has else "its configuration is on the node"
    reason = f"The container toolkit belongs to the image ({where}): kept as it is."
    note = (
        f"{system_title(node['os'])} is an image: its runtimes are left as they are."
        if has
        else f"The handler {request.runtime_name} is in no runtime that was found. "
        f"Next step: {image.next_step}"
    )
    return ToolkitPlan("none", reasons=(reason,), warnings=(note,))


def _refused(*refusals: Refusal) -> ToolkitPlan:
    reasons = tuple(refusal.line for refusal in refusals)
    return ToolkitPlan("refuse", reasons=reasons, refusals=tuple(map(parts, refusals)))


@dataclass(frozen=True)
class _Runtimes:
    """Which modules of the runtimes are called, and which need not be."""

    containerd: bool
    docker: bool
    crio: bool
    converged: tuple[str, ...]
    steps: tuple[Step | None, ...]
    notes: tuple[str, ...]


def _runtimes(
    node: Mapping[str, Any], request: Request, action: str, changes_toolkit: bool
) -> _Runtimes:
    # The modules of the runtimes find out what a change of the toolkit means to them.
    converged = () if changes_toolkit else converged_runtimes(node, request)
    containerd, containerd_step, containerd_notes = plan_containerd(
        node, request, always="containerd" not in converged
    )
    docker, docker_step, docker_notes = plan_docker(node, request, always="docker" not in converged)
    crio, crio_step, crio_notes = plan_crio(node, request)
    called = {"containerd": containerd, "docker": docker}
    return _Runtimes(
        containerd=containerd,
        docker=docker,
        crio=crio,
        converged=tuple(name for name in called if name in converged and not called[name]),
        steps=(containerd_step, docker_step, docker_restart(request, action, docker), crio_step),
        notes=(*containerd_notes, *docker_notes, *crio_notes),
    )


def _obsolete(node: Mapping[str, Any]) -> tuple[tuple[str, ...], Step | None]:
    """Return the installed packages that the toolkit replaces, and the step that removes them."""
    installed = _toolkit(node)["obsolete_packages"] or {}
    names = tuple(name for name in OBSOLETE_PACKAGES if name in installed)
    reason = "the toolkit replaces it, and both would write daemon.json"
    return names, Step("packages", "remove", ", ".join(names), reason) if names else None


def _toolkit(node: Mapping[str, Any]) -> Mapping[str, Any]:
    toolkit: Mapping[str, Any] = node["container_toolkit"]
    return toolkit


def _refusal(node: Mapping[str, Any], request: Request) -> Refusal | None:
    system = node["os"]
    variable = "nvidia_container_toolkit_repository"
    refusal = name_refusal(request.manage_repository, request.repository_name, variable)
    if refusal:
        return refusal
    if request.manage_repository:
        try:
            check_kind(request.repository_url, system["package_manager"], variable)
        except Refusal as other:
            return other
    if system["package_manager"] not in FAMILIES:
        return Refusal(
            f"{system['id']} {system['version']} installs packages with "
            f"{system['package_manager'] or 'a tool that is not known'}; this release knows "
            f"{', '.join(sorted(FAMILIES))}.",
            "install the container toolkit manually and use the modules containerd_runtime, "
            "crio_runtime and docker_runtime, which work there.",
        )
    old = unsupported(system, request.controller)
    if old:
        return old
    family = FAMILIES[system["package_manager"]]
    if system["arch"] not in family.architectures:
        return Refusal(
            f"NVIDIA publishes no container toolkit for {system['arch']}; it does for "
            f"{', '.join(family.architectures)}."
        )
    return None


def _settings_refusals(
    node: Mapping[str, Any], request: Request, version: str
) -> tuple[Refusal, ...]:
    """Return what is wrong with the requested settings."""
    try:
        check_settings(request.settings)
    except InputError as error:
        return (Refusal(f"{_SETTINGS}: {error.cause}", error.next_step),)
    present = _toolkit(node)["config"] or {}
    stops = " No container that NVIDIA's runtime starts would run with it."
    return tuple(
        Refusal(
            f"{_SETTINGS}: {fault.message}." + (stops if fault.stops else ""),
            "correct the value, or leave it out.",
        )
        for fault in faults(request.settings, release_of(version), present)
    )


def _version(node: Mapping[str, Any], request: Request, family: Family) -> tuple[str, str]:
    installed = _toolkit(node)["version"]
    if request.version:
        full = request.version if "-" in request.version else f"{request.version}-{family.revision}"
        return full, "requested"
    if installed:
        return installed, "installed already, and no version was requested"
    return f"{PINNED_VERSION}-{family.revision}", "the version that this release pins"


def _packages(
    node: Mapping[str, Any], request: Request, version: str, why: str
) -> tuple[str, dict[str, str], tuple[Step, ...]]:
    present: Mapping[str, str] = _toolkit(node)["packages"] or {}
    # An installed toolkit is kept as it is: before the split into four it had fewer packages.
    kept = not request.version and _toolkit(node)["version"] is not None
    names = [name for name in PACKAGES if name in present or not kept]
    packages = dict.fromkeys(names, version)
    differing = [name for name in names if present.get(name) != version]
    if differing:
        old = sorted({present[name] for name in differing if name in present})
        if not old:
            action, reason = "install", f"not installed; {version} is {why}"
        else:
            older = all(package_numbers(text) < package_numbers(version) for text in old)
            action = "upgrade" if older else "downgrade"
            reason = f"{', '.join(old)} is installed; {version} is {why}"
        return (
            action,
            packages,
            (Step("packages", action, f"toolkit {version}", reason),),
        )
    held = _toolkit(node)["held"]
    if held is not None and bool(held) != request.hold:
        verb = "hold" if request.hold else "unhold"
        reason = (
            "an unattended upgrade could replace a part of the set"
            if request.hold
            else "nvidia_container_toolkit_hold is false"
        )
        return "none", packages, (Step("packages", verb, f"toolkit {version}", reason),)
    return "none", packages, ()


def _repository(
    node: Mapping[str, Any], request: Request, family: Family
) -> tuple[dict[str, Any] | None, Step | None]:
    if not request.manage_repository:
        return None, None
    url = (request.repository_url or family.repository_url).rstrip("/")
    wanted = {
        "name": request.repository_name,
        "key_fingerprints": accepted_keys(request.key_fingerprints, KEY_FINGERPRINTS),
        "replaces": list(family.earlier_urls),
        "check_packages": family.signed_packages,
    }
    return plan_entry(node["repositories"], wanted, url, "the container toolkit")


def _config_steps(
    node: Mapping[str, Any], settings: Mapping[str, Any], why: str | None
) -> tuple[Step, ...]:
    present: Mapping[str, Any] = _toolkit(node)["config"] or {}
    differing = sorted(key for key, value in settings.items() if present.get(key) != value)
    if not differing:
        return ()
    seen = ", ".join(f"{key} is {present.get(key, 'not set')}" for key in differing)
    if why and RUNTIMES_SETTING in differing:
        seen += f"; {why}"
    return (Step("config", "set", ", ".join(differing), seen),)


def _cdi(
    node: Mapping[str, Any], request: Request, version: str
) -> tuple[dict[str, Any] | None, Step | None, str | None]:
    driver = request.driver_version or node["driver"]["loaded"]
    if not request.cdi:
        return None, None, None
    if not driver:
        return (
            None,
            None,
            "No NVIDIA driver is loaded: the CDI specification is generated once it is loaded.",
        )
    spec = _toolkit(node)["cdi_spec"]
    if spec and spec["driver_version"] == driver:
        return None, None, None
    reason = (
        f"no CDI specification exists for driver {driver}"
        if not spec
        else f"it was made for driver {spec['driver_version']}, loaded is {driver}"
    )
    refreshed_by_service = package_numbers(version)[:2] >= CDI_REFRESH_SINCE
    return (
        {
            "driver_version": driver,
            "previous_driver_version": (spec["driver_version"] or "") if spec else "",
            # The service has start conditions, which the module reads on the node.
            "method": "auto" if refreshed_by_service else "generate",
            "service_expected": refreshed_by_service,
            "path": spec["path"] if spec and spec["path"] != CDI_SERVICE_PATH else None,
        },
        Step("cdi", "refresh", f"driver {driver}", reason),
        None,
    )
