# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A step of a plan. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One change of a plan, and its reason."""

    step: str
    action: str
    detail: str
    reason: str


def sentence(step: Step) -> str:
    """Return the step and its reason as one line."""
    return f"{step.step}: {step.reason}."
