# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan that removes a driver. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._core.errors import Refusal
from ..._core.steps import Step, sentence
from ..types import Plan, Request
from . import config_files
from .decision import capitalize_first
from .installed import InstalledDriver, read_installed, stale_files
from .sources import RUNFILE


def plan_absent(node: Mapping[str, Any], request: Request) -> Plan:
    """Return the plan that removes what this collection put on the node."""
    driver = node["driver"]
    installed = read_installed(node)
    managed = driver["managed"]
    begun = bool(driver.get("pending")) and not managed
    if not managed and not begun and not (installed and request.replace_source):
        if installed is None:
            return Plan("none", reasons=("No driver is on this node: nothing to remove.",))
        return _not_managed(installed, managed)
    source = installed.source if installed else None
    if source == RUNFILE and not begun and not driver["uninstaller"]:
        title = installed.title if installed else "The driver"
        return Plan.refused(
            Refusal(
                f"{title} is to be removed, and its uninstaller is not there.",
                "run the same .run file with --uninstall manually, then run again.",
            )
        )
    whose = (
        "this collection installed it, as the node's record shows"
        if managed
        else "as replace_source says"
    )
    if begun:
        whose = "an unfinished change is undone: the previous state is restored"
    steps = [
        Step(
            "packages" if source != RUNFILE else "uninstall",
            "remove" if source != RUNFILE else "run",
            installed.title if installed else "what is left of the driver",
            whose,
        )
    ]
    stale = stale_files(node, ())
    if stale:
        steps.append(Step("files", "remove", ", ".join(stale), "this collection wrote them"))
    initramfs = any(path in config_files.IN_INITRAMFS for path in stale)
    if initramfs:
        steps.append(Step("initramfs", "rebuild", "", "the kernel's own driver may come back"))
    loaded = driver["loaded"]
    reason = f"{loaded} remains loaded until it is unloaded or the node rebooted" if loaded else ""
    return Plan(
        action="remove",
        branch=installed.branch if installed else None,
        version=installed.version if installed else None,
        kernel_module=installed.kernel_module if installed else None,
        source=source,
        obsolete=tuple(sorted(driver["packages"])) if source != RUNFILE and not begun else (),
        uninstall=RUNFILE if source == RUNFILE and not begun else None,
        initramfs=initramfs,
        change=True,
        reboot={"required": bool(loaded), "reason": reason},
        steps=tuple(steps),
        reasons=tuple(sentence(step) for step in steps),
    )


def _not_managed(installed: InstalledDriver, managed: bool | None) -> Plan:
    """Return the plan that leaves a driver alone that this collection did not install."""
    why = "may not be read" if managed is None else "does not have it"
    return Plan(
        "none",
        branch=installed.branch,
        version=installed.version,
        kernel_module=installed.kernel_module,
        source=installed.source,
        hold=bool(installed.held),
        reasons=(
            f"{capitalize_first(installed.title)} is not this collection's: the "
            f"node's record {why}. It is kept.",
        ),
        warnings=("To remove it anyway: nvidia_driver_replace_source: true, or manually.",),
    )
