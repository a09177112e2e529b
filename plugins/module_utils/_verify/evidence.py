# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Helpers of the judges of all layers. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .._core.finding import Finding
from .._core.redact import redact
from .types import LayerResult

# A line of ``nvidia-smi -L``.
LISTED_GPU = re.compile(r"^GPU \d+: ", re.MULTILINE)
# Characters.
_MOST_OUTPUT = 400


def own_gpus(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the node's NVIDIA GPUs, without virtual functions for guests."""
    return [
        gpu for gpu in node["gpus"] if gpu["vendor"] == "nvidia" and not gpu.get("virtual_function")
    ]


def from_finding(
    layer: str, finding: Finding, ok: bool | None = False, subject: str = ""
) -> LayerResult:
    return LayerResult(
        layer,
        ok,
        finding.code,
        finding.cause,
        finding.evidence,
        finding.next_step,
        subject=subject,
        names=finding.named().get("names", {}),
    )


def count_of(count: int, noun: str) -> str:
    """Return a number with its noun: ``1 GPU``, ``2 GPUs``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def shorten(text: str) -> str:
    """Return the end of an output."""
    # Redacted before it is cut: half an address does not show its password.
    text = redact(text.strip())
    return text if len(text) <= _MOST_OUTPUT else f"...{text[-_MOST_OUTPUT:]}"
