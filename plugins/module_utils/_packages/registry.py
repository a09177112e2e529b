# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The supported package managers, by their names in the facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .._core.errors import InputError
from .._host.command import Runner
from .apt import Apt
from .dnf import Dnf, Dnf5
from .manager import PackageManager
from .zypper import Zypper

MANAGERS: Mapping[str, Callable[[Runner], PackageManager]] = {
    "apt": Apt,
    "dnf": Dnf,
    "dnf5": Dnf5,
    "zypper": Zypper,
}


def choose(name: str | None, run: Runner) -> PackageManager:
    """Return the package manager of this name.

    :raises InputError: this release does not support it.
    """
    made = MANAGERS.get(name or "")
    if made is None:
        raise InputError(
            f"This node installs packages with {name or 'a tool that is not known'}, which this "
            f"release does not use; it knows {', '.join(MANAGERS)}.",
            next_step="Install the packages with the module of its package manager.",
        )
    return made(run)
