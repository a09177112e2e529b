# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Take the pods off cordoned nodes: wait, evict, look, until none is left or the time is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from .._cluster.read import ACTIVE
from .._cluster.wait import Clock, Sleep
from .._kube.api import Cluster
from .._kube.errors import KubeError
from .answers import EvictionResult, judge, passes, still_running, still_there
from .plan import read_pod
from .types import EVICT, LEAVES, WAITS, Node, Request
from .work import LeavingPod, NodeDrain

_FIRST_PAUSE = 1.0
_PODS = "/api/v1/pods"
#: Up to so many nodes are read one by one.
_FEW = 4


class Drain:
    """Takes the pods off nodes, all side by side.

    :param read: reads the pods of these nodes again, and decides what becomes of them.
    :param read_node: reads a node again; None if it is gone.
    """

    def __init__(
        self,
        cluster: Cluster,
        request: Request,
        read: Callable[[Sequence[NodeDrain]], None],
        read_node: Callable[[str], Node | None],
        sleep: Sleep = time.sleep,
        clock: Clock = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._request = request
        self._read = read
        self._read_node = read_node
        self._sleep = sleep
        self._clock = clock
        self._version = ""
        #: Why the pods could not be read again; None if they could.
        self._away: KubeError | None = None

    def preflight(self, works: Sequence[NodeDrain]) -> None:
        """Ask for each pod by a dry run whether it could be evicted; nothing is written yet.

        A node fails if one of its pods can never be. A budget may let a pod go later.
        """
        pairs = [
            (work, leaving)
            for work in works
            for leaving in work.open.values()
            if leaving.kind == EVICT
        ]
        self._ask(pairs, dry_run=True)
        for work, leaving in pairs:
            if leaving.outcome.final and leaving.outcome.finding:
                work.fail(leaving.outcome.finding, leaving.pod)

    def predict(self, works: Sequence[NodeDrain]) -> None:
        """Take the answers of :meth:`preflight` for those of the evictions."""
        for work in works:
            for uid, leaving in work.open.items():
                if leaving.kind == EVICT and leaving.outcome.finding:
                    work.fail(leaving.outcome.finding, leaving.pod)
                elif leaving.kind == EVICT:
                    work.evicted[uid] = {**leaving.pod.to_json(), "seconds": None}
                if work.node is not None and not work.node.ready and leaving.finished:
                    work.fail(still_there(leaving.pod, work.node, None), leaving.pod)
            work.open = {uid: one for uid, one in work.open.items() if uid not in work.evicted}

    def run(self, works: Sequence[NodeDrain], limit: float = 0) -> None:
        """Drain the nodes until each is done or failed.

        :param limit: seconds after which the nodes that are left stay as they are; 0 for none.
        """
        for work in works:
            for leaving in work.open.values():
                # What a dry run said is old by now.
                leaving.outcome = EvictionResult()
        begin = last = self._clock()
        pause = _FIRST_PAUSE
        while True:
            waiting = [work for work in works if work.active and work.waits]
            self._round([work for work in works if work.active])
            active = [work for work in works if work.active]
            if not active or (limit and self._clock() - begin >= limit):
                return
            if any(work.active and not work.waits for work in waiting):
                # The last job of a node has finished.
                pause = _FIRST_PAUSE
                continue
            self._sleep(min(pause, self._request.poll))
            pause += 1
            now = self._clock()
            for work in active:
                if work.waits:
                    work.waited += now - last
                else:
                    work.drained += now - last
            last = now

    def _round(self, works: Sequence[NodeDrain]) -> None:
        for work in works:
            self._end_waiting(work)
        self._ask([(work, leaving) for work in works for leaving in work.to_evict()], dry_run=False)
        for work in works:
            for leaving in work.open.values():
                if leaving.outcome.final and leaving.outcome.finding:
                    work.fail(leaving.outcome.finding, leaving.pod)
        self._look([(work, uid) for work in works for uid in work.open])
        empty = [work for work in works if work.active and not work.open]
        again = [work for work in empty if work.look_again]
        # A pod may have come before the cordon, or tolerate it.
        read = self._read_again(again) if again else True
        for work in empty:
            if read or not work.look_again:
                work.finish()
        for work in works:
            self._end(work)

    def _ask(self, pairs: Sequence[tuple[NodeDrain, LeavingPod]], *, dry_run: bool) -> None:
        """Evict pods, or ask whether they could be."""
        if not pairs or not self._find_version(must=dry_run):
            return

        def ask(pair: tuple[NodeDrain, LeavingPod]) -> EvictionResult:
            leaving = pair[1]
            try:
                self._remove(leaving, dry_run)
            except KubeError as error:
                return judge(leaving.pod, error)
            return judge(leaving.pod, None)

        for (work, leaving), outcome in zip(
            pairs, self._cluster.each(ask, pairs, self._request.concurrency)
        ):
            if isinstance(outcome, KubeError):
                raise outcome
            leaving.outcome = outcome
            if outcome.done and not outcome.gone and not dry_run:
                work.evicted[leaving.pod.uid] = {**leaving.pod.to_json(), "seconds": None}

    def _find_version(self, *, must: bool) -> bool:
        """Find the version of evictions; False if the API server is away, which may pass."""
        if not self._version and not self._request.delete:
            try:
                self._version = self._cluster.eviction_version()
            except KubeError as error:
                if must or not passes(error):
                    raise
                return False
        return True

    def _read_again(self, works: Sequence[NodeDrain]) -> bool:
        """Read the pods of these nodes again; False if the API server is away, which may pass."""
        self._away = None
        try:
            self._read(works)
        except KubeError as error:
            if not passes(error):
                raise
            self._away = error
        return self._away is None

    def _remove(self, leaving: LeavingPod, dry_run: bool) -> None:
        """Evict or delete a pod.

        :raises KubeError: it was not there, or may not go.
        """
        pod, grace = leaving.pod, self._request.grace_period
        if self._request.delete:
            if not self._cluster.delete(pod.path, uid=pod.uid, grace=grace, dry_run=dry_run):
                raise KubeError(f"The pod {pod.full_name} was gone", status=404)
        else:
            self._cluster.evict(pod.path, pod.uid, self._version, grace=grace, dry_run=dry_run)

    def _look(self, pairs: Sequence[tuple[NodeDrain, str]]) -> None:
        """Look which pods are gone: no longer there, another one of that name, or finished."""
        if not pairs:
            return
        nodes = sorted({work.node.name for work, _uid in pairs if work.node is not None})
        # A list of all pods has many pages in a large cluster, and serves any number of nodes.
        selectors = [f"spec.nodeName={name},{ACTIVE}" for name in nodes]

        def read(selector: str) -> list[dict[str, Any]]:
            return list(self._cluster.list(_PODS, fieldSelector=selector))

        there: dict[str, dict[str, Any]] = {}
        few = selectors if len(nodes) <= _FEW else [ACTIVE]
        for found in self._cluster.each(read, few, self._request.concurrency):
            if isinstance(found, KubeError):
                # A server that restarts is asked again in the next round.
                if passes(found):
                    return
                raise found
            there.update((data["metadata"]["uid"], data) for data in found)
        for work, uid in pairs:
            leaving = work.open[uid]
            if uid in there:
                leaving.pod = read_pod(there[uid], leaving.pod.gpus)
            else:
                work.remove(uid)

    def _end_waiting(self, work: NodeDrain) -> None:
        """Judge the pods that did not finish in the time that they were given."""
        wait_for = self._request.wait_for
        if wait_for is None or not work.waits or work.waited < wait_for.timeout:
            return
        if wait_for.evict:
            self._read_again([work])
            return
        for leaving in work.open.values():
            if leaving.kind == WAITS:
                work.fail(still_running(leaving.pod, work.waited), leaving.pod)

    def _end(self, work: NodeDrain) -> None:
        """Judge a node whose time is over, or whose kubelet cannot end its pods."""
        if not work.active or work.waits or work.node is None:
            return
        over = work.drained >= self._request.timeout
        if not work.open:
            if over and self._away is not None:
                raise self._away
            return
        stuck = not work.node.ready and all(leaving.finished for leaving in work.open.values())
        if not over and not stuck:
            return
        try:
            node = self._read_node(work.node.name) or work.node
        except KubeError as error:
            if not passes(error):
                raise
            if not over:
                return
            node = work.node
        if stuck and node.ready and not over:
            work.node = node
            return
        for leaving in work.open.values():
            finding = leaving.outcome.finding
            if finding is None or leaving.outcome.done:
                paused = leaving.kind == LEAVES and leaving.pod.owner_kind == "DaemonSet"
                now = self._cluster.server_time
                finding = still_there(leaving.pod, node, now, paused)
            work.fail(finding, leaving.pod)
