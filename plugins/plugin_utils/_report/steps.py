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

#: What a module changes that does not say more.
CONFIGURATION = "its configuration"
NEW_CONFIGURATION = "the running daemon does not know the new configuration"


def result_steps(engine: str, result: Mapping[str, Any]) -> list[dict[str, str]]:
    if result.get("failed"):
        return [row_step(engine, "fail", "", result_parts(result)["cause"])]
    steps = []
    changed = bool(result.get("would_change", result.get("changed")))
    # A change can be a reload or a restart alone, for a file that was written before.
    written = changed and result.get("file_changed", True)
    if written:
        # The first reason is that of the change; the others are remarks.
        reason = next(iter(result.get("reasons") or ()), "the configuration differs")
        steps.append(row_step(engine, "change", CONFIGURATION, reason))
    if result.get("reloaded"):
        reason = NEW_CONFIGURATION if written else _reason(result, "reload_reason")
        steps.append(row_step(engine, "reload", "", reason))
    if result.get("restarted"):
        reason = NEW_CONFIGURATION if written else _reason(result, "restart_reason")
        steps.append(row_step(engine, "restart", "", reason))
    elif result.get("restart_required"):
        reason, count = _reason(result, "restart_reason"), result.get("waiting_containers")
        if count:
            reason = f"{reason.rstrip('.')}. {stop_containers(count)}"
        steps.append(row_step(engine, "wait for a restart", "", reason))
    return steps


def stop_containers(count: int) -> str:
    """Return what to do for a restart of Docker that running containers delay."""
    return (
        f"Stop the running containers ({count}; docker ps lists them) and run site again, which "
        "then restarts Docker and verifies the node; or run systemctl restart docker, which stops "
        "them, and site again."
    )


def _reason(result: Mapping[str, Any], name: str) -> str:
    return str(result.get(name) or NEW_CONFIGURATION)


def row_step(step: str, action: str, detail: str, reason: str) -> dict[str, str]:
    return {"step": step, "action": action, "detail": detail, "reason": reason}
