# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why the pods of a device plugin or DRA driver do not serve a node. Pure."""

from __future__ import annotations

from .._core.finding import Finding, pod_names, with_names
from .._known_faults.answers import why_unhealthy
from .._known_faults.explain import explain
from .allocation import NodeState, is_gpu_resource
from .pods import PodView, find_pod_problem, shorten
from .types import Expected, View, vendor_of
from .workloads import (
    DRA_DRIVER,
    OURS,
    Workload,
    place,
)

# Codes of a pod whose log names no cause.
_NOTHING_KNOWN = ("pod_failed", "pod_waits")
# Where a vendor's driver reports the faults of a GPU.
_LOOK_AT = {
    "": "Look for Xid in the kernel's log there (dmesg), and at nvidia-smi -q",
    "amd": "Check dmesg | grep amdgpu there",
    "intel": "Check dmesg | grep -E 'i915|xe' there",
}


def explain_missing_pod(part: Workload, state: NodeState, view: View) -> Finding:
    """Return why the DaemonSet of a device plugin or DRA driver has no pod on a node."""
    keeps = place(part, state.labels, state.taints)
    who = f"{part.namespace}/{part.name}"
    names = pod_names(part.namespace, part.name, node=state.name, vendor=part.vendor or "")
    what = "DRA driver" if part.kind == DRA_DRIVER else "device plugin"
    if keeps.missing_labels or keeps.affinity:
        wants = ", ".join(keeps.missing_labels) or "what its node affinity asks for"
        step = (
            "Run kubegpu.nodes.site (tag labels): it labels the nodes that have GPUs."
            if part.managed
            else "Label the node: kubectl label node {node} {labels}"
        )
        labels = " ".join(keeps.missing_labels) or "(see the DaemonSet's affinity)"
        return with_names(
            "plugin_selects_not",
            f"The {what} {who} does not select {state.name}: the node lacks {wants}.",
            "",
            step,
            {**names, "labels": labels},
        )
    if keeps.taints:
        return Finding(
            "plugin_tolerates_not",
            f"The {what} {who} does not tolerate the taint of {state.name}: "
            f"{', '.join(keeps.taints)}.",
            "",
            f"Add it to {part.vendor}_device_plugin_pods.tolerations, or take the taint off."
            if part.managed
            else "Add a toleration to the DaemonSet, or take the taint off.",
            {**names, "vendor": part.vendor if part.managed else ""},
        )
    messages = view.events.get(who, ())
    known = explain(messages[-1]) if messages else []
    if known:
        return Finding(
            known[0].code,
            f"The {what} {who} has no pod on {state.name}: {known[0].cause}",
            shorten(messages[-1]),
            known[0].next_step,
            names,
        )
    return with_names(
        "plugin_not_started",
        f"The {what} {who} has no pod on {state.name} yet.",
        shorten(messages[-1])
        if messages
        else f"{part.available} of {part.desired} pods are available",
        "Check: kubectl -n {namespace} describe daemonset {name}",
        names,
    )


def silent_vendors(expected: Expected, state: NodeState) -> set[str]:
    """Return the vendors with an unknown number of GPUs of which the node offers none."""
    return expected.uncounted - offering_vendors(state)


def offering_vendors(state: NodeState) -> set[str]:
    """Return the vendors of which the node offers at least one GPU."""
    return {
        vendor_of(name)
        for name, resource in state.resources.items()
        if resource.allocatable > 0 and is_gpu_resource(name)
    }


def _unknown_name(expected: Expected, state: NodeState) -> str:
    """Return a resource of which the node should offer any number: one that its kubelet knows."""
    vendors = silent_vendors(expected, state) or expected.vendors
    names = [
        name
        for name in sorted(state.resources)
        if is_gpu_resource(name) and (vendor_of(name) in vendors or not vendors)
    ]
    return next(iter(names), f"GPU of {' or '.join(sorted(vendors))}" if vendors else "GPU")


def explain_pod(expected: Expected, state: NodeState, pod: PodView) -> Finding:
    known = find_pod_problem(pod, expected.known)
    if known is not None and known.code == "could_not_reach_nvml":
        return _explain_missing_nvml(known, expected, state, pod)
    if known is not None and known.code in _NOTHING_KNOWN:
        if _is_in_crash_loop(pod):
            return _crash_loop(state, pod)
        if pod.ready:
            # It runs: an earlier end, as at a boot of the node, does not explain what it lacks.
            known = None
    # The number of unhealthy GPUs follows from the node's status.
    if known is not None and known.code != "gpu_unhealthy":
        return known
    short = {
        name: (count, state.resource(name))
        for name, count in expected.resources.items()
        if state.resource(name).allocatable != count
    }
    if not short:
        name = _unknown_name(expected, state)
        short, wanted = {name: (0, state.resource(name))}, "at least 1"
    else:
        wanted = ""
    name, (count, resource) = next(iter(short.items()))
    seen = f"{name}: expected {wanted or count}, capacity {resource.capacity}, allocatable " + str(
        resource.allocatable
    )
    said = why_unhealthy(pod.log)
    if resource.capacity > resource.allocatable and (said or resource.allocatable):
        return with_names(
            "gpu_unhealthy",
            f"{resource.capacity - resource.allocatable} of {resource.capacity} {name} on "
            f"{state.name} are unhealthy.",
            shorten(said) or seen,
            f"{_LOOK_AT.get(vendor_of(name), _LOOK_AT[''])}; after a repair, delete the pod "
            "{pod}.",
            _names(pod, state),
        )
    if known is not None:
        return known
    if resource.allocatable > 0:
        return _wrong_count(name, count, resource.allocatable, seen, pod, state)
    if pod.phase == "Pending":
        return with_names(
            "plugin_starting",
            f"The device plugin's pod {pod.full_name} has not started yet on {state.name}.",
            seen,
            "Give it more time (kubegpu_apply.wait_timeout) or run "
            "it again; what it waits for says: kubectl -n {namespace} describe pod {name}",
            _names(pod, state),
        )
    return _not_registered(name, pod, state, seen)


def _not_registered(name: str, pod: PodView, state: NodeState, seen: str) -> Finding:
    last = pod.last_lines(3)
    return with_names(
        "not_registered",
        f"The device plugin's pod {pod.full_name} is {pod.phase or 'there'}, but kubelet on "
        f"{state.name} offers no {name}.",
        shorten(" | ".join(last)) if last else seen,
        "Delete the pod {pod}, so that it registers again; if that does not help, check kubelet's "
        "journal there.",
        _names(pod, state),
    )


def _names(pod: PodView, state: NodeState) -> dict[str, str]:
    return pod_names(pod.namespace, pod.name, node=state.name)


def _is_in_crash_loop(pod: PodView) -> bool:
    # Between two pauses of kubelet the container has ended.
    ended = pod.exit_code is not None and not pod.ready
    return pod.reason == "CrashLoopBackOff" or (pod.restarts > 1 and ended)


def _crash_loop(state: NodeState, pod: PodView) -> Finding:
    last = pod.last_lines(3)
    ended = "" if pod.exit_code is None else f", the last time with exit code {pod.exit_code}"
    return with_names(
        "plugin_crash_loop",
        f"The device plugin's pod {pod.full_name} on {state.name} ends again and again (restarts: "
        f"{pod.restarts}{ended}).",
        shorten(" | ".join(last)) if last else shorten(pod.message) or "its log is empty",
        "Read why it ends: kubectl -n {namespace} logs {name} --previous",
        _names(pod, state),
    )


def _wrong_count(
    name: str, count: int, offered: int, seen: str, pod: PodView, state: NodeState
) -> Finding:
    cause = f"{state.name} offers {offered} {name}, and {count} are expected."
    vendor = vendor_of(name)
    if vendor in ("amd", "intel"):
        return with_names(
            "wrong_count",
            cause,
            seen,
            f"Compare the variables {vendor}_device_plugin_* and the arguments of the pod "
            "{pod} with the render nodes on the node (ls -l /dev/dri/by-path).",
            _names(pod, state),
        )
    return with_names(
        "wrong_count",
        f"{state.name} offers {offered} {name}, and {count} are expected.",
        seen,
        "Compare the plugin's sharing (the label nvidia.com/device-plugin.config and its "
        "ConfigMap) with what is requested"
        + (
            ", and delete the pod {pod} if it is older than that."
            if offered > count
            else ", and nvidia-smi -L on the node with its PCI devices."
        ),
        _names(pod, state),
    )


def _explain_missing_nvml(
    known: Finding, expected: Expected, state: NodeState, pod: PodView
) -> Finding:
    """Return the specific cause why a plugin does not find NVML."""
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
        return with_names(
            "runtime_changed",
            f"The device plugin found no NVML on {state.name}, though nvidia is the default "
            f"runtime there now: its pod {pod.full_name} was started before that.",
            known.evidence,
            "Delete the pod: kubectl -n {namespace} delete pod {name}",
            _names(pod, state),
        )
    return Finding(
        known.code,
        f"The device plugin found no NVML on {state.name}, though its pod {pod.full_name} asks for "
        f"the RuntimeClass {pod.runtime_class}: the handler behind that class does not start "
        "NVIDIA's runtime, or the driver's libraries are not where it looks.",
        known.evidence,
        "See which program the handler starts (containerd config dump), and what "
        "nvidia-container-cli info says on the node; the layers toolkit and runtime of "
        "kubegpu.nodes.verify check both.",
    )


def _marker(pod: PodView) -> str:
    """Return the label by which a managed plugin selects its nodes."""
    vendor = (pod.labels or {}).get("app.kubernetes.io/name", "").partition("-")[0]
    return f"kubegpu.nodes/gpu-{vendor}" if vendor in ("amd", "intel") else "kubegpu.nodes/gpu"


def explain_misplaced_pod(expected: Expected, state: NodeState, pod: PodView) -> Finding:
    managed = (pod.labels or {}).get("app.kubernetes.io/managed-by") == OURS
    known = find_pod_problem(pod, expected.known)
    last = pod.last_lines(1)
    return with_names(
        "plugin_without_gpu",
        f"The device plugin's pod {pod.full_name} is on {state.name}, which has no GPU: it has "
        "nothing to offer there.",
        known.evidence if known else (last[0] if last else f"the pod is {pod.phase}"),
        "Remove the label that selects it: kubectl label node {node} {label}-"
        if managed
        else "Give the DaemonSet a nodeSelector, such as kubegpu.nodes/gpu: nvidia, which "
        "kubegpu.nodes.site sets on the nodes with GPUs.",
        {**_names(pod, state), "label": _marker(pod)},
    )
