# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Take a snapshot of a cluster, and read logs and events where a node lacks something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._core.finding import Finding
from .._kube.errors import KubeError
from .._labels.match_hosts import match
from .._labels.node import read_node
from .._labels.options import read_requests
from .allocation import NodeState
from .causes import find_shortfall, uncertain_node
from .dra import (
    class_parts,
)
from .feature_discovery import discoveries, find_discovery_shortfall
from .pods import PodView, add_events, pod_view
from .read import Reader
from .types import Expected, Shortfall, Snapshot, View
from .workloads import (
    Workload,
    dra_drivers,
    exporters,
    plugins,
)

#: Maximum number of unexpected nodes whose pods are inspected: another run may be changing them.
_MOST_OUTSIDE = 10


def match_hosts(
    expected: Sequence[Expected],
    nodes: Sequence[Mapping[str, Any]],
    states: Mapping[str, NodeState],
) -> tuple[dict[str, NodeState | None], list[str], dict[str, Finding]]:
    """Return the node of each host, notes about the match, and the hosts with an ambiguous match.

    Hosts are matched as in node_gpu_label.
    """
    requests = read_requests(
        {item.key: {"name": item.name, "machine_id": item.machine_id} for item in expected}
    )
    found = match(requests, [read_node(node, "") for node in nodes])
    return (
        {one.request.key: states[one.node.name] if one.node else None for one in found},
        [one.note for one in found if one.note],
        {one.request.key: uncertain_node(one.refusal) for one in found if one.refusal},
    )


def take_snapshot(reader: Reader, expected: Sequence[Expected]) -> Snapshot:
    """Read the cluster once, without logs and events."""
    extra = [name for item in expected for name in item.resources]
    states, nodes, pods = reader.states(extra)
    parts = reader.parts()
    parts += class_parts(reader.dra, parts)
    matches, notes, refused = match_hosts(expected, nodes, states)
    by_node, containers = _pods_of(plugins(parts), pods)
    dra_pods, of_dra = _pods_of(dra_drivers(parts), pods)
    discovery, of_discovery = _pods_of(discoveries(parts), pods)
    containers = {**containers, **of_dra, **of_discovery}
    view = View(
        parts,
        by_node,
        refused=refused,
        dra=reader.dra,
        dra_pods=dra_pods,
        discovery=discovery,
        exporters=_pods_of(exporters(parts, "nvidia"), pods)[0],
    )
    return Snapshot(
        states, view, matches, _shortfalls(expected, matches, view), tuple(notes), containers
    )


def add_details(reader: Reader, expected: Sequence[Expected], snapshot: Snapshot) -> Snapshot:
    """Read logs and events where something is not as expected, and find the causes again."""
    wanted = _nodes_to_inspect(expected, snapshot.matches, snapshot.states, snapshot.view)
    view = _read_details(reader, snapshot.view, wanted, snapshot.containers)
    return replace(snapshot, view=view, shortfalls=_shortfalls(expected, snapshot.matches, view))


def _shortfalls(
    expected: Sequence[Expected], matches: Mapping[str, NodeState | None], view: View
) -> tuple[Shortfall, ...]:
    found = (
        # The cause of a missing plugin usually also concerns feature discovery.
        find_shortfall(item, matches[item.key], view)
        or find_discovery_shortfall(item, matches[item.key], view)
        for item in expected
    )
    return tuple(short for short in found if short)


def _pods_of(
    parts: Sequence[Workload], pods: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, list[PodView]], dict[str, str]]:
    """Return the pods of these workloads by node, managed ones first, and the container of each."""
    found: dict[str, list[tuple[bool, PodView]]] = {}
    containers: dict[str, str] = {}
    for pod in pods:
        meta = pod.get("metadata") or {}
        labels = meta.get("labels") or {}
        for part in parts:
            if (
                part.selector
                and meta.get("namespace") == part.namespace
                and all(labels.get(name) == value for name, value in part.selector.items())
                and _owner(meta) in ("", part.name)
            ):
                view = pod_view(pod)
                found.setdefault(view.node or _intended_node(pod), []).append((part.managed, view))
                containers[view.full_name] = part.container
                break
    return {
        node: [view for _ours, view in sorted(views, key=lambda pair: not pair[0])]
        for node, views in found.items()
    }, containers


def _owner(meta: Mapping[str, Any]) -> str:
    """Return the DaemonSet that owns a pod: all those of NVIDIA's chart have the same selector."""
    return next(
        (
            str(owner.get("name"))
            for owner in meta.get("ownerReferences") or ()
            if owner.get("controller") and owner.get("kind") == "DaemonSet"
        ),
        "",
    )


def _intended_node(pod: Mapping[str, Any]) -> str:
    """Return the node for which a DaemonSet created a pod that is not scheduled yet."""
    affinity = ((pod.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for rule in term.get("matchFields") or ():
            if rule.get("key") == "metadata.name" and rule.get("values"):
                return str(rule["values"][0])
    return ""


def _nodes_to_inspect(
    expected: Sequence[Expected],
    matches: Mapping[str, NodeState | None],
    states: Mapping[str, NodeState],
    view: View,
) -> set[str]:
    """Return the nodes whose pods are inspected: not as expected, or with a failing plugin."""
    named = {state.name for state in matches.values() if state}
    unclear = {short.node for short in _shortfalls(expected, matches, view) if short.node}
    outside = []
    for node, pods in sorted(view.pods.items()):
        state = states.get(node)
        if node not in named and any(
            not pod.ready or (state and not offers(state)) for pod in pods
        ):
            outside.append(node)
    return unclear.union(outside[:_MOST_OUTSIDE])


def offers(state: NodeState) -> bool:
    return any(resource.allocatable for resource in state.resources.values())


def _read_details(
    reader: Reader, view: View, nodes: set[str], containers: Mapping[str, str]
) -> View:
    todo = [
        pod
        for node in sorted(nodes)
        for found in (view.pods, view.dra_pods, view.discovery)
        for pod in found.get(node, ())
    ]
    answers = reader.cluster.each(
        lambda pod: reader.detailed(pod, containers.get(pod.full_name, "")), todo
    )
    detailed = {
        pod.full_name: pod if isinstance(answer, KubeError) else answer
        for pod, answer in zip(todo, answers)
    }
    pods, dra_pods, discovery = (
        {node: [detailed.get(pod.full_name, pod) for pod in there] for node, there in found.items()}
        for found in (view.pods, view.dra_pods, view.discovery)
    )
    events = {}
    for parts, *found in (
        ((*plugins(view.parts), *dra_drivers(view.parts)), view.pods, view.dra_pods),
        (discoveries(view.parts), view.discovery),
    ):
        if all(any(one.get(node) for one in found) for node in nodes):
            continue
        for part in parts:
            if not part.selector:
                continue
            found_events = reader.events(part.namespace, part.workload, part.name)
            bare = PodView(part.namespace, part.name, "", "", False, 0, "")
            events[f"{part.namespace}/{part.name}"] = add_events(bare, found_events).events
    return replace(view, pods=pods, events=events, dra_pods=dra_pods, discovery=discovery)
