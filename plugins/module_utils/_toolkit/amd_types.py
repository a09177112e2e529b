# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The request for AMD's container toolkit, and its plan. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._core.options import argument_spec, read_arguments
from .._repository.amd_types import AmdPlan, AmdRequest

PREFIX = "amd_container_toolkit_"


@dataclass(frozen=True)
class AmdToolkitRequest(AmdRequest):
    """What the user asks for."""

    repository_name: str = "kubegpu-amd-container-toolkit"
    version: str = ""
    cdi: bool = True
    docker: str = "auto"
    docker_runtime_name: str = "amd"
    docker_set_default: bool = False
    docker_cdi: bool = False
    docker_restart: str = "if_idle"
    # Whether the driver's part of the same run loads amdgpu.
    driver_planned: bool = False


ARGUMENTS = argument_spec(
    AmdToolkitRequest,
    docker={"choices": ["auto", "true", "false"]},
    docker_restart={"choices": ["never", "if_idle", "always"]},
)


def read_amd_request(given: Mapping[str, Any]) -> AmdToolkitRequest:
    """Return the request; an option that is missing or None has its default.

    :raises InputError: an option has a wrong value; the message names the role's variable.
    """
    return AmdToolkitRequest(**read_arguments(ARGUMENTS, given, PREFIX))


@dataclass(frozen=True)
class AmdToolkitPlan(AmdPlan):
    """The plan of one node."""

    cdi: bool = False
    docker: bool = False
    fingerprint: str = ""
    programs: Mapping[str, str] = field(default_factory=dict)

    @property
    def work(self) -> bool:
        """Whether the role has something to do on the node."""
        return super().work or self.cdi or self.docker
