# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a node does not offer the GPUs that are expected of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .._core.errors import InputError
from .._core.finding import Finding, pod_names
from .._known_faults.explain import explain
from .allocation import NodeState
from .causes_dra import (
    by_dra,
    count_unpublished,
    explain_dra_offer,
    explain_missing_dra_offer,
    plugin_offers,
)
from .causes_pod import (
    explain_misplaced_pod,
    explain_missing_pod,
    explain_pod,
    offering_vendors,
    silent_vendors,
)
from .pods import PodView, shorten
from .types import Expected, Shortfall, View, vendor_of
from .workloads import (
    OPERATOR,
    Workload,
    dra_drivers,
    foreign,
    plugins,
)


def is_foreign_only(expected: Expected, view: View) -> bool:
    """Return whether only unmanaged plugins serve the host, so that its counts are unknown."""
    return bool(
        any(foreign(view.parts, vendor) for vendor in expected.vendors)
        and not any(
            part.managed and part.vendor in expected.vendors for part in plugins(view.parts)
        )
    )


def as_expected(expected: Expected, state: NodeState, view: View) -> bool:
    """Return whether a node offers the expected GPUs.

    How an unmanaged plugin shares GPUs is unknown, so that any number of each vendor's GPUs is
    enough there, and for a vendor whose number the facts do not determine. None never is. A DRA
    driver must offer every GPU of the node.
    """
    if expected.none:
        return not view.plugin_pods(state.name)
    if _rivals(expected, state, view):
        return False
    silent = silent_vendors(expected, state)
    if by_dra(expected, state):
        offer = state.dra
        good = bool(offer and offer.allocatable and not offer.taints) and not silent - {"nvidia"}
        return good and not plugin_offers(state) and not count_unpublished(expected, state)
    if silent:
        return False
    if is_foreign_only(expected, view):
        return expected.counted <= offering_vendors(state)
    if expected.some and not expected.some_of:
        return bool(offering_vendors(state))
    return all(
        state.resource(name).allocatable == count for name, count in expected.resources.items()
    )


def find_shortfall(expected: Expected, state: NodeState | None, view: View) -> Shortfall | None:
    """Return what a node lacks and why; None if it offers the expected GPUs."""
    if expected.key in view.refused:
        return Shortfall(expected, None, {}, view.refused[expected.key])
    if state is None:
        if expected.none:
            return None
        return Shortfall(expected, None, {}, unknown_node(expected))
    if state.ready and as_expected(expected, state, view):
        return None
    if expected.none and not view.plugin_pods(state.name):
        return None
    allocatable = {name: state.resource(name).allocatable for name in expected.resources}
    finding, pod = _find_cause(expected, state, view)
    return Shortfall(expected, state.name, allocatable, _of_pod(finding, pod), pod)


def _of_pod(finding: Finding, pod: str | None) -> Finding:
    """Return a finding with the names of its pod, which a text of its log does not have."""
    if not pod:
        return finding
    namespace, _slash, name = pod.partition("/")
    return replace(finding, details={**finding.details, **pod_names(namespace, name)})


def _find_cause(expected: Expected, state: NodeState, view: View) -> tuple[Finding, str | None]:
    if expected.none:
        pod = view.plugin_pods(state.name)[0]
        return explain_misplaced_pod(expected, state, pod), pod.full_name
    if not state.ready:
        return _not_ready(state), None
    rivals = _rivals(expected, state, view)
    if rivals:
        return _conflict(state, rivals), None
    if by_dra(expected, state) and state.dra is not None:
        return explain_dra_offer(expected, state, state.dra), None
    vendors = _lacking(expected, state) or expected.vendors
    serving = [part for part in view.parts if part.vendor in vendors or not vendors]
    if not plugins(serving) and dra_drivers(serving):
        return explain_missing_dra_offer(dra_drivers(serving)[0], expected, state, view)
    if not plugins(serving):
        return _no_plugin(serving, vendors), None
    others = [part for part in plugins(view.parts) if part not in serving]
    pods = [pod for pod in view.plugin_pods(state.name) if not _is_of(pod, others)]
    if not pods:
        part = min(plugins(serving), key=lambda one: not one.managed)
        return explain_missing_pod(part, state, view), None
    pod = pods[0]
    return explain_pod(expected, state, pod), pod.full_name


def _rivals(expected: Expected, state: NodeState, view: View) -> list[Workload]:
    """Return the device plugins of one vendor on the node, if ours is next to another owner's."""
    for vendor in sorted(expected.vendors):
        found = [
            part
            for part in plugins(view.parts)
            if part.vendor == vendor
            and any(_is_of(pod, [part]) for pod in view.plugin_pods(state.name))
        ]
        if len({part.managed for part in found}) > 1:
            return sorted(found, key=lambda one: not one.managed)
    return []


def _conflict(state: NodeState, rivals: Sequence[Workload]) -> Finding:
    others = " and ".join(
        f"{one}{f', of {one.managed_by}' if one.managed_by else ''}"
        for one in rivals
        if not one.managed
    )
    return Finding(
        "operator_conflict",
        f"Two owners offer the GPUs of {state.name}: kubelet keeps the plugin that registered "
        "last, and forgets what the other one has allocated.",
        f"pods there: {rivals[0]}; {others}",
        "Leave the node to one of them: take the label kubegpu.nodes/gpu off it, or switch the "
        "other plugin off (GPU operator: devicePlugin.enabled=false).",
    )


def _lacking(expected: Expected, state: NodeState) -> set[str]:
    """Return the vendors whose GPUs the node does not offer as expected."""
    return {
        vendor_of(name)
        for name, count in expected.resources.items()
        if state.resource(name).allocatable != count and vendor_of(name)
    } | silent_vendors(expected, state)


def _is_of(pod: PodView, parts: Sequence[Workload]) -> bool:
    """Return whether one of these DaemonSets has the pod: a node can have two plugins."""
    labels = pod.labels or {}
    return any(
        pod.namespace == part.namespace
        and all(labels.get(name) == value for name, value in part.selector.items())
        for part in parts
    )


def uncertain_node(refusal: InputError) -> Finding:
    """Return the finding for a host whose node is ambiguous."""
    return Finding("node_uncertain", refusal.cause, refusal.evidence, refusal.next_step)


def unknown_node(expected: Expected) -> Finding:
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
        "Check kubelet and the container runtime there: journalctl -u kubelet -u containerd",
    )


def _no_plugin(parts: Sequence[Workload], vendors: set[str]) -> Finding:
    operators = [part for part in parts if part.kind == OPERATOR]
    if operators:
        return Finding(
            "no_plugin",
            f"{operators[0]} is in the cluster, but has deployed no device plugin.",
            "",
            "Check the operator's log and its ClusterPolicy (devicePlugin.enabled).",
        )
    what = " or ".join(sorted(vendors)) or "these GPUs"
    return Finding(
        "no_plugin",
        f"No device plugin for {what} is in the cluster.",
        "no DaemonSet of one was found in any namespace",
        "Run kubegpu.nodes.site with kubegpu_kube.kubeconfig set (tag device_plugin): it deploys "
        "one.",
    )
