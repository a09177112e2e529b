# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is reported of the fleet: drift, and one sentence. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import INFO, Finding

from .types import (
    ATTENTION,
    FAILED,
    NO_GPU,
    NOT_KNOWN,
    PARTLY,
    READY,
    STATES,
    UNKNOWN,
    Drift,
    Node,
    Value,
)

# Causes that the sentence names.
_NAMED = 2


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
                value = node.versions.get(name, "none")
                if value != NOT_KNOWN:
                    by_value.setdefault(value, []).append(node.name)
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


def count_models(nodes: Sequence[Node]) -> list[dict[str, Any]]:
    """Return how many GPUs of each product there are, the most frequent first."""
    counts = Counter(gpu.product for node in nodes for gpu in node.gpus)
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return [{"product": product, "gpus": number} for product, number in ordered]


def make_sentence(nodes: Sequence[Node], others: Sequence[Finding] = ()) -> str:
    """Return the one sentence that says how the fleet is.

    :param others: causes of pods, and of no node.
    """
    more = [one for one in others if one.severity != INFO]
    parts = _of_nodes(nodes)
    if more:
        count = f"{len(more)} {'finding is' if len(more) == 1 else 'findings are'}"
        parts.append(
            f"{count} about pods or the cluster: {_most([('', one.cause) for one in more])}"
        )
    return "; ".join(parts) + "."


def _of_nodes(nodes: Sequence[Node]) -> list[str]:
    counts = count_states(nodes)
    total = len(nodes) - counts[NO_GPU]
    if not nodes:
        return ["The report has no nodes"]
    if not total:
        one = len(nodes) == 1
        return ["The only node has no GPU" if one else f"None of the {len(nodes)} nodes has a GPU"]
    ready = counts[READY] + counts[ATTENTION]
    if ready == total:
        first = "The only node is ready" if total == 1 else f"All {total} nodes are ready"
    else:
        first = f"{ready} of {_nodes(total)} {'is' if 1 in (ready, total) else 'are'} ready"
    parts = [f"{first} for GPU containers"]
    if counts[FAILED]:
        failed = [(node.name, node.why) for node in nodes if node.state == FAILED]
        parts.append(f"{counts[FAILED]} {_be(counts[FAILED])} not: {_most(failed)}")
    if counts[UNKNOWN]:
        parts.append(f"{counts[UNKNOWN]} could not be read")
    if counts[PARTLY]:
        parts.append(f"{counts[PARTLY]} could be read in part only")
    if counts[ATTENTION]:
        parts.append(f"{counts[ATTENTION]} of the ready ones need attention")
        if counts[ATTENTION] == 1:
            parts[-1] = "1 of the ready ones needs attention"
    return parts


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _most(causes: Sequence[tuple[str, str]]) -> str:
    """Return the causes, of which the most frequent ones are named.

    :param causes: the node, empty for none, and its cause.
    """
    whys: dict[str, list[str]] = {}
    for name, cause in causes:
        whys.setdefault(cause.rstrip("."), []).append(name)
    ordered = sorted(whys.items(), key=lambda one: (-len(one[1]), one[0]))
    shown = [_who(why, names, alone=len(causes) == 1) for why, names in ordered[:_NAMED]]
    if len(ordered) > _NAMED:
        shown.append(f"other causes ({sum(len(names) for _why, names in ordered[_NAMED:])})")
    return ", ".join(shown)


def _who(why: str, names: Sequence[str], *, alone: bool) -> str:
    """Return a cause with its nodes, or with their number if they are many or have no names."""
    if all(names) and len(names) <= _NAMED:
        return f"{' and '.join(names)} ({why})"
    return why if alone else f"{why} ({len(names)})"
