# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The drain of one node: its pods, what was done, and what the next slice has to know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .._core.finding import Finding
from .answers import EvictionResult
from .record import view
from .types import EVICT, GONE, KEPT, LEAVES, REFUSED, WAITS, Decision, Node, Pod

if TYPE_CHECKING:
    from .._cluster.types import Expected


@dataclass
class LeavingPod:
    """A pod that is to leave its node."""

    pod: Pod
    #: ``evict`` (to be evicted), ``leaves`` (by itself) or ``waits`` (may finish)
    kind: str
    outcome: EvictionResult = field(default_factory=EvictionResult)

    @property
    def finished(self) -> bool:
        """Whether nothing is left to be asked of the API server."""
        return self.kind == LEAVES or self.outcome.done


@dataclass
class NodeDrain:
    """The drain of a host's node in this call. Times are seconds."""

    host: Expected
    node: Node | None = None
    #: The node as it was read.
    original: Node | None = None
    #: The diff's view of the node before the first slice.
    before: Mapping[str, Any] | None = None
    #: What is wrong, with the pod, if it concerns one.
    problems: list[tuple[Pod | None, Finding]] = field(default_factory=list)
    #: Pods that are to leave, by uid.
    open: dict[str, LeavingPod] = field(default_factory=dict)
    kept: list[Decision] = field(default_factory=list)
    #: Accepted evictions, by uid; ``seconds`` is null as long as the pod is there.
    evicted: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Whether this call cordoned the node, which a failure takes back.
    cordoned_here: bool = False
    was_unschedulable: bool | None = None
    #: How long its pods were given time to finish, and how long it has been drained.
    waited: float = 0.0
    drained: float = 0.0
    #: Whether an earlier slice began with it.
    begun: bool = False
    #: Whether pods may have come since they were read.
    look_again: bool = False
    done: bool = False

    @property
    def key(self) -> str:
        return self.host.key

    @property
    def failed(self) -> bool:
        return bool(self.problems)

    @property
    def active(self) -> bool:
        return not self.done and not self.failed

    @property
    def waits(self) -> bool:
        """Whether pods of the node are given time to finish."""
        return any(leaving.kind == WAITS for leaving in self.open.values())

    def fail(self, finding: Finding, pod: Pod | None = None) -> None:
        self.problems.append((pod, finding))

    def take(self, decisions: Iterable[Decision]) -> None:
        """Take over what was decided of the node's pods."""
        self.kept = []
        for decision in decisions:
            if decision.kind == KEPT:
                self.kept.append(decision)
            elif decision.kind == REFUSED:
                self.problems += [(decision.pod, finding) for finding in decision.findings]
            elif decision.kind != GONE:
                known = self.open.get(decision.pod.uid)
                if known is None or known.kind != decision.kind:
                    self.open[decision.pod.uid] = LeavingPod(decision.pod, decision.kind)

    def to_evict(self) -> list[LeavingPod]:
        if self.waits:
            return []
        return [
            leaving
            for leaving in self.open.values()
            if leaving.kind == EVICT and not leaving.finished
        ]

    def remove(self, uid: str) -> None:
        """Take note that a pod is gone."""
        del self.open[uid]
        self.look_again = True
        if uid in self.evicted:
            self.evicted[uid]["seconds"] = round(self.drained, 1)

    def finish(self) -> None:
        """Call the node done, unless a pod is there."""
        self.done = self.active and not self.open
        for pod in self.evicted.values() if self.done else ():
            if pod["seconds"] is None:
                # It went between two slices.
                pod["seconds"] = round(self.drained, 1)

    def to_carry(self) -> dict[str, Any]:
        """Return what the next slice has to know of the node."""
        return {
            "before": dict(self.before or {}),
            "evicted": self.evicted,
            "cordoned_here": self.cordoned_here,
            "waited": round(self.waited, 1),
            "drained": round(self.drained, 1),
        }

    def resume(self, carried: Mapping[str, Any]) -> None:
        self.begun = True
        self.before = carried["before"]
        self.evicted = {uid: dict(pod) for uid, pod in carried["evicted"].items()}
        self.cordoned_here = carried["cordoned_here"]
        self.waited, self.drained = carried["waited"], carried["drained"]

    def row(self) -> dict[str, Any]:
        """Return the node's entry in the module's result."""
        node = self.node
        evicted = sorted(self.evicted.values(), key=lambda one: (one["namespace"], one["name"]))
        row: dict[str, Any] = {
            "node": node.name if node else None,
            "ok": not self.failed,
            "changed": False,
            "ready": node.ready if node else None,
            "boot_id": node.boot_id if node else None,
            "unschedulable": node.unschedulable if node else None,
            "was_unschedulable": self.was_unschedulable,
            "held_by": view(node)["run"] if node else None,
            "evicted": evicted,
            "waiting": [_waiting(leaving) for leaving in self.open.values()],
            "kept": [
                {**one.pod.to_json(), "why": one.why} for one in self.kept if one.why != "no_gpu"
            ],
            "without_request": [
                {"namespace": one.pod.namespace, "name": one.pod.name, "sign": one.pod.sign}
                for one in self.kept
                if one.pod.sign
            ],
            "containers": {
                container: one.pod.full_name
                for one in self.kept
                for container in one.pod.containers
            },
            "findings": [_problem(pod, finding) for pod, finding in self.problems],
        }
        if self.original is not None:
            # In check mode the rest of the row is what would be.
            row["found"] = {
                "unschedulable": self.original.unschedulable,
                "held_by": view(self.original)["run"],
            }
        if node is not None and self.before is not None:
            pods = [f"{one['namespace']}/{one['name']}" for one in evicted]
            before, after = dict(self.before), view(node)
            row["changed"] = before != after or bool(pods)
            row["diff"] = ({**before, "pods": pods}, {**after, "pods": []})
        return row


def _waiting(leaving: LeavingPod) -> dict[str, Any]:
    finding = leaving.outcome.finding
    return {
        **leaving.pod.to_json(),
        "why": leaving.kind,
        "deletion": leaving.pod.deletion or None,
        "code": finding.code if finding else None,
        "cause": finding.cause if finding else None,
    }


def _problem(pod: Pod | None, finding: Finding) -> dict[str, Any]:
    return {
        **finding.as_problem(),
        "pod": pod.full_name if pod else None,
        "budget": finding.details.get("budget"),
        "needs": _number(finding.details.get("needs")),
        "has": _number(finding.details.get("has")),
    }


def _number(text: str | None) -> int | None:
    return int(text) if text else None
