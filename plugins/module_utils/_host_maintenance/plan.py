# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide what leaves a host, and what is waited for. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .._core.finding import Finding
from .._core.printable import printable
from . import slurm
from .containers import divide
from .types import Container, Decision, Record, Request, Seen, SlurmNode

if TYPE_CHECKING:
    from .._known_faults.evidence_types import DeviceUser

_CONTAINER = "container "
_SHORT_ID = 12
_MOST_SHOWN = 5


def find_obstacle(
    request: Request, record: Record | None, node: SlurmNode | None
) -> Finding | None:
    """Return why this run may not touch the host; None if it may."""
    held = record.run if record else slurm.holder(node) if node is not None else ""
    if held in ("", request.run):
        return None
    since = f", since {record.since}" if record else ""
    return Finding(
        "host_held_by_other",
        f"{request.name} is in maintenance by the run {held}{since}.",
        f"reason in Slurm: {node.reason}" if node is not None and not record else "",
        f"Wait until that run releases it. If it has ended without that, release it by its name "
        f"(run: {held}, state: released).",
    )


def begin(request: Request, node: SlurmNode | None, now: str) -> Record:
    """Return the record of a maintenance that begins.

    :param now: the time.
    """
    drained = node is not None and node.drained and not slurm.is_ours(node, request.run)
    return Record(
        run=request.run,
        reason=request.reason,
        since=now,
        slurm_node=node.name if node else "",
        was_drained=drained,
    )


def decide(request: Request, seen: Seen, record: Record | None) -> Decision:
    """Decide what leaves the host. Nothing is stopped while something else may still finish."""
    recorded = {one.id for one in record.containers} if record else set()
    stop, wait, findings = divide(seen.containers, request, recorded)
    rows = [_row("slurm", f"job {job}") for job in seen.jobs]
    if not rows and seen.slurm is not None and seen.slurm.busy:
        rows.append(_row("slurm", "jobs that end"))
    rows += [_row("docker", one.name) for one in wait]
    rows += [_row("process", str(user)) for user in _others(seen.users, (*stop, *wait))]
    return Decision(tuple(stop), tuple(rows), tuple(findings))


def _row(kind: str, name: str) -> Mapping[str, str]:
    return {"namespace": kind, "name": printable(name)}


def _others(users: Sequence[DeviceUser], containers: Sequence[Container]) -> list[DeviceUser]:
    """Return the processes of users: not of services, and not of these containers."""
    known = {f"{_CONTAINER}{one.id[:_SHORT_ID]}" for one in containers}
    return [
        user
        for user in users
        if user.unit not in known and not (user.unit or "").endswith(".service")
    ]


def left_over(request: Request, decision: Decision) -> Finding:
    """Return the finding of what did not leave until the limit."""
    return Finding(
        "work_left",
        f"{request.name} is still in use after {request.timeout} seconds.",
        _shown(decision),
        "Wait longer (timeout), end it manually, or have containers stopped: containers: stop, for "
        "those with --rm also unmanaged: delete.",
    )


def progress(request: Request, decision: Decision) -> list[str]:
    """Return what is waited for, as a line."""
    return [f"{request.name}: waiting for {_shown(decision)}"]


def _shown(decision: Decision) -> str:
    names = [f"{row['namespace']}/{row['name']}" for row in decision.waiting]
    names += [f"docker/{printable(one.name)}" for one in decision.stop]
    more = len(names) - _MOST_SHOWN
    return ", ".join(names[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
