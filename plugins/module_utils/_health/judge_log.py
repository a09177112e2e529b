# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the events of the kernel's log. Pure.

An event of the present boot is a fault now, unless the driver said after it that nothing is to be
done any more (Xid 154, None): then, and in earlier boots, it is history. What an Xid means and how
bad it is has one table (``_known_faults/xids.py``); causes are those of the known errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .._core.finding import Finding
from .._known_faults.explain import explain
from .._known_faults.predicates import Facts
from .._known_faults.rules.nvidia_smi import RECOVERY_ACTIONS
from .._known_faults.rules.xids_data import (
    ERROR,
    FOLLOW,
    INFO,
    PROGRAM,
    RECOVERY,
    RECOVERY_XID,
    WARNING,
)
from .._known_faults.xids import XIDS, Xid, in_line, look_up, previous_xid, recovery_action
from .data import FOLLOWERS, FOLLOWS_WITHIN, MOST_JOBS
from .types import Event, Judged, Seen, judged, shown_time

_AGAIN_STEP = (
    "The card, its seat, its power or its cooling is the likely cause. Drain the node, check them, "
    "run dcgmi diag, and have the card replaced if it comes again."
)
_ORDER = (ERROR, WARNING, INFO)


def worst(severities: Sequence[str]) -> str:
    return min(severities, key=_ORDER.index)


def judge_xids(
    events: Sequence[Event], table: Mapping[int, Xid] = XIDS, facts: Facts | None = None
) -> list[Judged]:
    """Return the findings of all Xids.

    :param facts: what is known of the node, as in its facts.
    """
    found: list[Judged] = []
    xids = [event for event in events if event.kind == "xid"]
    for address in sorted({event.address for event in xids}):
        of_gpu = [event for event in xids if event.address == address]
        now, past = _split(of_gpu)
        found += _present(now, table, facts)
        found += _history(past, now, table)
    return found


def _split(events: Sequence[Event]) -> tuple[list[Event], list[Event]]:
    """Return the events that are a fault now, and those of earlier boots or before a reset."""
    present = [event for event in events if event.boot == 0]
    reset = max(
        (
            event.last
            for event in present
            if event.number == RECOVERY_XID
            and event.last is not None
            and recovery_action(event.sample) == "none"
        ),
        default=None,
    )
    now = [event for event in present if reset is None or event.last is None or event.last > reset]
    return now, [event for event in events if event not in now]


def _present(
    events: Sequence[Event], table: Mapping[int, Xid], facts: Facts | None
) -> list[Judged]:
    """Return the findings of the events of one GPU that are a fault now."""
    rows = {event: in_line(event.number, event.sample, table) for event in events}
    leaders = [event for event in events if not _follows(rows[event])]
    found = []
    for event in events:
        leader = _leader(event, leaders, rows) if _follows(rows[event]) else None
        # What belongs to another Xid is its evidence, but for a fault of its own.
        if leader is None or rows[event].severity == ERROR:
            found.append(_judged(event, rows[event], facts))
    recovery = next(
        (
            event
            for event in events
            if event.number == RECOVERY_XID and recovery_action(event.sample) not in ("", "none")
        ),
        None,
    )
    if recovery is None:
        return found
    leader = _leader(recovery, leaders, rows)
    cause = leader.number if leader else RECOVERY_XID
    return [
        _recovered(one, recovery) if one.severity == ERROR or cause in one.seen.xids else one
        for one in found
    ]


def _follows(row: Xid) -> bool:
    return row.action == FOLLOW or row.number in FOLLOWERS


def _leader(event: Event, leaders: Sequence[Event], rows: Mapping[Event, Xid]) -> Event | None:
    """Return the Xid of the same GPU shortly before the event; the worst of several."""
    named = previous_xid(event.sample)
    before = [
        leader
        for leader in leaders
        if leader.number == named
        or None in (event.first, event.last, leader.first, leader.last)
        or (
            (leader.first or 0.0) <= (event.first or 0.0)
            and (event.last or 0.0) <= (leader.last or 0.0) + FOLLOWS_WITHIN
        )
    ]
    return min(before, key=lambda one: (_ORDER.index(rows[one].severity), one.number), default=None)


def _judged(event: Event, row: Xid, facts: Facts | None) -> Judged:
    severity = row.severity
    otherwise = Finding(
        "xid",
        f"GPU {event.address}: {row.meaning} (Xid {event.number}).",
        next_step=row.next_step,
    )
    finding = next(iter(explain(event.sample, facts)), otherwise)
    if row != in_line(event.number, event.sample):
        # The user's entry.
        finding = replace(finding, next_step=row.next_step)
    elif row.action == RECOVERY:
        severity = RECOVERY_ACTIONS.get(recovery_action(event.sample), ERROR)
    elif row.action == PROGRAM and _by_several(event):
        severity = WARNING
        finding = replace(
            finding,
            cause=f"{finding.cause} {_by_several(event)}",
            next_step="Run dcgmi diag on this GPU when the node is free: usually one program is "
            "at fault, but several point to the GPU.",
        )
    return judged(
        replace(finding, evidence=describe(event)),
        severity,
        event.address,
        Seen((event.number,), event.count, event.last),
    )


def _by_several(event: Event) -> str:
    """Return who had an Xid, if several programs or jobs had it on the same GPU."""
    if len(event.programs) > 1:
        return f"Several programs had it: {', '.join(event.programs)}."
    if len(event.processes) < MOST_JOBS or len(event.places) > 1:
        return ""
    where = f", all of them in {event.places[0]}" if event.places else ""
    return f"{len(event.processes)} processes or more had it{where}."


def _recovered(one: Judged, recovery: Event) -> Judged:
    """Return a finding with what the driver says after it (Xid 154)."""
    if one.seen.xids == (RECOVERY_XID,) or None in (one.seen.last, recovery.last):
        return one
    if (recovery.last or 0.0) < (one.seen.last or 0.0):
        return one
    action = recovery_action(recovery.sample)
    severity = worst((one.severity, RECOVERY_ACTIONS.get(action, ERROR)))
    step = f"Drain the node, then: {action} (Xid 154, which overrides what the Xid calls for)."
    evidence = f"{one.evidence}; {recovery.sample}"
    return replace(
        one,
        severity=severity,
        next_step=step,
        evidence=evidence,
        seen=replace(one.seen, xids=(*one.seen.xids, RECOVERY_XID)),
    )


def _history(past: Sequence[Event], now: Sequence[Event], table: Mapping[int, Xid]) -> list[Judged]:
    """Return what a GPU had in earlier boots, or before its last reset."""
    found = []
    for number in sorted({event.number for event in past}):
        events = [event for event in past if event.number == number]
        errors = [
            event for event in events if in_line(number, event.sample, table).severity == ERROR
        ]
        if not errors:
            continue
        count = sum(event.count for event in errors)
        boots = {event.boot for event in (*errors, *(one for one in now if one.number == number))}
        again = len(boots) > 1
        latest = max(errors, key=lambda event: (event.boot, event.last or 0.0))
        meaning = f"Xid {number} ({look_up(number, table).meaning})"
        finding = Finding(
            "xid_history",
            f"GPU {latest.address} had {meaning} before its last reboot or reset, {_times(count)}.",
            describe(latest),
            "Nothing, unless it comes again.",
        )
        if again:
            finding = Finding(
                "xid_again",
                f"GPU {latest.address} had {meaning} in {len(boots)} boots.",
                describe(latest),
                _AGAIN_STEP,
            )
        severity = WARNING if again else INFO
        found.append(judged(finding, severity, latest.address, Seen((number,))))
    return found


def judge_switches(events: Sequence[Event], facts: Facts | None = None) -> list[Judged]:
    """Return the findings of NVSwitches (SXid) since boot."""
    found = []
    for event in events:
        if event.kind != "sxid" or event.boot != 0:
            continue
        finding = explain(event.sample, facts)[0]
        found.append(
            judged(
                replace(finding, evidence=describe(event)),
                finding.severity,
                event.address,
                Seen((), event.count, event.last),
            )
        )
    return found


def describe(event: Event) -> str:
    """Return an event as evidence."""
    when = shown_time(event.last)
    last = f", last {when}" if when and event.count > 1 else f", {when}" if when else ""
    return f"{_times(event.count)}{last}: {event.sample}"


def _times(count: int) -> str:
    return f"{count} times" if count > 1 else "once"
