# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The installed driver of a node and its drift, from facts. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._nvidia.package_names import kernel_module_type as kernel_module_of_packages
from ..._packages.types import covers
from ..types import INSTALLS, branch_of
from .config_files import PATHS, sha256
from .kernels import relevant_kernels

# Kernel modules that come built: Ubuntu's, those of a precompiled stream, SUSE's.
_PREBUILT = re.compile(r"linux-modules-nvidia-|kmod-nvidia|nvidia-open-driver-\S*-kmp-")


@dataclass(frozen=True)
class InstalledDriver:
    """An installed driver. ``working``: its module is loaded, or loads with the next boot."""

    version: str
    branch: str
    kernel_module: str | None
    source: str | None
    packages: Mapping[str, str]
    working: bool
    loaded: str | None
    held: bool | None

    @property
    def prebuilt(self) -> bool:
        """Return whether its modules are prebuilt packages, which need no kernel headers."""
        return any(_PREBUILT.match(name) for name in self.packages) and not any(
            "dkms" in name.replace("no-dkms", "") for name in self.packages
        )

    @property
    def title(self) -> str:
        origin = {
            "distro": "from the distribution's archive",
            "nvidia": "from NVIDIA's repository",
            "runfile": "from a runfile",
        }.get(self.source or "", "of unknown origin")
        kind = f", {self.kernel_module} kernel modules" if self.kernel_module else ""
        return f"driver {self.version} ({origin}{kind})"


def read_installed(node: Mapping[str, Any]) -> InstalledDriver | None:
    """Return the installed driver; None where there is none, or only libraries."""
    driver = node["driver"]
    version = driver["installed"]
    branch = branch_of(version)
    if version is None or branch is None:
        return None
    modules = [kernel for kernel in node["kernels"] if kernel.get("driver")]
    built = [entry for entry in driver["dkms"] if entry["state"] in ("built", "installed")]
    if not (driver["source"] or modules or built or driver["loaded"]):
        return None
    if driver["source"] is None and driver.get("pending") in INSTALLS:
        # An interrupted change: it is to be finished, and what it left so far is not a foreign
        # driver that could be kept.
        return None
    kernels = relevant_kernels(node)
    return InstalledDriver(
        version=version,
        branch=branch,
        # The loaded modules can be of another kind than those installed since.
        kernel_module=kernel_module_of_packages(driver["packages"]) or driver["kernel_module"],
        source=driver["source"],
        packages=driver["packages"],
        working=bool(driver["loaded"])
        or not kernels
        or any(kernel.get("driver") for kernel in kernels),
        loaded=driver["loaded"],
        held=driver["held"],
    )


def unheld(node: Mapping[str, Any], patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the packages of the locked set that are not held."""
    driver = node["driver"]
    names = driver.get("unheld")
    if names is None:
        names = [] if driver["held"] in (True, None) else list(driver["packages"])
    return tuple(name for name in names if is_locked(name, patterns))


def is_locked(name: str, patterns: Sequence[str]) -> bool:
    """Return whether a package belongs to the locked set, as package_set matches it."""
    return covers(patterns, name.partition(":")[0])


def changed_files(node: Mapping[str, Any], files: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files that are missing or differ; one that cannot be read counts as right."""
    seen = node["driver"]["configuration"]
    return tuple(
        path
        for path, text in files.items()
        if path not in seen or (seen[path] is not None and seen[path] != sha256(text))
    )


def stale_files(node: Mapping[str, Any], requested: Collection[str]) -> tuple[str, ...]:
    """Return the files that this collection wrote and that are not requested any more.

    The record decides: an administrator or a package can own files of the same names.
    """
    driver = node["driver"]
    ours = driver["recorded_files"] or ()
    return tuple(
        path
        for path in PATHS
        if path in ours and path in driver["configuration"] and path not in requested
    )
