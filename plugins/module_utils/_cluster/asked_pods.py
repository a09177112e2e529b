# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why pods that a user asks about do not use a GPU: what is read of them, and what is found."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._core.errors import InputError
from .._core.finding import Finding, pod_names, with_names
from .._known_faults.explain import explain
from .._kube.errors import KubeError
from .allocation import NodeState, pod_use
from .pods import PodView, add_events, find_pod_problem, pod_view, shorten
from .read import Reader
from .scheduling import MOST_NODES, candidates, explain_unplaced
from .types import Expected

Object = Mapping[str, Any]

#: Pods of one name: a Deployment can have thousands, which fail alike.
_MOST_PODS = 5
#: What a Deployment and a CronJob add to their names for a ReplicaSet and a Job: a hash in the
#: characters of Kubernetes' SafeEncodeString, and minutes or seconds.
_SUFFIXES = {
    "ReplicaSet": re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5,10}"),
    "Job": re.compile(r"-[0-9]{8,10}"),
}


@dataclass(frozen=True)
class Name:
    """A pod, or the workload that makes pods of this name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def is_controller(self, kind: str, other: str) -> bool:
        """Return whether a controller is the workload, or was made by it."""
        suffix = _SUFFIXES.get(kind)
        return other == self.name or bool(
            suffix and other.startswith(self.name) and suffix.fullmatch(other[len(self.name) :])
        )


def read_names(given: Sequence[str], option: str) -> list[Name]:
    """Return the names of a list such as ``default/train-0``.

    :raises InputError: one is no such name.
    """
    found = []
    for text in given:
        namespace, slash, name = str(text).partition("/")
        if not (slash and namespace and name) or "/" in name:
            raise InputError(
                f"{option}: {text!r} is not a pod's name.",
                next_step="Write NAMESPACE/NAME, such as default/train-0. NAME can also be the "
                "name of the Deployment, StatefulSet or Job that makes the pods.",
            )
        found.append(Name(namespace, name))
    return found


def explain_pods(
    reader: Reader,
    names: Sequence[Name],
    states: Mapping[str, NodeState],
    expected: Mapping[str, Expected],
) -> list[dict[str, Any]]:
    """Return what is found of each pod.

    :param states: the nodes of the cluster.
    :param expected: what is known of the hosts of nodes, by node.
    """
    return [row for name in names for row in _explain(reader, name, states, expected)]


def _explain(
    reader: Reader, name: Name, states: Mapping[str, NodeState], expected: Mapping[str, Expected]
) -> Iterator[dict[str, Any]]:
    pods = _read_pods(reader, name)
    if not pods:
        yield explain_missing(name, _creation_failures(reader, name))
    for pod in pods:
        view = _read_view(reader, pod)
        yield explain_pod_of_user(pod, view, states, expected.get(view.node))


def _read_view(reader: Reader, pod: Object) -> PodView:
    """Return a pod with its events and, if it has a node, its log."""
    view = pod_view(pod)
    if view.node:
        return reader.detailed(view)
    return add_events(view, reader.events(view.namespace, "Pod", view.name))


def _read_pods(reader: Reader, name: Name) -> list[dict[str, Any]]:
    path = f"/api/v1/namespaces/{name.namespace}/pods"
    exact = [
        pod
        for pod in reader.cluster.list(path, fieldSelector=f"metadata.name={name.name}")
        if (pod.get("metadata") or {}).get("name") == name.name
    ]
    if exact:
        return exact
    made = [pod for pod in reader.cluster.list(path) if _is_made_by(pod, name)]
    # Pods without a node, and those that failed, say most.
    return sorted(made, key=_of_interest)[:_MOST_PODS]


def _of_interest(pod: Object) -> tuple[bool, str]:
    ready = pod_view(pod).ready
    return (ready, str((pod.get("metadata") or {}).get("name")))


def _is_made_by(pod: Object, name: Name) -> bool:
    meta = pod.get("metadata") or {}
    return any(
        owner.get("controller")
        and name.is_controller(str(owner.get("kind")), str(owner.get("name")))
        for owner in meta.get("ownerReferences") or ()
    )


def _creation_failures(reader: Reader, name: Name) -> tuple[str, ...]:
    """Return the messages of controllers that could not make a pod of this name."""
    path = f"/api/v1/namespaces/{name.namespace}/events"
    try:
        events = [
            event
            for event in reader.cluster.list(path, fieldSelector="reason=FailedCreate")
            if event.get("reason") == "FailedCreate" and _is_about(event, name)
        ]
    except KubeError as error:
        reader.notes.append(f"The events of {name.namespace} cannot be read: {error.cause}")
        return ()
    bare = PodView(name.namespace, name.name, "", "", False, 0, "")
    return add_events(bare, events).events


def _is_about(event: Object, name: Name) -> bool:
    about = event.get("involvedObject") or {}
    return name.is_controller(str(about.get("kind")), str(about.get("name")))


def explain_missing(name: Name, messages: Sequence[str]) -> dict[str, Any]:
    """Return what is found where no pod has the name.

    :param messages: why controllers could make none, the newest last.
    """
    return _row(name, None, {}, [_not_there(name, messages)], ())


def _not_there(name: Name, messages: Sequence[str]) -> Finding:
    if not messages:
        return Finding(
            "pod_unknown",
            f"There is no pod {name}, and nothing that failed to make one.",
            "no pod and no event FailedCreate of this name",
            f"Compare with kubectl -n {name.namespace} get pods; a finished pod may be deleted.",
        )
    known = explain(messages[-1])
    if known:
        return replace(known[0], evidence=shorten(messages[-1]))
    return Finding(
        "pod_not_created",
        f"The API server refuses the pods of {name}.",
        shorten(messages[-1]),
        f"Correct what the message names: kubectl -n {name.namespace} get events.",
    )


def explain_pod_of_user(
    pod: Object, view: PodView, states: Mapping[str, NodeState], expected: Expected | None
) -> dict[str, Any]:
    """Return what is found of one pod."""
    asks = pod_use(pod)
    name = Name(view.namespace, view.name)
    claims = bool((pod.get("spec") or {}).get("resourceClaims"))
    if view.phase == "Succeeded":
        return _row(name, view, asks, [], ())
    findings = []
    if not asks and not claims:
        findings.append(_asks_none(view))
    if view.node or view.phase == "Failed":
        problem = _problem_on_node(view, expected)
        return _row(name, view, asks, [*findings, *([problem] if problem else [])], ())
    if not asks:
        if claims or view.unschedulable:
            findings.append(_waits(view))
        return _row(name, view, asks, findings, ())
    nodes = candidates(pod, asks, states.values())
    findings.append(explain_unplaced(view, asks, nodes))
    offering = [one for one in nodes if any(one.state.resource(name).capacity for name in asks)]
    return _row(name, view, asks, findings, [one.to_json() for one in offering[:MOST_NODES]])


def _problem_on_node(view: PodView, expected: Expected | None) -> Finding | None:
    facts = expected.known if expected else None
    if not view.ready:
        return find_pod_problem(view, facts)
    # A pod that runs may have lost its GPU: its log says so, and old events say nothing.
    return next(iter(explain(view.log, facts, seen=view.seen)), None)


def _asks_none(view: PodView) -> Finding:
    return Finding(
        "asks_no_gpu",
        f"No container of the pod {view.full_name} asks for a GPU, so that it gets none.",
        "no resource of a GPU in resources.limits, and no resourceClaims"
        + ("" if view.runtime_class else "; no runtimeClassName"),
        "Ask for one in the pod: resources.limits of a container, nvidia.com/gpu: 1. The filter "
        "kubegpu.nodes.gpu_resources_check checks a pod.",
    )


def _waits(view: PodView) -> Finding:
    return with_names(
        "pod_waits",
        f"The pod {view.full_name} has no node yet.",
        shorten(view.unschedulable) or "the scheduler has said nothing yet",
        "Check: kubectl -n {namespace} describe pod {name}.",
        pod_names(view.namespace, view.name),
    )


def _row(
    name: Name,
    view: PodView | None,
    asks: Mapping[str, int],
    findings: Sequence[Finding],
    nodes: Sequence[Object],
) -> dict[str, Any]:
    return {
        "namespace": name.namespace,
        "name": name.name,
        "phase": view.phase if view else None,
        "node": (view.node or None) if view else None,
        "asks": dict(asks),
        "findings": [one.as_problem() for one in findings],
        "nodes": list(nodes),
    }
