# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record on a Node object, and the patches that write it together with the cordon. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .._core.errors import InputError
from .._core.finding import Finding
from .._labels.names import KEEP_NODE
from .._labels.pause import PAUSE
from .types import CORDONED, PAUSED_BY, RECORD, Node, Record, Request

_TEXTS = ("run", "reason", "since")
_FLAGS = ("was_unschedulable", "paused")
_KEEP = "true"


def read_node(data: Mapping[str, Any]) -> Node:
    """Return the parts of a Node object."""
    meta, spec, status = (data.get(part) or {} for part in ("metadata", "spec", "status"))
    ready: Mapping[str, Any] = {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            ready = condition
    is_ready = ready.get("status") == "True"
    return Node(
        name=str(meta.get("name") or ""),
        resource_version=str(meta.get("resourceVersion") or ""),
        unschedulable=bool(spec.get("unschedulable")),
        ready=is_ready,
        ready_message="" if is_ready else str(ready.get("message") or ready.get("reason") or ""),
        record=(meta.get("annotations") or {}).get(RECORD),
        pause=(meta.get("labels") or {}).get(PAUSE),
        keep=(meta.get("annotations") or {}).get(KEEP_NODE),
        boot_id=str((status.get("nodeInfo") or {}).get("bootID") or ""),
    )


def read_record(node: Node) -> Record | None:
    """Return the record of a node; None without one.

    :raises InputError: the annotation is not as this module writes it.
    """
    if node.record is None:
        return None
    try:
        data = json.loads(node.record)
        valid = (
            isinstance(data, dict)
            and bool(data.get("run"))
            and all(isinstance(data.get(name, ""), str) for name in _TEXTS)
            and all(isinstance(data.get(name), bool) for name in _FLAGS)
            and isinstance(data.get("kept_before", ""), str)
        )
    except (ValueError, RecursionError):
        valid = False
    if not valid:
        raise InputError(
            f"The annotation {RECORD} of the node {node.name} cannot be read, so that nobody knows "
            "whether the node was cordoned before.",
            evidence=node.record[:200],
            next_step="See who changed it. If nobody works on the node, remove it: kubectl "
            f"annotate node {node.name} {RECORD}-",
        )
    return Record(
        **{name: data.get(name, "") for name in (*_TEXTS, *_FLAGS)},
        kept_before=data.get("kept_before"),
    )


def find_obstacle(node: Node, request: Request) -> Finding | None:
    """Return why this run may not touch a node; None if it may."""
    try:
        record = read_record(node)
    except InputError as error:
        return Finding("record_unreadable", error.cause, error.evidence, error.next_step)
    if record is None or record.run == request.run or request.take_over:
        return None
    reason = f" ({record.reason})" if record.reason else ""
    return Finding(
        "held_by_other",
        f"The node {node.name} is in maintenance by the run {record.run}{reason}, since "
        f"{record.since or 'an unknown time'}.",
        f"annotation {RECORD}: {node.record}",
        f"Wait until that run releases it. If it has ended without that, give its name (run: "
        f"{record.run}), or take its nodes over with take_over: true.",
    )


def cordon(node: Node, request: Request, now: str) -> dict[str, Any] | None:
    """Return the merge patch that cordons a node and remembers what it was; None for none.

    With the cordon, the node gets the annotation that keeps cluster-autoscaler from removing it.

    :param now: the time by the server's clock.
    """
    known = read_record(node)
    record = known or Record(request.run, since=now, was_unschedulable=node.unschedulable)
    if known is not None and known.run != request.run:
        record = replace(record, run=request.run)
    # A run that takes a node over keeps the pause.
    ends_pause = request.state == CORDONED and known == record and not request.pause
    if request.reason:
        record = replace(record, reason=request.reason)
    labels: dict[str, Any] = {}
    if request.pause and node.pause is None:
        labels[PAUSE] = PAUSED_BY
        record = replace(record, paused=True)
    elif ends_pause and record.paused:
        # The label may be another one's by now.
        labels = {PAUSE: None} if node.pause == PAUSED_BY else {}
        record = replace(record, paused=False)
    annotations: dict[str, Any] = {}
    # A value that somebody set after this run remains.
    if record.kept_before is None and node.keep != _KEEP:
        annotations[KEEP_NODE] = _KEEP
        record = replace(record, kept_before=node.keep or "")
    if known == record and node.unschedulable and not labels:
        return None
    annotations[RECORD] = json.dumps(record.to_json(), sort_keys=True)
    metadata: dict[str, Any] = {
        "resourceVersion": node.resource_version,
        "annotations": annotations,
    }
    if labels:
        metadata["labels"] = labels
    return {"metadata": metadata, "spec": {"unschedulable": True}}


def release(node: Node) -> dict[str, Any] | None:
    """Return the merge patch that releases a node; None if nobody holds it.

    The cordon goes if the record's run set it, and the label if it is still this module's. The
    annotation for cluster-autoscaler gets the value that it had.
    """
    record = read_record(node)
    if record is None:
        return None
    annotations: dict[str, Any] = {RECORD: None}
    if record.kept_before is not None and node.keep == _KEEP:
        annotations[KEEP_NODE] = record.kept_before or None
    metadata: dict[str, Any] = {
        "resourceVersion": node.resource_version,
        "annotations": annotations,
    }
    if record.paused and node.pause == PAUSED_BY:
        metadata["labels"] = {PAUSE: None}
    patch: dict[str, Any] = {"metadata": metadata}
    if not record.was_unschedulable and node.unschedulable:
        patch["spec"] = {"unschedulable": None}
    return patch


def view(node: Node) -> dict[str, Any]:
    """Return what the diff shows of a node. A record that cannot be read counts as none."""
    try:
        record = read_record(node)
    except InputError:
        record = None
    return {
        "unschedulable": node.unschedulable,
        "run": record.run if record else None,
        "reason": record.reason if record else None,
        "paused": node.pause is not None,
        "scale_down_disabled": node.keep == _KEEP,
    }
