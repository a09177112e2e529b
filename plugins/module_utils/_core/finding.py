# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A problem of a node or a cluster. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import KubegpuError


@dataclass(frozen=True)
class Finding:
    """A problem with its code, cause, evidence and next step."""

    code: str
    cause: str
    evidence: str = ""
    next_step: str = ""
    details: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def message(self) -> str:
        return str(self.error())

    def error(self) -> KubegpuError:
        """Return the exception for a failing module."""
        return KubegpuError(
            self.cause, evidence=self.evidence, next_step=self.next_step, code=self.code
        )

    def as_problem(self) -> dict[str, str]:
        """Return an item of ``gpu_node.problems``."""
        return {
            "code": self.code,
            "cause": self.cause,
            "evidence": self.evidence,
            "next_step": self.next_step,
        }
