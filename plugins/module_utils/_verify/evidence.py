# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Small things that the judges of all layers share. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .._core.finding import Finding
from .types import Verdict

LISTED_GPU = re.compile(r"^GPU \d+: ", re.MULTILINE)
_MOST_OUTPUT = 400


def own_gpus(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the NVIDIA GPUs that this node itself is to use."""
    return [
        gpu for gpu in node["gpus"] if gpu["vendor"] == "nvidia" and not gpu.get("virtual_function")
    ]


def of_finding(layer: str, finding: Finding, ok: bool | None = False, subject: str = "") -> Verdict:
    return Verdict(
        layer,
        ok,
        finding.code,
        finding.cause,
        finding.evidence,
        finding.next_step,
        subject=subject,
    )


def number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def end_of(text: str) -> str:
    """Return the last words of an output."""
    text = text.strip()
    return text if len(text) <= _MOST_OUTPUT else f"...{text[-_MOST_OUTPUT:]}"
