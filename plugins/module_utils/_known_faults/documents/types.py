# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the output of a test of GPUs says, as a finding with the names of the program. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._core.finding import ERROR, Finding


@dataclass(frozen=True)
class Judged:
    """A finding with how bad it is.

    :param severity: an error fails the node.
    :param subject: the GPU, empty for the node.
    :param error_id: DCGM's number of the error, with its name in ``error``.
    :param action: what DCGM takes it for: isolate, reset, triage, config, monitor or unknown.
    :param failed: whether the test itself says that it failed.
    """

    finding: Finding
    severity: str = ERROR
    subject: str = ""
    error_id: int | None = None
    error: str = ""
    action: str = ""
    failed: bool = True

    def to_json(self) -> dict[str, Any]:
        return {
            **self.finding.as_problem(),
            "severity": self.severity,
            "subject": self.subject,
            **(
                {"error_id": self.error_id, "error": self.error, "action": self.action}
                if self.error_id is not None
                else {}
            ),
        }
