# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan the test pod of a node, and judge how it ended. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._cluster.allocation import NodeState, Resource
from .._cluster.dra import GROUP
from .._cluster.pods import PodView, find_pod_problem, shorten
from .._cluster.workloads import MANAGED_BY, OURS, Workload, plugins, taint_text, tolerates
from .._core.finding import Finding
from .._known_faults.answers import has_no_device_left, lacking
from .._known_faults.explain import explain
from .._kube.timestamp import unix_time
from .types import PodResult, Request, Target

NAME_LABEL = "app.kubernetes.io/name"
APPLICATION = "gpu-verify"
RUN_LABEL = "kubegpu.nodes/run"
# Identity of the process that created the pod. If that process is dead, the pod is left over.
OWNER = "kubegpu.nodes/owner"
SELECTOR = f"{MANAGED_BY}={OURS},{NAME_LABEL}={APPLICATION}"

# A pod of a test has lost nothing since it started.
_SEEN = {"just_started": True}
_HOSTNAME = "kubernetes.io/hostname"
_CONTAINER = "test"
# Name of the claim in the pod, and of the request in the claim.
_CLAIM = "gpu"
# Seconds after a pod's deadline in which its run may still create pods, read logs and clean up.
_CLEANUP_SECONDS = 300
_MAX_NAME = 63
_ELSEWHERE = "another namespace for the test pods: gpu_verify_kube_namespace (option namespace)."
# What helps where an admission controller refuses the pod, by the code of its message.
_NOT_ADMITTED = {
    "quota_exceeded": f"Raise the quota that the message names, or take {_ELSEWHERE}",
    "quota_needs_limits": f"Give the namespace a LimitRange with defaults, or take {_ELSEWHERE}",
    "pod_security": (
        "Run the pods as another user than root (gpu_verify_run_as_user, option run_as_user), or "
        f"take {_ELSEWHERE}"
    ),
}


def pod_name(node: str, run: str) -> str:
    """Return the name of a node's test pod: valid, and unique to the node and the run."""
    digest = hashlib.sha256(f"{node} {run}".encode()).hexdigest()[:8]
    stem = re.sub(r"[^a-z0-9-]+", "-", node.lower()).strip("-")
    room = _MAX_NAME - len(APPLICATION) - len(digest) - 2
    return f"{APPLICATION}-{stem[:room].strip('-')}-{digest}"


def pod_manifest(target: Target, request: Request, run: str, owner: str) -> dict[str, Any]:
    """Return the pod. It has no ``nodeName``: placement by the scheduler is part of the test."""
    container: dict[str, Any] = {
        "name": _CONTAINER,
        "image": request.image,
        "imagePullPolicy": request.pull_policy,
        "resources": {"claims": [{"name": _CLAIM}]}
        if target.claim
        else {"limits": {target.resource: str(target.count)}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        # Adds the last output of a failing program to the pod's status.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if request.command:
        container["command"] = list(request.command)
    if request.args:
        container["args"] = list(request.args)
    if request.env:
        container["env"] = [{"name": name, "value": str(request.env[name])} for name in request.env]
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": request.timeout,
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "nodeSelector": {_HOSTNAME: target.hostname},
        "tolerations": [dict(item) for item in request.tolerations],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": request.run_as_user,
            "runAsGroup": request.run_as_user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
    if target.claim:
        claim = {"name": _CLAIM, "resourceClaimName": pod_name(target.node, run)}
        pod["resourceClaims"] = [claim]
    if request.run_as_user == 0:
        pod["securityContext"] = {"seccompProfile": {"type": "RuntimeDefault"}}
    if request.runtime_class and not (target.dra and request.auto_class):
        pod["runtimeClassName"] = request.runtime_class
    if request.priority_class:
        pod["priorityClassName"] = request.priority_class
    if request.pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in request.pull_secrets]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(target.node, run),
            "namespace": request.namespace,
            "labels": {MANAGED_BY: OURS, NAME_LABEL: APPLICATION, RUN_LABEL: run},
            "annotations": {OWNER: owner},
        },
        "spec": pod,
    }


def claim_manifest(
    target: Target, pod: Mapping[str, Any], api: str, request: Request
) -> dict[str, Any]:
    """Return the claim of a test pod, which goes with the pod that owns it.

    :param pod: the pod, as the API server has made it.
    :param api: the version of resource.k8s.io.
    """
    meta = pod["metadata"]
    wanted = {
        "deviceClassName": target.resource,
        "allocationMode": "ExactCount",
        "count": target.count,
    }
    # v1beta1 has the fields in the request itself.
    inside = wanted if api == "v1beta1" else {"exactly": wanted}
    return {
        "apiVersion": f"{GROUP}/{api}",
        "kind": "ResourceClaim",
        "metadata": {
            "name": meta["name"],
            "namespace": request.namespace,
            "labels": dict(meta["labels"]),
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
            ],
        },
        "spec": {"devices": {"requests": [{"name": _CLAIM, **inside}]}},
    }


def choose_class(state: NodeState) -> str:
    """Return the device class by which a claim can get a GPU of a node; empty if there is none."""
    offered = state.dra.by_class if state.dra else {}
    return next((name for name, one in offered.items() if one.allocatable), "")


def device_plugin_class(parts: Sequence[Workload]) -> str:
    """Return the RuntimeClass of the cluster's device plugin, our own plugin first."""
    found = sorted((part for part in plugins(parts) if part.vendor == "nvidia"),
                   key=lambda part: not part.managed)  # fmt: skip
    return found[0].runtime_class if found else ""


def choose_resource(state: NodeState, wanted: Mapping[str, int]) -> str:
    """Return the resource to request: the first expected one that the node offers.

    Another device plugin may name it differently; then it is any GPU resource that is offered.

    :param wanted: expected resources, as name and count.
    """
    names = [name for name, count in wanted.items() if count]
    offered = sorted(name for name in state.resources if state.resource(name).allocatable)
    for name in [*names, *offered]:
        if state.resource(name).allocatable:
            return name
    return names[0] if names else "nvidia.com/gpu"


def check_node(target: Target, state: NodeState, request: Request) -> PodResult | None:
    """Return why no pod is created on a node; None if one is.

    No pod waits for GPUs that are allocated to others: it could make a cluster autoscaler add a
    node, or preempt pods of lower priority.
    """
    resource = target.of(state)
    if not state.ready:
        return _cannot(
            "node_not_ready",
            f"The node {state.name} is not ready.",
            shorten(state.ready_message),
            "Check kubelet and the container runtime there: journalctl -u kubelet -u containerd",
        )
    if not resource.allocatable and state.dra is not None:
        return _cannot(
            "dra_no_class",
            f"The DRA driver {' and '.join(state.dra.drivers)} serves {state.name}, and no "
            "DeviceClass has a device of it that can be allocated: the test pod cannot ask for "
            "one.",
            f"ResourceSlices: {state.dra}"
            + (f"; taints: {', '.join(state.dra.taints)}" if state.dra.taints else ""),
            "See kubectl get deviceclasses, and make the classes of the driver (gpu.nvidia.com, "
            "mig.nvidia.com); or remove the cause of the taints.",
        )
    if not resource.allocatable:
        return _failed(
            "plugin_missing",
            f"{state.name} offers no {target.resource}: they are not allocated to other pods, no "
            "device plugin offers any there.",
            f"{target.resource}: capacity {resource.capacity}, allocatable 0",
            "The module gpu_cluster_info and the playbook verify say why.",
        )
    if resource.free < target.count:
        return all_taken(target, resource)
    if state.cordoned:
        return _cannot(
            "node_cordoned",
            f"The node {state.name} is cordoned: no pod can be placed there.",
            "spec.unschedulable is true",
            f"Make it schedulable again: kubectl uncordon {state.name}",
        )
    rejecting = [
        taint_text(taint)
        for taint in state.taints
        if taint["effect"] != "PreferNoSchedule"
        and not any(tolerates(one, taint) for one in request.tolerations)
    ]
    if rejecting:
        return _cannot(
            "taint_not_tolerated",
            f"The test pod does not tolerate the taint of {state.name}: {', '.join(rejecting)}.",
            "",
            "Add it to gpu_verify_tolerations (option tolerations), or remove the taint.",
        )
    return None


def all_taken(target: Target, resource: Resource) -> PodResult:
    """Return that the GPUs of a node are allocated, with the names of the pods that have them."""
    pods = ", ".join(str(pod) for pod in resource.pods)
    some = "All" if not resource.free else f"{resource.allocated} of"
    return _cannot(
        "all_taken",
        f"{some} {resource.allocatable} {target.resource} of {target.node} are taken, by "
        f"{'the pod' if len(resource.pods) == 1 else 'the pods'} {pods}.",
        f"{target.resource}: allocatable {resource.allocatable}, allocated {resource.allocated}",
        "This is not a fault. Test the node when one of its GPUs is free.",
    )


def is_done(view: PodView, waited: float, patience: float) -> bool:
    """Return whether the result of a pod is known, or will not come.

    :param waited: seconds since the pod was created.
    :param patience: seconds to wait for what may recover, such as a failed pull.
    """
    if view.phase in ("Succeeded", "Failed"):
        return True
    if view.reason in ("ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError"):
        return True
    if waited < patience:
        return False
    return bool(
        view.unschedulable
        or view.reason
        in ("ImagePullBackOff", "ErrImagePull", "CreateContainerError", "RunContainerError")
        or (view.phase == "Pending" and view.node and explain(view.text))
    )


def judge(
    target: Target, request: Request, view: PodView | None, state: NodeState, seconds: float
) -> PodResult:
    """Return the result of a pod.

    :param view: the pod with its events and log; None if it was deleted.
    :param state: the current state of its node, with the pods that hold its GPUs.
    :param seconds: since the pods were created.
    """
    if view is None:
        return _failed(
            "pod_gone",
            f"The test pod of {target.node} was deleted by another party before it ended.",
            "",
            "Find out by whom (audit log, clean-up jobs), and run it again.",
        )
    if view.phase == "Succeeded":
        if re.search(request.expect, view.log, re.MULTILINE):
            line = _line(request.expect, view.log)
            return PodResult(
                True, proof=f"a pod with {target.count} {target.resource} said {line!r}"
            )
        return _unexpected(target, request, view)
    if not view.node:
        return _unplaced(target, view, state)
    known = find_pod_problem(view, target.facts, _SEEN)
    if known is not None and known.code not in ("pod_failed", "pod_waits"):
        return PodResult(False, known)
    if view.pod_reason == "DeadlineExceeded" or view.phase == "Running":
        return _failed(
            "timed_out",
            f"The test pod on {target.node} ran for {seconds:.0f} s and did not end.",
            shorten(" | ".join(view.last_lines(3))) or "its log is empty",
            "Check whether nvidia-smi answers on that node; a larger image or test needs a higher "
            "gpu_verify_timeout (option timeout).",
        )
    if known is not None:
        return PodResult(False, known)
    return _failed(
        "pod_not_started",
        f"The test pod did not start on {target.node} within {seconds:.0f} s.",
        "its events report no failure; pulling a large image takes time",
        "Raise gpu_verify_timeout (option timeout), or check kubelet's journal there.",
    )


def _unexpected(target: Target, request: Request, view: PodView) -> PodResult:
    known = explain(view.log, target.facts, seen=_SEEN)
    if known:
        return PodResult(False, known[0])
    return _failed(
        "not_as_expected",
        f"The test pod on {target.node} ended well, but did not say {request.expect!r}.",
        shorten(" | ".join(view.last_lines(3))) or "its log is empty",
        "Check what image and command print, and correct gpu_verify_expect (option expect).",
    )


def _unplaced(target: Target, view: PodView, state: NodeState) -> PodResult:
    resource = target.of(state)
    message = view.unschedulable
    short = lacking(message)
    if target.resource in short or has_no_device_left(message) or not message:
        if not resource.allocatable:
            return _failed(
                "plugin_missing",
                f"{state.name} no longer offers any {target.resource}: its device plugin is gone.",
                shorten(message),
                "The module gpu_cluster_info and the playbook verify say why.",
            )
        others = Resource(
            resource.capacity,
            resource.allocatable,
            tuple(pod for pod in resource.pods if pod.name != view.name),
        )
        if others.free < target.count:
            return all_taken(target, others)
    if short and target.resource not in short:
        return _cannot(
            "node_full",
            f"{state.name} has no room for the test pod.",
            shorten(message),
            "Test it when its load is lower.",
        )
    return _failed(
        "not_scheduled",
        f"The scheduler did not place the test pod on {target.node}.",
        shorten(message) or "no message: check that kube-scheduler runs",
        "Check the label kubernetes.io/hostname of the node, its taints, and the scheduler.",
    )


def not_admitted(target: Target, error_cause: str, evidence: str, next_step: str) -> PodResult:
    """Return that the API server rejected the pod."""
    known = explain(evidence, target.facts)
    if known and known[0].code in _NOT_ADMITTED:
        return _failed("pod_refused", error_cause, evidence, _NOT_ADMITTED[known[0].code])
    if known:
        return PodResult(False, known[0])
    return _failed("pod_refused", error_cause, evidence, next_step)


def is_leftover(pod: Mapping[str, Any], now: float | None, alive: bool | None) -> bool:
    """Return whether a pod was left behind by a run that has ended.

    :param now: Unix time by the API server's clock, which also set the pod's creationTimestamp:
        the clocks of controllers may differ. None if unknown.
    :param alive: whether the process that created it is alive; None if it is of another machine.
    """
    if alive is not None:
        return not alive
    limit = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    created = unix_time((pod.get("metadata") or {}).get("creationTimestamp"))
    if not limit or created is None:
        # No run creates such a pod.
        return True
    return now is not None and now > created + limit + _CLEANUP_SECONDS


def _line(pattern: str, log: str) -> str:
    match = re.search(pattern, log, re.MULTILINE)
    return match.group().strip() if match else ""


def _failed(code: str, cause: str, evidence: str, next_step: str) -> PodResult:
    return PodResult(False, Finding(code, cause, evidence, next_step))


def _cannot(code: str, cause: str, evidence: str, next_step: str) -> PodResult:
    return PodResult(None, Finding(code, cause, evidence, next_step))
