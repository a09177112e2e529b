# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which nodes could take a pod with GPUs, and why the others do not. Pure.

The scheduler's message summarises all nodes. So the nodes are looked at instead, and the message is
quoted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._core.finding import Finding, pod_names, with_names
from .allocation import NodeState, is_gpu_resource
from .pods import PodView, shorten
from .workloads import matches_affinity, taint_text, tolerates

Object = Mapping[str, Any]

# Why a node does not take a pod.
COUNT, TAKEN, READY, HELD, CORDON, TAINT, LABEL, AFFINITY = (
    "count", "taken", "ready", "held", "cordon", "taint", "label", "affinity",
)  # fmt: skip
# A run of the acceptance has the node; no run has accepted it.
IN_ACCEPTANCE, NOT_ACCEPTED = "in_acceptance", "not_accepted"
#: The default of gpu_acceptance_run, and the taint of gpu_acceptance_required.
_ACCEPTANCE_RUN = "gpu-acceptance"
_ACCEPTANCE_TAINT = "kubegpu.nodes/acceptance"
#: Taints that repeat the state of the node.
_OF_STATE = tuple(
    f"node.kubernetes.io/{name}" for name in ("unschedulable", "not-ready", "unreachable")
)
#: Nodes that are returned and named: a cluster can have thousands.
MOST_NODES = 50
_MOST_NAMED = 5
_STEPS = {
    READY: "Check kubelet and the container runtime of that node",
    CORDON: "Make the node schedulable: kubectl uncordon NODE",
    NOT_ACCEPTED: "Run kubegpu.nodes.accept for the node",
    TAINT: "Add a toleration of the taint to the pod, or take the taint off the node",
    LABEL: "Correct the pod's nodeSelector, or label the node",
    AFFINITY: "Correct the pod's node affinity, or label the node",
}


@dataclass(frozen=True)
class Candidate:
    """A node, and what keeps the pod off it: pairs of kind and text."""

    state: NodeState
    why: tuple[tuple[str, str], ...] = ()

    @property
    def kinds(self) -> set[str]:
        return {kind for kind, _text in self.why}

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.state.name,
            "fits": not self.why,
            "because": [text for _kind, text in self.why],
        }


def candidates(
    pod: Object, asks: Mapping[str, int], states: Iterable[NodeState]
) -> list[Candidate]:
    """Return all nodes, those that suit best first.

    :param asks: the GPUs that the pod asks for, by resource.
    """
    spec = pod.get("spec") or {}
    found = [Candidate(state, tuple(_why(spec, asks, state))) for state in states]
    return sorted(found, key=lambda one: (COUNT in one.kinds, len(one.why), one.state.name))


def _why(spec: Object, asks: Mapping[str, int], state: NodeState) -> Iterable[tuple[str, str]]:
    for name, count in sorted(asks.items()):
        resource = state.resource(name)
        if resource.allocatable < count:
            yield COUNT, f"it offers {resource.allocatable} {name}, and the pod asks for {count}"
        elif resource.free < count:
            pods = ", ".join(str(pod) for pod in resource.pods[:_MOST_NAMED])
            yield (
                TAKEN,
                f"{resource.allocated} of {resource.allocatable} {name} are taken: {pods}",
            )
    if not state.ready:
        yield READY, f"it is not ready: {shorten(state.ready_message)}"
    if state.cordoned and state.held:
        kind = IN_ACCEPTANCE if state.held == _ACCEPTANCE_RUN else HELD
        yield kind, f"it is cordoned by the run {state.held} of this collection"
    elif state.cordoned:
        yield CORDON, "it is cordoned"
    for taint in state.taints:
        if (
            taint["effect"] != "PreferNoSchedule"
            and taint["key"] not in _OF_STATE
            and not any(tolerates(one, taint) for one in spec.get("tolerations") or ())
        ):
            kind = NOT_ACCEPTED if taint["key"] == _ACCEPTANCE_TAINT else TAINT
            yield kind, f"the pod does not tolerate its taint {taint_text(taint)}"
    for name, value in sorted((spec.get("nodeSelector") or {}).items()):
        if state.labels.get(name) != value:
            yield LABEL, f"it lacks the label {name}={value}"
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    if not matches_affinity(affinity, state.labels):
        yield AFFINITY, "it does not match the pod's node affinity"


def explain_unplaced(view: PodView, asks: Mapping[str, int], nodes: Sequence[Candidate]) -> Finding:
    """Return why a pod with GPUs has no node."""
    last = next((one for one in reversed(view.events) if "FailedScheduling" in one), "")
    seen = shorten(view.unschedulable or last) or "the scheduler has said nothing yet"
    asked = ", ".join(f"{count} {name}" for name, count in sorted(asks.items()))
    for name, count in sorted(asks.items()):
        most = max((one.state.resource(name).allocatable for one in nodes), default=0)
        if not most:
            return _not_offered(view, name, nodes, seen)
        if most < count:
            return Finding(
                "asks_too_many",
                f"The pod {view.full_name} asks for {count} {name}, and no node offers more than "
                f"{most}.",
                seen,
                f"Ask for {most} at most, or spread the work over several pods.",
            )
    enough = [one for one in nodes if COUNT not in one.kinds]
    if not enough:
        return Finding(
            "asks_too_many",
            f"No node offers all that the pod {view.full_name} asks for: {asked}.",
            seen,
            "Ask for what one node has: its resources are in the table of nodes.",
        )
    free = [one for one in enough if not one.why]
    if free:
        return with_names(
            "not_scheduled",
            f"{free[0].state.name} has {asked} to spare for the pod {view.full_name}, and the "
            "scheduler has not placed it there: something else is missing.",
            seen,
            "Go by the scheduler's message: kubectl -n {namespace} describe pod {name}.",
            pod_names(view.namespace, view.name),
        )
    taken = [one for one in enough if one.kinds == {TAKEN}]
    if taken:
        return Finding(
            "all_taken",
            f"All nodes that the pod {view.full_name} may use have given their GPUs to other pods.",
            f"{_named(taken)}; {seen}",
            "This is not a fault: wait, end one of these pods, or add a node.",
        )
    for kind in (HELD, IN_ACCEPTANCE, NOT_ACCEPTED, READY):
        # In an acceptance, the node has its taint, too.
        more = {TAKEN, NOT_ACCEPTED} if kind == IN_ACCEPTANCE else {TAKEN}
        only = [one for one in enough if kind in one.kinds and one.kinds <= {kind, *more}]
        if only:
            return _kept_by_state(kind, view, only, seen)
    kinds = [kind for one in enough for kind, _text in one.why if kind in _STEPS]
    steps = [_STEPS[kind] for kind in dict.fromkeys(kinds)]
    cordoned = next((one.state.name for one in enough if one.kinds == {CORDON}), "")
    return Finding(
        "no_node_matches",
        f"No node with {asked} takes the pod {view.full_name}.",
        f"{_named(enough)}; {seen}",
        f"{'; or: '.join(steps)}.",
        {"cordoned": cordoned} if cordoned else {},
    )


def _kept_by_state(kind: str, view: PodView, nodes: Sequence[Candidate], seen: str) -> Finding:
    names = ", ".join(one.state.name for one in nodes[:_MOST_NAMED])
    who = f"The nodes that the pod {view.full_name} may use"
    evidence = f"{_named(nodes)}; {seen}"
    if kind == HELD:
        run = nodes[0].state.held
        return Finding(
            "held_by_upgrade",
            f"{who} are in maintenance: {names}.",
            evidence,
            f"Wait until the run {run} ends. If it has ended, run kubegpu.nodes.upgrade again with "
            "its name (gpu_upgrade_run), or release the nodes: -e gpu_upgrade_release=true.",
            {"run": run},
        )
    if kind == IN_ACCEPTANCE:
        return Finding(
            "held_by_acceptance",
            f"{who} are held by a run of the acceptance: {names}.",
            evidence,
            "Wait until that run ends. If it has ended, run kubegpu.nodes.accept again for these "
            "nodes.",
        )
    if kind == NOT_ACCEPTED:
        return Finding(
            "node_not_accepted",
            f"{who} have not passed the acceptance: {names}.",
            evidence,
            "Run kubegpu.nodes.accept for these nodes: a pass takes the taint away.",
        )
    return Finding(
        "node_not_ready",
        f"{who} are not ready: {names}.",
        evidence,
        "Check kubelet and the container runtime there: journalctl -u kubelet -u containerd",
    )


def _not_offered(view: PodView, name: str, nodes: Sequence[Candidate], seen: str) -> Finding:
    offered = sorted(
        {
            other
            for one in nodes
            for other, resource in one.state.resources.items()
            if resource.allocatable and is_gpu_resource(other)
        }
    )
    others = f"the nodes offer {', '.join(offered)}" if offered else "no node offers any GPU"
    return Finding(
        "gpu_not_offered",
        f"No node offers the {name} that the pod {view.full_name} asks for.",
        f"{others}; {seen}",
        "Ask for one of these, or see what keeps the device plugin from offering it."
        if offered
        else "See what is wrong with the nodes and the device plugin: kubegpu.nodes.diagnose "
        "without --limit.",
    )


def _named(nodes: Sequence[Candidate]) -> str:
    shown = [
        f"{one.state.name}: {' and '.join(text for _kind, text in one.why)}"
        for one in nodes[:_MOST_NAMED]
    ]
    more = len(nodes) - len(shown)
    return "; ".join([*shown, *([f"{more} more nodes"] if more > 0 else [])])
