# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan the changes of a node's labels, annotations and taints. Pure.

Input is Node objects, output is request bodies for the API server. The owner of a label is read
from ``managedFields``, as the API server itself does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .names import is_discovered
from .node import read_taint, recorded_taints
from .types import KINDS, TAINTS_ANNOTATION, Conflict, Node, Plan, Request, Taint


def without_discovered(request: Request) -> tuple[Request, tuple[str, ...]]:
    """Return the request without the labels that GPU feature discovery owns, and their names."""
    left = tuple(sorted(name for name in request.labels if is_discovered(name)))
    if not left:
        return request, ()
    labels = {name: value for name, value in request.labels.items() if name not in left}
    return replace(request, labels=labels), left


def plan(request: Request, node: Node, *, force: bool = False) -> Plan:
    """Compare a node with the request; return what to send, and the conflicts.

    Fields that another manager owns with another value are omitted unless ``force`` is set, because
    server-side apply would reject all labels of the node for a single conflict.
    """
    conflicts = []
    wanted: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
    for kind in KINDS:
        for name, value in request.of(kind).items():
            owners = node.owners.get((kind, name), ())
            now = node.of(kind).get(name)
            if owners and now != value and not force:
                conflicts.append(
                    Conflict(node.name, kind[:-1], name, ", ".join(owners), now or "", value)
                )
            else:
                wanted[kind][name] = value
    keys = {(kind, name) for kind in KINDS for name in wanted[kind]}
    # A cordon of ours is that of a pause, and no run pauses the node any more.
    differs = (
        keys != node.managed
        or node.cordons
        or any(node.of(kind).get(name) != wanted[kind][name] for kind, name in keys)
    )
    taints, taint_conflicts = _plan_taints(request, node, force)
    return Plan(
        apply=apply_body(node, wanted) if differs else None,
        taints=taints,
        conflicts=(*conflicts, *taint_conflicts),
        shown=frozenset(keys | node.managed),
    )


def apply_body(
    node: Node, wanted: Mapping[str, Mapping[str, str]], spec: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the complete configuration that the field manager applies to the node.

    :param wanted: labels and annotations. What the manager applied before and is not in it, goes.
    """
    # The uid keeps server-side apply from creating a node that was deleted meanwhile.
    metadata: dict[str, Any] = {"name": node.name, "uid": node.uid}
    metadata.update({kind: dict(wanted[kind]) for kind in KINDS if wanted[kind]})
    body = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
    return {**body, "spec": dict(spec)} if spec else body


def _plan_taints(
    request: Request, node: Node, force: bool
) -> tuple[dict[str, Any] | None, list[Conflict]]:
    """Return the patch of ``spec.taints`` and of the annotation with it, and the conflicts."""
    before = recorded_taints(node)
    wanted = {taint.identity: taint for taint in request.taints}
    record: dict[tuple[str, str], Taint] = {}
    conflicts = []
    after: list[Mapping[str, Any]] = []
    for data in node.taints:
        taint = read_taint(data)
        is_managed = before.get(taint.identity) == taint
        requested = wanted.pop(taint.identity, None)
        if requested is None:
            if not is_managed and taint.key not in request.drop_taints:
                after.append(data)
        elif requested == taint:
            # An unmanaged taint that equals the request remains unmanaged.
            after.append(data)
            if is_managed:
                record[taint.identity] = taint
        elif is_managed or force:
            after.append(_taint_body(requested))
            record[taint.identity] = requested
        else:
            owner = ", ".join(node.taint_owners) or "another owner"
            name = f"{taint.key}:{taint.effect}"
            conflicts.append(
                Conflict(node.name, "taint", name, owner, taint.value, requested.value)
            )
            after.append(data)
    for taint in wanted.values():
        after.append(_taint_body(taint))
        record[taint.identity] = taint
    annotation = json.dumps(sorted(str(taint) for taint in record.values())) if record else None
    if list(node.taints) == after and node.annotations.get(TAINTS_ANNOTATION) == annotation:
        return None, conflicts
    return {
        "metadata": {"annotations": {TAINTS_ANNOTATION: annotation}},
        "spec": {"taints": after or None},
    }, conflicts


def with_version(patch: Mapping[str, Any], version: str) -> dict[str, Any]:
    """Return the patch of the taints with the resource version of the node that was read.

    The list is a single value: a concurrent change must cause a conflict, not be overwritten.
    """
    return {**patch, "metadata": {**patch["metadata"], "resourceVersion": version}}


def _taint_body(taint: Taint) -> dict[str, str]:
    body = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        body["value"] = taint.value
    return body


def view(node: Node, plan_of_node: Plan, request: Request) -> dict[str, Any]:
    """Return the fields of a node that the diff shows, with other owners."""
    shown: dict[str, Any] = {}
    for kind in KINDS:
        values = {}
        for one_kind, name in sorted(plan_of_node.shown):
            if one_kind != kind or name not in node.of(kind):
                continue
            values[name] = node.of(kind)[name]
            owners = node.owners.get((kind, name))
            if owners and (kind, name) not in node.managed:
                values[name] += f" (of {', '.join(owners)})"
        if values:
            shown[kind] = values
    identities = set(recorded_taints(node)) | {taint.identity for taint in request.taints}
    if plan_of_node.taints is not None:
        identities |= {read_taint(data).identity for data in node.taints}
    taints = [str(taint) for taint in map(read_taint, node.taints) if taint.identity in identities]
    if taints:
        shown["taints"] = taints
    if node.cordons:
        shown["unschedulable"] = True
    return shown
