# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Request and plan that AMD's driver and container toolkit have in common. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from .._core.errors import KubegpuError
from .._core.failure import parts
from .._core.printable import printable
from .._core.steps import Step

_Plan = TypeVar("_Plan", bound="AmdPlan")


@dataclass(frozen=True)
class AmdRequest:
    """What the user asks for. Empty strings and tuples: the default of this release."""

    manage_repository: bool = True
    repository_name: str = ""
    repository_url: str = ""
    repository_suite: str = ""
    key_fingerprints: tuple[str, ...] = ()
    hold: bool = True
    # Version of the ansible-core that would install the packages.
    controller: str = ""


@dataclass(frozen=True)
class AmdPlan:
    """The plan of one node. ``action`` is none, install, upgrade, downgrade or refuse."""

    action: str
    version: str | None = None
    packages: Mapping[str, str | None] = field(default_factory=dict)
    hold: bool = True
    change_packages: bool = False
    repository: Mapping[str, Any] | None = None
    steps: tuple[Step, ...] = ()
    reasons: tuple[str, ...] = ()
    # What is refused, with cause, evidence and next step of each.
    refusals: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()

    @classmethod
    def refused(cls: type[_Plan], error: KubegpuError) -> _Plan:
        """Return the plan of a node that is refused."""
        reason = " ".join(str(error).splitlines())
        return cls("refuse", reasons=(reason,), refusals=(parts(error),))

    @property
    def work(self) -> bool:
        """Whether the role has something to do on the node."""
        return self.action == "refuse" or self.repository is not None or self.change_packages

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        data = {**asdict(self), "work": self.work, "steps": list(map(asdict, self.steps))}
        for name in ("reasons", "warnings"):
            data[name] = [printable(text) for text in data[name]]
        return data
