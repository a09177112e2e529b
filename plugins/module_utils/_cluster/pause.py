# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pause nodes for a change of their GPUs: no pod that uses GPUs, and none of this collection."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from .._core.errors import KubegpuError
from .._core.finding import Finding
from .._kube.api import Cluster
from .._kube.errors import KubeError
from .._labels.apply import NODES
from .._labels.match_hosts import Match, match
from .._labels.node import read_node
from .._labels.pause import leaves_paused, paused_for, plan_pause, plan_resume
from .._labels.types import Node, Plan, Request
from .allocation import Object, allocations
from .read import ACTIVE
from .workloads import MANAGED_BY, OUR_PLUGIN, OURS

_INTERVAL = 1.0


@dataclass(frozen=True)
class Settings:
    """The module's options apart from the nodes.

    ``allow_pods``: nodes with pods that use GPUs are paused as well. ``timeout`` is in seconds.
    """

    reason: str
    field_manager: str
    allow_pods: bool
    timeout: float


@dataclass(frozen=True)
class Result:
    """The result for a host.

    ``left`` are the DaemonSets whose pods left the node, ``containers`` the IDs of the containers
    of these pods.
    """

    node: Node | None = None
    changed: bool = False
    pods: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    containers: tuple[str, ...] = ()
    error: KubegpuError | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "node": self.node.name if self.node else None,
            "changed": self.changed,
            "paused": paused_for(self.node) if self.node else "",
            "cordoned": bool(self.node and self.node.cordons),
            "pods": list(self.pods),
            "left": list(self.left),
            "containers": list(self.containers),
        }


class Pauser:
    """Pauses nodes and ends their pause; in check mode by dry runs on the server."""

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        dry_run: bool,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._dry_run = dry_run
        self._sleep = sleep
        self._clock = clock

    def pause(self, requests: Sequence[Request]) -> dict[str, Result]:
        """Pause the nodes; return what was done for each host, by its key."""
        ours = _our_daemonsets(self._cluster.list("/apis/apps/v1/daemonsets"))
        return self._each(requests, lambda node: self._pause(node, ours))

    def resume(self, requests: Sequence[Request]) -> dict[str, Result]:
        """End the pause of the nodes; return what was done for each host, by its key."""
        return self._each(requests, self._resume)

    def _each(
        self, requests: Sequence[Request], work: Callable[[Node], Result]
    ) -> dict[str, Result]:
        manager = self._settings.field_manager
        found = match(requests, [read_node(data, manager) for data in self._cluster.list(NODES)])

        def guarded(one: Match) -> Result:
            if one.refusal is not None:
                return Result(error=one.refusal)
            try:
                return work(one.node) if one.node else Result()
            except KubegpuError as error:
                return Result(one.node, error=error)

        answers = self._cluster.each(guarded, found)
        return {
            one.request.key: Result(one.node, error=answer)
            if isinstance(answer, KubeError)
            else answer
            for one, answer in zip(found, answers)
        }

    def _pause(self, node: Node, ours: Mapping[str, Object]) -> Result:
        pods = self._pods(node)
        self._check_pods(node, pods)
        before = _daemonset_pods(pods, ours)
        containers = _containers(pods, before)
        stays = sorted({name for name in before.values() if not _leaves(ours[name])})
        if stays:
            # A teardown removes them, and asks which containers end with that.
            error = _does_not_leave(node, stays).error()
            held = _gpu_pods(node, pods)
            return Result(node, pods=held, containers=containers, error=error)
        outcome = self._send(node, plan_pause(node, self._settings.reason))
        if not self._dry_run:
            try:
                self._wait_left(node, ours)
            except KubegpuError:
                self._resume(outcome.node or node)
                raise
        left = tuple(sorted(set(before.values())))
        return replace(outcome, pods=_gpu_pods(node, pods), left=left, containers=containers)

    def _resume(self, node: Node) -> Result:
        return self._send(node, plan_resume(node, self._settings.reason))

    def _send(self, node: Node, plan: Plan) -> Result:
        if plan.apply is None:
            return Result(node)
        data = self._cluster.apply(
            f"{NODES}/{quote(node.name)}",
            plan.apply,
            field_manager=self._settings.field_manager,
            dry_run=self._dry_run,
        )
        return Result(read_node(data, self._settings.field_manager), True)

    def _wait_left(self, node: Node, ours: Mapping[str, Object]) -> None:
        """Wait until the pods of this collection have left the node.

        :raises KubegpuError: they did not, or a pod with a GPU came before the node was cordoned.
        """
        start = self._clock()
        while True:
            pods = self._pods(node)
            self._check_pods(node, pods)
            there = _daemonset_pods(pods, ours)
            if not there:
                return
            if self._clock() - start >= self._settings.timeout:
                raise _still_there(node, sorted(there), self._settings.timeout).error()
            self._sleep(_INTERVAL)

    def _pods(self, node: Node) -> list[Object]:
        chosen = f"spec.nodeName={node.name},{ACTIVE}"
        return list(self._cluster.list("/api/v1/pods", fieldSelector=chosen))

    def _check_pods(self, node: Node, pods: Sequence[Object]) -> None:
        held = _gpu_pods(node, pods)
        if held and not self._settings.allow_pods:
            raise _has_gpu_pods(node, held).error()


def failure(outcomes: Mapping[str, Result]) -> KubegpuError | None:
    """Return the error of the module; None if there is none."""
    errors = [one.error for one in outcomes.values() if one.error is not None]
    if len(errors) < 2:
        return errors[0] if errors else None
    return KubegpuError(
        "; ".join(error.cause for error in errors),
        evidence="; ".join(error.evidence for error in errors if error.evidence),
        next_step=errors[0].next_step,
    )


def _our_daemonsets(items: Iterable[Object]) -> dict[str, Object]:
    """Return the DaemonSets of this collection, by namespace and name."""
    found = {}
    for item in items:
        meta = item.get("metadata") or {}
        name = str(meta.get("name") or "")
        ours = (meta.get("labels") or {}).get(MANAGED_BY) == OURS
        # The labels of NVIDIA's chart are the chart's own.
        if ours or name.startswith(OUR_PLUGIN):
            found[f"{meta.get('namespace')}/{name}"] = item
    return found


def _leaves(daemonset: Object) -> bool:
    pod = ((daemonset.get("spec") or {}).get("template") or {}).get("spec") or {}
    return leaves_paused((pod.get("affinity") or {}).get("nodeAffinity") or {})


def _daemonset_pods(pods: Iterable[Object], ours: Mapping[str, Object]) -> dict[str, str]:
    """Return the pods of these DaemonSets: namespace and name to those of its DaemonSet."""
    found = {}
    for pod in pods:
        meta = pod.get("metadata") or {}
        for owner in meta.get("ownerReferences") or ():
            name = f"{meta.get('namespace')}/{owner.get('name')}"
            if owner.get("kind") == "DaemonSet" and name in ours:
                found[f"{meta.get('namespace')}/{meta.get('name')}"] = name
    return found


def _containers(pods: Iterable[Object], chosen: Collection[str]) -> tuple[str, ...]:
    """Return the IDs of the containers of some pods, which have their runtime in front."""
    found = set()
    for pod in pods:
        meta, status = pod.get("metadata") or {}, pod.get("status") or {}
        if f"{meta.get('namespace')}/{meta.get('name')}" in chosen:
            for kind in ("containerStatuses", "initContainerStatuses"):
                for one in status.get(kind) or ():
                    found.add(str(one.get("containerID") or "").rpartition("://")[2])
    return tuple(sorted(found - {""}))


def _gpu_pods(node: Node, pods: Iterable[Object]) -> tuple[str, ...]:
    held = allocations(pods).get(node.name, {})
    return tuple(sorted({f"{use.namespace}/{use.name}" for uses in held.values() for use in uses}))


def _has_gpu_pods(node: Node, pods: Sequence[str]) -> Finding:
    return Finding(
        "node_has_gpu_pods",
        f"Pods use GPUs of the node {node.name}, and it is not paused.",
        f"pods: {', '.join(pods)}",
        f"Let them end, or move them: kubectl drain {node.name} --ignore-daemonsets; then run "
        "again.",
    )


def _does_not_leave(node: Node, names: Sequence[str]) -> Finding:
    return Finding(
        "pause_unknown",
        f"Pods of this collection would not leave the node {node.name} while it is paused.",
        f"DaemonSets of an earlier release: {', '.join(names)}",
        "Deploy them again: site with --tags device_plugin (or the tag of the part); then run "
        "again.",
    )


def _still_there(node: Node, names: Sequence[str], timeout: float) -> Finding:
    return Finding(
        "pause_timeout",
        f"Pods of this collection have not left the paused node {node.name} in {timeout:.0f} "
        "seconds; the pause is ended.",
        f"pods: {', '.join(names)}",
        f"Check: kubectl describe pod, and whether the kubelet of {node.name} answers.",
    )
