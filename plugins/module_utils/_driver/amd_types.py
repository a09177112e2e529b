# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The request for AMD's driver, and its plan. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import InputError
from .._core.options import argument_spec, read_arguments
from .._repository.amd_types import AmdPlan, AmdRequest
from .amd_data import RELEASE

PREFIX = "amd_driver_"
_NO_REBOOT: Mapping[str, Any] = {"required": False, "reason": ""}


@dataclass(frozen=True)
class AmdDriverRequest(AmdRequest):
    """What the user asks for."""

    repository_name: str = "kubegpu-amd-driver"
    release: str = ""
    key_enrolled: bool = False
    reboot: bool = False


ARGUMENTS = argument_spec(AmdDriverRequest)


def read_amd_driver_request(given: Mapping[str, Any]) -> AmdDriverRequest:
    """Return the request; an option that is missing or None has its default.

    :raises InputError: an option has a wrong value; the message names the role's variable.
    """
    request = AmdDriverRequest(**read_arguments(ARGUMENTS, given, PREFIX))
    if request.release and not RELEASE.match(request.release):
        raise InputError(
            f"{PREFIX}release is {request.release!r}, which is not a release of AMD's driver.",
            next_step="Name a folder of repo.radeon.com/amdgpu, such as 30.30 or 6.4.3, in "
            "quotation marks.",
        )
    return request


@dataclass(frozen=True)
class AmdDriverPlan(AmdPlan):
    """The plan of one node."""

    version: str = ""
    optional: Mapping[str, str | None] = field(default_factory=dict)
    load: bool = False
    reboot: Mapping[str, Any] = field(default_factory=lambda: dict(_NO_REBOOT))
    reboot_allowed: bool = False

    @property
    def work(self) -> bool:
        """Whether the role has something to do on the node."""
        return super().work or self.load or bool(self.reboot_allowed and self.reboot["required"])
