# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether this collection's GPU feature discovery runs on a node, or why it does not. Pure.

It is awaited and verified like the device plugin. That of an operator is not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from .._core.finding import Finding, pod_names, with_names
from .._known_faults.explain import explain
from .allocation import NodeState
from .causes_dra import by_dra
from .pods import PodView, find_pod_problem, shorten
from .types import Expected, Shortfall, View
from .workloads import FEATURE_DISCOVERY, Workload, place, plugins

TITLE = "GPU feature discovery"
_LOG_LINES = 3


def discoveries(parts: Iterable[Workload]) -> list[Workload]:
    """Return this collection's DaemonSets of GPU feature discovery."""
    return [part for part in parts if part.kind == FEATURE_DISCOVERY and part.managed]


def find_discovery_shortfall(
    expected: Expected, state: NodeState | None, view: View
) -> Shortfall | None:
    """Return why feature discovery does not run on a host's node; None if it does or need not."""
    parts = discoveries(view.parts)
    if not parts or state is None or not state.ready or expected.vendors - {"nvidia"}:
        return None
    pods = view.discovery.get(state.name, ())
    if expected.none:
        return _misplaced(expected, state, pods[0]) if pods else None
    if any(pod.ready for pod in pods):
        return None
    if not pods and _served_by_others(expected, state, view):
        return None
    allocatable = {name: state.resource(name).allocatable for name in expected.resources}
    if not pods:
        found = _no_pod(parts[0], state, view)
        return Shortfall(expected, state.name, allocatable, found, part=FEATURE_DISCOVERY)
    found = _from_pod(expected, state, pods[0])
    return Shortfall(
        expected, state.name, allocatable, found, pods[0].full_name, part=FEATURE_DISCOVERY
    )


def _served_by_others(expected: Expected, state: NodeState, view: View) -> bool:
    """Return whether a DRA driver or an unmanaged plugin serves this node."""
    if any(
        part.managed and place(part, state.labels, state.taints).allowed
        for part in plugins(view.parts)
    ):
        return False
    return by_dra(expected, state) or bool(view.plugin_pods(state.name))


def _misplaced(expected: Expected, state: NodeState, pod: PodView) -> Shortfall:
    found = with_names(
        "discovery_without_gpu",
        f"The pod {pod.full_name} of {TITLE} is on {state.name}, which has no GPU.",
        f"the pod is {pod.phase or 'there'}",
        "Remove the label that selects it: kubectl label node {node} kubegpu.nodes/gpu-",
        pod_names(pod.namespace, pod.name, node=state.name),
    )
    return Shortfall(expected, state.name, {}, found, pod.full_name, part=FEATURE_DISCOVERY)


def _no_pod(part: Workload, state: NodeState, view: View) -> Finding:
    who = f"{part.namespace}/{part.name}"
    keeps = place(part, state.labels, state.taints)
    if not keeps.allowed:
        wants = ", ".join((*keeps.missing_labels, *keeps.taints)) or "its node affinity"
        return Finding(
            "discovery_selects_not",
            f"{TITLE} {who} is not for {state.name}: {wants} keeps it off.",
            "",
            "Run kubegpu.nodes.site (tag labels): it labels the nodes that have GPUs; taints are "
            "in nvidia_device_plugin_pods.tolerations.",
        )
    messages = view.events.get(who, ())
    known = explain(messages[-1]) if messages else []
    return Finding(
        known[0].code if known else "discovery_not_started",
        f"{TITLE} {who} has no pod on {state.name} yet." + (f" {known[0].cause}" if known else ""),
        shorten(messages[-1])
        if messages
        else f"{part.available} of {part.desired} pods are available",
        known[0].next_step
        if known
        else f"Check: kubectl -n {part.namespace} describe daemonset {part.name}",
        pod_names(part.namespace, part.name, node=state.name),
    )


def _from_pod(expected: Expected, state: NodeState, pod: PodView) -> Finding:
    known = find_pod_problem(pod, expected.known)
    own = pod.last_lines(_LOG_LINES)
    if known is None:
        return with_names(
            "discovery_starting",
            f"The pod {pod.full_name} of {TITLE} is not ready yet on {state.name}.",
            shorten(" | ".join(own)) if own else f"the pod is {pod.phase or 'not there'}",
            "Give it more time (kubegpu_apply.wait_timeout) or run it again; what it waits "
            "for says: kubectl -n {namespace} describe pod {name}",
            pod_names(pod.namespace, pod.name, node=state.name),
        )
    if known.code == "pod_failed" and own:
        # Its log is more specific than kubelet's message, which is about the next attempt.
        known = replace(known, evidence=shorten(" | ".join(own)))
    return replace(known, cause=f"{TITLE} does not run on {state.name}: {known.cause}")


class Steady:
    """Decides whether pods are permanently ready.

    The container has no probe, so that a container that exits right after its start is ready for a
    moment. A new pod must be seen ready twice without a restart in between.

    :param fresh: whether this run has created or is replacing the pods.
    """

    def __init__(self, fresh: bool) -> None:
        self._fresh = fresh
        self._ready: dict[str, int] = {}
        self._waited_for: set[str] = set()

    def needs_another_read(self, pods: Mapping[str, Sequence[PodView]]) -> bool:
        """Return whether a pod must be read again; call it once for each snapshot."""
        again = False
        for pod in (one for found in pods.values() for one in found):
            name = pod.full_name
            if not pod.ready:
                self._waited_for.add(name)
                self._ready.pop(name, None)
                continue
            before = self._ready.get(name)
            self._ready[name] = pod.restarts
            if before != pod.restarts and (self._fresh or name in self._waited_for):
                again = True
        return again
