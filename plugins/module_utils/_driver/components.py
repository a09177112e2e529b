# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The units of NVLink components, and the driver's version in the version of their packages. Pure.

Separate from ``plan/fabric.py``, which decides what a node needs: what changes the node needs only
this, and a node compiles each file that is sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .._core.versions import upstream_version

MANAGER_UNIT = "nvidia-fabricmanager"
IMEX_UNIT = "nvidia-imex"
UNITS = (MANAGER_UNIT, IMEX_UNIT)
# Through it the subnet manager reaches NVSwitches of the fourth generation.
BRIDGE_MODULE = "ib_umad"

# Components that have a version of their own have other ones, such as 2025.10.11.
_DRIVER_VERSION = re.compile(r"\d{3}(?:\.\d+){1,2}\Z")


def plain_version(text: str) -> str | None:
    """Return the driver's version in a package's: 580.95.05 of ``3:580.95.05-0ubuntu1``."""
    version = upstream_version(text) or ""
    return version if _DRIVER_VERSION.match(version) else None


def changed_units(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Return the units whose package has changed."""
    both = {unit: (_of_unit(unit, before), _of_unit(unit, after)) for unit in UNITS}
    return tuple(unit for unit, (old, new) in both.items() if old and new and old != new)


def units_of(version: str | None, packages: Mapping[str, str]) -> tuple[str, ...]:
    """Return the units whose package is installed in the driver's version."""
    return tuple(
        unit
        for unit in UNITS
        for versions in [{plain_version(text) for text in _of_unit(unit, packages).values()}]
        if version is not None and versions == {version}
    )


def _of_unit(unit: str, packages: Mapping[str, str]) -> dict[str, str]:
    stem = unit.replace("fabricmanager", "fabric-?manager")
    pattern = re.compile(rf"(?:{stem})(?:-\d{{3}})?\Z")
    return {name: text for name, text in packages.items() if pattern.match(name)}
