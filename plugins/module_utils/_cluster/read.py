# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a cluster's GPUs from its API server, and wait until they are as expected."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .._core.errors import KubegpuError
from .._core.finding import Finding
from .._kube.api import Cluster
from .._kube.errors import KubeError
from .._labels.match import match
from .._labels.plan import read_node, read_wishes
from .allocation import NodeState, node_states
from .causes import Expected, Shortfall, View, by_dra, is_foreign_only, uncertain, why
from .dra import (
    GROUP,
    Dra,
    class_parts,
    drivers,
    offered,
    read_claims,
    read_classes,
    read_devices,
    served_version,
)
from .feature_discovery import TITLE, Steady, discoveries, why_not_discovered
from .pods import PodView, pod_view, why_not_running, with_events
from .workloads import (
    FEATURE_DISCOVERY,
    Workload,
    dra_drivers,
    foreign,
    plugins,
    recognise,
)

_INTERVAL = 3.0
_TAIL = 60
#: Bytes of a log. The API server counts them from the first of the lines that are asked for, so
#: that of a longer one fewer lines are asked for: what went wrong is said last.
_LIMIT = 256 * 1024
_FEWER = 10
#: Of the nodes that nobody asked for, a few tell enough; another run may be at work on the others.
_MOST_OUTSIDE = 10
#: Pods that ended hold no GPU, and a cluster may keep thousands of them.
_ACTIVE = "status.phase!=Succeeded,status.phase!=Failed"
#: A container that has ended this often after its first start will not come by waiting.
_RESTARTS_IN_VAIN = 2

Sleep = Callable[[float], None]
Clock = Callable[[], float]


@dataclass
class Reader:
    """Reads what answers the question which node offers which GPUs, and why not."""

    cluster: Cluster
    #: What could not be read and is left out; each once.
    notes: list[str] = field(default_factory=list)
    #: What the last look at the nodes' states said of DRA.
    dra: Dra = field(default_factory=Dra)
    _dra_version: str | None = None

    def states(
        self, extra: Sequence[str] = ()
    ) -> tuple[dict[str, NodeState], list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the nodes' states, the nodes and the pods that have not ended."""
        nodes = list(self.cluster.list("/api/v1/nodes"))
        pods = list(self.cluster.list("/api/v1/pods", fieldSelector=_ACTIVE))
        self.dra = self._read_dra()
        return offered(node_states(nodes, pods, extra), self.dra), nodes, pods

    def _read_dra(self) -> Dra:
        """Return what is offered by Dynamic Resource Allocation; nothing where there is none.

        An API server without the group, or a user without the right to read it, is no failure.
        """
        if self._dra_version is None:
            self._dra_version = self._served_version()
        version = self._dra_version
        if not version:
            return Dra()
        base = f"/apis/{GROUP}/{version}"
        classes = read_classes(self._list_dra(base, "deviceclasses"))
        slices = [
            one
            for driver in drivers(classes)
            for one in self._list_dra(base, "resourceslices", fieldSelector=f"spec.driver={driver}")
        ]
        devices = read_devices(slices)
        claims = read_claims(self._list_dra(base, "resourceclaims")) if devices else ()
        return Dra(version, classes, devices, claims)

    def _served_version(self) -> str:
        try:
            return served_version(self.cluster.get(f"/apis/{GROUP}"))
        except KubeError as error:
            if error.status != 403:
                raise
            self._note(f"Whether a DRA driver offers GPUs cannot be seen: {error.cause}", error)
            return ""

    def _list_dra(self, base: str, kind: str, **params: object) -> list[dict[str, Any]]:
        try:
            return list(self.cluster.list(f"{base}/{kind}", **params))
        except KubeError as error:
            if error.status not in (403, 404):
                raise
            if error.status == 403:
                self._note(f"What a DRA driver offers cannot be seen in full: {error.cause}", error)
            return []

    def parts(self) -> list[Workload]:
        """Return the operators, plugins and DRA drivers of the cluster."""
        found = []
        for kind in ("DaemonSet", "Deployment"):
            items = self.cluster.list(f"/apis/apps/v1/{kind.lower()}s")
            found += recognise(items, kind)
        return found

    def log(self, view: PodView, container: str, tail: int = _TAIL) -> str:
        """Return the end of a container's log; of the one before, where it has just ended."""
        path = f"/api/v1/namespaces/{view.namespace}/pods/{view.name}/log"
        wanted: dict[str, object] = {"container": container} if container else {}
        try:
            text = self._tail(path, tail, wanted)
            if not text.strip() and view.restarts:
                text = self._tail(path, tail, {**wanted, "previous": True})
        except KubeError as error:
            # 400: no container has been started yet, which its state tells.
            if error.status != 400:
                self._note(f"The log of {view.full_name} cannot be read: {error.cause}", error)
            return ""
        return text

    def _tail(self, path: str, lines: int, wanted: Mapping[str, object]) -> str:
        """Return a log's last lines: as many of them as are within the limit of bytes."""
        while True:
            text = self.cluster.text(path, tailLines=lines, limitBytes=_LIMIT, **wanted)
            if lines <= 1 or len(text.encode()) < _LIMIT:
                return text
            lines = max(1, lines // _FEWER)

    def events(self, namespace: str, kind: str, name: str) -> list[dict[str, Any]]:
        """Return the events of an object."""
        chosen = f"involvedObject.kind={kind},involvedObject.name={name}"
        try:
            return list(
                self.cluster.list(f"/api/v1/namespaces/{namespace}/events", fieldSelector=chosen)
            )
        except KubeError as error:
            self._note(f"The events of {namespace} cannot be read: {error.cause}", error)
            return []

    def detailed(self, view: PodView, container: str = "", tail: int = _TAIL) -> PodView:
        """Return a pod's view with its log and events."""
        complete = with_events(view, self.events(view.namespace, "Pod", view.name))
        return replace(complete, log=self.log(view, container, tail))

    def _note(self, text: str, error: KubeError) -> None:
        note = f"{text} {error.next_step}".strip()
        if note not in self.notes:
            self.notes.append(note)


@dataclass(frozen=True)
class Snapshot:
    """The cluster at one time."""

    states: Mapping[str, NodeState]
    view: View
    matches: Mapping[str, NodeState | None]
    shortfalls: tuple[Shortfall, ...]
    notes: tuple[str, ...] = ()
    #: The container of each plugin's pod that its log is read of.
    containers: Mapping[str, str] = field(default_factory=dict)

    @property
    def open(self) -> list[Shortfall]:
        """Those that waiting may mend."""
        return [short for short in self.shortfalls if not short.final]


def match_hosts(
    expected: Sequence[Expected],
    nodes: Sequence[Mapping[str, Any]],
    states: Mapping[str, NodeState],
) -> tuple[dict[str, NodeState | None], list[str], dict[str, Finding]]:
    """Return each host's node, found as the labels' module finds it, and remarks about it.

    The third are the hosts that may be one node or another, each with why.
    """
    wishes = read_wishes(
        {item.key: {"name": item.name, "machine_id": item.machine_id} for item in expected}
    )
    found = match(wishes, [read_node(node, "") for node in nodes])
    return (
        {one.wish.key: states[one.node.name] if one.node else None for one in found},
        [one.note for one in found if one.note],
        {one.wish.key: uncertain(one.refusal) for one in found if one.refusal},
    )


def look(reader: Reader, expected: Sequence[Expected]) -> Snapshot:
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
    )
    return Snapshot(
        states, view, matches, _shortfalls(expected, matches, view), tuple(notes), containers
    )


def look_closer(reader: Reader, expected: Sequence[Expected], snapshot: Snapshot) -> Snapshot:
    """Read logs and events where something is not as expected, and say why it is not."""
    wanted = _unclear(expected, snapshot.matches, snapshot.states, snapshot.view)
    view = _with_details(reader, snapshot.view, wanted, snapshot.containers)
    return replace(snapshot, view=view, shortfalls=_shortfalls(expected, snapshot.matches, view))


def _shortfalls(
    expected: Sequence[Expected], matches: Mapping[str, NodeState | None], view: View
) -> tuple[Shortfall, ...]:
    found = (
        # What keeps the plugin from a node keeps feature discovery from it, as a rule.
        why(item, matches[item.key], view) or why_not_discovered(item, matches[item.key], view)
        for item in expected
    )
    return tuple(short for short in found if short)


def _pods_of(
    parts: Sequence[Workload], pods: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, list[PodView]], dict[str, str]]:
    """Return the pods of these workloads by node, ours first, and each one's container."""
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
                found.setdefault(view.node or _wanted_node(pod), []).append((part.ours, view))
                containers[view.full_name] = part.container
                break
    return {
        node: [view for _ours, view in sorted(views, key=lambda pair: not pair[0])]
        for node, views in found.items()
    }, containers


def _owner(meta: Mapping[str, Any]) -> str:
    """Return the DaemonSet that made a pod: those of NVIDIA's chart have all one selector."""
    return next(
        (
            str(owner.get("name"))
            for owner in meta.get("ownerReferences") or ()
            if owner.get("controller") and owner.get("kind") == "DaemonSet"
        ),
        "",
    )


def _wanted_node(pod: Mapping[str, Any]) -> str:
    """Return the node that a DaemonSet made a pod for that has not been placed yet."""
    affinity = ((pod.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for rule in term.get("matchFields") or ():
            if rule.get("key") == "metadata.name" and rule.get("values"):
                return str(rule["values"][0])
    return ""


def _unclear(
    expected: Sequence[Expected],
    matches: Mapping[str, NodeState | None],
    states: Mapping[str, NodeState],
    view: View,
) -> set[str]:
    """Return the nodes whose plugin has to be asked: not as expected, or it does not run."""
    named = {state.name for state in matches.values() if state}
    unclear = {short.node for short in _shortfalls(expected, matches, view) if short.node}
    outside = []
    for node, pods in sorted(view.pods.items()):
        state = states.get(node)
        if node not in named and any(
            not pod.ready or (state and not _offers(state)) for pod in pods
        ):
            outside.append(node)
    return unclear.union(outside[:_MOST_OUTSIDE])


def _offers(state: NodeState) -> bool:
    return any(resource.allocatable for resource in state.resources.values())


def _with_details(
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
    told = {
        pod.full_name: pod if isinstance(answer, KubeError) else answer
        for pod, answer in zip(todo, answers)
    }
    pods, dra_pods, discovery = (
        {node: [told.get(pod.full_name, pod) for pod in there] for node, there in found.items()}
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
            said = reader.events(part.namespace, part.workload, part.name)
            bare = PodView(part.namespace, part.name, "", "", False, 0, "")
            events[f"{part.namespace}/{part.name}"] = with_events(bare, said).events
    return replace(view, pods=pods, events=events, dra_pods=dra_pods, discovery=discovery)


def wait(
    reader: Reader,
    expected: Sequence[Expected],
    timeout: float,
    *,
    rollout: bool = False,
    sleep: Sleep = time.sleep,
    clock: Clock = time.monotonic,
) -> tuple[Snapshot, float]:
    """Read until all nodes offer what is expected, or waiting is in vain; then say why not.

    :param timeout: seconds.
    :param rollout: wait as well until our device plugin's pods are all of its newest template.
    """
    start = clock()
    restarts: dict[str, int] = {}
    steady = Steady(rollout)
    while True:
        snapshot = look(reader, expected)
        waited = clock() - start
        failing = _failing(snapshot, restarts)
        unsettled = steady.unsettled(_expected_discovery(snapshot))
        if waited >= timeout or not (unsettled or _is_worth_waiting(snapshot, failing, rollout)):
            break
        sleep(min(_INTERVAL, max(0.1, timeout - waited)))
    if snapshot.shortfalls or _odd(snapshot):
        snapshot = look_closer(reader, expected, snapshot)
    if rollout:
        snapshot = replace(snapshot, notes=(*snapshot.notes, *map(_behind, _rolling(snapshot))))
    return snapshot, waited


def _failing(snapshot: Snapshot, first: dict[str, int]) -> set[str]:
    """Return the pods that fail again and again while they are waited for.

    :param first: the restarts of each pod when it was seen first, filled in here. Those before are
        of another time, such as that before a reboot.
    """
    return {
        pod.full_name
        for pods in (*snapshot.view.pods.values(), *snapshot.view.discovery.values())
        for pod in pods
        if pod.restarts - first.setdefault(pod.full_name, pod.restarts) >= _RESTARTS_IN_VAIN
        and pod.reason == "CrashLoopBackOff"
    }


def _expected_discovery(snapshot: Snapshot) -> dict[str, Sequence[PodView]]:
    """Return the pods of feature discovery on the nodes that are waited for."""
    named = {state.name for state in snapshot.matches.values() if state}
    return {node: pods for node, pods in snapshot.view.discovery.items() if node in named}


def _is_worth_waiting(snapshot: Snapshot, failing: set[str], rollout: bool) -> bool:
    if any(short.pod not in failing for short in snapshot.open):
        return True
    # A pod that fails keeps those of other nodes from being made.
    return rollout and not failing and bool(_rolling(snapshot))


def _rolling(snapshot: Snapshot) -> list[Workload]:
    parts = snapshot.view.parts
    return [
        part for part in (*plugins(parts), *discoveries(parts)) if part.ours and not part.rolled_out
    ]


def _behind(part: Workload) -> str:
    what = TITLE if part.kind == FEATURE_DISCOVERY else "the device plugin"
    return (
        f"Not all pods of {what} {part.namespace}/{part.name} are there yet: of "
        f"{part.desired}, {part.updated if part.observed else 0} are of the newest template and "
        f"{part.available} are available."
    )


def _odd(snapshot: Snapshot) -> bool:
    """Return whether a plugin's pod outside of the expected nodes needs a closer look."""
    named = {state.name for state in snapshot.matches.values() if state}
    for node, pods in snapshot.view.pods.items():
        state = snapshot.states.get(node)
        if node not in named and (
            any(not pod.ready for pod in pods) or (state is not None and not _offers(state))
        ):
            return True
    return False


def answer(
    snapshot: Snapshot, expected: Sequence[Expected], only_gpu: bool = True
) -> dict[str, Any]:
    """Return what the module returns of a snapshot."""
    view = snapshot.view
    named = {state.name for state in snapshot.matches.values() if state}
    shown = {
        name: state.to_json()
        for name, state in sorted(snapshot.states.items())
        if not only_gpu or state.resources or state.dra or name in named or view.plugin_pods(name)
    }
    by_key = {
        short.expected.key: short
        for short in snapshot.shortfalls
        if short.part != FEATURE_DISCOVERY
    }
    undiscovered = {
        short.expected.key: short
        for short in snapshot.shortfalls
        if short.part == FEATURE_DISCOVERY
    }
    return {
        "nodes": shown,
        "node_of": {
            key: state.name if state else None for key, state in snapshot.matches.items()
        },
        "plugin_pods": [*_pods(view.pods), *_pods(view.dra_pods)],
        "discovery_pods": _pods(view.discovery),
        "parts": [part.to_json() for part in view.parts],
        "foreign": [part.to_json() for part in foreign(view.parts)],
        "dra": view.dra.to_json(),
        "missing": [short.to_json() for short in snapshot.shortfalls],
        "layers": [
            *(
                _layer(item, snapshot.matches[item.key], by_key.get(item.key), view)
                for item in expected
                if not item.none or item.key in by_key
            ),
            *(_undiscovered(short) for short in undiscovered.values()),
        ],
    }  # fmt: skip


def unasked(expected: Sequence[Expected], layer: str, error: KubegpuError) -> list[dict[str, Any]]:
    """Return the entries of hosts whose cluster could not be asked: told once, at the first one.

    With them the table shows the nodes' own layers all the same.
    """
    told = {"cause": error.cause, "evidence": error.evidence, "next_step": error.next_step}
    waits = {"cause": "The cluster could not be asked.", "evidence": "", "next_step": ""}
    return [
        {
            "node": item.key, "layer": layer, "ok": None if number else False,
            "code": "waits" if number else "cluster_not_asked",
            **(waits if number else told), "proof": "", "subject": "",
        }
        for number, item in enumerate(expected)
    ]  # fmt: skip


def _pods(pods: Mapping[str, Sequence[PodView]]) -> list[dict[str, Any]]:
    return [
        {**pod.to_json(), "findings": _findings(pod)} for node in sorted(pods) for pod in pods[node]
    ]


def _findings(pod: PodView) -> list[dict[str, str]]:
    finding = why_not_running(pod) if pod.log or pod.events or not pod.ready else None
    return [finding.as_problem()] if finding else []


def _layer(
    item: Expected, state: NodeState | None, short: Shortfall | None, view: View
) -> dict[str, Any]:
    """Return how the layer allocatable of a host stands, in the shape of the other layers."""
    entry = {
        "node": item.key, "layer": "allocatable", "ok": short is None, "code": "", "cause": "",
        "evidence": "", "next_step": "", "proof": "", "subject": "",
    }  # fmt: skip
    if short is not None:
        entry.update(_told(short))
    elif state is not None and state.dra and by_dra(item, state):
        names = [name for name, resource in sorted(state.resources.items()) if resource.dra]
        how = " or ".join(["a ResourceClaim", *names])
        entry["proof"] = (
            f"the DRA driver {' and '.join(state.dra.drivers)} serves the node {state.name}: "
            f"{state.dra} in its ResourceSlices, asked for by {how}"
        )
    elif state is not None:
        offers = ", ".join(
            f"{resource.allocatable} {name}"
            for name, resource in sorted(state.resources.items())
            if resource.allocatable
        )
        whose = ", by a plugin of somebody else" if is_foreign_only(item, view) else ""
        entry["proof"] = f"the node {state.name} offers {offers}{whose}"
    return entry


def _undiscovered(short: Shortfall) -> dict[str, Any]:
    """Return the entry of a node on which feature discovery does not run; its GPUs are offered."""
    return {
        "node": short.expected.key, "layer": "allocatable", "ok": False, "proof": "",
        "subject": TITLE, **_told(short),
    }  # fmt: skip


def _told(short: Shortfall) -> dict[str, str]:
    found = short.finding
    return {
        "code": found.code,
        "cause": found.cause,
        "evidence": found.evidence,
        "next_step": found.next_step,
    }
