# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What gpu_node_maintenance returns: rows, diff, failure, and the lines of its progress. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.errors import KubegpuError
from .._core.printable import printable
from .._labels.result import join_names
from .types import DRAINED, RELEASED, WAITS

Rows = Mapping[str, Mapping[str, Any]]

_FAILED = {DRAINED: "drained", RELEASED: "released"}
_MOST_PODS = 3


def build_result(rows: Rows) -> dict[str, Any]:
    """Return the module's return values."""
    changed = {key: row for key, row in rows.items() if row["changed"]}
    diffs = {row["node"]: row["diff"] for row in changed.values()}
    return {
        "changed": bool(changed),
        "ok": all(row["ok"] for row in rows.values()),
        "nodes": {
            key: {name: value for name, value in row.items() if name != "diff"}
            for key, row in rows.items()
        },
        "diff": {
            "before": {node: before for node, (before, _after) in diffs.items()},
            "after": {node: after for node, (_before, after) in diffs.items()},
        },
    }


def failure(rows: Rows, state: str) -> KubegpuError | None:
    """Return the error of the nodes that failed; None if none did."""
    failed = {key: row["findings"] for key, row in rows.items() if not row["ok"]}
    if not failed:
        return None
    first = next(iter(failed.values()))[0]
    causes = [f"{key}: {findings[0]['cause']}" for key, findings in failed.items()]
    more = sum(len(findings) - 1 for findings in failed.values())
    also = f" {more} more findings are in nodes." if more else ""
    return KubegpuError(
        f"These nodes could not be {_FAILED.get(state, 'cordoned')}: {join_names(causes)}{also}",
        evidence=first["evidence"],
        next_step=first["next_step"],
        code=first["code"],
    )


def progress(rows: Rows) -> list[str]:
    """Return a line for each node that is waited for."""
    return [
        printable(f"{key}: waiting for {_pods(row['waiting'])}")
        for key, row in rows.items()
        if row["waiting"] and row["ok"]
    ]


def _pods(waiting: list[dict[str, Any]]) -> str:
    shown = ", ".join(_pod(one) for one in waiting[:_MOST_PODS])
    more = len(waiting) - _MOST_PODS
    return f"{shown} and {more} more pods" if more > 0 else shown


def _pod(one: Mapping[str, Any]) -> str:
    name = f"{one['namespace']}/{one['name']}"
    if one["deletion"]:
        return f"{name} (ends until {one['deletion']})"
    if one["code"]:
        return f"{name} ({one['code']})"
    return f"{name} ({one['owner']} may finish)" if one["why"] == WAITS else name
