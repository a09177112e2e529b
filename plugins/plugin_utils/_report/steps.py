# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a node's row: of a plan, and of the result of a runtime's module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.results import (
    result_parts,
)

NEW_CONFIGURATION = "the running daemon does not know the new configuration"


def result_steps(engine: str, result: Mapping[str, Any]) -> list[dict[str, str]]:
    if result.get("failed"):
        return [row_step(engine, "fail", "", result_parts(result)["cause"])]
    steps = []
    if result.get("would_change", result.get("changed")):
        # The first reason is that of the change; the others are remarks.
        reason = next(iter(result.get("reasons") or ()), "the configuration differs")
        steps.append(row_step(engine, "configure", "", reason))
    if result.get("reloaded"):
        steps.append(row_step(engine, "reload", "", NEW_CONFIGURATION))
    if result.get("restarted"):
        reason = str(result.get("restart_reason") or NEW_CONFIGURATION)
        steps.append(row_step(engine, "restart", "", reason))
    elif result.get("restart_required"):
        reason = str(result.get("restart_reason") or NEW_CONFIGURATION)
        steps.append(row_step(engine, "wait for a restart", "", reason))
    return steps


def row_step(step: str, action: str, detail: str, reason: str) -> dict[str, str]:
    return {"step": step, "action": action, "detail": detail, "reason": reason}
