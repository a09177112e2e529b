# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a plan has beside the driver for NVLink: packages, units, files, what drifted. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..._core.steps import Step
from ..._nvidia.fabric import branch_in_name
from . import config_files as texts
from .decision import Case, Target
from .fabric import (
    BRIDGE_MODULE,
    IMEX_UNIT,
    drift_words,
    drifted,
    member_names,
    members,
    missing_warning,
    needs,
    services,
)
from .installed import Present


@dataclass(frozen=True)
class Parts:
    """The parts that a target needs on its node. ``modules`` are loaded at boot beside its own."""

    packages: Mapping[str, str | None]
    units: Mapping[str, str]
    files: Mapping[str, str]
    modules: tuple[str, ...]
    warnings: tuple[str, ...]


def parts_of(case: Case, target: Target) -> Parts:
    """Return what the target's source has for the node's NVLink, and what it lacks."""
    wish, source = case.wish, str(target.source)
    wanted = needs(case.node, wish)
    found = members(wanted, case.system, source, target.branch, target.version)
    units = services(wanted, wish, member_names(case.system, source, target.branch))
    listed = {texts.IMEX_NODES: texts.imex_nodes(wish.imex_nodes)} if IMEX_UNIT in units else {}
    said = (wanted.elsewhere, missing_warning(wanted, found.missing, source))
    return Parts(
        found.packages,
        units,
        listed,
        (BRIDGE_MODULE,) if wanted.bridged else (),
        tuple(text for text in said if text),
    )


def mended(present: Present) -> dict[str, str | None]:
    """Return the parts of another version than the driver, with the one that they shall have."""
    return dict.fromkeys(_drift(present), f"{present.version}*")


def foreign(case: Case, present: Present) -> tuple[str, ...]:
    """Return the parts that are named after another branch, which has no such version.

    They are in the way of those that the node needs; where it needs none they stay as they are.
    """
    if not needs(case.node, case.wish).parts:
        return ()
    drift = drifted(present.packages, present.version)
    return tuple(name for name in drift if name not in _drift(present))


def drift_steps(present: Present, gone: Collection[str]) -> list[Step]:
    """Return what has to be done about parts of other versions; ``gone`` cannot stay."""
    steps = []
    if gone:
        reason = "they are of another branch than the driver"
        steps.append(Step("packages", "remove", ", ".join(gone), reason))
    drift = _drift(present)
    if drift:
        words = drift_words(drift, present.version)
        reason = "what sets up NVLink refuses a driver of another version"
        steps.append(Step("packages", "install", words, reason))
    return steps


def _drift(present: Present) -> dict[str, str]:
    """Return the parts of another version than the driver that can have the driver's."""
    return {
        name: version
        for name, version in drifted(present.packages, present.version).items()
        if branch_in_name(name) in (None, present.branch)
    }
