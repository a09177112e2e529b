# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan a rolling upgrade: what each change disturbs, refusals, and the batches. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._core.finding import Finding, Subject, read_finding, safe_text
from .._core.steps import change_text
from .etcd_quorum import Quorum, quorum_lost, split_members
from .options import amount
from .types import (
    ALL,
    CHANGE,
    GPU,
    LEVELS,
    NONE,
    NOTHING,
    REFUSE,
    RESUME,
    RUNTIME,
    Host,
    HostPlan,
    Plan,
    Request,
)

_OPERATOR_DRIVER = "nvidia.com/gpu.deploy.driver"
# Its driver is on the host, or is switched off. Other values, such as paused-for-driver-upgrade,
# are of a driver in a container.
_NOT_OPERATORS = ("", "pre-installed", "false")
# Steps of a driver's plan that programs on the GPUs do not notice.
_QUIET = frozenset(("repository", "hold", "files", "kernel", "initramfs", "licence"))
# Findings of a drain that time does not solve. The others are warnings: budgets and jobs change.
_FOR_GOOD = frozenset(
    ("unmanaged_pod", "local_data", "two_budgets", "forbidden", "eviction_refused", "swarm_task")
)
_RUNTIMES = ("containerd", "docker", "crio")


def disturbed(plans: Mapping[str, Mapping[str, Any]], reboot: str) -> str:
    """Return what the changes of a node disturb, as one of ``LEVELS``.

    :param plans: the plans of the roles, by part; that of MIG with ``reboots``, whether the node
        may be rebooted for its mode.
    :param reboot: ``never`` if the node may not be rebooted.
    """
    driver, mig = plans.get("driver") or {}, plans.get("mig") or {}
    toolkit = plans.get("toolkit") or {}
    found = [NOTHING]
    steps = {step["step"] for step in driver.get("steps") or ()}
    if steps - _QUIET or (driver.get("reboot") or {}).get("required"):
        found.append(GPU if reboot == "never" else ALL)
    if mig.get("interrupts"):
        found.append(ALL if mig.get("reboots") else GPU)
    if any(toolkit.get(runtime) for runtime in _RUNTIMES):
        found.append(RUNTIME)
    return max(found, key=LEVELS.index)


def has_work(plans: Mapping[str, Mapping[str, Any]], reboot: str) -> bool:
    """Return whether a node has something to change.

    The plans alone can also ask a runtime whether its configuration is right, which is no reason to
    take a node out of service.
    """
    pending = (plans.get("driver") or {}).get("reboot") or {}
    return any(plan.get("action") == "refuse" or _steps(plan) for plan in plans.values()) or bool(
        pending.get("required") and reboot != "never"
    )


def out_elsewhere(nodes: Mapping[str, Mapping[str, Any]], ours: Collection[str]) -> list[str]:
    """Return the nodes with GPUs that are out of service and are no hosts of the run.

    A host that was unreachable when the run began is among them: it is left out, and its node is
    not ready, or still held by a run.

    :param nodes: all nodes of the cluster, as ``gpu_cluster_info`` has them.
    :param ours: the nodes of the hosts of the run.
    """
    return sorted(
        name
        for name, node in nodes.items()
        if name not in ours and (node.get("held") or (node.get("resources") and not node["ready"]))
    )


def count_elsewhere(nodes: Mapping[str, Mapping[str, Any]], ours: Collection[str]) -> int:
    """Return how many nodes with GPUs are no hosts of the run, those of ``out_elsewhere`` included.

    :param nodes: all nodes of the cluster, as ``gpu_cluster_info`` has them.
    :param ours: the nodes of the hosts of the run.
    """
    return sum(
        bool(node.get("held") or node.get("resources"))
        for name, node in nodes.items()
        if name not in ours
    )


def plan_upgrade(
    request: Request,
    hosts: Sequence[Host],
    quorum: Quorum | None = None,
    elsewhere: Sequence[str] = (),
    others: int = 0,
) -> Plan:
    """Return the plan of all hosts, with all refusals at once.

    :param quorum: the control plane of their cluster.
    :param elsewhere: the nodes that are out of service and are no hosts of the run.
    :param others: how many nodes with GPUs are no hosts of the run.
    """
    if request.release:
        return _plan_release(request, hosts)
    quorum = quorum or Quorum()
    planned = [_plan_host(request, host, quorum) for host in hosts]
    # A percentage is of what is counted: those that are out of service elsewhere count, too.
    total = len(hosts) + max(others, len(elsewhere))
    limit = amount(request.max_unavailable, total) if hosts else 0
    out = {host.name for host in hosts if host.is_out(request.run)} | {*elsewhere}
    room = limit - len(out)
    findings = [
        *_unknown_canaries(request, hosts),
        *_no_room(request, planned, out, limit, total),
    ]
    refused = any(host.action == REFUSE for host in planned) and request.on_refusal == "stop"
    batches: list[tuple[str, ...]] = []
    if not findings and not refused:
        members = {host.name for host in planned if host.member}
        batches = split_members(make_batches(request, planned, room), members, quorum.spare)
    number = {name: index for index, batch in enumerate(batches, 1) for name in batch}
    return Plan(
        hosts=tuple(replace(host, batch=number.get(host.name)) for host in planned),
        batches=tuple(batches),
        findings=tuple(findings),
        refused=bool(findings) or refused,
        limit=limit,
        run=request.run,
        elsewhere=tuple(elsewhere),
    )


def _plan_release(request: Request, hosts: Sequence[Host]) -> Plan:
    """Return the plan of a run that only releases nodes."""
    held = tuple(host.name for host in hosts if host.held_by == request.run)
    return Plan(
        hosts=tuple(
            HostPlan(host.name, RESUME, batch=1) if host.name in held else HostPlan(host.name, NONE)
            for host in hosts
        ),
        batches=(held,) if held else (),
        limit=len(hosts),
        run=request.run,
        release=True,
    )


def make_batches(request: Request, hosts: Sequence[HostPlan], room: int) -> list[tuple[str, ...]]:
    """Return the names of the hosts in batches: unfinished ones, canaries, then the others.

    :param room: how many more nodes may be out at once; a batch is never larger, but of one host
        at least. Unfinished nodes are out already.
    """
    unfinished = [host.name for host in hosts if host.action == RESUME]
    fresh = [host.name for host in hosts if host.action == CHANGE]
    if isinstance(request.canary, int):
        canaries = fresh[: request.canary]
    else:
        canaries = [name for name in request.canary if name in fresh]
        canaries = list(dict.fromkeys(canaries))
    rest = [name for name in fresh if name not in canaries]
    most = max(1, room)
    batches = [tuple(unfinished)] if unfinished else []
    batches += _split(canaries, [most])
    batches += _split(rest, [min(most, amount(one, len(rest))) for one in request.batch])
    return batches


def _split(names: Sequence[str], sizes: Sequence[int]) -> list[tuple[str, ...]]:
    """Split names into batches; the last size is repeated."""
    batches: list[tuple[str, ...]] = []
    begin = 0
    while begin < len(names):
        size = sizes[min(len(batches), len(sizes) - 1)]
        batches.append(tuple(names[begin : begin + size]))
        begin += size
    return batches


def _plan_host(request: Request, host: Host, quorum: Quorum) -> HostPlan:
    resumed = host.held_by == request.run
    if not resumed and not has_work(host.plans, request.reboot) and not host.failure:
        return HostPlan(host.name, NONE)
    level = disturbed(host.plans, request.reboot)
    pods = request.pods
    if pods == "auto":
        pods = level if level in (GPU, ALL) else "none"
    restarts = _restarts(request, host, level, resumed=resumed)
    member = request.keep_quorum and restarts and quorum.has(host.node)
    lost = member and quorum.spare < 1
    findings = (*_refusals(request, host), *([quorum_lost(host.name, quorum)] if lost else ()))
    problems = _drain_findings(host)
    warnings = _rollback(host) if request.rollback == "try" else []
    drain = host.drain or {}
    return HostPlan(
        host.name,
        REFUSE if findings else RESUME if resumed else CHANGE,
        disturbs=level,
        pods=pods,
        member=member,
        changes=tuple(
            change_text({"part": part, **step})
            for part, plan in host.plans.items()
            for step in _steps(plan)
        ),
        leave=tuple(
            f"{pod['namespace']}/{pod['name']}"
            for pod in (*(drain.get("evicted") or ()), *(drain.get("waiting") or ()))
        ),
        findings=findings,
        blocks=(
            *(
                one
                for one in problems
                if one["code"] not in _FOR_GOOD
                and one["code"] not in {had.code for had in findings}
            ),
            *(one.as_problem() for one in warnings),
        ),
    )


def _restarts(request: Request, host: Host, level: str, *, resumed: bool) -> bool:
    """Return whether etcd on the host may restart.

    The rollback of a resumed host may reboot it, also if no step of its plan is left.
    """
    runtime = resumed or bool((host.plans.get("toolkit") or {}).get("containerd"))
    reboots = level == ALL or (resumed and request.reboot != "never")
    return reboots or (host.control_plane and runtime)


def _steps(plan: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return plan.get("steps") or ()


def _drain_findings(host: Host) -> Sequence[Mapping[str, Any]]:
    return (host.drain or {}).get("findings") or ()


def _refusals(request: Request, host: Host) -> list[Finding]:
    found = []
    if host.failure:
        failed = read_finding(host.failure, safe_text, Subject())
        words = (failed.cause, failed.evidence, "Solve it, or leave the host out.")
        found.append(Finding("host_failed", *words, failed.details))
    reasons = [
        reason
        for plan in host.plans.values()
        if plan.get("action") == "refuse"
        for reason in plan.get("reasons") or ()
    ]
    if reasons:
        found.append(
            Finding(
                "plan_refused",
                f"The plan of {host.name} is a refusal: {' '.join(reasons)}",
            )
        )
    if host.kubelet:
        found.append(
            Finding(
                "no_cluster",
                f"A kubelet ran on {host.name}, but kubegpu_kube has neither kubeconfig nor host, "
                "so that its pods would not be drained.",
                host.kubelet,
                "Set kubegpu_kube. If the host is in no cluster any more, remove that folder.",
            )
        )
    found += [_as_finding(one) for one in (host.row or {}).get("findings") or ()]
    found += [_as_finding(one) for one in _drain_findings(host) if one["code"] in _FOR_GOOD]
    if host.labels.get(_OPERATOR_DRIVER, "") not in _NOT_OPERATORS:
        found.append(
            Finding(
                "operator_driver",
                f"NVIDIA's GPU operator installs the driver of {host.name} in a container.",
                f"label {_OPERATOR_DRIVER}: {host.labels[_OPERATOR_DRIVER]}",
                "Let the operator upgrade it, or switch its driver off (driver.enabled: false).",
            )
        )
    driver = host.plans.get("driver") or {}
    if request.rollback == "require":
        found += _rollback(host)
    if request.rollback == "require" and not host.driver and driver.get("change"):
        found.append(
            Finding(
                "no_rollback",
                f"{host.name} has no driver that could be restored.",
                "",
                "Install the first driver with kubegpu.nodes.site, or set "
                "gpu_upgrade_rollback: try.",
            )
        )
    return found


def _rollback(host: Host) -> list[Finding]:
    """Return what is wrong with the packages that a rollback would install."""
    found = []
    if host.missing:
        found.append(
            Finding(
                "no_rollback",
                f"No repository of {host.name} has the installed versions of "
                f"{', '.join(host.missing)}: they could not be restored.",
                "",
                "Add a repository that has them, or leave it at that with gpu_upgrade_rollback: "
                "try.",
            )
        )
    if host.unasked:
        found.append(
            Finding(
                "rollback_unknown",
                f"It is unknown whether the installed versions of {host.name} could be restored: "
                f"its package manager did not answer. {host.unasked}",
                "",
                "Repair the package manager, or leave it at that with gpu_upgrade_rollback: try.",
            )
        )
    return found


def _as_finding(row: Mapping[str, Any]) -> Finding:
    names = ("code", "cause", "evidence", "next_step")
    code, cause, evidence, step = (str(row.get(name) or "") for name in names)
    return Finding(code, cause, evidence, step)


def _unknown_canaries(request: Request, hosts: Sequence[Host]) -> list[Finding]:
    if isinstance(request.canary, int):
        return []
    known = {host.name for host in hosts}
    unknown = [name for name in request.canary if name not in known]
    if not unknown:
        return []
    return [
        Finding(
            "canary_unknown",
            f"gpu_upgrade_canary names {', '.join(unknown)}, which are not hosts of this run with "
            "an NVIDIA GPU.",
            "",
            "Correct the names.",
        )
    ]


def _no_room(
    request: Request, planned: Sequence[HostPlan], out: set[str], limit: int, total: int
) -> list[Finding]:
    """Return why no further node may be taken out."""
    fresh = [host.name for host in planned if host.action == CHANGE and host.name not in out]
    if not fresh or len(out) < limit:
        return []
    return [
        Finding(
            "budget_used",
            f"gpu_upgrade_max_unavailable ({request.max_unavailable} of {total} nodes: "
            f"{limit}) is used up: {', '.join(sorted(out))} are not ready, cordoned by another "
            "party, or held by a run without being hosts of this one.",
            "",
            "Bring them back, or raise gpu_upgrade_max_unavailable.",
        )
    ]
