# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What was found on a node or in a cluster: cause, evidence and next step. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import KubegpuError


@dataclass(frozen=True)
class Finding:
    """One cause, what shows it, and what to do."""

    code: str
    cause: str
    evidence: str = ""
    next_step: str = ""
    details: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def message(self) -> str:
        return str(self.error())

    def error(self) -> KubegpuError:
        """Return it as the exception that a module fails with."""
        return KubegpuError(self.cause, evidence=self.evidence, next_step=self.next_step)

    def as_problem(self) -> dict[str, str]:
        """Return it in the shape of ``gpu_node.problems``."""
        return {
            "code": self.code,
            "cause": self.cause,
            "evidence": self.evidence,
            "next_step": self.next_step,
        }
