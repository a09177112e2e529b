# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What differs between the labels, annotations and taints that a node has and shall have.

Nothing here speaks to a cluster: objects of its API come in, bodies for it come out. Who owns a
label is read from ``managedFields``, as the API server itself does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .desired import is_discovered
from .node import read_taint, remembered
from .types import KINDS, REMEMBERED, Conflict, Node, Plan, Taint, Wish


def without_discovered(wish: Wish) -> tuple[Wish, tuple[str, ...]]:
    """Return the wish without the labels that feature discovery owns, and their names."""
    left = tuple(sorted(name for name in wish.labels if is_discovered(name)))
    if not left:
        return wish, ()
    labels = {name: value for name, value in wish.labels.items() if name not in left}
    return Wish(wish.key, wish.name, wish.machine_id, labels, wish.annotations, wish.taints), left


def plan(wish: Wish, node: Node, *, force: bool = False) -> Plan:
    """Compare, and return what to send and what is in the way.

    What belongs to somebody else with another value is left out unless ``force``: server-side
    apply would refuse all of the node's labels for one of them.
    """
    conflicts = []
    wanted: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
    for kind in KINDS:
        for name, value in wish.of(kind).items():
            owners = node.owners.get((kind, name), ())
            now = node.of(kind).get(name)
            if owners and now != value and not force:
                conflicts.append(
                    Conflict(node.name, kind[:-1], name, ", ".join(owners), now or "", value)
                )
            else:
                wanted[kind][name] = value
    keys = {(kind, name) for kind in KINDS for name in wanted[kind]}
    differs = keys != node.ours or any(
        node.of(kind).get(name) != wanted[kind][name] for kind, name in keys
    )
    taints, taint_conflicts = _plan_taints(wish, node, force)
    return Plan(
        apply=_apply_body(node, wanted) if differs else None,
        taints=taints,
        conflicts=(*conflicts, *taint_conflicts),
        shown=frozenset(keys | node.ours),
    )


def _apply_body(node: Node, wanted: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    # With its uid, the apply of a node that was just deleted does not make a new one.
    metadata: dict[str, Any] = {"name": node.name, "uid": node.uid}
    metadata.update({kind: dict(wanted[kind]) for kind in KINDS if wanted[kind]})
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata}


def _plan_taints(
    wish: Wish, node: Node, force: bool
) -> tuple[dict[str, Any] | None, list[Conflict]]:
    """Return the patch of ``spec.taints`` with our memory of it, and what is in the way."""
    before = remembered(node)
    wanted = {taint.identity: taint for taint in wish.taints}
    memory: dict[tuple[str, str], Taint] = {}
    conflicts = []
    after: list[Mapping[str, Any]] = []
    for data in node.taints:
        taint = read_taint(data)
        mine = before.get(taint.identity) == taint
        wish_now = wanted.pop(taint.identity, None)
        if wish_now is None:
            if not mine:
                after.append(data)
        elif wish_now == taint:
            # Somebody else's that is as we want it stays somebody else's.
            after.append(data)
            if mine:
                memory[taint.identity] = taint
        elif mine or force:
            after.append(_taint_body(wish_now))
            memory[taint.identity] = wish_now
        else:
            owner = ", ".join(node.taint_owners) or "somebody else"
            name = f"{taint.key}:{taint.effect}"
            conflicts.append(Conflict(node.name, "taint", name, owner, taint.value, wish_now.value))
            after.append(data)
    for taint in wanted.values():
        after.append(_taint_body(taint))
        memory[taint.identity] = taint
    annotation = json.dumps(sorted(str(taint) for taint in memory.values())) if memory else None
    if list(node.taints) == after and node.annotations.get(REMEMBERED) == annotation:
        return None, conflicts
    return {
        "metadata": {"annotations": {REMEMBERED: annotation}},
        "spec": {"taints": after or None},
    }, conflicts


def with_version(patch: Mapping[str, Any], version: str) -> dict[str, Any]:
    """Return the patch of the taints for the node as it was read.

    The list is one value: whoever changed it in between must not lose what they wrote.
    """
    return {**patch, "metadata": {**patch["metadata"], "resourceVersion": version}}


def _taint_body(taint: Taint) -> dict[str, str]:
    body = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        body["value"] = taint.value
    return body


def view(node: Node, plan_of_node: Plan, wish: Wish) -> dict[str, Any]:
    """Return what is shown of a node before or after: what is or was ours, and its owners."""
    shown: dict[str, Any] = {}
    for kind in KINDS:
        values = {}
        for one_kind, name in sorted(plan_of_node.shown):
            if one_kind != kind or name not in node.of(kind):
                continue
            values[name] = node.of(kind)[name]
            owners = node.owners.get((kind, name))
            if owners and (kind, name) not in node.ours:
                values[name] += f" (of {', '.join(owners)})"
        if values:
            shown[kind] = values
    identities = set(remembered(node)) | {taint.identity for taint in wish.taints}
    if plan_of_node.taints is not None:
        identities |= {read_taint(data).identity for data in node.taints}
    taints = [str(taint) for taint in map(read_taint, node.taints) if taint.identity in identities]
    if taints:
        shown["taints"] = taints
    return shown
