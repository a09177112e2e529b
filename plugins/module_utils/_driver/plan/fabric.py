# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVLink beyond one board: components that a node needs besides its driver, and their names. Pure.

Read 2026-11-21. Sources: NVIDIA's fabric manager user guide (releases 560 and 2.3), IMEX guide and
MNNVL user guide; install scripts of NVIDIA's gpu-driver-container; release notes of Amazon's
AL2023 images (names of the RPM packages, 570 and 580); issues 544, 356 and 2781 of
NVIDIA/gpu-operator, 717 and 893 of siderolabs/extensions, 453 of NVIDIA/cloud-native-docs. What is
marked (u) was found in no document.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ..._nvidia.fabric import BRIDGED_BOARDS, RACKS, is_component
from ..components import IMEX_UNIT, MANAGER_UNIT, plain_version
from ..types import Request, branch_of
from .sources import DISTRO, NVIDIA, RUNFILE, System

MANAGER, NSCQ, NVLSM, NVSDM, IMEX = "manager", "nscq", "nvlsm", "nvsdm", "imex"

_BRANCHED = {
    MANAGER: "nvidia-fabricmanager-{branch}",
    NSCQ: "libnvidia-nscq-{branch}",
    IMEX: "nvidia-imex-{branch}",
    NVSDM: "libnvsdm-{branch}",
    NVLSM: "nvlsm",
}
_PLAIN = {
    MANAGER: "nvidia-fabricmanager",
    NSCQ: "libnvidia-nscq",
    IMEX: "nvidia-imex",
    NVSDM: "libnvsdm",
    NVLSM: "nvlsm",
}
# Names of the components by source and first branch. A component that a source does not carry is
# missing.
_NAMES: dict[str, tuple[tuple[int, Mapping[str, str]], ...]] = {
    # Package indices of 22.04, 24.04 and 26.04, 2026-11-21: nvlsm and libnvsdm are not there.
    "ubuntu": ((0, {part: _BRANCHED[part] for part in (MANAGER, NSCQ, IMEX)}),),
    # From 580 on the names with a branch are virtual: gpu-driver-container, pull request 451.
    "apt": ((0, _BRANCHED), (580, _PLAIN)),
    "rpm": ((0, {**_BRANCHED, MANAGER: "nvidia-fabric-manager"}), (580, _PLAIN)),
}
# It has a version of its own and works with every driver.
_OWN_VERSION = (NVLSM,)
# A library for monitoring, which not all releases and architectures have.
_OPTIONAL = (NVSDM,)
# The fabric manager's start script calls it on a node with bridges.
_BRIDGE_TOOLS = "infiniband-diags"


@dataclass(frozen=True)
class Needs:
    """The components that a node needs besides its driver.

    ``why``: the reason. ``bridged``: whether its switches are behind bridges. ``elsewhere``: why a
    node with such GPUs needs nothing itself; otherwise empty.
    """

    components: tuple[str, ...] = ()
    why: str = ""
    bridged: bool = False
    elsewhere: str = ""

    @property
    def manager(self) -> bool:
        return MANAGER in self.components

    @property
    def imex(self) -> bool:
        return IMEX in self.components


@dataclass(frozen=True)
class ComponentPackages:
    """The components as packages of a source: version by name, and those it does not carry."""

    packages: Mapping[str, str | None]
    optional: Mapping[str, str | None]
    missing: tuple[str, ...] = ()


def needs(node: Mapping[str, Any], request: Request | None = None) -> Needs:
    """Return the components that the node needs by its switches, GPUs and the request."""
    request = request or Request()
    gpus = [
        gpu
        for gpu in node["gpus"]
        if gpu["vendor"] == "nvidia" and not gpu["virtual_function"] and not gpu["vgpu"]["guest"]
    ]
    found = _manager(node, gpus, request)
    rack = next((RACKS[gpu["device_id"]] for gpu in gpus if gpu["device_id"] in RACKS), "")
    if request.imex == "false" or not (rack or request.imex == "true"):
        return found
    why = f"its GPUs are those of a {rack}" if rack else "nvidia_driver_imex is true"
    return Needs(
        (*found.components, IMEX), "; ".join(filter(None, (found.why, why))), found.bridged, ""
    )


def _manager(
    node: Mapping[str, Any], gpus: Collection[Mapping[str, Any]], request: Request
) -> Needs:
    ids = [gpu["device_id"] for gpu in gpus]
    board = next((BRIDGED_BOARDS[one] for one in ids if one in BRIDGED_BOARDS), "")
    bridged = (MANAGER, NVLSM, NVSDM)
    switches = node["nvswitches"]
    if request.fabric == "false" or not gpus:
        return Needs()
    if request.fabric == "true" and not switches:
        return Needs(
            bridged if board else (MANAGER, NSCQ), "nvidia_driver_fabric is true", bool(board)
        )
    if switches:
        count = f"{switches} NVSwitch{'' if switches == 1 else 'es'}"
        return Needs((MANAGER, NSCQ), f"{count} {'is' if switches == 1 else 'are'} in this node")
    if not board:
        return Needs()
    # Bridges cannot be counted without root: then the GPUs alone decide (u).
    bridges = node["nvswitch_bridges"]
    if bridges == 0:
        return Needs(
            elsewhere=f"Its GPUs are those of a {board}, and none of the bridges to its "
            "NVSwitches is in this node: its fabric is looked after elsewhere, as for a virtual "
            "machine. If that is not so: nvidia_driver_fabric: true."
        )
    why = f"its GPUs are those of a {board}"
    if bridges:
        why += f", and {bridges} bridges to NVSwitches are in this node"
    return Needs(bridged, why, bridged=True)


def component_names(system: System, source: str, branch: str) -> Mapping[str, str]:
    """Return the name of each component that the source carries."""
    if source == RUNFILE or not branch.isdigit():
        return {}
    if source == DISTRO:
        rows = _NAMES.get(system.id, ())
    else:
        rows = _NAMES["apt" if system.manager == "apt" else "rpm"] if source == NVIDIA else ()
    names: Mapping[str, str] = {}
    for first, row in rows:
        if int(branch) >= first:
            names = row
    return {part: name.format(branch=branch) for part, name in names.items()}


def component_packages(
    wanted: Needs, system: System, source: str, branch: str, version: str | None
) -> ComponentPackages:
    """Return the packages of the components. Without a version it is the newest of the branch."""
    text = f"{version}*" if version else f"{branch}.*"
    names = component_names(system, source, branch)
    packages: dict[str, str | None] = {}
    optional: dict[str, str | None] = {}
    for part in wanted.components:
        if part in names:
            into = optional if part in _OPTIONAL else packages
            into[names[part]] = None if part in _OWN_VERSION else text
    if wanted.bridged:
        optional[_BRIDGE_TOOLS] = None
    missing = tuple(
        _PLAIN[part] for part in wanted.components if part not in names and part not in _OPTIONAL
    )
    return ComponentPackages(packages, optional, missing)


def carries(wanted: Needs, system: System, source: str, branch: str) -> bool:
    """Return whether the source has all components that are needed."""
    return not component_packages(wanted, system, source, branch, None).missing


def missing_warning(wanted: Needs, missing: Collection[str], source: str) -> str | None:
    """Return a warning about components that the driver's source does not carry."""
    if not missing:
        return None
    place = {
        DISTRO: "the distribution's archive does not carry",
        RUNFILE: "a runfile does not bring",
    }.get(source, "the driver's source does not carry")
    way = (
        "install them manually in the driver's exact version"
        if source == RUNFILE
        else "nvidia_driver_source: nvidia (with nvidia_driver_replace_source: true where another "
        "driver is there), or install them manually in the driver's exact version"
    )
    return (
        f"This node needs {' and '.join(missing)} ({wanted.why}), which {place}: without it "
        f"CUDA says error 802, system not yet initialized, or sees no NVLink. Next step: {way}."
    )


def services(wanted: Needs, request: Request, names: Mapping[str, str]) -> dict[str, str]:
    """Return the units to be enabled, of those that the driver's source carries.

    IMEX is enabled only if the nodes of its domain are given: in Kubernetes NVIDIA's DRA driver
    starts it for each job and needs the unit to be off.
    """
    found = {}
    if wanted.manager and MANAGER in names:
        found[MANAGER_UNIT] = "enabled"
    if wanted.imex and IMEX in names and request.imex_nodes:
        found[IMEX_UNIT] = "enabled"
    return found


def drifted_components(packages: Mapping[str, str], version: str) -> dict[str, str]:
    """Return the version of each installed component that is not the driver's, by name.

    :param packages: the driver's installed packages, with their versions.
    :param version: the driver's version, where its own packages do not tell.
    """
    core = {
        plain_version(text)
        for name, text in packages.items()
        if name.startswith(("nvidia-headless", "nvidia-utils", "libnvidia-compute", "nvidia-dkms"))
        or name.startswith(("nvidia-driver-cuda", "libcuda1", "nvidia-kernel-source"))
    } - {None}
    known = core or {version}
    return {
        name: found
        for name, text in sorted(packages.items())
        if is_component(name)
        for found in [plain_version(text)]
        if found is not None and found not in known
    }


def describe_drift(drift: Mapping[str, str], version: str) -> str:
    shown = ", ".join(f"{name} {found}" for name, found in drift.items())
    return f"{shown} next to driver {version}"


def unmanaged_warning(wanted: Needs, node: Mapping[str, Any], version: str) -> str | None:
    """Return a warning about the fabric manager of a driver that is not managed."""
    if not wanted.manager:
        return None
    driver = node["driver"]
    packages = driver["packages"]
    drift = drifted_components(packages, version)
    state = driver["services"].get(MANAGER_UNIT)
    if drift:
        seen = describe_drift(drift, version)
    elif state not in (None, "active", "activating"):
        seen = f"{MANAGER_UNIT} is {state}"
    elif not any(name.startswith(("nvidia-fabricm", "nvidia-fabric-m")) for name in packages) and (
        state is None
    ):
        seen = f"{MANAGER_UNIT} is not there"
    else:
        return None
    branch = branch_of(version)
    return (
        f"This node needs the fabric manager in the driver's exact version, running "
        f"({wanted.why}), and {seen}: CUDA programs fail with error 802. Next step: let the "
        f'driver be managed (nvidia_driver_branch: "{branch}").'
    )
