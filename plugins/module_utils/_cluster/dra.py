# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVIDIA GPUs that a driver offers by Dynamic Resource Allocation (DRA). Pure.

Read from objects of the API group ``resource.k8s.io``: device classes, resource slices and claims.
Their fields are those of k8s.io/api/resource v1, v1beta2 and v1beta1; device classes, the driver's
name and the types of its devices are those of NVIDIA's DRA driver, v25.3.0 to v0.5.0
(github.com/kubernetes-sigs/dra-driver-nvidia-gpu: deployments/helm/*/templates/deviceclass-*.yaml,
cmd/gpu-kubelet-plugin/{deviceinfo,types}.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .allocation import DraOffer, NodeState, PodUse, Resource, is_gpu_resource
from .workloads import DRA_DRIVER, OURS, Workload

Object = Mapping[str, Any]

GROUP = "resource.k8s.io"
#: Supported versions of the group, newest first. v1 is enabled from Kubernetes 1.34.
VERSIONS = ("v1", "v1beta2", "v1beta1")
#: The driver of NVIDIA's GPUs. compute-domain.nvidia.com of the same chart allocates no GPUs.
GPU_DRIVER = "gpu.nvidia.com"
TITLE = "NVIDIA's DRA driver"

_VENDOR = "nvidia"
_PREFIX = "nvidia.com/"
# GPUs for passthrough to virtual machines (type vfio) are not available to containers.
_TYPES = ("gpu", "mig")
#: Type of a device without this attribute, as of another driver.
_DEVICE = "device"
#: Effects of a taint that prevent allocation; the effect None is informational.
_KEEPS_OFF = ("NoSchedule", "NoExecute")

_CEL_DRIVER = re.compile(r"\bdevice\.driver\s{0,9}==\s{0,9}['\"]([\w.-]{1,253})['\"]")
_CEL_TYPE = re.compile(r"\]\.type\s{0,9}==\s{0,9}['\"](\w{1,64})['\"]")


@dataclass(frozen=True)
class DeviceClass:
    """A class of devices whose driver allocates NVIDIA's GPUs.

    Of its selectors, which are CEL, the driver and the type of the devices are read.
    """

    name: str
    driver: str = GPU_DRIVER
    #: Empty where the selectors do not name one.
    kind: str = ""
    #: The resource by which a pod may ask for a device of it; empty is by a ResourceClaim alone.
    resource: str = ""
    created: str = ""
    managed_by: str = ""

    def __str__(self) -> str:
        lent = f" (extendedResourceName {self.resource})" if self.resource else ""
        return f"DeviceClass {self.name}{lent}"

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "driver": self.driver,
            "type": self.kind or None,
            "resource": self.resource or None,
        }

    def has(self, device: Device) -> bool:
        return device.driver == self.driver and self.kind in ("", device.kind)


@dataclass(frozen=True)
class Device:
    """A GPU, or a MIG device, in a resource slice."""

    driver: str
    pool: str
    name: str
    kind: str
    #: Taints that keep it from being given out.
    taints: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        return self.driver, self.pool, self.name


@dataclass(frozen=True)
class Claim:
    """A resource claim that holds devices, and the pods that it is for."""

    namespace: str
    name: str
    devices: frozenset[tuple[str, str, str]]
    pods: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dra:
    """The DRA objects of a cluster."""

    #: The version of the group; empty if the server has no supported one.
    version: str = ""
    classes: tuple[DeviceClass, ...] = ()
    devices: Mapping[str, tuple[Device, ...]] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    #: All versions of the group that the server has.
    served: tuple[str, ...] = ()
    #: Number of resource slices by node.
    slices: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "version": self.version or None,
            "served": list(self.served),
            "classes": [one.to_json() for one in self.classes],
            "slices": dict(self.slices),
        }


def served_versions(group: Object | None) -> tuple[str, ...]:
    """Return all versions in the response of ``/apis/resource.k8s.io``, in its order."""
    return tuple(str(one.get("version")) for one in (group or {}).get("versions") or ())


def newest_version(served: Sequence[str]) -> str:
    """Return the newest supported version; empty if there is none."""
    return next((version for version in VERSIONS if version in served), "")


def count_slices(items: Iterable[Object]) -> dict[str, int]:
    """Return the number of resource slices of each node."""
    nodes = [str((item.get("spec") or {}).get("nodeName") or "") for item in items]
    return {node: nodes.count(node) for node in sorted(set(nodes)) if node}


def read_classes(items: Iterable[Object]) -> tuple[DeviceClass, ...]:
    """Return the device classes of NVIDIA's GPUs, in the scheduler's order of preference.

    Among classes of the same resource it prefers the newest, then the first by name
    (DeviceClassSpec.extendedResourceName in k8s.io/api/resource/v1/types.go).
    """
    found = [one for one in map(_read_class, items) if one is not None]
    found.sort(key=lambda one: one.name)
    return tuple(sorted(found, key=lambda one: one.created, reverse=True))


def _read_class(item: Object) -> DeviceClass | None:
    meta, spec = item.get("metadata") or {}, item.get("spec") or {}
    rules = " ".join(
        str((one.get("cel") or {}).get("expression") or "") for one in spec.get("selectors") or ()
    )
    driver, kind = _CEL_DRIVER.search(rules), _CEL_TYPE.search(rules)
    resource = str(spec.get("extendedResourceName") or "")
    lends = resource.startswith(_PREFIX) and is_gpu_resource(resource)
    of_gpus = driver is not None and driver[1] == GPU_DRIVER
    if not lends and not (of_gpus and (kind is None or kind[1] in _TYPES)):
        return None
    labels = meta.get("labels") or {}
    return DeviceClass(
        str(meta.get("name") or ""),
        driver[1] if driver else GPU_DRIVER,
        kind[1] if kind else "",
        resource if lends else "",
        str(meta.get("creationTimestamp") or ""),
        str(labels.get("app.kubernetes.io/managed-by") or ""),
    )


def drivers(classes: Iterable[DeviceClass]) -> list[str]:
    """Return the names of the drivers whose slices are of interest."""
    return sorted({GPU_DRIVER, *(one.driver for one in classes)})


def read_devices(items: Iterable[Object]) -> dict[str, tuple[Device, ...]]:
    """Return the devices of each node, from the newest generation of each pool."""
    slices = [item.get("spec") or {} for item in items]
    newest: dict[tuple[str, str], int] = {}
    for spec in slices:
        pool = _pool(spec)
        newest[pool] = max(newest.get(pool, 0), _generation(spec))
    found: dict[str, list[Device]] = {}
    for spec in slices:
        node = str(spec.get("nodeName") or "")
        if not node or _generation(spec) != newest[_pool(spec)]:
            continue
        for one in spec.get("devices") or ():
            device = _read_device(one, *_pool(spec))
            if device is not None:
                found.setdefault(node, []).append(device)
    return {
        node: tuple(sorted(set(devices), key=lambda one: one.key))
        for node, devices in found.items()
    }


def _pool(spec: Object) -> tuple[str, str]:
    return str(spec.get("driver") or ""), str((spec.get("pool") or {}).get("name") or "")


def _generation(spec: Object) -> int:
    return int((spec.get("pool") or {}).get("generation") or 0)


def _read_device(item: Object, driver: str, pool: str) -> Device | None:
    # In v1beta1 all fields but the name are one level deeper.
    body = item.get("basic") or item
    attributes = body.get("attributes") or {}
    kind = (attributes.get("type") or attributes.get(f"{driver}/type") or {}).get("string")
    if kind is not None and kind not in _TYPES:
        return None
    taints = tuple(
        f"{taint.get('key')}:{taint.get('effect')}"
        for taint in body.get("taints") or ()
        if taint.get("effect") in _KEEPS_OFF
    )
    return Device(driver, pool, str(item.get("name") or ""), str(kind or _DEVICE), taints)


def read_claims(items: Iterable[Object]) -> tuple[Claim, ...]:
    """Return the claims that hold devices, without those by administrator access."""
    found = []
    for item in items:
        meta, status = item.get("metadata") or {}, item.get("status") or {}
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        held = frozenset(
            (str(one.get("driver")), str(one.get("pool")), str(one.get("device")))
            for one in results
            if not one.get("adminAccess")
        )
        pods = tuple(
            str(one.get("name"))
            for one in status.get("reservedFor") or ()
            if one.get("resource") == "pods"
        )
        if held:
            claim = (str(meta.get("namespace") or ""), str(meta.get("name") or ""))
            found.append(Claim(*claim, held, pods))
    return tuple(sorted(found, key=lambda one: (one.namespace, one.name)))


def add_dra_offers(states: Mapping[str, NodeState], dra: Dra) -> dict[str, NodeState]:
    """Return the nodes' states, completed by the devices of DRA drivers.

    A node's status does not count such devices. So the extended resource of their device class is
    added here, with the pods that use it.
    """
    return {
        name: _with_devices(state, dra.devices[name], dra) if name in dra.devices else state
        for name, state in states.items()
    }


def _with_devices(state: NodeState, devices: Sequence[Device], dra: Dra) -> NodeState:
    resources, by_class = dict(state.resources), {}
    for one in dra.classes:
        there = state.resource(one.resource)
        mine = [device for device in devices if one.has(device)]
        if not mine:
            continue
        usable = sum(not device.taints for device in mine)
        pods = _holders(mine, dra.claims, there.pods)
        by_class[one.name] = Resource(len(mine), usable, pods, dra=True)
        # Resources of the same name from a device plugin are separate and are not added up.
        if (
            one.resource
            and not there.allocatable
            and not resources.get(one.resource, Resource()).dra
        ):
            resources[one.resource] = by_class[one.name]
    offer = DraOffer(
        tuple(sorted({device.driver for device in devices})),
        _count(devices),
        _count([device for device in devices if not device.taints]),
        tuple(sorted({taint for device in devices for taint in device.taints})),
        by_class,
    )
    return replace(state, resources=resources, dra=offer)


def _count(devices: Sequence[Device]) -> dict[str, int]:
    kinds = [device.kind for device in devices]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


def _holders(
    devices: Sequence[Device], claims: Sequence[Claim], asking: Sequence[PodUse]
) -> tuple[PodUse, ...]:
    """Return the pods that use the devices.

    For a pod that requests the extended resource, the scheduler creates a claim. If several pods
    share a claim, only the first is listed.
    """
    left = {device.key for device in devices}
    held: dict[tuple[str, str], int] = {}
    for claim in claims:
        mine = left & claim.devices
        left -= mine
        if mine:
            who = (claim.namespace, claim.pods[0] if claim.pods else f"(claim {claim.name})")
            held[who] = held.get(who, 0) + len(mine)
    known = {(pod.namespace, pod.name): pod for pod in asking}
    pods = [
        replace(pod, count=max(pod.count, held.get(who, 0))) for who, pod in known.items()
    ] + [PodUse(*who, count) for who, count in held.items() if who not in known]  # fmt: skip
    return tuple(sorted(pods, key=lambda pod: (pod.namespace, pod.name)))


def class_parts(dra: Dra, parts: Iterable[Workload]) -> list[Workload]:
    """Return an entry for each device class if no workload of a DRA driver was recognized.

    The driver may run from a private registry under an unknown image name.
    """
    if any(part.kind == DRA_DRIVER for part in parts):
        return []
    return [
        Workload(
            kind=DRA_DRIVER,
            vendor=_VENDOR,
            title=TITLE,
            workload="DeviceClass",
            namespace="",
            name=one.name,
            image="",
            container="",
            managed=one.managed_by == OURS,
            managed_by=one.managed_by,
        )
        for one in sorted(dra.classes, key=lambda one: one.name)
    ]
