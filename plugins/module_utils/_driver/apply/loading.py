# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decides whether the kernel module can be loaded or unloaded without a reboot. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ModuleState:
    """The state of the kernel modules.

    ``loaded``: the version of the loaded module. ``cannot``: why no module can be loaded or
    unloaded here; empty where they can. ``users``: programs that use the loaded module, as
    "name (pid)", without the driver's own daemons, which are stopped for a change. ``holders``:
    other modules that use it. ``nouveau``: the number of users of the kernel's own driver; None
    where it is not loaded. ``kernel_driver``: the name of that driver.
    """

    loaded: str | None = None
    cannot: str = ""
    users: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    nouveau: int | None = None
    kernel_driver: str = "nouveau"


@dataclass(frozen=True)
class Loading:
    """Whether the module is loaded now; if not, the reason for a reboot or a warning."""

    now: bool
    reboot: str = ""
    warning: str = ""


def decide_loading(wanted: bool, state: ModuleState, reboot: Mapping[str, Any]) -> Loading:
    """Return whether the module can be loaded without a reboot.

    :param wanted: whether the plan demands it.
    :param reboot: the plan's ``reboot``.
    """
    if not wanted:
        return Loading(False, reboot["reason"] if reboot["required"] else "")
    if state.cannot:
        return Loading(
            False,
            warning=f"The kernel module cannot be loaded from here: {state.cannot}. This says "
            "nothing about the driver. Load it where modules can be loaded: on the host of a "
            "container, or after the next boot.",
        )
    if state.loaded and (state.users or state.holders):
        words = ", ".join([*state.users, *(f"the module {name}" for name in state.holders)])
        return Loading(
            False,
            f"The loaded module {state.loaded} is in use by {words}. Stop what uses it and run "
            "again, or reboot.",
        )
    if state.nouveau:
        users = "1 user" if state.nouveau == 1 else f"{state.nouveau} users"
        return Loading(
            False,
            f"{state.kernel_driver} is loaded and in use ({users}, usually the console): the next "
            "boot comes without it.",
        )
    return Loading(True)


def kernel_without_module(node: Mapping[str, Any]) -> str:
    """Return why a reboot is needed if only another kernel has the module; empty if none is."""
    running = [kernel for kernel in node["kernels"] if kernel["running"]]
    others = [k["version"] for k in node["kernels"] if not k["running"] and k.get("driver")]
    if any(kernel.get("driver") for kernel in running) or not others:
        return ""
    kernel = node["os"]["kernel"] or "unknown"
    return (
        f"The module is installed for kernel {', '.join(others)}, and {kernel} is running, for "
        "which there is none."
    )


def unbuilt_kernels(node: Mapping[str, Any]) -> list[str]:
    """Return the kernels for which DKMS can build the driver, and has not."""
    if not any(entry["state"] != "failed" for entry in node["driver"]["dkms"]):
        return []
    return [
        kernel["version"]
        for kernel in node["kernels"]
        if kernel["headers"] and kernel.get("driver") is None
    ]
