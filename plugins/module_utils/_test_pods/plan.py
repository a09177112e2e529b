# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A pod that proves a node's GPU: how it is made, and what its end means. Pure."""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._cluster.allocation import NodeState, Resource
from .._cluster.pods import PodView, find_pod_problem, shorten
from .._cluster.workloads import MANAGED_BY, OURS, Workload, plugins, taint_text, tolerates
from .._core.finding import Finding
from .._diagnosis.known_errors import explain

NAME_LABEL = "app.kubernetes.io/name"
APPLICATION = "gpu-verify"
RUN_LABEL = "kubegpu.nodes/run"
#: Who made the pod: host, process id, start of the process. A dead process has left it behind.
OWNER = "kubegpu.nodes/owner"
SELECTOR = f"{MANAGED_BY}={OURS},{NAME_LABEL}={APPLICATION}"

AUTO = "auto"

#: The scheduler's words where no device is left for a pod's claims (its plugin DynamicResources).
_NO_CLAIM = "cannot allocate all claims"
_HOSTNAME = "kubernetes.io/hostname"
_CONTAINER = "test"
#: Seconds after a pod's deadline in which its run makes the other pods, reads logs and cleans up.
_AFTERWARDS = 300
_LONGEST_NAME = 63
_ELSEWHERE = "another namespace for the test pods: gpu_verify_kube_namespace (option namespace)."
#: What admission says of a pod, and what helps.
_NOT_ADMITTED = (
    ("exceeded quota", f"Raise the quota that the message names, or take {_ELSEWHERE}"),
    ("failed quota", f"Give the namespace a LimitRange with defaults, or take {_ELSEWHERE}"),
    (
        "violates PodSecurity",
        "Run the pods as another user than root (gpu_verify_run_as_user, option run_as_user), or "
        f"take {_ELSEWHERE}",
    ),
)


@dataclass(frozen=True)
class TestSpec:
    """What the pods run, and how long they may take."""

    image: str
    expect: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    namespace: str = "kubegpu"
    #: Empty is none; ``auto`` is the device plugin's.
    runtime_class: str = ""
    #: Whether the class was not asked for, but taken from the device plugin.
    auto_class: bool = False
    tolerations: tuple[Mapping[str, Any], ...] = ()
    pull_policy: str = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    priority_class: str = ""
    run_as_user: int = 65532
    timeout: int = 120
    busy_fails: bool = False

    __test__ = False  # no class of tests, whatever pytest thinks of its name


@dataclass(frozen=True)
class Target:
    """A pod that is to be made: for whom, on which node, with what."""

    key: str
    node: str
    hostname: str
    resource: str
    count: int
    driver: str | None = None
    gpus: tuple[Mapping[str, Any], ...] = ()
    #: Whether a DRA driver gives the device: it needs no RuntimeClass, and NVIDIA's could add GPUs
    #: that the claim does not have.
    dra: bool = False


@dataclass(frozen=True)
class Verdict:
    """How a test ended; ``ok`` is None where it could not be made."""

    ok: bool | None
    finding: Finding | None = None
    proof: str = ""


def pod_name(node: str, run: str) -> str:
    """Return the name of a node's test pod: valid, and another one for every run and node."""
    mark = hashlib.sha256(f"{node} {run}".encode()).hexdigest()[:8]
    stem = re.sub(r"[^a-z0-9-]+", "-", node.lower()).strip("-")
    room = _LONGEST_NAME - len(APPLICATION) - len(mark) - 2
    return f"{APPLICATION}-{stem[:room].strip('-')}-{mark}"


def manifest(target: Target, spec: TestSpec, run: str, owner: str) -> dict[str, Any]:
    """Return the pod. The scheduler places it, so that it takes part in the proof."""
    container: dict[str, Any] = {
        "name": _CONTAINER,
        "image": spec.image,
        "imagePullPolicy": spec.pull_policy,
        "resources": {"limits": {target.resource: str(target.count)}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        # What a failing program says last is told in the pod's status too.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if spec.command:
        container["command"] = list(spec.command)
    if spec.args:
        container["args"] = list(spec.args)
    if spec.env:
        container["env"] = [{"name": name, "value": str(spec.env[name])} for name in spec.env]
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": spec.timeout,
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "nodeSelector": {_HOSTNAME: target.hostname},
        "tolerations": [dict(item) for item in spec.tolerations],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": spec.run_as_user,
            "runAsGroup": spec.run_as_user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
    if spec.run_as_user == 0:
        pod["securityContext"] = {"seccompProfile": {"type": "RuntimeDefault"}}
    if spec.runtime_class and not (target.dra and spec.auto_class):
        pod["runtimeClassName"] = spec.runtime_class
    if spec.priority_class:
        pod["priorityClassName"] = spec.priority_class
    if spec.pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in spec.pull_secrets]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(target.node, run),
            "namespace": spec.namespace,
            "labels": {MANAGED_BY: OURS, NAME_LABEL: APPLICATION, RUN_LABEL: run},
            "annotations": {OWNER: owner},
        },
        "spec": pod,
    }


def namespace_manifest(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {MANAGED_BY: OURS}},
    }


def plugin_class(parts: Sequence[Workload]) -> str:
    """Return the RuntimeClass with which the cluster's device plugin runs; ours counts first."""
    found = sorted((part for part in plugins(parts) if part.vendor == "nvidia"),
                   key=lambda part: not part.managed)  # fmt: skip
    return found[0].runtime_class if found else ""


def choose_resource(state: NodeState, wanted: Mapping[str, int]) -> str:
    """Return the resource that the test asks for: the first expected one that the node offers.

    Somebody else's plugin may have given it another name; then it is any GPU that is offered.
    """
    names = [name for name, count in wanted.items() if count]
    offered = sorted(name for name in state.resources if state.resource(name).allocatable)
    for name in [*names, *offered]:
        if state.resource(name).allocatable:
            return name
    return names[0] if names else "nvidia.com/gpu"


def before(target: Target, state: NodeState, spec: TestSpec) -> Verdict | None:
    """Return why no pod is made; None where one is.

    No pod is left waiting for GPUs that others have: it would call for a new node where the
    cluster grows by itself, or push pods of a lower priority out.
    """
    resource = state.resource(target.resource)
    if not state.ready:
        return _cannot(
            "node_not_ready",
            f"The node {state.name} is not ready.",
            shorten(state.ready_message),
            "Look at kubelet and the container runtime there: journalctl -u kubelet -u containerd",
        )
    if not resource.allocatable and state.dra is not None:
        return _cannot(
            "dra_claim_needed",
            f"The DRA driver {' and '.join(state.dra.drivers)} serves {state.name}, and no "
            f"DeviceClass lends its devices the name {target.resource}: the test pod, which asks "
            "by that name, cannot get one.",
            f"ResourceSlices: {state.dra}",
            "Run a pod with a ResourceClaim there; or set extendedResourceName: "
            f"{target.resource} in the driver's DeviceClass, which Kubernetes knows from 1.34 on "
            "(feature gate DRAExtendedResource).",
        )
    if not resource.allocatable:
        return _failed(
            "plugin_missing",
            f"{state.name} offers no {target.resource}: it is not that others have them, no device "
            "plugin offers any there.",
            f"{target.resource}: capacity {resource.capacity}, allocatable 0",
            "The module gpu_cluster_info and the playbook verify say why.",
        )
    if resource.free < target.count:
        return taken(target, resource)
    if state.cordoned:
        return _cannot(
            "node_cordoned",
            f"The node {state.name} is cordoned: no pod can be placed there.",
            "spec.unschedulable is true",
            f"Let it take pods again: kubectl uncordon {state.name}",
        )
    refused = [
        taint_text(taint)
        for taint in state.taints
        if taint["effect"] != "PreferNoSchedule"
        and not any(tolerates(one, taint) for one in spec.tolerations)
    ]
    if refused:
        return _cannot(
            "taint_not_tolerated",
            f"The test pod does not tolerate the taint of {state.name}: {', '.join(refused)}.",
            "",
            "Add it to gpu_verify_tolerations (option tolerations), or take the taint off.",
        )
    return None


def taken(target: Target, resource: Resource) -> Verdict:
    """Return that pods have all GPUs; with their names, as that is what one wants to know."""
    pods = ", ".join(str(pod) for pod in resource.pods)
    some = "All" if not resource.free else f"{resource.allocated} of"
    return _cannot(
        "all_taken",
        f"{some} {resource.allocatable} {target.resource} of {target.node} are taken, by "
        f"{'the pod' if len(resource.pods) == 1 else 'the pods'} {pods}.",
        f"{target.resource}: allocatable {resource.allocatable}, allocated {resource.allocated}",
        "Nothing is wrong with that; test the node when one of its GPUs is free.",
    )


def is_done(view: PodView, waited: float, patience: float) -> bool:
    """Return whether a pod's end is known, or it will not come to one.

    :param waited: seconds since the pod was made.
    :param patience: how long something that may mend itself is waited for.
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
    target: Target, spec: TestSpec, view: PodView | None, state: NodeState, seconds: float
) -> Verdict:
    """Return what a pod's end means.

    :param view: the pod with its events and log; None where it is gone.
    :param state: its node as it is now, with who holds the GPUs.
    """
    if view is None:
        return _failed(
            "pod_gone",
            f"The test pod of {target.node} was deleted by somebody else before it ended.",
            "",
            "See who did (the audit log; a clean-up job), and run it again.",
        )
    if view.phase == "Succeeded":
        if re.search(spec.expect, view.log, re.MULTILINE):
            line = _line(spec.expect, view.log)
            return Verdict(True, proof=f"a pod with {target.count} {target.resource} said {line!r}")
        return _unexpected(target, spec, view)
    if not view.node:
        return _unplaced(target, view, state)
    known = find_pod_problem(view, driver=target.driver, gpus=target.gpus)
    if known is not None and known.code not in ("pod_failed", "pod_waits"):
        return Verdict(False, known)
    if view.pod_reason == "DeadlineExceeded" or view.phase == "Running":
        return _failed(
            "timed_out",
            f"The test pod on {target.node} ran for {seconds:.0f} s and did not end.",
            shorten(" | ".join(view.last_lines(3))) or "its log is empty",
            "See whether nvidia-smi answers on that node; a larger image or test needs a higher "
            "gpu_verify_timeout (option timeout).",
        )
    if known is not None:
        return Verdict(False, known)
    return _failed(
        "pod_not_started",
        f"The test pod did not start on {target.node} within {seconds:.0f} s.",
        "its events tell of no failure; an image that is large takes its time to be pulled",
        "Raise gpu_verify_timeout (option timeout), or look at kubelet's journal there.",
    )


def _unexpected(target: Target, spec: TestSpec, view: PodView) -> Verdict:
    known = explain(view.log, driver=target.driver or None, gpus=target.gpus)
    if known:
        return Verdict(False, known[0])
    return _failed(
        "not_as_expected",
        f"The test pod on {target.node} ended well, but did not say {spec.expect!r}.",
        shorten(" | ".join(view.last_lines(3))) or "its log is empty",
        "Look at what image and command print, and correct gpu_verify_expect (option expect).",
    )


def _unplaced(target: Target, view: PodView, state: NodeState) -> Verdict:
    resource = state.resource(target.resource)
    message = view.unschedulable
    if f"Insufficient {target.resource}" in message or _NO_CLAIM in message or not message:
        if not resource.allocatable:
            return _failed(
                "plugin_missing",
                f"{state.name} no longer offers any {target.resource}: its device plugin has gone.",
                shorten(message),
                "The module gpu_cluster_info and the playbook verify say why.",
            )
        others = Resource(
            resource.capacity,
            resource.allocatable,
            tuple(pod for pod in resource.pods if pod.name != view.name),
        )
        if others.free < target.count:
            return taken(target, others)
    if "Insufficient " in message and f"Insufficient {target.resource}" not in message:
        return _cannot(
            "node_full",
            f"{state.name} has no room for the test pod.",
            shorten(message),
            "Test it when it has less to do.",
        )
    return _failed(
        "not_scheduled",
        f"The scheduler did not place the test pod on {target.node}.",
        shorten(message) or "it said nothing: see that kube-scheduler runs",
        "Look at the label kubernetes.io/hostname of the node, at its taints, and at the "
        "scheduler.",
    )


def refused(target: Target, error_cause: str, evidence: str, next_step: str) -> Verdict:
    """Return that the API server did not take the pod."""
    # Of these it is known which option of the test helps.
    for words, step in _NOT_ADMITTED:
        if words in evidence:
            return _failed("pod_refused", error_cause, evidence, step)
    known = explain(evidence)
    if known:
        return Verdict(False, known[0])
    return _failed("pod_refused", error_cause, evidence, next_step)


def leftover(pod: Mapping[str, Any], now: float | None, alive: bool | None) -> bool:
    """Return whether a run that is over left this pod behind.

    :param now: the time by the API server's clock, which also made the pod's creationTimestamp:
        controllers need not agree on the time. None where it is not known.
    :param alive: whether the process that made it lives; None where it is one of another machine.
    """
    if alive is not None:
        return not alive
    limit = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    created = _seconds((pod.get("metadata") or {}).get("creationTimestamp"))
    if not limit or created is None:
        # It is not as a run makes them.
        return True
    return now is not None and now > created + limit + _AFTERWARDS


def _seconds(timestamp: object) -> float | None:
    """Return a time of the API server (``2026-11-22T12:00:00Z``) in seconds since 1970."""
    try:
        moment = datetime.datetime.strptime(str(timestamp), "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return None
    return moment.replace(tzinfo=datetime.timezone.utc).timestamp()


def _line(pattern: str, log: str) -> str:
    match = re.search(pattern, log, re.MULTILINE)
    return match.group().strip() if match else ""


def _failed(code: str, cause: str, evidence: str, next_step: str) -> Verdict:
    return Verdict(False, Finding(code, cause, evidence, next_step))


def _cannot(code: str, cause: str, evidence: str, next_step: str) -> Verdict:
    return Verdict(None, Finding(code, cause, evidence, next_step))
