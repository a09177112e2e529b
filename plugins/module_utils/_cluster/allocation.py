# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GPU resources of a cluster's nodes and the pods that use them, from API objects. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._kube.quantity import parse_count
from .._labels.names import MAINTENANCE

Object = Mapping[str, Any]

#: Resources with these prefixes are GPUs, or parts of GPUs.
_PREFIXES = ("nvidia.com/", "amd.com/", "gpu.intel.com/")
# Resources with such a prefix that are not GPUs. Intel's monitoring resource gives access to all
# GPUs (cmd/gpu_plugin/README.md of intel-device-plugins-for-kubernetes 0.36).
_NO_GPU = re.compile(
    r"^(nvidia\.com/(hostdev|rdma|sriov|roce|ib|mlnx)|amd\.com/(nic|vnic)"
    r"|gpu\.intel\.com/(i915_|xe_)?monitoring$)"
)
_FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class PodUse:
    """A pod and how much of a resource it holds."""

    namespace: str
    name: str
    count: int
    phase: str = ""
    owner: str = ""
    #: When the kubelet took it, as the API server writes it; empty if it did not.
    started: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" + (f" ({self.count})" if self.count != 1 else "")

    def to_json(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "name": self.name,
            "count": self.count,
            "phase": self.phase or None,
            "owner": self.owner or None,
        }


@dataclass(frozen=True)
class Resource:
    """A resource of a node."""

    capacity: int = 0
    allocatable: int = 0
    pods: tuple[PodUse, ...] = ()
    #: Whether a DRA driver offers it, so that the node's status does not have it.
    dra: bool = False

    @property
    def allocated(self) -> int:
        return sum(pod.count for pod in self.pods)

    @property
    def free(self) -> int:
        return max(0, self.allocatable - self.allocated)

    def to_json(self) -> dict[str, Any]:
        return {
            "capacity": self.capacity,
            "allocatable": self.allocatable,
            "allocated": self.allocated,
            "free": self.free,
            "dra": self.dra,
            "pods": [pod.to_json() for pod in self.pods],
        }


@dataclass(frozen=True)
class DraOffer:
    """GPUs of a node that DRA drivers offer in their ResourceSlices."""

    drivers: tuple[str, ...]
    #: Number of devices by type (``gpu``, ``mig``): all, and those that can be allocated.
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    #: Taints of the devices that cannot be allocated, as ``gpu.nvidia.com/xid:NoSchedule``.
    taints: tuple[str, ...] = ()
    #: The devices by device class, and the pods that hold them. A device may be in several classes.
    by_class: Mapping[str, Resource] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the allocatable devices as text."""
        return ", ".join(f"{count} {kind}" for kind, count in self.allocatable.items()) or "nothing"

    def to_json(self) -> dict[str, Any]:
        return {
            "drivers": list(self.drivers),
            "capacity": dict(self.capacity),
            "allocatable": dict(self.allocatable),
            "taints": list(self.taints),
        }


@dataclass(frozen=True)
class NodeState:
    """A node and its GPU resources."""

    name: str
    machine_id: str
    ready: bool
    #: The message of the condition Ready, if the node is not ready.
    ready_message: str
    cordoned: bool
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]
    runtime: str
    kubelet: str
    resources: Mapping[str, Resource] = field(default_factory=dict)
    dra: DraOffer | None = None
    #: The run of this collection that holds the node in maintenance.
    held: str = ""

    def resource(self, name: str) -> Resource:
        return self.resources.get(name, Resource())

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "machine_id": self.machine_id,
            "ready": self.ready,
            "ready_message": self.ready_message or None,
            "cordoned": self.cordoned,
            "held": self.held or None,
            "labels": dict(self.labels),
            "taints": [dict(taint) for taint in self.taints],
            "runtime": self.runtime,
            "kubelet": self.kubelet,
            "resources": {name: self.resources[name].to_json() for name in sorted(self.resources)},
            "dra": self.dra.to_json() if self.dra else None,
        }


def is_gpu_resource(name: str) -> bool:
    """Return whether a resource is a GPU or a part of one."""
    return name.startswith(_PREFIXES) and not _NO_GPU.match(name)


def pod_use(pod: Object, names: Iterable[str] | None = None) -> dict[str, int]:
    """Return the GPU resources that a pod occupies, as the scheduler counts them.

    :param names: further resources to count.
    """
    spec = pod.get("spec") or {}
    extra = set(names or ())
    running = _sum([_requested(item, extra) for item in spec.get("containers") or ()])
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        asks = _requested(container, extra)
        if container.get("restartPolicy") == "Always":
            # A sidecar keeps its resources for the lifetime of the pod.
            sidecars = _sum([sidecars, asks])
            peak = _maximum(peak, sidecars)
        else:
            peak = _maximum(peak, _sum([sidecars, asks]))
    use = _maximum(_sum([running, sidecars]), peak)
    return {name: count for name, count in use.items() if count}


def _requested(container: Object, extra: set[str]) -> dict[str, int]:
    resources = container.get("resources") or {}
    # For extended resources the API server copies limits to requests.
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {
        name: parse_count(value)
        for name, value in asked.items()
        if name in extra or is_gpu_resource(name)
    }


def _sum(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, count in part.items():
            total[name] = total.get(name, 0) + count
    return total


def _maximum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


def allocations(
    pods: Iterable[Object], names: Iterable[str] | None = None
) -> dict[str, dict[str, list[PodUse]]]:
    """Return the pods that use GPUs: ``{node: {resource: [pods]}}``, without finished pods."""
    held: dict[str, dict[str, list[PodUse]]] = {}
    extra = set(names or ())
    for pod in pods:
        node = (pod.get("spec") or {}).get("nodeName")
        phase = str((pod.get("status") or {}).get("phase") or "")
        if not node or phase in _FINISHED:
            continue
        meta = pod.get("metadata") or {}
        for name, count in pod_use(pod, extra).items():
            held.setdefault(node, {}).setdefault(name, []).append(
                PodUse(
                    str(meta.get("namespace")),
                    str(meta.get("name")),
                    count,
                    phase,
                    _owner(meta),
                    str((pod.get("status") or {}).get("startTime") or ""),
                )
            )
    for resources in held.values():
        for uses in resources.values():
            uses.sort(key=lambda use: (use.namespace, use.name))
    return held


def _owner(meta: Object) -> str:
    for owner in meta.get("ownerReferences") or ():
        if owner.get("controller"):
            return f"{owner.get('kind')}/{owner.get('name')}"
    return ""


def node_state(
    node: Object, held: Mapping[str, Sequence[PodUse]], names: Iterable[str] | None = None
) -> NodeState:
    """Return a node's state.

    :param held: the node's entry of :func:`allocations`.
    :param names: further resources to include.
    """
    meta, spec, status = (node.get(part) or {} for part in ("metadata", "spec", "status"))
    info = status.get("nodeInfo") or {}
    ready: Object = {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            ready = condition
    capacity, allocatable = (status.get(part) or {} for part in ("capacity", "allocatable"))
    extra = set(names or ())
    wanted = {
        name
        for name in {**capacity, **allocatable, **held}
        if name in extra or is_gpu_resource(name)
    }
    is_ready = ready.get("status") == "True"
    return NodeState(
        name=str(meta.get("name")),
        machine_id=str(info.get("machineID") or ""),
        ready=is_ready,
        ready_message="" if is_ready else str(ready.get("message") or ready.get("reason") or ""),
        cordoned=bool(spec.get("unschedulable")),
        labels=dict(meta.get("labels") or {}),
        taints=tuple(
            {key: str(taint.get(key) or "") for key in ("key", "value", "effect")}
            for taint in spec.get("taints") or ()
        ),
        runtime=str(info.get("containerRuntimeVersion") or ""),
        kubelet=str(info.get("kubeletVersion") or ""),
        resources={
            name: Resource(
                parse_count(capacity.get(name, 0)), parse_count(allocatable.get(name, 0)),
                tuple(held.get(name, ())),
            )
            for name in wanted
        },
        held=_holder(meta),
    )  # fmt: skip


def _holder(meta: Object) -> str:
    """Return the run in the annotation of a node in maintenance; empty without one."""
    text = (meta.get("annotations") or {}).get(MAINTENANCE)
    if text is None:
        return ""
    try:
        run = json.loads(text).get("run")
    except (ValueError, RecursionError, AttributeError):
        run = None
    return str(run or "that is unknown")


def node_states(
    nodes: Iterable[Object], pods: Iterable[Object], names: Iterable[str] | None = None
) -> dict[str, NodeState]:
    """Return the state of every node by its name."""
    extra = set(names or ())
    held = allocations(pods, extra)
    states = (node_state(node, held.get(node["metadata"]["name"], {}), extra) for node in nodes)
    return {state.name: state for state in states}
