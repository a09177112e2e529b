# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Types of gpu_node_maintenance: request, node, record, pod and what becomes of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .._labels.names import MAINTENANCE, PREFIX

if TYPE_CHECKING:
    from .._cluster.types import Expected
    from .._core.finding import Finding

#: Annotation of a node in maintenance: the run, and what the node was before.
RECORD = MAINTENANCE
#: Field manager of cordon, record and label. It is not that of the labels, whose next apply would
#: remove what it does not name.
MANAGER = f"{PREFIX}.maintenance"
#: Value of the label ``kubegpu.nodes/pause`` that this module sets.
PAUSED_BY = "maintenance"

CORDONED, DRAINED, RELEASED = "cordoned", "drained", "released"
STATES = (CORDONED, DRAINED, RELEASED)

# What becomes of a pod.
GONE, KEPT, LEAVES, WAITS, REFUSED, EVICT = "gone", "kept", "leaves", "waits", "refused", "evict"
CLASSES = (GONE, KEPT, LEAVES, WAITS, REFUSED, EVICT)


@dataclass(frozen=True)
class WaitFor:
    """Pods that are given time to finish before their node is drained.

    :param owners: kinds of the controllers, such as Job.
    :param labels: labels that such pods have.
    :param namespaces: empty for all.
    :param timeout: seconds.
    :param evict: whether they are evicted after the timeout.
    """

    owners: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    namespaces: tuple[str, ...] = ()
    timeout: int = 3600
    evict: bool = False


@dataclass(frozen=True)
class LeaseRequest:
    """The Lease that a run holds while it changes nodes.

    :param duration: seconds after which it is free, unless it is renewed.
    :param done: whether it is released with this call.
    :param process: the identity of the process of this run.
    :param ended: the identity of a process that has ended, whose Lease is free.
    """

    name: str
    namespace: str = "kubegpu"
    duration: int = 3600
    done: bool = False
    process: str = ""
    ended: str = ""


@dataclass(frozen=True)
class Request:
    """The options of the module; times in seconds."""

    hosts: tuple[Expected, ...]
    state: str
    run: str
    reason: str = ""
    take_over: bool = False
    #: Whether pods without GPUs go, too.
    all_pods: bool = False
    pause: bool = False
    keep_labels: Mapping[str, str] = field(default_factory=dict)
    wait_for: WaitFor | None = None
    #: ``refuse`` or ``delete``
    unmanaged: str = "refuse"
    #: ``refuse``, ``memory`` or ``delete``
    local_data: str = "memory"
    grace_period: int | None = None
    #: Whether pods are deleted, against their budgets.
    delete: bool = False
    timeout: int = 900
    poll: int = 5
    concurrency: int = 8
    lease: LeaseRequest | None = None
    #: By host, the boot that its kubelet has to report; empty for any.
    boots: Mapping[str, str] = field(default_factory=dict)
    #: Seconds that the nodes get to be ready after their cordon.
    ready_timeout: int = 0


@dataclass(frozen=True)
class Record:
    """What the annotation of a node says."""

    run: str
    reason: str = ""
    since: str = ""
    #: Whether the node was cordoned before.
    was_unschedulable: bool = False
    #: Whether the label that pauses our DaemonSets was set by this record's run.
    paused: bool = False
    #: What the annotation for cluster-autoscaler was before this record's run set it, empty for
    #: none; None if it did not set it.
    kept_before: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "reason": self.reason,
            "since": self.since,
            "was_unschedulable": self.was_unschedulable,
            "paused": self.paused,
            **({} if self.kept_before is None else {"kept_before": self.kept_before}),
        }


@dataclass(frozen=True)
class Node:
    """The parts of a Node object that decide on its maintenance."""

    name: str
    resource_version: str
    unschedulable: bool
    ready: bool
    #: The message of the condition Ready, if the node is not ready.
    ready_message: str = ""
    #: The text of the annotation; None if the node has none.
    record: str | None = None
    #: The value of the label that pauses our DaemonSets.
    pause: str | None = None
    #: The value of the annotation for cluster-autoscaler.
    keep: str | None = None
    #: The boot that the kubelet has reported.
    boot_id: str = ""


@dataclass(frozen=True)
class Pod:
    """The parts of a Pod object that decide whether it goes."""

    namespace: str
    name: str
    uid: str
    node: str
    phase: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Kind, name and uid of its controller; empty without one.
    owner_kind: str = ""
    owner_name: str = ""
    owner_uid: str = ""
    #: Whether it only shows a static pod of the kubelet.
    mirror: bool = False
    #: When it should have ended, as the API server writes it; empty if nobody deleted it.
    deletion: str = ""
    ready: bool = False
    #: Its volumes of the kind emptyDir, by whether they are in memory.
    in_memory: tuple[str, ...] = ()
    on_disk: tuple[str, ...] = ()
    #: Number of GPUs that it holds.
    gpus: int = 0
    #: Why it may use a GPU that it did not request; empty if nothing says so.
    sign: str = ""
    #: The short IDs of its containers, as a node shows them.
    containers: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"

    @property
    def finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    def to_json(self) -> dict[str, Any]:
        owner = f"{self.owner_kind}/{self.owner_name}" if self.owner_kind else None
        return {
            "namespace": self.namespace,
            "name": self.name,
            "owner": owner,
            "gpus": self.gpus,
        }


@dataclass(frozen=True)
class DaemonSets:
    """The DaemonSets of a cluster, by uid."""

    uids: frozenset[str] = frozenset()
    #: Those whose pods leave a node with the label that pauses them.
    pausing: frozenset[str] = frozenset()
    #: The locks of kured: by node, the DaemonSet that has the annotation, and its text.
    kured: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Decision:
    """What becomes of a pod, and why.

    :param kind: one of :data:`CLASSES`.
    :param why: for a kept pod: ``label``, ``static``, ``daemonset`` or ``no_gpu``.
    :param findings: why it may not go.
    """

    pod: Pod
    kind: str
    why: str = ""
    findings: tuple[Finding, ...] = ()
