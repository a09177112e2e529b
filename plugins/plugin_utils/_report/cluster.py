# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of the plan table for the changes in a cluster. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# What is deployed into a cluster: name, plan (empty if it is not installed), and the result of the
# role: whether it changes the cluster, and the kinds of objects that the API server would change.
Deployment = tuple[str, Mapping[str, Any], Mapping[str, Any]]
_WITHOUT = "labels: remove those of this collection"
_NOT_A_NODE = (
    "no node has its machine id or its name: join it, or set gpu_node_labels_node_name to the name "
    "that kubectl get nodes shows"
)
_SIDES = ("before", "after")
_OURS = "this collection set it up"
_ABSENT = "the cluster has none of this collection"


def cluster_plan(
    labels: Mapping[str, Any], deployments: Sequence[Deployment]
) -> list[dict[str, Any]]:
    """Return one row for each host, and one for each deployment.

    :param labels: the result of node_gpu_label in check mode.
    """
    unknown, conflicts = set(labels.get("unknown") or ()), labels.get("conflicts") or []
    refused = labels.get("refused") or {}
    rows = []
    for key, node in (labels.get("nodes") or {}).items():
        if key in refused:
            rows.append(_row(key, None, [("refused", str(refused[key]))]))
            continue
        if node.get("node") is None and key not in unknown:
            # A host that has no GPU and is not in the cluster is left out.
            continue
        steps = _steps(key, node, unknown, labels.get("diff") or {})
        steps += [
            (
                f"{one['kind']} {one['name']}: left alone",
                f"it is {one['value']!r} and belongs to {one['owner']}",
            )
            for one in conflicts
            if one["node"] == node.get("node")
        ]
        rows.append(_row(key, node.get("node"), steps))
    rows += [
        _row(name, None, _deployment(plan, result)) for name, plan, result in deployments if plan
    ]
    return rows


def cluster_teardown(
    labels: Mapping[str, Any], objects: Sequence[Mapping[str, Any]], kept_for: Sequence[str]
) -> list[dict[str, Any]]:
    """Return one row for each node that loses labels, and one for the objects.

    :param labels: the result of node_gpu_label.
    :param objects: the objects that were removed, or in check mode would be.
    :param kept_for: nodes outside of the run, for which device plugins and monitoring are kept.
    """
    found = [
        _row(key, node.get("node"), [(_WITHOUT, _OURS)])
        for key, node in (labels.get("nodes") or {}).items()
        if node.get("changed")
    ]
    steps = [("none", f"they serve nodes outside of this run: {', '.join(kept_for)}")]
    if not kept_for:
        kinds: dict[str, set[str]] = {}
        for one in objects:
            place = one["metadata"].get("namespace")
            kinds.setdefault(place or "", set()).add(str(one["kind"]))
        steps = [
            (f"remove {', '.join(sorted(names))}" + (f" in {place}" if place else ""), _OURS)
            for place, names in kinds.items()
        ]
    return [*found, _row("device plugins, monitoring", None, steps or [("none", _ABSENT)])]


def dra_plan(plan: Mapping[str, Any], result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for the DRA driver, one for what it needs of the cluster, and one a node.

    :param plan: the plan of the DRA driver; empty for none.
    :param result: of the role, as those of deployments.
    """
    if not plan:
        return []
    rows = [_row("DRA driver", plan.get("api") or None, _dra_steps(plan, result))]
    needed = plan.get("preconditions") or ()
    for node in dict.fromkeys(one["node"] for one in needed):
        steps = [_needed(one) for one in needed if one["node"] == node]
        rows.append(_row(f"DRA: {node or 'cluster'}", None, steps))
    return rows


def _dra_steps(plan: Mapping[str, Any], result: Mapping[str, Any]) -> list[tuple[str, str]]:
    refusals = plan.get("refusals") or ()
    if refusals:
        others = f" and {len(refusals) - 1} more" if len(refusals) > 1 else ""
        return [("refused", f"DRA: not possible: {refusals[0]['cause']}{others}")]
    if not result.get("changed"):
        return []
    steps = []
    if plan.get("replaced"):
        steps.append(("remove the device plugin", "the DRA driver allocates its GPUs"))
    return [*steps, *_applied(plan, result)]


def _applied(plan: Mapping[str, Any], result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the step that applies objects; none if only others change."""
    kinds = result.get("kinds")
    if kinds is None:
        # A result that a play has set.
        kinds = [item["kind"] for item in plan.get("objects") or ()]
    names = ", ".join(sorted({str(kind) for kind in kinds}))
    return [(f"apply {names}", "; ".join(plan.get("reasons") or ()))] if names else []


def _needed(one: Mapping[str, Any]) -> tuple[str, str]:
    seen = f" ({one['evidence']})" if one["evidence"] else ""
    step = f". {one['next_step']}" if one["next_step"] else ""
    return f"{one['name']}: {one['value']}", f"{one['verdict']}{seen}{step}"


def _steps(
    key: str, node: Mapping[str, Any], unknown: set[str], diff: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Return what changes on a node.

    :param diff: that of node_gpu_label: what differs is shown, not all that the node has.
    """
    if key in unknown:
        return [("none: not in the cluster", _NOT_A_NODE)]
    if not node.get("changed"):
        return []
    wanted = {**(node.get("labels") or {}), **(node.get("annotations") or {})}
    taints = [f"{taint['key']}:{taint['effect']}" for taint in node.get("taints") or ()]
    if not wanted and not taints:
        return [(_WITHOUT, "the machine has no GPU")]
    before, after = ((diff.get(one) or {}).get(node.get("node")) or {} for one in _SIDES)
    had, has = _named(before), _named(after)
    new = {name for name in wanted if name not in had or had[name] != has.get(name)}
    values = ", ".join(f"{name}={wanted[name]}" for name in sorted(new))
    gone = ", ".join(sorted(had.keys() - has.keys()))
    # Both sides write a taint as KEY=VALUE:EFFECT, so that another value is a change.
    tainted = set(after.get("taints") or ()) - set(before.get("taints") or ())
    untainted = set(before.get("taints") or ()) - set(after.get("taints") or ())
    steps = [
        ("labels: set", f"from the detected hardware: {values}" if values else ""),
        ("labels: remove", f"no longer from the detected hardware: {gone}" if gone else ""),
        ("taints: set", ", ".join(sorted(tainted) if after or before else taints)),
        ("taints: remove", ", ".join(sorted(untainted))),
    ]
    shown = [(step, why) for step, why in steps if why]
    return shown or [("labels: set", "this collection becomes their owner, the values remain")]


def _named(side: Mapping[str, Any]) -> dict[str, str]:
    """Return labels and annotations of one side of a diff."""
    return {**(side.get("labels") or {}), **(side.get("annotations") or {})}


def _deployment(plan: Mapping[str, Any], result: Mapping[str, Any]) -> list[tuple[str, str]]:
    if plan.get("action") == "refuse":
        return [("refused", str(plan.get("text") or ""))]
    if plan.get("action") == "leave":
        return [("none", f"the cluster has {', '.join(plan.get('others') or ())}")]
    if not result.get("changed"):
        return []
    steps = [
        *_applied(plan, result),
        *(
            (
                f"remove those of this collection from namespace {name}",
                "an earlier run deployed it there",
            )
            for name in plan.get("earlier") or ()
        ),
    ]
    return steps or [("remove objects of this collection", "the request has none of them")]


def _row(key: str, name: str | None, steps: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "node": key,
        "kubernetes": name,
        "changes": [step for step, _reason in steps] or ["none"],
        "why": [reason for _step, reason in steps] or ["up to date"],
    }
