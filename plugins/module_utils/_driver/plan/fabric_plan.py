# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of a plan for NVLink: packages, units, files, drift. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..._core.steps import Step
from ..._nvidia.fabric import branch_in_name
from ..components import BRIDGE_MODULE, IMEX_UNIT
from . import config_files
from . import config_texts as texts
from .decision import DecisionInput, Target
from .fabric import (
    component_names,
    component_packages,
    describe_drift,
    drifted_components,
    missing_warning,
    needs,
    services,
)
from .installed import InstalledDriver


@dataclass(frozen=True)
class Components:
    """The NVLink components that a target needs. ``modules``: kernel modules to load at boot."""

    packages: Mapping[str, str | None]
    units: Mapping[str, str]
    files: Mapping[str, str]
    modules: tuple[str, ...]
    warnings: tuple[str, ...]


def components_of(inputs: DecisionInput, target: Target) -> Components:
    """Return the components that the target's source has, and warnings about missing ones."""
    request, source = inputs.request, str(target.source)
    wanted = needs(inputs.node, request)
    found = component_packages(wanted, inputs.system, source, target.branch, target.version)
    units = services(wanted, request, component_names(inputs.system, source, target.branch))
    listed = (
        {config_files.IMEX_NODES: texts.imex_nodes(request.imex_nodes)}
        if IMEX_UNIT in units
        else {}
    )
    said = (wanted.elsewhere, missing_warning(wanted, found.missing, source))
    return Components(
        found.packages,
        units,
        listed,
        (BRIDGE_MODULE,) if wanted.bridged else (),
        tuple(text for text in said if text),
    )


def repaired_components(installed: InstalledDriver) -> dict[str, str | None]:
    """Return the components of another version than the driver, with the driver's version."""
    return dict.fromkeys(_drift(installed), f"{installed.version}*")


def components_to_remove(inputs: DecisionInput, installed: InstalledDriver) -> tuple[str, ...]:
    """Return the components that are named after another branch.

    They conflict with those that the node needs; if it needs none, they stay.
    """
    if not needs(inputs.node, inputs.request).components:
        return ()
    drift = drifted_components(installed.packages, installed.version)
    return tuple(name for name in drift if name not in _drift(installed))


def drift_steps(installed: InstalledDriver, gone: Collection[str]) -> list[Step]:
    """Return the steps for components of other versions.

    :param gone: components that are removed.
    """
    steps = []
    if gone:
        reason = "they are of another branch than the driver"
        steps.append(Step("packages", "remove", ", ".join(gone), reason))
    drift = _drift(installed)
    if drift:
        words = describe_drift(drift, installed.version)
        reason = "what sets up NVLink refuses a driver of another version"
        steps.append(Step("packages", "install", words, reason))
    return steps


def _drift(installed: InstalledDriver) -> dict[str, str]:
    """Return the components of another version that are available in the driver's version."""
    return {
        name: version
        for name, version in drifted_components(installed.packages, installed.version).items()
        if branch_in_name(name) in (None, installed.branch)
    }
