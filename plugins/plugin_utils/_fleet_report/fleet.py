# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is said of the fleet: what is to be done, drift, and one sentence. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .types import (
    ATTENTION,
    FAILED,
    INFO,
    NO_GPU,
    READY,
    SEVERITIES,
    STATES,
    UNKNOWN,
    Action,
    Affected,
    Cause,
    Drift,
    Node,
    Value,
)

# Causes that the sentence names.
_NAMED = 2


def make_actions(nodes: Sequence[Node]) -> list[Action]:
    """Return the causes of all nodes, with equal ones as one action: what most nodes need first.

    Causes are equal if they have the same id and the same next step.
    """
    groups: dict[tuple[str, str, str, str], list[tuple[Node, Cause]]] = {}
    for node in nodes:
        for cause in node.causes:
            key = (cause.id, cause.severity, cause.next_step, cause.fix)
            groups.setdefault(key, []).append((node, cause))
    found = [_action(group) for group in groups.values()]
    return sorted(
        found,
        key=lambda one: (SEVERITIES.index(one.severity), -_count(one), one.id, one.next_step),
    )


def _count(action: Action) -> int:
    return len({one.node for one in action.nodes})


def _action(group: Sequence[tuple[Node, Cause]]) -> Action:
    causes = [cause for _node, cause in group]
    first = causes[0]
    return Action(
        first.id,
        first.severity,
        # What most of them say.
        Counter(one.cause for one in causes).most_common(1)[0][0],
        first.next_step,
        first.fix,
        first.confidence,
        tuple(Affected(node.name, one.subject, one.cause, one.evidence) for node, one in group),
        tuple(dict.fromkeys(text for one in causes for text in one.follows)),
    )


def find_drift(nodes: Sequence[Node]) -> list[Drift]:
    """Return what differs between nodes of one kind: the same GPUs and the same system."""
    kinds: dict[str, list[Node]] = {}
    for node in nodes:
        if node.kind and node.state not in (UNKNOWN, NO_GPU):
            kinds.setdefault(node.kind, []).append(node)
    found = []
    for kind, members in sorted(kinds.items()):
        names = dict.fromkeys(name for node in members for name in node.versions)
        for name in names:
            by_value: dict[str, list[str]] = {}
            for node in members:
                by_value.setdefault(node.versions.get(name, "none"), []).append(node.name)
            if len(by_value) > 1:
                found.append(Drift(kind, name, _values(by_value)))
    return found


def _values(by_value: dict[str, list[str]]) -> tuple[Value, ...]:
    ordered = sorted(by_value.items(), key=lambda one: (-len(one[1]), one[0]))
    most = len(ordered[0][1])
    # Without a value that more nodes have than any other one, none is the odd one.
    clear = len(ordered[1][1]) < most
    return tuple(
        Value(value, tuple(names), clear and len(names) < most) for value, names in ordered
    )


def count_states(nodes: Sequence[Node]) -> dict[str, int]:
    """Return how many nodes are in each state."""
    counts = Counter(node.state for node in nodes)
    return {name: counts[name] for name in STATES}


def make_sentence(nodes: Sequence[Node]) -> str:
    """Return the one sentence that says how the fleet is."""
    counts = count_states(nodes)
    total = len(nodes) - counts[NO_GPU]
    if not nodes:
        return "The report has no nodes."
    if not total:
        if len(nodes) == 1:
            return "The only node has no GPU."
        return f"None of the {len(nodes)} nodes has a GPU."
    ready = counts[READY] + counts[ATTENTION]
    if ready == total:
        first = "The only node is ready" if total == 1 else f"All {total} nodes are ready"
    else:
        first = f"{ready} of {_nodes(total)} {'is' if 1 in (ready, total) else 'are'} ready"
    parts = [f"{first} for GPU containers"]
    if counts[FAILED]:
        parts.append(f"{counts[FAILED]} {_be(counts[FAILED])} not: {_named(nodes)}")
    if counts[UNKNOWN]:
        parts.append(f"{counts[UNKNOWN]} could not be read")
    if counts[ATTENTION]:
        parts.append(f"{counts[ATTENTION]} of the ready ones need attention")
        if counts[ATTENTION] == 1:
            parts[-1] = "1 of the ready ones needs attention"
    return "; ".join(parts) + "."


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _named(nodes: Sequence[Node]) -> str:
    """Return why nodes fail: the causes of most nodes."""
    whys = Counter(node.why.rstrip(".") for node in nodes if node.state == FAILED)
    ordered = sorted(whys.items(), key=lambda one: (-one[1], one[0]))
    shown = [
        why if len(ordered) == 1 and count == 1 else f"{why} ({count})"
        for why, count in ordered[:_NAMED]
    ]
    if len(ordered) > _NAMED:
        shown.append(f"other causes ({sum(count for _why, count in ordered[_NAMED:])})")
    return ", ".join(shown)


def wants_action(action: Action) -> bool:
    """Return whether an action is more than information."""
    return action.severity != INFO
