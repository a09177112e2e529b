# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The calls of package_set that install, remove and restore a driver's packages. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..._nvidia.driver_branches import PINNED_FROM
from ..types import Plan

# The package sets' names.
SET = "nvidia-driver"
PINNING_SET = "nvidia-driver-pinning"
_PINNING = "nvidia-driver-pinning-"


def split_pins(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return obsolete packages as (pins, others): a pin is removed before what it pins changes."""
    pins = [name for name in names if name.startswith(_PINNING)]
    return pins, [name for name in names if name not in pins]


def install_calls(plan: Plan) -> list[dict[str, Any]]:
    """Return the arguments of each call of package_set that the plan needs, in order."""
    if plan.action == "refuse":
        return []
    pins, others = split_pins(plan.obsolete)
    # In check mode the role has not added its repository yet.
    expected = plan.repository is not None
    tasks: list[dict[str, Any]] = []
    if plan.pinning or pins:
        # Older names contain the branch, and a mirror can be older than the pins.
        needed = plan.branch is None or int(plan.branch) >= PINNED_FROM
        tasks.append(
            {
                "name": PINNING_SET,
                "packages": dict(plan.pinning) if needed else {},
                **({} if needed else {"optional": dict(plan.pinning)}),
                "obsolete": [name for name in pins if name not in plan.pinning],
                "hold": plan.hold,
                "repository_expected": expected,
            }
        )
    if plan.packages or plan.optional_packages or others:
        task: dict[str, Any] = {
            "name": SET,
            "packages": dict(plan.packages),
            "obsolete": others,
            "hold": plan.hold,
            "repository_expected": expected,
            "background": True,
        }
        if plan.streams:
            task["module_streams"] = dict(plan.streams)
        if plan.optional_packages:
            task["optional"] = dict(plan.optional_packages)
        if plan.lock and plan.lock.get("patterns"):
            # The pins are a package set of their own, which comes first.
            task["lock"] = {**plan.lock, "patterns": [*plan.lock["patterns"], f"!{_PINNING}*"]}
        tasks.append(task)
    return tasks


def restore_calls() -> list[dict[str, Any]]:
    """Return the calls of package_set that restore the packages from before the first change."""
    return [
        {"name": SET, "state": "absent", "background": True},
        {"name": PINNING_SET, "state": "absent"},
    ]


def removal_calls(plan: Plan) -> list[dict[str, Any]]:
    """Return the call of package_set that removes an unmanaged driver on request."""
    if not plan.obsolete:
        return []
    task = {"name": SET, "packages": {}, "obsolete": list(plan.obsolete), "hold": False}
    return [{**task, "background": True}]


def rollback_calls(
    before: Mapping[str, Any] | None,
    there: Sequence[str],
    *,
    managed: bool = False,
    streams: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Return the calls of package_set that restore the packages from before this change.

    :param before: the driver before the change, in the format of the record.
    :param there: the driver's packages on the node, in any state.
    :param managed: whether that driver was managed: build tools of a runfile's modules stay then.
    :param streams: the streams of dnf's modules that its packages come from.
    """
    old = dict(before["packages"]) if before else {}
    if not old and managed and before and before["source"] == "runfile":
        found = zip((PINNING_SET, SET), split_pins([name for name in there if ":" not in name]))
        return [
            {"name": name, "packages": {}, "obsolete": names, "hold": False, "background": True}
            for name, names in found
            if names
        ]
    if not old:
        return restore_calls()
    pins = {name: version for name, version in old.items() if name.startswith(_PINNING)}
    others = {name: version for name, version in old.items() if name not in pins}
    new_pins, new = split_pins([name for name in there if name not in old and ":" not in name])
    hold = bool(before and before["held"])
    task: dict[str, Any] = {"name": SET, "packages": others, "obsolete": new, "hold": hold}
    if streams:
        task["module_streams"] = dict(streams)
    tasks = [{**task, "background": True}]
    if pins or new_pins:
        # Last: the new packages can be half configured, and what does not replace them would try
        # to configure them again. The versions of all packages are given, so no pin counts.
        tasks.append({"name": PINNING_SET, "packages": pins, "obsolete": new_pins, "hold": hold})
    return tasks
