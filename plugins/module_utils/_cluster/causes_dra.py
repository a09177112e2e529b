# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a DRA driver does not offer the GPUs that are expected of a node. Pure."""

from __future__ import annotations

from .._core.finding import Finding, pod_names, with_names
from .._hardware.vendors import container_gpus
from .allocation import DraOffer, NodeState, is_gpu_resource
from .causes_pod import explain_missing_pod
from .pods import find_pod_problem, shorten
from .types import Expected, View
from .workloads import (
    Workload,
)


def by_dra(expected: Expected, state: NodeState) -> bool:
    """Return whether a DRA driver allocates the GPUs that are expected of a node."""
    return state.dra is not None and (expected.some or "nvidia" in expected.vendors)


def plugin_offers(state: NodeState) -> list[str]:
    """Return the NVIDIA resources that a device plugin offers on a node of a DRA driver."""
    return [
        f"{resource.allocatable} {name}"
        for name, resource in sorted(state.resources.items())
        if resource.allocatable and not resource.dra and name.startswith("nvidia.com/")
        and is_gpu_resource(name)
    ]  # fmt: skip


def count_unpublished(expected: Expected, state: NodeState) -> int:
    """Return the number of GPUs of a host that its DRA driver has not published.

    It is 0 if MIG devices are published, because the driver decides on their number.
    """
    published = state.dra.capacity if state.dra else {}
    if "mig" in published:
        return 0
    return max(0, len(container_gpus({"gpus": expected.gpus})) - sum(published.values()))


def explain_dra_offer(expected: Expected, state: NodeState, offer: DraOffer) -> Finding:
    """Return why the GPUs that a DRA driver published for a node are not as expected."""
    slices = f"ResourceSlices of {' and '.join(offer.drivers)}: {offer}"
    too = plugin_offers(state)
    if too:
        return Finding(
            "two_allocators",
            f"A DRA driver and a device plugin both offer the GPUs of {state.name}, and each gives "
            "them out without regard to the other.",
            f"{slices}; allocatable of the node: {', '.join(too)}",
            "Leave the node to one of them: remove the device plugin or keep it off the node, or "
            "set resources.gpus.enabled=false in the values of the DRA driver's chart.",
        )
    missing = count_unpublished(expected, state)
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
        f"The DRA driver keeps GPUs of {state.name} from being allocated: they are unhealthy.",
        f"{slices}; taints of its devices: {', '.join(offer.taints) or 'none'}",
        "Look for Xid in the kernel's log there (dmesg), and at nvidia-smi -q; what the taints "
        "mean, the DRA driver's documentation says.",
    )


def explain_missing_dra_offer(
    part: Workload, expected: Expected, state: NodeState, view: View
) -> tuple[Finding, str | None]:
    """Return why a DRA driver has published no GPU of a node."""
    pods = view.dra_pods.get(state.name, ())
    if not pods and part.selector:
        return explain_missing_pod(part, state, view), None
    if not pods:
        return Finding(
            "dra_not_published",
            f"The {part.workload} {part.name} is for GPUs that a DRA driver allocates, and no "
            f"driver has published any of {state.name}.",
            "no ResourceSlice names the node",
            "See that the DRA driver's pods run on this node, and at their log.",
        ), None
    pod = pods[0]
    known = find_pod_problem(pod, expected.known)
    last = pod.last_lines(3)
    return known or with_names(
        "dra_not_published",
        f"The DRA driver's pod {pod.full_name} is {pod.phase or 'there'}, and has published no GPU "
        f"of {state.name}.",
        shorten(" | ".join(last)) if last else "no ResourceSlice names the node",
        "Check: kubectl -n {namespace} logs {name} --all-containers; and kubelet's journal there, "
        "with which the driver registers.",
        pod_names(pod.namespace, pod.name, node=state.name),
    ), pod.full_name
