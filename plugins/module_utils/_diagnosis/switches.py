# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables with which a role leaves a driver alone: the fix begins with them. Pure.

A command that changes nothing on the host whose finding names it would lead in a circle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._hardware.vendors import gpu_vendors
from .data import CAUSES, DRIVER_RUN

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
_BY_CONTAINER = "A driver container manages the driver, such as the GPU operator's: change it there"
_OR_BRANCH = "or nvidia_driver_branch"


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
    return code in _BY_ROLE or (row is not None and DRIVER_RUN in row.fix)


def switch_of(
    code: str,
    fix: str,
    step: str,
    facts: Mapping[str, Any] | None,
    switches: Mapping[str, bool],
    vendor: str = "",
) -> str:
    """Return the variable that :func:`with_switch` puts into a fix; empty if none."""
    container = ((facts or {}).get("driver") or {}).get("container")
    if container or not switches or not _runs(code) or _is_of(facts, "intel"):
        return ""
    return switched_off(code, facts, switches, vendor)


def with_switch(
    code: str,
    fix: str,
    step: str,
    facts: Mapping[str, Any] | None,
    switches: Mapping[str, bool],
    vendor: str = "",
) -> tuple[str, str]:
    """Return fix and next step of a finding, beginning with the variable that has to change."""
    runs = bool(fix) and _runs(code)
    container = ((facts or {}).get("driver") or {}).get("container")
    if container and _runs(code):
        # site refuses the host.
        told = step if step.startswith(_BY_CONTAINER) else f"{_BY_CONTAINER} ({container}). {step}"
        return ("" if runs else fix), told
    if switches and runs and _is_of(facts, "intel"):
        # No role of this collection installs its driver.
        return "", step
    name = switch_of(code, fix, step, facts, switches, vendor)
    if not name:
        return fix, step
    # The layer of a verification may have it already.
    told = step if step.startswith(reason(name)) else f"{reason(name)} {step}"
    return (switch_on(name, fix) if runs else fix), told


def switch_on(name: str, fix: str) -> str:
    """Return a fix with the variable that has to change for it."""
    if _OR_BRANCH in fix:
        return fix.replace(_OR_BRANCH, f"or {name}: true, nvidia_driver_branch")
    return f"{name}: true, {fix}" if fix.startswith("nvidia_") else f"{name}: true, then: {fix}"


def reason(name: str) -> str:
    """Return what a variable that is false means, and what to do, as sentences."""
    if name == _LOAD:
        return f"{name} is false for this host: set it to true, or reboot."
    return (
        f"The driver is not managed ({name}: false): set it to true, or change the driver by what "
        "manages it."
    )


def _is_of(facts: Mapping[str, Any] | None, vendor: str) -> bool:
    return gpu_vendors((facts or {}).get("gpus") or ()) == [vendor]
