# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The packages of CUDA toolkits and libraries. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._core.errors import Refusal
from .._core.steps import Step
from .._core.versions import upstream_numbers
from .._nvidia.compatibility import minor, parse_cuda
from .._nvidia.cuda_releases import DISTRO_PACKAGE, NCCL_PACKAGES
from .._packages.types import fits
from .types import DISTRO, PACKAGE, PlannedVersion, Request

_CUDNN = re.compile(r"(?:lib)?cudnn\d+-(?:\w+-)?cuda-\d+")
_NCCL = re.compile(r"\d+(?:\.\d+){0,2}(?:-\d+\+cuda\d+\.\d+)?\Z")


def packages_of(
    request: Request, planned: Sequence[PlannedVersion], default: PlannedVersion | None, kind: str
) -> dict[str, str | None]:
    """Return the version pattern of each package; None is any version.

    :param kind: deb or rpm.
    """
    packages: dict[str, str | None] = {}
    for one in planned:
        if one.source == DISTRO:
            packages[DISTRO_PACKAGE] = None
        elif one.source == PACKAGE:
            # A version with an update number: any packaging revision.
            exact = len(parse_cuda(one.version)) > 2
            packages[one.name] = f"{one.version}-*" if exact else None
    if request.libraries:
        packages.update(_library_packages(request, planned, default, kind))
    return dict(sorted(packages.items()))


def _library_packages(
    request: Request, planned: Sequence[PlannedVersion], default: PlannedVersion | None, kind: str
) -> dict[str, str | None]:
    base = default or planned[0]
    if base.source == DISTRO:
        raise Refusal(
            "libraries come from NVIDIA's repository, which source: distro does not use.",
            "source: package, or install the distribution's own by package_set.",
        )
    cuda = minor(base.version)
    packages: dict[str, str | None] = {}
    if "cudnn" in request.libraries:
        version = str(request.libraries["cudnn"] or "")
        given = upstream_numbers(version)
        if version and (not given or given[0] < 9):
            raise Refusal(
                f"libraries: cudnn {version!r} is not a version from 9 on, whose packages are "
                "known.",
                "leave it empty for the newest of 9, or install libcudnn8 by package_set.",
            )
        major = given[0] if given else 9
        name = f"cudnn{major}-cuda-{cuda.partition('.')[0]}"
        packages[name] = f"{version}*" if len(given) > 1 else None
    if "nccl" in request.libraries:
        version = str(request.libraries["nccl"] or "")
        if version and not _NCCL.match(version):
            raise Refusal(
                f"libraries: nccl {version!r} is not a version.",
                "give '2.28.3' or '2.28', "
                f"which is taken for CUDA {cuda}; in full '2.28.3-1+cuda{cuda}', where NVIDIA "
                f"builds it for another {cuda.partition('.')[0]}.x; or '' for the newest.",
            )
        # One package name for all CUDA versions: the package version names the CUDA version.
        full = version if "+cuda" in version else f"{version}*+cuda{cuda}"
        packages.update(dict.fromkeys(NCCL_PACKAGES[kind], full))
    return packages


def obsolete(node: Mapping[str, Any], packages: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return cuDNN packages for another CUDA version, which conflict with the requested ones.

    Only held packages count, as this collection holds its own. Others are left to the admin.
    """
    suffix = next((name.partition("-")[2] for name in packages if _CUDNN.match(name)), None)
    installed: Mapping[str, str] = node["cuda"]["packages"]
    if suffix is None or all(name in installed for name in packages if _CUDNN.match(name)):
        return ()
    unheld = set(node["cuda"].get("unheld") or ())
    return tuple(
        name
        for name in sorted(installed)
        if _CUDNN.match(name) and not name.endswith(f"-{suffix}") and name not in unheld
    )


def lock(
    request: Request, planned: Sequence[PlannedVersion], packages: Mapping[str, str | None]
) -> dict[str, Any]:
    """Return the names and patterns of the packages to hold, dependencies included."""
    if not request.hold:
        return {"patterns": [], "version": None}
    patterns = list(packages)
    for one in planned:
        if one.source == PACKAGE:
            suffix = minor(one.version).replace(".", "-")
            patterns.extend((f"cuda-*-{suffix}", f"lib*-{suffix}"))
    patterns.extend(
        f"lib{name.partition('-')[0]}*-{name.partition('-')[2]}"
        for name in packages
        if name.startswith("cudnn")
    )
    return {"patterns": patterns, "version": None}


def steps_of(
    node: Mapping[str, Any],
    request: Request,
    planned: Sequence[PlannedVersion],
    packages: Mapping[str, str | None],
) -> list[Step]:
    """Return the steps for the packages."""
    installed: Mapping[str, str] = node["cuda"]["packages"]
    steps = []
    handled: set[str] = set()
    for one in planned:
        if one.source not in (PACKAGE, DISTRO):
            continue
        name = DISTRO_PACKAGE if one.source == DISTRO else one.name
        handled.add(name)
        if one.action != "none":
            steps.append(Step("packages", one.action, f"CUDA {one.version} ({name})", one.reason))
    for name, version in packages.items():
        if name in handled:
            continue
        current = installed.get(name)
        if current is None:
            replaced = obsolete(node, packages) if _CUDNN.match(name) else ()
            reason = f"it replaces {', '.join(replaced)}" if replaced else "it is not there"
            steps.append(Step("packages", "install", name, reason))
        elif not fits(version, current):
            steps.append(Step("packages", "change", f"{name} {version}", f"{current} is installed"))
    unheld = set(node["cuda"].get("unheld") or ())
    differing = [
        name for name in packages if name in installed and (name in unheld) == request.hold
    ]
    if differing and not steps:
        verb = "hold" if request.hold else "unhold"
        reason = "an upgrade could replace a part of the set" if request.hold else "hold is false"
        steps.append(Step("packages", verb, ", ".join(differing), reason))
    return steps
