# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pause of a node: a label that keeps the pods of this collection away, and a cordon. Pure.

Both are applied by the field manager of the labels, beside what it manages already, and with them
the annotation that keeps cluster-autoscaler from removing the node. So a pause that an ended run
left is taken away by the next run that labels the node, and a cordon of somebody else remains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .names import KEEP_NODE, PREFIX
from .node import managed_metadata
from .plan import apply_body
from .types import Node, Plan

#: The label of a paused node, which the pods of this collection's DaemonSets leave; its value is
#: the reason, such as ``mig``.
PAUSE = f"{PREFIX}/pause"
_KEY = ("labels", PAUSE)


def away_from_paused(*terms: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the node affinity of a DaemonSet whose pods leave a paused node.

    :param terms: the ``matchExpressions`` of each further term, of which one has to apply.
    """
    rule = {"key": PAUSE, "operator": "DoesNotExist"}
    found = [{"matchExpressions": [*one, rule]} for one in terms or ((),)]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": found}}


def leaves_paused(affinity: Mapping[str, Any]) -> bool:
    """Return whether the pods with this node affinity leave a paused node."""
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = required.get("nodeSelectorTerms") or ()
    return bool(terms) and all(
        any(
            rule.get("key") == PAUSE and rule.get("operator") == "DoesNotExist"
            for rule in term.get("matchExpressions") or ()
        )
        for term in terms
    )


def paused_for(node: Node) -> str:
    """Return the reason for which this collection paused the node; empty if it did not."""
    return node.labels.get(PAUSE, "") if _KEY in node.managed else ""


def plan_pause(node: Node, reason: str) -> Plan:
    """Return how to pause the node. One that is paused for another reason remains as it is.

    So does one that another field manager paused, such as that of a maintenance.
    """
    paused = paused_for(node)
    foreign = PAUSE in node.labels and not paused
    if foreign or (paused and (paused != reason or node.cordoned)):
        return _plan(None)
    managed = managed_metadata(node)
    labels = {**managed["labels"], PAUSE: reason}
    annotations = {**managed["annotations"]}
    if KEEP_NODE not in node.annotations:
        # A value of somebody else remains: applied, it would be this field manager's.
        annotations[KEEP_NODE] = "true"
    # A cordon of somebody else is not taken over, and so it remains after the pause.
    spec = {"unschedulable": True} if node.cordons or not node.cordoned else {}
    return _plan(apply_body(node, {"labels": labels, "annotations": annotations}, spec))


def plan_resume(node: Node, reason: str) -> Plan:
    """Return how to end the pause for this reason; without one there is nothing to do."""
    paused = paused_for(node)
    if paused not in ("", reason) or not (paused or node.cordons):
        return _plan(None)
    managed = managed_metadata(node)
    labels = {name: value for name, value in managed["labels"].items() if name != PAUSE}
    annotations = {
        name: value for name, value in managed["annotations"].items() if name != KEEP_NODE
    }
    return _plan(apply_body(node, {"labels": labels, "annotations": annotations}))


def _plan(body: dict[str, Any] | None) -> Plan:
    shown = frozenset({_KEY, ("annotations", KEEP_NODE)})
    return Plan(apply=body, taints=None, conflicts=(), shown=shown)
