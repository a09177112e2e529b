# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Request and plan of the CUDA toolkits. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .._core.printable import printable
from .._core.steps import Step
from .._nvidia.compatibility import minor
from .._nvidia.cuda_releases import CudaData
from .._nvidia.driver_branches import DriverData
from .._nvidia.runfile import shown_runfile

AUTO = "auto"
PACKAGE = "package"
RUNFILE = "runfile"
DISTRO = "distro"
SOURCES = (AUTO, PACKAGE, RUNFILE, DISTRO)
NO_DEFAULT = "none"
LIBRARIES = ("cudnn", "nccl")


@dataclass(frozen=True)
class Request:
    """The options of the user. Empty strings, tuples and mappings mean the default.

    :param default: the version of the link; empty is the newest of ``versions``, ``none`` leaves
        the link unchanged.
    :param driver_version: version or branch of the driver that the same run installs first.
    :param planned_repositories: addresses of repositories that the same run adds first.
    :param controller: the version of the ansible-core that would install the packages.
    """

    versions: tuple[str, ...] = ()
    default: str = ""
    source: str = AUTO
    runfiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    libraries: Mapping[str, str] = field(default_factory=dict)
    hold: bool = True
    configure: bool = True
    verify: bool = True
    host_compiler: str = ""
    temporary: str = ""
    driver_version: str = ""
    manage_repository: bool = True
    repository_name: str = "kubegpu-nvidia-cuda"
    repository_url: str = ""
    repository_key_url: str = ""
    key_fingerprints: tuple[str, ...] = ()
    planned_repositories: tuple[str, ...] = ()
    controller: str = ""


@dataclass(frozen=True)
class Tables:
    """The data of the plan, with the user's rows merged in."""

    cuda: CudaData
    drivers: DriverData


@dataclass(frozen=True)
class Plan:
    """The changes for one node.

    :param action: none, install, upgrade, downgrade or refuse.
    :param change: whether anything has to be changed.
    """

    action: str = "none"
    # version, path, source, action (none, install, upgrade, downgrade) and architecture of each.
    versions: tuple[Mapping[str, Any], ...] = ()
    default: str | None = None
    packages: Mapping[str, str | None] = field(default_factory=dict)
    optional_packages: Mapping[str, str | None] = field(default_factory=dict)
    obsolete: tuple[str, ...] = ()
    lock: Mapping[str, Any] = field(default_factory=lambda: {"patterns": [], "version": None})
    hold: bool = False
    change_packages: bool = False
    repository: Mapping[str, Any] | None = None
    runfiles: tuple[Mapping[str, Any], ...] = ()
    link: Mapping[str, str] | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    verify: bool = False
    change: bool = False
    steps: tuple[Step, ...] = ()
    reasons: tuple[str, ...] = ()
    # What is refused, with cause, evidence and next step of each.
    refusals: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values, without secrets."""
        data = asdict(self)
        data["runfiles"] = [shown_runfile(runfile) for runfile in self.runfiles]
        for name in ("versions", "obsolete", "steps", "reasons", "refusals", "warnings"):
            data[name] = list(data[name])
        for name in ("reasons", "warnings"):
            data[name] = [printable(text) for text in data[name]]
        return data


@dataclass(frozen=True)
class PlannedVersion:
    """One requested version: where it comes from, and what has to be done for it.

    :param release: the release of the table that the version means.
    :param installed: the version of it that is installed, or None.
    """

    version: str
    release: str
    path: str
    source: str
    action: str
    reason: str = ""
    installed: str | None = None

    @property
    def name(self) -> str:
        """Return the name of NVIDIA's package."""
        return f"cuda-toolkit-{minor(self.version).replace('.', '-')}"
