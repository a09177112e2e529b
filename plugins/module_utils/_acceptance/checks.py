# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What layers and health say against a node; for acceptance and upgrade. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core.finding import Finding

Object = Mapping[str, Any]


def judge_layers(layers: Sequence[Object], what: str) -> list[Finding]:
    """Return the layers of the verification that failed.

    :param what: of what they are: node or cluster.
    """
    if not layers:
        return [
            Finding(
                "not_verified",
                f"No layer of the {what} was verified.",
                "",
                "See the task of gpu_verify in the output above.",
            )
        ]
    return [
        Finding(
            str(one.get("code") or f"{one['layer']}_failed"),
            f"{one['layer']}: {one.get('cause') or 'failed'}",
            str(one.get("evidence") or ""),
            str(one.get("next_step") or ""),
        )
        for one in layers
        if one["ok"] is False
    ]


def judge_health(results: Sequence[Object], severity: str = "error") -> list[Finding]:
    """Return what is wrong with GPUs.

    :param results: results of ``gpu_node_health``: of one with ``new``, what is new since its
        baseline, otherwise all that it found.
    """
    found: dict[tuple[str, str], Finding] = {}
    for result in results:
        new = result.get("new")
        for one in result.get("findings") or () if new is None else new:
            if one.get("severity") == severity:
                where = f" ({one['address']})" if one.get("address") else ""
                found[one["code"], one.get("address") or ""] = Finding(
                    one["code"],
                    f"{one['cause']}{where}",
                    str(one.get("evidence") or ""),
                    str(one.get("next_step") or ""),
                )
    return list(found.values())
