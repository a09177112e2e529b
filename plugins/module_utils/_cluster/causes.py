# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a node does not offer the GPUs that are expected of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import InputError
from .._core.finding import Finding
from .._core.printable import printable
from .._diagnosis.known_errors import explain
from .._hardware.vendors import container_gpus
from .allocation import DraOffer, NodeState, is_gpu_resource
from .dra import Dra
from .pods import PodView, shorten, why_not_running
from .workloads import (
    DEVICE_PLUGIN,
    DRA_DRIVER,
    OPERATOR,
    OURS,
    Workload,
    dra_drivers,
    foreign,
    place,
    plugins,
)

_UNHEALTHY = re.compile(r"marked unhealthy|marking device as unhealthy", re.IGNORECASE)
_VENDORS = {"nvidia.com": "nvidia", "amd.com": "amd", "gpu.intel.com": "intel"}
_KEYS = {"name", "machine_id", "resources", "driver", "default_runtime", "gpus"}

#: Causes that no waiting will take away.
_FINAL = frozenset(
    {
        "node_uncertain", "node_unknown", "no_plugin", "plugin_selects_not",
        "plugin_tolerates_not", "two_allocators", "dra_device_tainted", "dra_too_few",
        "discovery_selects_not",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Expected:
    """What a host should offer, and what is known of it from its facts."""

    key: str
    name: str
    machine_id: str | None = None
    resources: Mapping[str, int] = field(default_factory=dict)
    #: Version of the loaded driver; empty is none, None is not known.
    driver: str | None = None
    default_runtime: str | None = None
    gpus: tuple[Mapping[str, Any], ...] = ()
    #: Whether it has GPUs, and nobody knows under which names they are offered.
    some: bool = False

    @property
    def none(self) -> bool:
        """Whether the host should offer nothing: it has no GPU."""
        return not self.some and not any(self.resources.values())

    @property
    def vendors(self) -> set[str]:
        return {
            _VENDORS[domain]
            for domain in (name.partition("/")[0] for name in self.resources)
            if domain in _VENDORS
        }


def read_expected(given: Mapping[str, Any]) -> list[Expected]:
    """Return the option ``expected``, having checked it."""
    return [_read_expected(str(key), value or {}) for key, value in given.items()]


def _read_expected(key: str, given: Any) -> Expected:
    where = f"expected.{key}"
    if not isinstance(given, Mapping) or set(given) - _KEYS:
        raise InputError(
            f"The option {where} is not as it should be",
            evidence=f"{given!r}",
            next_step=f"It is a mapping with some of {', '.join(sorted(_KEYS))}.",
        )
    resources = given.get("resources", {})
    some = resources is None
    resources = resources or {}
    counts: dict[str, int] = {}
    for name, count in resources.items() if isinstance(resources, Mapping) else [("", "")]:
        try:
            counts[str(name)] = int(count)
        except (TypeError, ValueError):
            raise InputError(
                f"The option {where}.resources is not as it should be",
                evidence=f"{resources!r}",
                next_step='Give names of resources with whole numbers: {"nvidia.com/gpu": 4}.',
            ) from None
    return Expected(
        key,
        str(given.get("name") or key),
        given.get("machine_id") or None,
        counts,
        given.get("driver"),
        given.get("default_runtime"),
        tuple(given.get("gpus") or ()),
        some,
    )


@dataclass(frozen=True)
class View:
    """What was read of the cluster for the question why."""

    parts: Sequence[Workload] = ()
    #: Pods of device plugins by node, with log and events where they were asked for.
    pods: Mapping[str, Sequence[PodView]] = field(default_factory=dict)
    #: What the events of a plugin's DaemonSet say, by ``namespace/name``.
    events: Mapping[str, Sequence[str]] = field(default_factory=dict)
    dra: Dra = field(default_factory=Dra)
    #: Pods of DRA drivers by node, as :attr:`pods`.
    dra_pods: Mapping[str, Sequence[PodView]] = field(default_factory=dict)
    #: Pods of this collection's GPU feature discovery by node.
    discovery: Mapping[str, Sequence[PodView]] = field(default_factory=dict)
    #: The hosts of which it is not certain which node they are, and why.
    refused: Mapping[str, Finding] = field(default_factory=dict)

    def plugin_pods(self, node: str) -> Sequence[PodView]:
        return self.pods.get(node, ())


@dataclass(frozen=True)
class Shortfall:
    """A node that does not offer what is expected of it, and why."""

    expected: Expected
    node: str | None
    allocatable: Mapping[str, int]
    finding: Finding
    pod: str | None = None
    #: What fails there: the device plugin, or GPU feature discovery.
    part: str = DEVICE_PLUGIN

    @property
    def final(self) -> bool:
        return self.finding.code in _FINAL

    def to_json(self) -> dict[str, Any]:
        return {
            "key": self.expected.key,
            "node": self.node,
            "expected": dict(self.expected.resources),
            "allocatable": dict(self.allocatable),
            "pod": self.pod,
            "part": self.part,
            "code": self.finding.code,
            # The roles show them, and a pod's log is in them.
            "cause": printable(self.finding.cause),
            "evidence": printable(self.finding.evidence),
            "next_step": printable(self.finding.next_step),
        }


def is_foreign_only(expected: Expected, view: View) -> bool:
    """Return whether somebody else's plugin serves the host, so that its counts are not ours."""
    return bool(
        any(foreign(view.parts, vendor) for vendor in expected.vendors)
        and not any(part.ours and part.vendor in expected.vendors for part in plugins(view.parts))
    )


def as_expected(expected: Expected, state: NodeState, view: View) -> bool:
    """Return whether a node offers what it should.

    How somebody else's plugin shares GPUs is not known here: there, any GPU that is offered will
    do. Where a DRA driver offers them, each GPU of the node has to be among them.
    """
    if expected.none:
        return not view.plugin_pods(state.name)
    if by_dra(expected, state):
        offer = state.dra
        good = bool(offer and offer.allocatable and not offer.taints)
        return good and not _plugin_too(state) and not _unpublished(expected, state)
    if expected.some or is_foreign_only(expected, view):
        return any(
            resource.allocatable > 0
            for name, resource in state.resources.items()
            if is_gpu_resource(name)
        )
    return all(
        state.resource(name).allocatable == count for name, count in expected.resources.items()
    )


def by_dra(expected: Expected, state: NodeState) -> bool:
    """Return whether a DRA driver gives out the GPUs that are expected of a node."""
    return state.dra is not None and (expected.some or "nvidia" in expected.vendors)


def _plugin_too(state: NodeState) -> list[str]:
    """Return what a device plugin offers of NVIDIA's GPUs on a node of a DRA driver."""
    return [
        f"{resource.allocatable} {name}"
        for name, resource in sorted(state.resources.items())
        if resource.allocatable and not resource.dra and name.startswith("nvidia.com/")
        and is_gpu_resource(name)
    ]  # fmt: skip


def _unpublished(expected: Expected, state: NodeState) -> int:
    """Return how many GPUs of a host its DRA driver has not published.

    Not told where MIG devices are published: how many a GPU is divided into is the driver's.
    """
    published = state.dra.capacity if state.dra else {}
    if "mig" in published:
        return 0
    return max(0, len(container_gpus({"gpus": expected.gpus})) - sum(published.values()))


def why(expected: Expected, state: NodeState | None, view: View) -> Shortfall | None:
    """Return what a node lacks and why; None where it offers what it should."""
    if expected.key in view.refused:
        return Shortfall(expected, None, {}, view.refused[expected.key])
    if state is None:
        if expected.none:
            return None
        return Shortfall(expected, None, {}, _unknown_node(expected))
    if state.ready and as_expected(expected, state, view):
        return None
    if expected.none and not view.plugin_pods(state.name):
        return None
    allocatable = {name: state.resource(name).allocatable for name in expected.resources}
    finding, pod = _why(expected, state, view)
    return Shortfall(expected, state.name, allocatable, finding, pod)


def _why(expected: Expected, state: NodeState, view: View) -> tuple[Finding, str | None]:
    if expected.none:
        pod = view.plugin_pods(state.name)[0]
        return _misplaced(expected, state, pod), pod.full_name
    if not state.ready:
        return _not_ready(state), None
    if by_dra(expected, state) and state.dra is not None:
        return _of_dra(expected, state, state.dra), None
    serving = [
        part for part in view.parts if part.vendor in expected.vendors or not expected.vendors
    ]
    if not plugins(serving) and dra_drivers(serving):
        return _nothing_published(dra_drivers(serving)[0], expected, state, view)
    if not plugins(serving):
        return _no_plugin(serving, expected), None
    pods = view.plugin_pods(state.name)
    if not pods:
        part = min(plugins(serving), key=lambda one: not one.ours)
        return _no_pod(part, state, view), None
    pod = pods[0]
    return _from_pod(expected, state, pod), pod.full_name


def uncertain(refusal: InputError) -> Finding:
    """Return why it is not certain which node a host is, as the cause of what it lacks."""
    return Finding("node_uncertain", refusal.cause, refusal.evidence, refusal.next_step)


def _unknown_node(expected: Expected) -> Finding:
    by = f"the machine id {expected.machine_id} or " if expected.machine_id else ""
    return Finding(
        "node_unknown",
        f"The cluster has no node with {by}the name {expected.name}.",
        "",
        "Join it to the cluster, or set gpu_node_labels_node_name to the name that kubectl get "
        "nodes shows.",
    )


def _not_ready(state: NodeState) -> Finding:
    known = explain(state.ready_message)
    cause = f"The node {state.name} is not ready"
    if known:
        return Finding(
            "node_not_ready",
            f"{cause}: {known[0].cause}",
            shorten(state.ready_message),
            known[0].next_step,
        )
    return Finding(
        "node_not_ready",
        f"{cause}.",
        shorten(state.ready_message),
        "Look at kubelet and the container runtime there: journalctl -u kubelet -u containerd",
    )


def _no_plugin(parts: Sequence[Workload], expected: Expected) -> Finding:
    operators = [part for part in parts if part.kind == OPERATOR]
    if operators:
        return Finding(
            "no_plugin",
            f"{operators[0]} is in the cluster, but has deployed no device plugin.",
            "",
            "Look at the operator's log and at its ClusterPolicy (devicePlugin.enabled).",
        )
    what = " or ".join(sorted(expected.vendors)) or "these GPUs"
    return Finding(
        "no_plugin",
        f"No device plugin for {what} is in the cluster.",
        "no DaemonSet of one was found in any namespace",
        "Run kubegpu.nodes.site with kubegpu_kubeconfig set (tag device_plugin): it deploys one.",
    )


def _of_dra(expected: Expected, state: NodeState, offer: DraOffer) -> Finding:
    """Return what is wrong with a node for which a DRA driver published GPUs."""
    slices = f"ResourceSlices of {' and '.join(offer.drivers)}: {offer}"
    too = _plugin_too(state)
    if too:
        return Finding(
            "two_allocators",
            f"A DRA driver and a device plugin both offer the GPUs of {state.name}, and each gives "
            "them out without regard to the other.",
            f"{slices}; allocatable of the node: {', '.join(too)}",
            "Leave the node to one of them: remove the device plugin or keep it off the node, or "
            "set resources.gpus.enabled=false in the values of the DRA driver's chart.",
        )
    missing = _unpublished(expected, state)
    if missing and not offer.taints:
        count = missing + sum(offer.capacity.values())
        return Finding(
            "dra_too_few",
            f"The DRA driver has published {count - missing} of the {count} GPUs of {state.name}.",
            f"{slices}; NVIDIA GPUs on the PCI bus: {count}",
            "Compare nvidia-smi -L on the node with its PCI devices; after a repair, restart the "
            "DRA driver's pod there.",
        )
    return Finding(
        "dra_device_tainted",
        f"The DRA driver keeps GPUs of {state.name} from being given out: they are unhealthy.",
        f"{slices}; taints of its devices: {', '.join(offer.taints) or 'none'}",
        "Look for Xid in the kernel's log there (dmesg), and at nvidia-smi -q; what the taints "
        "mean, the DRA driver's documentation says.",
    )


def _nothing_published(
    part: Workload, expected: Expected, state: NodeState, view: View
) -> tuple[Finding, str | None]:
    """Return why a DRA driver has published no GPU of a node."""
    pods = view.dra_pods.get(state.name, ())
    if not pods and part.selector:
        return _no_pod(part, state, view), None
    if not pods:
        return Finding(
            "dra_not_published",
            f"The {part.workload} {part.name} is for GPUs that a DRA driver gives out, and no "
            f"driver has published any of {state.name}.",
            "no ResourceSlice names the node",
            "See that the DRA driver's pods run on this node, and at their log.",
        ), None
    pod = pods[0]
    known = why_not_running(pod, driver=expected.driver, gpus=expected.gpus)
    last = pod.last_lines(3)
    return known or Finding(
        "dra_not_published",
        f"The DRA driver's pod {pod.full_name} is {pod.phase or 'there'}, and has published no GPU "
        f"of {state.name}.",
        shorten(" | ".join(last)) if last else "no ResourceSlice names the node",
        f"Look at: kubectl -n {pod.namespace} logs {pod.name} --all-containers; and at kubelet's "
        "journal there, with which the driver registers.",
    ), pod.full_name


def _no_pod(part: Workload, state: NodeState, view: View) -> Finding:
    """Return why the DaemonSet of a device plugin or DRA driver has no pod on a node."""
    keeps = place(part, state.labels, state.taints)
    who = f"{part.namespace}/{part.name}"
    what = "DRA driver" if part.kind == DRA_DRIVER else "device plugin"
    if keeps.missing_labels or keeps.affinity:
        wants = ", ".join(keeps.missing_labels) or "what its node affinity asks for"
        step = (
            "Run kubegpu.nodes.site (tag labels): it labels the nodes that have GPUs."
            if part.ours
            else f"Label the node: kubectl label node {state.name} "
            + (" ".join(keeps.missing_labels) or "(see the DaemonSet's affinity)")
        )
        return Finding(
            "plugin_selects_not",
            f"The {what} {who} does not select {state.name}: the node lacks {wants}.",
            "",
            step,
        )
    if keeps.taints:
        return Finding(
            "plugin_tolerates_not",
            f"The {what} {who} does not tolerate the taint of {state.name}: "
            f"{', '.join(keeps.taints)}.",
            "",
            "Add it to nvidia_device_plugin_tolerations, or take the taint off."
            if part.ours
            else "Add a toleration to the DaemonSet, or take the taint off.",
        )
    said = view.events.get(who, ())
    known = explain(said[-1]) if said else []
    if known:
        return Finding(
            known[0].code,
            f"The {what} {who} has no pod on {state.name}: {known[0].cause}",
            shorten(said[-1]),
            known[0].next_step,
        )
    return Finding(
        "plugin_not_started",
        f"The {what} {who} has no pod on {state.name} yet.",
        shorten(said[-1]) if said else f"{part.available} of {part.desired} pods are available",
        f"Look at: kubectl -n {part.namespace} describe daemonset {part.name}",
    )


def _from_pod(expected: Expected, state: NodeState, pod: PodView) -> Finding:
    known = why_not_running(pod, driver=expected.driver, gpus=expected.gpus)
    if known is not None and known.code == "could_not_reach_nvml":
        return _which(known, expected, state, pod)
    # How many GPUs that is of the node, its status says.
    if known is not None and known.code != "gpu_unhealthy":
        return known
    short = {
        name: (count, state.resource(name))
        for name, count in expected.resources.items()
        if state.resource(name).allocatable != count
    }
    name, (count, resource) = next(iter(short.items()), ("", (0, state.resource(""))))
    seen = f"{name}: expected {count}, capacity {resource.capacity}, allocatable " + str(
        resource.allocatable
    )
    lines = [line for line in pod.log.splitlines() if _UNHEALTHY.search(line)]
    if resource.capacity > resource.allocatable and (lines or resource.allocatable):
        return Finding(
            "gpu_unhealthy",
            f"{resource.capacity - resource.allocatable} of {resource.capacity} {name} on "
            f"{state.name} are unhealthy.",
            shorten(lines[-1]) if lines else seen,
            "Look for Xid in the kernel's log there (dmesg), and at nvidia-smi -q; after a repair, "
            f"delete the pod {pod.full_name}.",
        )
    if known is not None:
        return known
    if resource.allocatable > 0:
        more = resource.allocatable > count
        return Finding(
            "wrong_count",
            f"{state.name} offers {resource.allocatable} {name}, and {count} are expected.",
            seen,
            "Compare the plugin's sharing (the label nvidia.com/device-plugin.config and its "
            "ConfigMap) with what is wanted"
            + (
                f", and delete the pod {pod.full_name} if it is older than that."
                if more
                else ", and nvidia-smi -L on the node with its PCI devices."
            ),
        )
    if pod.phase == "Pending":
        return Finding(
            "plugin_starting",
            f"The device plugin's pod {pod.full_name} has not started yet on {state.name}.",
            seen,
            "Give it more time (nvidia_device_plugin_wait_timeout) or run it again; what it waits "
            f"for says: kubectl -n {pod.namespace} describe pod {pod.name}",
        )
    last = pod.last_lines(3)
    return Finding(
        "not_registered",
        f"The device plugin's pod {pod.full_name} is {pod.phase or 'there'}, but kubelet on "
        f"{state.name} offers no {name}.",
        shorten(" | ".join(last)) if last else seen,
        f"Delete the pod {pod.full_name}, so that it registers again; if that does not help, look "
        "at kubelet's journal there.",
    )


def _which(known: Finding, expected: Expected, state: NodeState, pod: PodView) -> Finding:
    """Tell which of the causes it is that a plugin finds no NVML."""
    if expected.driver == "":
        return Finding(
            "plugin_without_driver",
            f"The device plugin found no NVML on {state.name}: no driver is loaded there.",
            known.evidence,
            "Run kubegpu.nodes.site for this node: role nvidia_driver installs and loads one.",
        )
    if not pod.runtime_class and expected.default_runtime != "nvidia":
        default = f" is {expected.default_runtime}" if expected.default_runtime else " is another"
        return Finding(
            "default_runtime",
            f"The device plugin found no NVML on {state.name}: its pod {pod.full_name} names no "
            f"RuntimeClass, and the default runtime of the node{default}, not nvidia.",
            known.evidence,
            "Give the DaemonSet runtimeClassName: nvidia (nvidia_device_plugin does), or set "
            "nvidia_container_toolkit_containerd_set_default: true and run kubegpu.nodes.site; "
            "then delete the pod.",
        )
    if not pod.runtime_class:
        return Finding(
            "runtime_changed",
            f"The device plugin found no NVML on {state.name}, though nvidia is the default "
            f"runtime there now: its pod {pod.full_name} was started before that.",
            known.evidence,
            f"Delete the pod: kubectl -n {pod.namespace} delete pod {pod.name}",
        )
    return Finding(
        known.code,
        f"The device plugin found no NVML on {state.name}, though its pod {pod.full_name} asks for "
        f"the RuntimeClass {pod.runtime_class}: the handler behind that class does not start "
        "NVIDIA's runtime, or the driver's libraries are not where it looks.",
        known.evidence,
        "See which program the handler starts (containerd config dump), and what "
        "nvidia-container-cli info says on the node; the layers toolkit and runtime of "
        "kubegpu.nodes.verify look at both.",
    )


def _misplaced(expected: Expected, state: NodeState, pod: PodView) -> Finding:
    ours = (pod.labels or {}).get("app.kubernetes.io/managed-by") == OURS
    known = why_not_running(pod)
    last = pod.last_lines(1)
    return Finding(
        "plugin_without_gpu",
        f"The device plugin's pod {pod.full_name} is on {state.name}, which has no GPU: it has "
        "nothing to offer there.",
        known.evidence if known else (last[0] if last else f"the pod is {pod.phase}"),
        f"Take the label off that it goes by: kubectl label node {state.name} kubegpu.nodes/gpu-"
        if ours
        else "Give the DaemonSet a nodeSelector, such as kubegpu.nodes/gpu: nvidia, which "
        "kubegpu.nodes.site sets on the nodes with GPUs.",
    )
