# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge what the API server says to the eviction of a pod, and why a pod has not left. Pure.

The answers are those of a Kubernetes 1.20.2 (tests/integration/cluster/test_maintenance.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from .._core.finding import Finding
from .._known_faults.answers import budget_of, has_no_dry_run, has_two_budgets
from .._kube.errors import KubeError
from .._kube.timestamp import unix_time
from .types import Node, Pod


@dataclass(frozen=True)
class EvictionResult:
    """The result of an eviction.

    :param done: whether the pod leaves, or is gone.
    :param gone: whether it was gone before it was asked to leave.
    :param final: whether asking again is in vain.
    """

    done: bool = False
    gone: bool = False
    final: bool = False
    finding: Finding | None = None


def passes(error: KubeError) -> bool:
    """Return whether the API server may answer later: it restarts, or has too much to do."""
    return error.status is None or error.status == 429 or error.status >= 500


def judge(pod: Pod, error: KubeError | None) -> EvictionResult:
    """Return what an answer to an eviction, or to its dry run, means.

    :param error: None if the API server accepted it.
    """
    if error is not None and error.status == 404:
        return EvictionResult(done=True, gone=True)
    if error is None or has_no_dry_run(error.evidence):
        # A webhook that has no dry run cannot be asked before: the eviction itself shows it.
        return EvictionResult(done=True)
    if error.status == 409 or any(
        reason == "NamespaceTerminating" for reason, _text in error.causes
    ):
        # Another pod has the name by now, or the pod goes with its namespace: the next look shows.
        return EvictionResult(finding=_failed(pod, error))
    if error.status == 429:
        budget = next((text for reason, text in error.causes if reason == "DisruptionBudget"), "")
        return EvictionResult(
            finding=_blocked(pod, error, budget) if budget else _failed(pod, error)
        )
    if has_two_budgets(error.evidence):
        return EvictionResult(final=True, finding=_two_budgets(pod, error))
    if error.status is None or error.status >= 500:
        return EvictionResult(finding=_failed(pod, error))
    return EvictionResult(final=True, finding=_refused(pod, error))


def _blocked(pod: Pod, error: KubeError, text: str) -> Finding:
    details = budget_of(text)
    name, needs, has = details.values()
    numbers = f": it needs {needs} healthy pods and has {has}" if needs else ""
    evidence = f"{error.evidence} {text}"
    if not pod.ready and pod.phase == "Running":
        return Finding(
            "unready_guarded",
            f"The pod {pod.full_name} is not ready, and its budget {name} lets no pod go{numbers}. "
            "As long as that is so, it is never evicted.",
            evidence,
            "Repair or delete that pod. From Kubernetes 1.26 on, unhealthyPodEvictionPolicy: "
            "AlwaysAllow in the budget lets such pods go.",
            details,
        )
    if not needs:
        return Finding(
            "pdb_blocks",
            f"The budget {name} does not let the pod {pod.full_name} go, and the API server names "
            "no numbers: it has not counted the budget's pods yet, or cannot count them. A budget "
            "with maxUnavailable or a percentage counts only pods that have a controller.",
            evidence,
            f"Read the events of the budget (kubectl describe pdb {name} --namespace "
            f"{pod.namespace}). If it cannot count, write minAvailable as a number. eviction: "
            "delete goes past all budgets.",
            details,
        )
    return Finding(
        "pdb_blocks",
        f"The budget {name} does not let the pod {pod.full_name} go{numbers}.",
        evidence,
        "Give its workload one more replica, or wait until its other pods are ready. eviction: "
        "delete goes past all budgets.",
        details,
    )


def _two_budgets(pod: Pod, error: KubeError) -> Finding:
    return Finding(
        "two_budgets",
        f"The pod {pod.full_name} has more than one budget (PodDisruptionBudget), and the API "
        "server evicts no such pod.",
        error.evidence,
        "Change the selectors of the budgets so that one of them has the pod, or delete the pod "
        "manually.",
    )


def _refused(pod: Pod, error: KubeError) -> Finding:
    cause = f"The pod {pod.full_name} cannot be evicted. {error.cause}"
    if lacks_right(error):
        return _said("forbidden", cause, error)
    return _said("eviction_refused", cause, error)


def _failed(pod: Pod, error: KubeError) -> Finding:
    cause = f"The eviction of the pod {pod.full_name} failed until the end. {error.cause}"
    return _said("eviction_failed", cause, error)


def _said(code: str, cause: str, error: KubeError) -> Finding:
    return Finding(code, cause, error.evidence, error.next_step)


def lacks_right(error: KubeError) -> bool:
    """Return whether a right is missing, or the credentials are not accepted."""
    return error.status == 401 or (error.status == 403 and error.reason != "Denied")


def not_patched(node: str, error: KubeError) -> Finding:
    """Return the finding for a node that could not be changed."""
    cause = f"The node {node} could not be changed. {error.cause}"
    if lacks_right(error):
        return _said("forbidden", cause, error)
    return _said("node_not_patched", cause, error)


def not_ready(node: Node, boot_id: str, seconds: float) -> Finding:
    """Return the finding for a node that is not ready after it was given time.

    :param boot_id: the boot that its kubelet has to report; empty for any.
    """
    if node.ready and boot_id:
        return Finding(
            "boot_not_reported",
            f"The kubelet of the node {node.name} has not reported the boot of the node after "
            f"{seconds:.0f} s: what the cluster says of it is from before the reboot.",
            f"bootID: {node.boot_id}, the node's: {boot_id}",
            "Check the kubelet: journalctl -u kubelet.",
        )
    return Finding(
        "not_ready_in_time",
        f"The node {node.name} is not ready after {seconds:.0f} s.",
        node.ready_message,
        "Check the kubelet and the container runtime: journalctl -u kubelet.",
    )


def still_there(pod: Pod, node: Node, now: float | None, paused: bool = False) -> Finding:
    """Return why a pod that should leave is still on its node.

    :param now: the time by the server's clock.
    :param paused: whether its DaemonSet should have taken it away.
    """
    if not node.ready:
        return Finding(
            "node_not_ready",
            f"The pod {pod.full_name} cannot end: the node {node.name} is not ready, and only its "
            "kubelet can end it.",
            node.ready_message,
            "Repair the node, or make sure that it is powered off, and delete the pod with kubectl "
            "delete pod --force --grace-period=0.",
        )
    if paused and not pod.deletion:
        return Finding(
            "daemonset_stays",
            f"The pod {pod.full_name} of the DaemonSet {pod.owner_name} is kept, although the node "
            f"{node.name} has the label that pauses it.",
            "",
            "See whether kube-controller-manager runs: it removes the pods of DaemonSets.",
        )
    end = unix_time(pod.deletion)
    late = f" for {now - end:.0f} s" if now and end and now > end else ""
    return Finding(
        "terminating_long",
        f"The pod {pod.full_name} was told to end and is still there"
        + (f", its grace period is over{late}." if late else f" until {pod.deletion}."),
        f"deletionTimestamp: {pod.deletion}",
        "Check the kubelet of the node and the pod's finalizers and volumes. A pod with a "
        "long grace period needs a longer timeout, or grace_period.",
    )


def still_running(pod: Pod, seconds: float) -> Finding:
    """Return the finding for a job that did not finish in its time."""
    return Finding(
        "job_running",
        f"The pod {pod.full_name} of {pod.owner_kind or 'no controller'} {pod.owner_name} has not "
        f"finished after {seconds:.0f} s.",
        "",
        "Wait longer (wait_for.timeout), or evict what has not finished by then "
        "(wait_for.on_timeout: evict).",
    )
