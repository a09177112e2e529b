# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The request for AMD's container toolkit, and its plan. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .._core.errors import Refusal
from .._core.options import argument_spec, read_arguments
from .._core.printable import printable
from .._core.steps import Step

PREFIX = "amd_container_toolkit_"


@dataclass(frozen=True)
class AmdRequest:
    """What the user asks for. Empty strings and tuples: the default of this release."""

    version: str = ""
    manage_repository: bool = True
    repository_name: str = "kubegpu-amd-container-toolkit"
    repository_url: str = ""
    repository_suite: str = ""
    key_fingerprints: tuple[str, ...] = ()
    hold: bool = True
    cdi: bool = True
    docker: str = "auto"
    docker_runtime_name: str = "amd"
    docker_set_default: bool = False
    docker_cdi: bool = False
    docker_restart: str = "if_idle"
    # Whether the driver's part of the same run loads amdgpu.
    driver_planned: bool = False
    # Version of the ansible-core that would install the packages.
    controller: str = ""


ARGUMENTS = argument_spec(
    AmdRequest,
    docker={"choices": ["auto", "true", "false"]},
    docker_restart={"choices": ["never", "if_idle", "always"]},
)


def read_amd_request(given: Mapping[str, Any]) -> AmdRequest:
    """Return the request; an option that is missing or None has its default.

    :raises InputError: an option has a wrong value; the message names the role's variable.
    """
    return AmdRequest(**read_arguments(ARGUMENTS, given, PREFIX))


@dataclass(frozen=True)
class AmdPlan:
    """The plan of one node. ``action`` is none, install, upgrade, downgrade or refuse."""

    action: str
    version: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    hold: bool = True
    change_packages: bool = False
    repository: Mapping[str, Any] | None = None
    cdi: bool = False
    docker: bool = False
    fingerprint: str = ""
    programs: Mapping[str, str] = field(default_factory=dict)
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
            or self.cdi
            or self.docker
        )

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        data = {**asdict(self), "work": self.work}
        for name in ("steps", "reasons", "warnings"):
            data[name] = list(data[name])
        for name in ("reasons", "warnings"):
            data[name] = [printable(text) for text in data[name]]
        return data


def refused(*refusals: Refusal) -> AmdPlan:
    """Return the plan of a node that is refused."""
    return AmdPlan("refuse", reasons=tuple(one.line for one in refusals))
