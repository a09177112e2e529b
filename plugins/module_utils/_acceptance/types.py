# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Types of the acceptance: request, what a test found, plan of a host. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._core.finding import ERROR, Finding

# What is done with a host.
RUN, NOTHING, REFUSE, SKIP = "run", "none", "refuse", "skip"
# How a host ended.
PASSED, FAILED, UNCHANGED = "passed", "failed", "unchanged"
REFUSED, BLOCKED, UNREACHABLE = "refused", "blocked", "unreachable"
PLANNED, NOT_STARTED = "planned", "not_started"
#: The node was read and has no NVIDIA GPU, and none is expected.
NOT_TESTED = "not_tested"
#: They fail the run.
BAD = (FAILED, REFUSED, BLOCKED, UNREACHABLE, NOT_STARTED)

AUTO, REQUIRED, NEVER = "auto", "required", "never"


@dataclass(frozen=True)
class Request:
    """What the user asks for."""

    level: str = "standard"
    #: auto, required or never
    dcgm: str = AUTO
    nvbandwidth: str = AUTO
    gpu_burn: str = AUTO
    #: Names or paths of the programs.
    programs: Mapping[str, Any] = field(default_factory=dict)
    burn_minutes: int = 60
    #: Seconds for each test; 0 for those of its level.
    timeout: int = 0
    #: Least bandwidths in GB/s instead of those that are known of the product.
    thresholds: Mapping[str, Any] = field(default_factory=dict)
    #: gpus, product, ecc and link_width, each only if it is given.
    expect: Mapping[str, Any] = field(default_factory=dict)
    #: Whether GPUs in use are drained instead of refused.
    drain: bool = False
    again: bool = False

    def wants(self, tool: str) -> str:
        return {"dcgm": self.dcgm, "nvbandwidth": self.nvbandwidth, "gpu_burn": self.gpu_burn}[tool]


@dataclass(frozen=True)
class ProgramResult:
    """The result of a test's program.

    :param values: what it measured, by test, and in it by GPU.
    :param skipped: the parts that it did not test.
    """

    judged: tuple[Finding, ...] = ()
    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    version: str = ""


def to_json(one: Finding) -> dict[str, Any]:
    """Return a finding of a test, with what DCGM says of its error in keys of their own."""
    found = one.as_problem()
    dcgm = found.pop("names") if "action" in one.details else {}
    if "error_id" in dcgm:
        found.update(dcgm, error_id=int(dcgm["error_id"]), error=dcgm.get("error", ""))
    return {**found, "severity": one.severity or ERROR, "subject": one.subject.place}
