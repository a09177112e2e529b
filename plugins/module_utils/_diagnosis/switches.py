# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables with which a role leaves a driver alone: the fix begins with them. Pure.

A command that changes nothing on the host whose finding names it would lead in a circle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from .._core.finding import Finding
from .._hardware.vendors import gpu_vendors
from .data import CAUSES, SWITCH_AND, SWITCH_THEN
from .fixes import find_fix

F = TypeVar("F", bound=Finding)
#: Each variable with its default.
SWITCHES: Mapping[str, bool] = {
    "nvidia_driver_enabled": True,
    "nvidia_driver_load": True,
    "amd_driver_enabled": False,
}
_BY_VENDOR = {"nvidia": "nvidia_driver_enabled", "amd": "amd_driver_enabled"}
_LOAD = "nvidia_driver_load"
# What only loads a driver that is installed.
_LOADS = frozenset({"driver_not_loaded", "module_not_loaded"})
# What the role may mend, so that there is no fix to copy.
_BY_ROLE = frozenset({"gpu_not_bound", "module_not_loaded"})


def switched_off(
    code: str, facts: Mapping[str, Any] | None, switches: Mapping[str, bool], vendor: str = ""
) -> str:
    """Return the variable with which site changes nothing of the finding; empty if there is none.

    :param switches: the values of the host, by name; a variable that is not there is not known.
    :param vendor: that of the finding, which can be AMD on a node of two vendors.
    """
    vendors = gpu_vendors((facts or {}).get("gpus") or ())
    vendor = vendor if vendor in vendors else next(iter(vendors), "nvidia")
    names = [_BY_VENDOR.get(vendor, "")]
    driver = (facts or {}).get("driver") or {}
    if vendor == "nvidia" and code in _LOADS and driver.get("installed"):
        names.append(_LOAD)
    return next((name for name in names if switches.get(name) is False), "")


def _runs(code: str) -> bool:
    """Return whether the role of the driver fixes a finding."""
    row = CAUSES.get(code)
    fix = row.fix if row else ""
    return code in _BY_ROLE or SWITCH_THEN in fix or SWITCH_AND in fix


def with_switch(
    found: F, facts: Mapping[str, Any] | None, switches: Mapping[str, bool], node: str = ""
) -> F:
    """Return a finding whose fix and next step begin with the variable that has to change.

    The variable is the detail ``switch``, by which a step that has it is known.

    :param node: the name of the host's node in the cluster; empty without one.
    """
    if not _runs(found.code):
        return found
    container = ((facts or {}).get("driver") or {}).get("container")
    if container:
        # site refuses the host.
        return _begun(
            replace(found, fix=""), "driver_container", str(container), by_container(str(container))
        )
    if switches and found.fix and _is_of(facts, "intel"):
        # No role of this collection installs its driver.
        return replace(found, fix="")
    name = switched_off(found.code, facts, switches, found.details.get("vendor", ""))
    if not name or _is_of(facts, "intel"):
        return found
    begun = _begun(found, "switch", name, reason(name))
    fix = find_fix(found.code, found.subject, begun.details, node) if found.fix else ""
    return replace(begun, fix=str(fix))


def _begun(found: F, detail: str, value: str, sentence: str) -> F:
    """Return a finding whose step begins with a sentence, unless its details say that it does."""
    if found.details.get(detail) == value:
        return found
    names = {**found.details, detail: value}
    general = sentence.replace("{", "{{").replace("}", "}}")
    template = f"{general} {found.template}" if found.template else ""
    step = f"{sentence} {found.next_step}"
    return replace(found, next_step=step, template=template, details=names)


def reason(name: str) -> str:
    """Return what a variable that is false means, and what to do, as sentences."""
    if name == _LOAD:
        return f"{name} is false for this host: set it to true, or reboot."
    return (
        f"The driver is not managed ({name}: false): set it to true, or change the driver by what "
        "manages it."
    )


def by_container(sign: str) -> str:
    """Return what a container that brings the driver means, and what to do, as a sentence.

    :param sign: what shows it.
    """
    return (
        "A driver container manages the driver, such as the GPU operator's: change it there "
        f"({sign})."
    )


def _is_of(facts: Mapping[str, Any] | None, vendor: str) -> bool:
    return gpu_vendors((facts or {}).get("gpus") or ()) == [vendor]
