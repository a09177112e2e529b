# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Helpers of the judges of all layers. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .._core.finding import ERROR, INFO, WARNING, Finding, Subject
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


def works(layer: str, proof: str, subject: str = "") -> LayerResult:
    """Return the result of a layer that is ok."""
    return LayerResult("", "", proof, severity=INFO, subject=Subject(part=subject), layer=layer)


def failed(
    layer: str,
    code: str,
    cause: str,
    evidence: str = "",
    next_step: str = "",
    *,
    names: Mapping[str, str] | None = None,
    subject: str = "",
) -> LayerResult:
    """Return the result of a layer that is not ok."""
    return from_finding(
        layer, Finding(code, cause, evidence, next_step, names or {}), subject=subject
    )


def untried(
    layer: str, code: str, cause: str, evidence: str = "", subject: str = ""
) -> LayerResult:
    """Return the result of a layer that was not tried."""
    return from_finding(layer, Finding(code, cause, evidence), None, subject)


def from_finding(
    layer: str, finding: Finding, ok: bool | None = False, subject: str = ""
) -> LayerResult:
    """Return the result of a layer that a finding is about.

    :param ok: False for a layer that failed, None for one that was not tried.
    """
    own = {"severity": WARNING if ok is None else ERROR, "subject": Subject(part=subject)}
    return LayerResult(**{**vars(finding), **own, "layer": layer})


def count_of(count: int, noun: str) -> str:
    """Return a number with its noun: ``1 GPU``, ``2 GPUs``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def shorten(text: str) -> str:
    """Return the end of an output."""
    # Redacted before it is cut: half an address does not show its password.
    text = redact(text.strip())
    return text if len(text) <= _MOST_OUTPUT else f"...{text[-_MOST_OUTPUT:]}"
