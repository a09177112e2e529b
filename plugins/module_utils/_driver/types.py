# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Input and result of the driver's decision: request and plan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .._core.errors import KubegpuError
from .._core.failure import parts
from .._core.printable import printable
from .._core.steps import Step
from .._nvidia.runfile import shown_runfile

# The driver's own units.
PERSISTENCED_UNIT = "nvidia-persistenced"
GRIDD_UNIT = "nvidia-gridd"
# The actions of a plan that install a driver.
INSTALLS = ("install", "upgrade", "downgrade")


@dataclass(frozen=True)
class Request:
    """What the user asks for. An empty string or mapping means the built-in data.

    ``today`` is an ISO date; empty is the date of the data. ``dkms``, ``fabric`` and ``imex`` are
    auto, true or false; ``coherent_memory`` is auto, driver or numa.
    """

    state: str = "present"
    branch: str = "auto"
    version: str = ""
    kernel_module: str = "auto"
    source: str = "auto"
    runfile: Mapping[str, Any] | None = None
    hold: bool = True
    load: bool = True
    replace_source: bool = False
    dkms: str = "auto"
    compute_only: bool = False
    module_options: Mapping[str, Any] = field(default_factory=dict)
    coherent_memory: str = "auto"
    persistence: bool = True
    fabric: str = "auto"
    imex: str = "auto"
    imex_nodes: tuple[str, ...] = ()
    licence: Mapping[str, Any] = field(default_factory=dict)
    repository_name: str = "kubegpu-nvidia-driver"
    repository_url: str = ""
    repository_key_url: str = ""
    key_fingerprints: tuple[str, ...] = ()
    manage_repository: bool = True
    today: str = ""
    # The ansible-core that would install the packages.
    controller: str = ""


# The lock of a plan that locks nothing.
NO_LOCK: Mapping[str, Any] = {"patterns": [], "version": None}


@dataclass(frozen=True)
class Plan:
    """What to do on one node.

    ``action`` is none, install, upgrade, downgrade, remove or refuse; ``change`` is false where
    nothing has to be done.
    """

    action: str = "none"
    branch: str | None = None
    version: str | None = None
    kernel_module: str | None = None
    source: str | None = None
    packages: Mapping[str, str | None] = field(default_factory=dict)
    optional_packages: Mapping[str, str | None] = field(default_factory=dict)
    pinning: Mapping[str, str | None] = field(default_factory=dict)
    # Streams of dnf's modules, by module.
    streams: Mapping[str, str] = field(default_factory=dict)
    obsolete: tuple[str, ...] = ()
    lock: Mapping[str, Any] = field(default_factory=lambda: dict(NO_LOCK))
    hold: bool = False
    repository: Mapping[str, Any] | None = None
    runfile: Mapping[str, Any] | None = None
    uninstall: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    licence_token: Mapping[str, Any] | None = None
    services: Mapping[str, str] = field(default_factory=dict)
    initramfs: bool = False
    load: bool = False
    change: bool = False
    reboot: Mapping[str, Any] = field(default_factory=lambda: {"required": False, "reason": ""})
    steps: tuple[Step, ...] = ()
    reasons: tuple[str, ...] = ()
    # What is refused, with cause, evidence and next step of each.
    refusals: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()

    @classmethod
    def refused(cls, error: KubegpuError) -> Plan:
        """Return the plan of a node that is refused."""
        return cls("refuse", reasons=tuple(str(error).splitlines()), refusals=(parts(error),))

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values, without secrets."""
        data = asdict(self)
        data["runfile"] = shown_runfile(self.runfile)
        for name in ("obsolete", "steps", "reasons", "refusals", "warnings"):
            data[name] = list(data[name])
        for name in ("reasons", "warnings"):
            data[name] = [printable(text) for text in data[name]]
        return data


def branch_of(version: str | None) -> str | None:
    """Return the branch of a version: 580 of 580.126.09."""
    # A name in requests and packages, not numbers to compare: 580-server and 1.2 are no branch.
    match = re.match(r"(\d{3,})(?:\.|\Z)", version or "")
    return match.group(1) if match else None
