# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of the plan table for the changes in a cluster. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# What is deployed into a cluster: name, plan (empty if it is not installed), and whether the dry
# run of the API server changes any of its objects.
Deployment = tuple[str, Mapping[str, Any], bool]
_WITHOUT = "labels: remove those of this collection"
_NOT_A_NODE = (
    "no node has its machine id or its name: join it, or set gpu_node_labels_node_name to the name "
    "that kubectl get nodes shows"
)
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
        steps = _steps(key, node, unknown)
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
        _row(name, None, _deployment(plan, changed)) for name, plan, changed in deployments if plan
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


def dra_plan(plan: Mapping[str, Any], changed: bool) -> list[dict[str, Any]]:
    """Return a row for the DRA driver, one for what it needs of the cluster, and one a node.

    :param plan: the plan of the DRA driver; empty for none.
    """
    if not plan:
        return []
    rows = [_row("DRA driver", plan.get("api") or None, _dra_steps(plan, changed))]
    needed = plan.get("preconditions") or ()
    for node in dict.fromkeys(one["node"] for one in needed):
        steps = [_needed(one) for one in needed if one["node"] == node]
        rows.append(_row(f"DRA: {node or 'cluster'}", None, steps))
    return rows


def _dra_steps(plan: Mapping[str, Any], changed: bool) -> list[tuple[str, str]]:
    refusals = plan.get("refusals") or ()
    if refusals:
        others = f" and {len(refusals) - 1} more" if len(refusals) > 1 else ""
        return [("refused", f"DRA: not possible: {refusals[0]['cause']}{others}")]
    if not changed:
        return []
    steps = []
    if plan.get("replaced"):
        steps.append(("remove the device plugin", "the DRA driver allocates its GPUs"))
    kinds = sorted({str(item["kind"]) for item in plan.get("objects") or ()})
    return [*steps, (f"apply {', '.join(kinds)}", "; ".join(plan.get("reasons") or ()))]


def _needed(one: Mapping[str, Any]) -> tuple[str, str]:
    seen = f" ({one['evidence']})" if one["evidence"] else ""
    step = f". {one['next_step']}" if one["next_step"] else ""
    return f"{one['name']}: {one['value']}", f"{one['verdict']}{seen}{step}"


def _steps(key: str, node: Mapping[str, Any], unknown: set[str]) -> list[tuple[str, str]]:
    if key in unknown:
        return [("none: not in the cluster", _NOT_A_NODE)]
    if not node.get("changed"):
        return []
    wanted = {**(node.get("labels") or {}), **(node.get("annotations") or {})}
    taints = [f"{taint['key']}:{taint['effect']}" for taint in node.get("taints") or ()]
    if not wanted and not taints:
        return [(_WITHOUT, "the machine has no GPU")]
    values = ", ".join(f"{name}={wanted[name]}" for name in sorted(wanted))
    steps = [("labels: set", f"from the detected hardware: {values}")] if wanted else []
    return steps + ([("taints: set", ", ".join(taints))] if taints else [])


def _deployment(plan: Mapping[str, Any], changed: bool) -> list[tuple[str, str]]:
    if plan.get("action") == "refuse":
        return [("refused", str(plan.get("text") or ""))]
    if plan.get("action") == "leave":
        return [("none", f"the cluster has {', '.join(plan.get('others') or ())}")]
    if not changed:
        return []
    kinds = sorted({str(item["kind"]) for item in plan.get("objects") or ()})
    return [
        (f"apply {', '.join(kinds)}", "; ".join(plan.get("reasons") or ())),
        *(
            (
                f"remove those of this collection from namespace {name}",
                "an earlier run deployed it there",
            )
            for name in plan.get("earlier") or ()
        ),
    ]


def _row(key: str, name: str | None, steps: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "node": key,
        "kubernetes": name,
        "changes": [step for step, _reason in steps] or ["none"],
        "why": [reason for _step, reason in steps] or ["up to date"],
    }
