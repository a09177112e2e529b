# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cordon, drain and release nodes: read, refuse, cordon, drain, release what failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from .._cluster.allocation import NodeState, node_states
from .._cluster.causes import unknown_node
from .._cluster.read import Reader
from .._cluster.snapshot import match_hosts
from .._cluster.wait import Clock, Sleep
from .._core.errors import KubegpuError
from .._core.finding import Finding
from .._kube.api import Cluster
from .._kube.errors import KubeError
from .._kube.timestamp import timestamp
from .._labels.result import join_names
from .answers import not_patched, not_ready, passes
from .drain import Drain
from .lease import Lease
from .plan import classify, find_kured, read_daemonsets, read_pod
from .record import cordon, find_obstacle, read_node, read_record, release, view
from .types import DRAINED, MANAGER, RELEASED, DaemonSets, Node, Pod, Request
from .work import NodeDrain

_NODES = "/api/v1/nodes"

#: Returns the patch of a node, None for none; raises KubeError.
Patch = Callable[[Node], "dict[str, Any] | None"]


@dataclass
class Maintenance:
    """One call of the module, or one slice of it.

    :param limit: seconds after which a drain returns unfinished; 0 for none.
    :param carried: what the slice before returned (:meth:`carry`).
    """

    cluster: Cluster
    request: Request
    dry_run: bool = False
    limit: float = 0
    carried: Mapping[str, Any] = field(default_factory=dict)
    sleep: Sleep = time.sleep
    clock: Clock = time.monotonic
    notes: list[str] = field(default_factory=list)
    #: The process that holds the Lease, if it is that of another run.
    lease_process: str = ""
    _works: list[NodeDrain] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._reader = Reader(self.cluster)
        self._daemonsets: DaemonSets | None = None
        asked = self.request.lease
        self._lease = Lease(self.cluster, asked, self.request.run) if asked else None

    def run(self) -> dict[str, dict[str, Any]]:
        """Return the rows of the nodes, by the keys of the hosts."""
        try:
            return self._run()
        except KubegpuError as error:
            left = self._left_cordoned()
            if left:
                error.next_step = (
                    f"{error.next_step} Then run the same task again, which continues, or release "
                    f"with state: released what remains cordoned by this run: {join_names(left)}."
                ).strip()
            raise

    def _left_cordoned(self) -> list[str]:
        """Return the nodes that this task has cordoned, if it ends here."""
        if self.dry_run:
            return []
        earlier = self.carried.get("pending") or {}
        keys = {key for key, one in earlier.items() if one["cordoned_here"]}
        return sorted(keys | {work.key for work in self._works if work.cordoned_here})

    def _run(self) -> dict[str, dict[str, Any]]:
        finished = dict(self.carried.get("finished") or {})
        pods = self._begin(finished)
        self._check_others()
        ready = [work for work in self._works if work.active]
        if self.request.state == RELEASED:
            self._patch(ready, release)
        elif self.request.state == DRAINED:
            self._drain(ready, pods)
        else:
            self._cordon(ready)
            self._await_ready([work for work in ready if work.active])
        if self._lease and self.request.lease and self.request.lease.done and not self.dry_run:
            self._lease.release()
        self.notes += self._reader.notes
        rows = {work.key: work.row() for work in self._works}
        return {host.key: finished.get(host.key) or rows[host.key] for host in self.request.hosts}

    def carry(self, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return what the next slice needs; nothing if there is none."""
        pending = {work.key: work.to_carry() for work in self._works if self._is_pending(work)}
        if not pending:
            return {}
        done = {key: row for key, row in rows.items() if key not in pending}
        return {"finished": done, "pending": pending}

    def _is_pending(self, work: NodeDrain) -> bool:
        return self.request.state == DRAINED and not self.dry_run and work.active

    def _begin(self, finished: Mapping[str, Any]) -> dict[str, list[Pod]]:
        """Read the cluster, and find the node of each host; return the pods by node."""
        states, items, pods = self._read_first()
        nodes = {node.name: node for node in map(read_node, items)}
        matched, notes, doubts = match_hosts(self.request.hosts, items, states)
        self.notes += notes
        pending = self.carried.get("pending") or {}
        for host in self.request.hosts:
            if host.key in finished:
                continue
            work = NodeDrain(host)
            self._works.append(work)
            state = matched[host.key]
            if state is None:
                work.fail(doubts.get(host.key) or unknown_node(host))
                continue
            work.node = work.original = nodes[state.name]
            work.before = view(work.node)
            if host.key in pending:
                work.resume(pending[host.key])
            self._check(work)
        return pods

    def _read_first(
        self,
    ) -> tuple[dict[str, NodeState], list[dict[str, Any]], dict[str, list[Pod]]]:
        """Read the cluster. Between two slices, a server that restarts is waited for as in one."""
        begin = self.clock()
        while True:
            try:
                return self._read(with_pods=self.request.state == DRAINED)
            except KubeError as error:
                waits = bool(self.carried) and self.clock() - begin < self.limit
                if not waits or not passes(error):
                    raise
            self.sleep(self.request.poll)

    def _check(self, work: NodeDrain) -> None:
        """Refuse a node that another run holds, or whose record cannot be read."""
        if work.node is None:
            return
        obstacle = find_obstacle(work.node, self.request)
        if obstacle is not None:
            work.fail(obstacle)
        else:
            record = read_record(work.node)
            now = work.node.unschedulable
            work.was_unschedulable = record.was_unschedulable if record else now

    def _check_others(self) -> None:
        """Refuse the nodes if another run has the Lease, and those that kured reboots."""
        fresh = [work for work in self._works if work.active and not work.begun]
        if self._lease is not None and self._works:
            held = self._lease.take(dry_run=self.dry_run)
            self.notes += self._lease.notes
            if held is not None:
                self.lease_process = held.details["process"]
                # Those that this run has begun, too: the other run may change them by now.
                for work in self._works:
                    if work.active:
                        work.fail(held)
                return
        if self.request.state == RELEASED or not fresh:
            return
        daemonsets = self._read_daemonsets()
        for work in fresh:
            locked = find_kured(work.node, daemonsets) if work.node is not None else None
            if locked is not None:
                work.fail(locked)

    def _read_daemonsets(self) -> DaemonSets:
        if self._daemonsets is None:
            items = list(self.cluster.list("/apis/apps/v1/daemonsets"))
            now = self.cluster.server_time or time.time()
            self._daemonsets = read_daemonsets(items, now)
        return self._daemonsets

    def _await_ready(self, works: Sequence[NodeDrain]) -> None:
        """Wait until the nodes are ready, with the boot that their kubelets have to report."""
        timeout = 0 if self.dry_run else self.request.ready_timeout
        begin = self.clock()
        while True:
            late = [work for work in works if not self._is_ready(work)]
            waited = self.clock() - begin
            if not late or waited >= timeout:
                break
            self.sleep(self.request.poll)
            nodes = {node.name: node for node in map(read_node, self.cluster.list(_NODES))}
            for work in late:
                if work.node is not None:
                    work.node = nodes.get(work.node.name, work.node)
        for work in late if timeout else ():
            if work.node is not None:
                work.fail(not_ready(work.node, self.request.boots.get(work.key, ""), waited))

    def _is_ready(self, work: NodeDrain) -> bool:
        boot_id = self.request.boots.get(work.key, "")
        node = work.node
        return node is not None and node.ready and boot_id in ("", node.boot_id)

    def _read(
        self, *, with_pods: bool
    ) -> tuple[dict[str, NodeState], list[dict[str, Any]], dict[str, list[Pod]]]:
        """Return the states of all nodes, the Node objects, and the pods by node."""
        if not with_pods:
            items = list(self.cluster.list(_NODES))
            return node_states(items, ()), items, {}
        states, items, objects = self._reader.states()
        gpus: dict[tuple[str, str], int] = {}
        for state in states.values():
            for resource in state.resources.values():
                for use in resource.pods:
                    name = (use.namespace, use.name)
                    gpus[name] = gpus.get(name, 0) + use.count
        pods: dict[str, list[Pod]] = {}
        for data in objects:
            meta = data["metadata"]
            pod = read_pod(data, gpus.get((meta["namespace"], meta["name"]), 0))
            pods.setdefault(pod.node, []).append(pod)
        return states, items, pods

    def _decide(self, works: Sequence[NodeDrain], pods: Mapping[str, Sequence[Pod]]) -> None:
        """Decide what becomes of the pods of the nodes."""
        there = [(work, pods.get(work.node.name, ())) for work in works if work.node is not None]
        daemons = any(pod.owner_kind == "DaemonSet" for _work, found in there for pod in found)
        daemonsets = self._read_daemonsets() if daemons else DaemonSets()
        wait_for = self.request.wait_for
        for work, found in there:
            waiting = wait_for is not None and work.waited < wait_for.timeout
            work.take(classify(pod, self.request, daemonsets, waiting=waiting) for pod in found)

    def _drain(self, works: Sequence[NodeDrain], pods: Mapping[str, Sequence[Pod]]) -> None:
        drain = Drain(
            self.cluster, self.request, self._read_again, self._read_node, self.sleep, self.clock
        )
        self._decide(works, pods)
        # What can never be done is refused before anything is written.
        drain.preflight([work for work in works if work.active and not work.begun])
        willing = [work for work in works if work.active]
        self._cordon(willing)
        cordoned = [work for work in willing if work.active]
        if self.dry_run:
            drain.predict(cordoned)
        else:
            drain.run(cordoned, self.limit)
        self._release_failed([work for work in willing if work.failed and work.cordoned_here])

    def _cordon(self, works: Sequence[NodeDrain]) -> None:
        fresh = [work for work in works if work.node is not None and work.node.record is None]

        def patch(node: Node) -> dict[str, Any] | None:
            return cordon(node, self.request, timestamp(self.cluster.server_time or time.time()))

        self._patch(works, patch)
        for work in fresh:
            work.cordoned_here = work.active

    def _release_failed(self, works: Sequence[NodeDrain]) -> None:
        """Release the nodes that this call cordoned and could not drain."""
        if self.dry_run:
            for work in works:
                work.node = work.original
        else:
            self._patch(works, release)

    def _patch(self, works: Sequence[NodeDrain], make: Patch) -> None:
        """Patch the nodes. One that another client changed in between is read and planned again."""
        tried: set[str] = set()

        def send(work: NodeDrain) -> Node | Finding | None:
            node = work.node
            if node is not None and node.name in tried:
                node = self._read_node(node.name)
            if node is None:
                return None
            tried.add(node.name)
            obstacle = find_obstacle(node, self.request)
            if obstacle is not None:
                return obstacle
            body = make(node)
            if body is None:
                return node
            work.look_again = True
            path = f"{_NODES}/{quote(node.name)}"
            return read_node(
                self.cluster.patch(path, body, field_manager=MANAGER, dry_run=self.dry_run)
            )

        for work, answer in zip(works, self.cluster.each(send, works, self.request.concurrency)):
            if isinstance(answer, Node):
                work.node = answer
            elif isinstance(answer, Finding):
                work.fail(answer)
            elif answer is None or answer.status == 404:
                work.fail(unknown_node(work.host))
            else:
                work.fail(not_patched(work.key, answer))

    def _read_node(self, name: str) -> Node | None:
        """Read one node with the right to list them, which is needed anyway."""
        for data in self.cluster.list(_NODES, fieldSelector=f"metadata.name={name}"):
            return read_node(data)
        return None

    def _read_again(self, works: Sequence[NodeDrain]) -> None:
        """Read the pods of these nodes again, and decide what becomes of them."""
        _states, _items, pods = self._read(with_pods=True)
        self._decide(works, pods)
