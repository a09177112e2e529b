# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Create a test pod on each node, wait for the results, and delete all pods in any case."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .._cluster.allocation import NodeState, node_states
from .._cluster.dra import GROUP
from .._cluster.pods import PodView, pod_view
from .._cluster.read import Reader
from .._cluster.snapshot import match_hosts
from .._cluster.types import Expected
from .._cluster.wait import Clock, Sleep
from .._cluster.workloads import MANAGED_BY, OURS, namespace_manifest
from .._core.finding import Finding
from .._known_faults.answers import has_no_account
from .._kube.automatic import CONFIG_MAP, SECRET, SERVICE_ACCOUNT, is_automatic
from .._kube.errors import KubeError
from .plan import (
    OWNER,
    RUN_LABEL,
    SELECTOR,
    check_node,
    choose_class,
    choose_resource,
    claim_manifest,
    device_plugin_class,
    is_done,
    is_leftover,
    judge,
    not_admitted,
    pod_manifest,
    pod_name,
)
from .types import AUTO, PodResult, Request, Target

# All times in seconds.
_INTERVAL = 1.0
# For what may recover: a second pull of the image, a second attempt of the scheduler.
_PATIENCE = 20.0
# For the kubelet to enforce the pod's own deadline.
_GRACE = 10.0
_GONE = 30.0
# For a new namespace to get its service account.
_ACCOUNT = 20.0
# Lines of the log that are searched for the expected text.
_LINES = 1000
_KINDS = (
    ("/api/v1", "pods", "Pod"),
    ("/api/v1", "configmaps", CONFIG_MAP),
    ("/api/v1", "secrets", SECRET),
    ("/api/v1", "serviceaccounts", SERVICE_ACCOUNT),
    ("/apis/apps/v1", "daemonsets", "DaemonSet"),
    ("/apis/apps/v1", "deployments", "Deployment"),
)

#: Returns whether the process of an identity is alive; None if it is of another machine.
Alive = Callable[[str], "bool | None"]


@dataclass
class PodTests:
    """One run of test pods.

    :param run_id: label of this run's pods.
    :param owner: identity of this process, stored in an annotation of the pods.
    """

    reader: Reader
    request: Request
    run_id: str
    owner: str
    alive: Alive
    #: Called before the pods are deleted: from then on nothing may interrupt.
    before_cleanup: Callable[[], None] = lambda: None
    check_mode: bool = False
    sleep: Sleep = time.sleep
    clock: Clock = time.monotonic
    #: Lasting changes in the cluster: namespace created, leftovers deleted.
    changes: list[str] = field(default_factory=list)

    def test(self, hosts: Sequence[Expected], count: int) -> dict[str, Any]:
        """Run the pods, and return the results by host.

        :param count: GPUs that each pod requests.
        :raises KubeError: the API server failed a request that no result can stand for.
        """
        self._prepare()
        if self.request.runtime_class == AUTO:
            found_class = device_plugin_class(self.reader.parts())
            self.request = replace(self.request, runtime_class=found_class, auto_class=True)
        extra = sorted({name for host in hosts for name in host.resources})
        states, nodes, _pods = self.reader.states(extra)
        found, notes, doubts = match_hosts(hosts, nodes, states)
        self.reader.notes += notes
        results: dict[str, PodResult] = {}
        targets: list[Target] = []
        for host in hosts:
            state = found[host.key]
            if state is None:
                results[host.key] = PodResult(False, doubts.get(host.key) or _unknown(host))
                continue
            target = self._target(host, state, count)
            result = check_node(target, state, self.request)
            if result is not None:
                results[host.key] = result
            else:
                targets.append(target)
        details: dict[str, Any] = {}
        if self.check_mode:
            results.update({target.key: PodResult(None, _CHECK_MODE) for target in targets})
        elif targets:
            results.update(self._run(targets, extra, details))
        if self.request.busy_fails:
            results = {key: _strict(result) for key, result in results.items()}
        return {
            "nodes": {
                host.key: self._result(host, found[host.key], results[host.key], details)
                for host in hosts
            },
            "layers": [
                {
                    **_layer(host.key, results[host.key]),
                    "log": (details.get(host.key) or {}).get("log", []),
                }
                for host in hosts
            ],
        }

    def absent(self, with_namespace: bool) -> None:
        """Delete all test pods, and the namespace if this collection created it and it is unused.

        :param with_namespace: whether the namespace is deleted.
        """
        base = f"/api/v1/namespaces/{self.request.namespace}"
        namespace = self.reader.cluster.get(base)
        if namespace is None or (namespace.get("metadata") or {}).get("deletionTimestamp"):
            return
        pods = list(self.reader.cluster.list(f"{base}/pods", labelSelector=SELECTOR))
        self._remove(pods, "test pod")
        if with_namespace:
            self._remove_namespace(namespace, {pod["metadata"]["name"] for pod in pods})

    def _remove_namespace(self, namespace: Mapping[str, Any], gone: set[str]) -> None:
        name = self.request.namespace
        if (namespace["metadata"].get("labels") or {}).get(MANAGED_BY) != OURS:
            return
        others = list(self._others(gone))
        if others:
            self.reader.notes.append(
                f"The namespace {name} is kept: it holds {', '.join(others[:5])}"
                f"{' and more' if len(others) > 5 else ''}. Remove it when they are not needed: "
                f"kubectl delete namespace {name}"
            )
            return
        try:
            self.reader.cluster.delete(f"/api/v1/namespaces/{name}", dry_run=self.check_mode)
        except KubeError as error:
            # Conflict: another run is deleting it already.
            if error.status != 409:
                raise
        self.changes.append(f"namespace {name} removed")

    def _others(self, gone: set[str]) -> Iterable[str]:
        for group, kind, singular in _KINDS:
            path = f"{group}/namespaces/{self.request.namespace}/{kind}"
            for item in self.reader.cluster.list(path):
                name = item["metadata"]["name"]
                if item["metadata"].get("deletionTimestamp") or is_automatic(
                    singular, name, str(item.get("type"))
                ):
                    continue
                if kind == "pods" and name in gone:
                    continue
                yield f"{kind[:-1]} {name}"

    def _prepare(self) -> None:
        """Create the namespace if it is missing; delete pods that a killed run left in it."""
        name = self.request.namespace
        base = f"/api/v1/namespaces/{name}"
        if self.reader.cluster.get(base) is None and self._make_namespace():
            return
        pods = self.reader.cluster.list(f"{base}/pods", labelSelector=SELECTOR)
        now = self.reader.cluster.server_time
        leftovers = [
            pod
            for pod in pods
            if is_leftover(
                pod,
                now,
                self.alive((pod["metadata"].get("annotations") or {}).get(OWNER, "")),
            )
        ]
        self._remove(leftovers, "left-over test pod")

    def _make_namespace(self) -> bool:
        """Return whether this run created it; another one may have done so at the same time."""
        name = self.request.namespace
        try:
            self.reader.cluster.create(
                "/api/v1/namespaces", namespace_manifest(name), dry_run=self.check_mode
            )
        except KubeError as error:
            if error.reason != "AlreadyExists":
                raise
            return False
        self.changes.append(f"namespace {name} made")
        return True

    def _remove(self, pods: Sequence[Mapping[str, Any]], what: str) -> None:
        names = [pod["metadata"]["name"] for pod in pods]
        self.changes += [f"{what} {self.request.namespace}/{name} removed" for name in names]
        if names and not self.check_mode:
            for name, error in self._delete(names).items():
                raise error if error.status in (401, 403) else KubeError(
                    f"The pod {self.request.namespace}/{name} cannot be deleted: {error.cause}",
                    evidence=error.evidence, next_step=error.next_step, status=error.status,
                )  # fmt: skip
            self._await_gone({pod["metadata"]["uid"] for pod in pods}, SELECTOR)

    def _delete(self, names: Sequence[str]) -> dict[str, KubeError]:
        base = f"/api/v1/namespaces/{self.request.namespace}/pods"
        answers = self.reader.cluster.each(
            lambda name: self.reader.cluster.delete(f"{base}/{name}"), names
        )
        return {
            name: answer for name, answer in zip(names, answers) if isinstance(answer, KubeError)
        }

    def _await_gone(self, uids: set[str], selector: str) -> None:
        end = self.clock() + _GONE
        base = f"/api/v1/namespaces/{self.request.namespace}/pods"
        while self.clock() < end:
            there = self.reader.cluster.list(base, labelSelector=selector)
            if not uids & {pod["metadata"]["uid"] for pod in there}:
                return
            self.sleep(_INTERVAL)

    def _target(self, host: Expected, state: NodeState, count: int) -> Target:
        resource = choose_resource(state, host.resources)
        device_class = "" if state.resource(resource).allocatable else choose_class(state)
        return Target(
            host.key,
            state.name,
            state.labels.get("kubernetes.io/hostname") or state.name,
            device_class or resource,
            count,
            host.known,
            dra=bool(device_class) or state.resource(resource).dra,
            claim=bool(device_class),
        )

    def _run(
        self, targets: Sequence[Target], extra: Sequence[str], details: dict[str, Any]
    ) -> dict[str, PodResult]:
        names = [pod_name(target.node, self.run_id) for target in targets]
        uids: set[str] = set()
        done = False
        try:
            results = self._make(targets, uids)
            rest = [target for target in targets if target.key not in results]
            results.update(self._watch(rest, extra, details))
            done = True
        finally:
            # Reached on an interrupt too. Includes pods whose creation was not yet confirmed.
            self.before_cleanup()
            failed = self._delete(names)
            self.reader.notes += [
                f"The test pod {self.request.namespace}/{name} could not be deleted: {error.cause} "
                "The next run removes it."
                for name, error in failed.items()
            ]
            if done:
                self._await_gone(uids, f"{RUN_LABEL}={self.run_id}")
        return results

    def _make(self, targets: Sequence[Target], uids: set[str]) -> dict[str, PodResult]:
        path = f"/api/v1/namespaces/{self.request.namespace}/pods"

        def make(target: Target) -> dict[str, Any]:
            request = self.request.of(target.resource)
            body = pod_manifest(target, request, self.run_id, self.owner)
            end = self.clock() + _ACCOUNT
            while True:
                try:
                    made = self.reader.cluster.create(path, body)
                    break
                except KubeError as error:
                    if not has_no_account(error.evidence) or self.clock() >= end:
                        raise
                self.sleep(_INTERVAL)
            if target.claim:
                # After the pod, which waits for it and owns it: it goes with the pod in any case.
                api = self.reader.dra.version
                claims = f"/apis/{GROUP}/{api}/namespaces/{request.namespace}/resourceclaims"
                claim = claim_manifest(target, made, api, request)
                self.reader.cluster.create(claims, claim)
            return made

        results = {}
        for target, made in zip(targets, self.reader.cluster.each(make, targets)):
            if isinstance(made, KubeError):
                results[target.key] = not_admitted(
                    target, made.cause, made.evidence, made.next_step
                )
            else:
                uids.add(str(made["metadata"]["uid"]))
        return results

    def _watch(
        self, targets: Sequence[Target], extra: Sequence[str], details: dict[str, Any]
    ) -> dict[str, PodResult]:
        path = f"/api/v1/namespaces/{self.request.namespace}/pods"
        start = self.clock()
        results: dict[str, PodResult] = {}
        waiting = {pod_name(target.node, self.run_id): target for target in targets}
        while waiting:
            waited = self.clock() - start
            over = waited > self.request.timeout + _GRACE
            pods = self.reader.cluster.list(path, labelSelector=f"{RUN_LABEL}={self.run_id}")
            views = {pod["metadata"]["name"]: pod_view(pod) for pod in pods}
            ready: list[tuple[Target, PodView | None]] = []
            for name, target in list(waiting.items()):
                view = views.get(name)
                if view is not None and waited >= _PATIENCE and view.phase == "Pending":
                    view = self.reader.detailed(view)
                if view is None or over or is_done(view, waited, _PATIENCE):
                    ready.append((target, view))
                    del waiting[name]
            results.update(self._judge(ready, extra, waited, details))
            if waiting:
                self.sleep(_INTERVAL)
        return results

    def _judge(
        self,
        ready: Sequence[tuple[Target, PodView | None]],
        extra: Sequence[str],
        waited: float,
        details: dict[str, Any],
    ) -> dict[str, PodResult]:
        if not ready:
            return {}
        views = self.reader.cluster.each(
            lambda pair: self.reader.detailed(pair[1], tail=_LINES) if pair[1] else None, ready
        )
        states: Mapping[str, NodeState] = {}
        if any(view is not None and not view.node for _target, view in ready):
            # Read again: other pods may hold the GPUs now.
            states = self.reader.states(extra)[0]
        results = {}
        for (target, bare), answer in zip(ready, views):
            view = bare if isinstance(answer, KubeError) else answer
            state = states.get(target.node) or _EMPTY
            request = self.request.of(target.resource)
            results[target.key] = judge(target, request, view, state, waited)
            details[target.key] = {
                "pod": view.full_name if view else None,
                "resource": target.resource,
                "seconds": round(waited, 1),
                "log": view.last_lines(20) if view else [],
            }
        return results

    @staticmethod
    def _result(
        host: Expected, state: NodeState | None, result: PodResult, details: Mapping[str, Any]
    ) -> dict[str, Any]:
        entry = _layer(host.key, result)
        more = details.get(host.key) or {}
        return {
            "node": state.name if state else None,
            **{
                key: entry[key] for key in ("ok", "code", "cause", "evidence", "next_step", "proof")
            },
            "pod": more.get("pod"),
            "resource": more.get("resource"),
            "seconds": more.get("seconds"),
            "log": more.get("log", []),
        }


_CHECK_MODE = Finding("check_mode", "No pod is made in check mode.")
_EMPTY = node_states([{"metadata": {"name": ""}}], [])[""]


def _unknown(host: Expected) -> Finding:
    by = f"the machine id {host.machine_id} or " if host.machine_id else ""
    return Finding(
        "node_unknown",
        f"The cluster has no node with {by}the name {host.name}.",
        "",
        "Join it to the cluster, or give the name that kubectl get nodes shows.",
    )


def _strict(result: PodResult) -> PodResult:
    allocated = result.finding is not None and result.finding.code == "all_taken"
    return replace(result, ok=False) if allocated else result


def _layer(key: str, result: PodResult) -> dict[str, Any]:
    """Return the entry of a host's layer ``pod``, in the form of the other layers."""
    found = result.finding or Finding("", "")
    return {
        "node": key,
        "layer": "pod",
        "ok": result.ok,
        "code": found.code,
        "cause": found.cause,
        "evidence": found.evidence,
        "next_step": found.next_step,
        "proof": result.proof,
        "subject": "",
    }
