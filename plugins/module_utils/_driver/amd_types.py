# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The request for AMD's driver, and its plan. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .._core.errors import InputError, Refusal
from .._core.options import argument_spec, read_arguments
from .._core.printable import printable
from .._core.steps import Step
from .amd_data import RELEASE

PREFIX = "amd_driver_"
_NO_REBOOT: Mapping[str, Any] = {"required": False, "reason": ""}


@dataclass(frozen=True)
class AmdDriverRequest:
    """What the user asks for. Empty strings and tuples: the default of this release."""

    release: str = ""
    manage_repository: bool = True
    repository_name: str = "kubegpu-amd-driver"
    repository_url: str = ""
    repository_suite: str = ""
    key_fingerprints: tuple[str, ...] = ()
    hold: bool = True
    key_enrolled: bool = False
    reboot: bool = False
    # Version of the ansible-core that would install the packages.
    controller: str = ""


ARGUMENTS = argument_spec(AmdDriverRequest)


def read_amd_driver_request(given: Mapping[str, Any]) -> AmdDriverRequest:
    """Return the request; an option that is missing or None has its default.

    :raises InputError: an option has a wrong value; the message names the role's variable.
    """
    request = AmdDriverRequest(**read_arguments(ARGUMENTS, given, PREFIX))
    if request.release and not RELEASE.match(request.release):
        raise InputError(
            f"{PREFIX}release is {request.release!r}, which is no release of AMD's driver.",
            next_step="Name a folder of repo.radeon.com/amdgpu, such as 30.30 or 6.4.3, in "
            "quotation marks.",
        )
    return request


@dataclass(frozen=True)
class AmdDriverPlan:
    """The plan of one node. ``action`` is none, install, upgrade, downgrade or refuse."""

    action: str
    version: str = ""
    packages: Mapping[str, str | None] = field(default_factory=dict)
    optional: Mapping[str, str | None] = field(default_factory=dict)
    hold: bool = True
    change_packages: bool = False
    repository: Mapping[str, Any] | None = None
    load: bool = False
    reboot: Mapping[str, Any] = field(default_factory=lambda: dict(_NO_REBOOT))
    reboot_allowed: bool = False
    steps: tuple[Step, ...] = ()
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def work(self) -> bool:
        """Whether the role has something to do on the node."""
        return (
            self.action == "refuse"
            or self.repository is not None
            or self.change_packages
            or self.load
            or bool(self.reboot_allowed and self.reboot["required"])
        )

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        data = {**asdict(self), "work": self.work}
        for name in ("steps", "reasons", "warnings"):
            data[name] = list(data[name])
        for name in ("reasons", "warnings"):
            data[name] = [printable(text) for text in data[name]]
        return data


def refused(*refusals: Refusal) -> AmdDriverPlan:
    """Return the plan of a node that is refused."""
    return AmdDriverPlan("refuse", reasons=tuple(one.line for one in refusals))
