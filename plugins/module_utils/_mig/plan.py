# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide the MIG layout of a node, and what has to be changed for it. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._core.errors import KubegpuError
from .._core.failure import parts
from .._core.finding import Finding
from .._core.steps import Step
from .._nvidia.compatibility import parse_driver
from .boot import boot_files
from .boot_paths import UNIT
from .config import Entry, profile_counts, read_config
from .data import in_table, oldest_driver
from .layout import Layout, counted
from .placement import missing, place
from .state import Usage, read_gpus
from .types import METRICS, BootFile, Gpu, GpuPlan, Plan, Pods, Request

# Generations without MIG on any card. Of the others, some cards have it.
_WITHOUT_MIG = ("kepler", "maxwell", "pascal", "volta", "turing", "ada")
# The mode takes effect with a reset of the GPU; from Hopper on without.
_RESET_GENERATIONS = ("ampere",)
# Their services manage NVLink, not the GPU's memory, and MIG changes beside them.
_BESIDE = ("nvidia-fabricmanager.service", "nvidia-imex.service")
# Stopped for a change together with its timer.
_READS = f"{METRICS}.service"
# Of a node whose layout the MIG manager of NVIDIA's GPU operator makes.
_MANAGER_LABEL = "nvidia.com/mig.config"
_LIST = "See nvidia-smi mig -lgip on the node."


def plan_mig(
    node: Mapping[str, Any],
    request: Request,
    usage: Usage | None = None,
    cluster: Mapping[str, Any] | None = None,
) -> Plan:
    """Return the plan of a node.

    :param node: the fact ``gpu_node``.
    :param usage: who uses the GPUs; without it, use is not a reason to refuse.
    :param cluster: the node as ``gpu_cluster_info`` returns it, or ``{'error': text}``; None for a
        node of which nothing is known there.
    :raises InputError: the configuration is invalid.
    """
    if not request.config:
        return Plan("none", reasons=("no MIG configuration is set",))
    entries = read_config(request.config, request.configs)
    gpus = read_gpus(node)
    notes = _missing_numbers(request.config, entries, len(gpus))
    refusals: list[KubegpuError] = []
    skipped: list[Finding] = []
    plans = []
    for gpu in gpus:
        try:
            planned = _plan_gpu(node, gpu, entries, request, usage or Usage(), skipped)
        except KubegpuError as error:
            refusals.append(error)
            continue
        if planned is not None:
            plans.append(planned)
    if not plans and not refusals and skipped and any(one.enabled for one in entries):
        refusals.append(
            Finding(
                "mig_no_gpu",
                f"MIG configuration {request.config} is for no GPU of this node.",
                " ".join(one.cause for one in skipped),
                skipped[0].next_step,
            ).error()
        )
    manager = _other_manager(node, cluster or {})
    if (plans or refusals) and manager and not request.beside_others:
        refusals.insert(0, manager.error())
    if not refusals:
        plan = complete(node, plans, request, usage or Usage())
        refusals += [one.error() for one in _in_cluster(plan, cluster or {})]
        if not refusals:
            return replace(plan, notes=notes)
    return Plan(
        "refuse",
        tuple(plans),
        reasons=tuple(map(str, refusals)),
        refusals=tuple(map(parts, refusals)),
        notes=notes,
    )


def _missing_numbers(config: str, entries: Sequence[Entry], count: int) -> tuple[str, ...]:
    """Return a note on numbers of GPUs that the node does not have.

    As with mig-parted they are no error: a configuration serves nodes with different numbers.
    """
    numbers = {number for entry in entries for number in entry.devices or () if number >= count}
    if not numbers:
        return ()
    names = ", ".join(map(str, sorted(numbers)))
    return (
        f"MIG configuration {config} names GPU {names}, which this node does not have: its GPUs "
        f"have the numbers below {count}.",
    )


def _other_manager(node: Mapping[str, Any], cluster: Mapping[str, Any]) -> Finding | None:
    label = (cluster.get("labels") or {}).get(_MANAGER_LABEL)
    if not label and not node["mig"]["manager"]:
        return None
    return Finding(
        "mig_other_manager",
        "NVIDIA's MIG manager is enabled on this node: both would change the layout.",
        f"the node has the label {_MANAGER_LABEL}={label}"
        if label
        else "nvidia-mig-manager.service is enabled",
        (
            f"Switch it off in the GPU operator (migManager.enabled=false) and remove the label "
            f"(kubectl label node {cluster.get('name')} {_MANAGER_LABEL}-)"
            if label
            else "Disable it (systemctl disable --now nvidia-mig-manager.service)"
        )
        + ", or set nvidia_mig_beside_others to true.",
    )


def _in_cluster(plan: Plan, cluster: Mapping[str, Any]) -> list[Finding]:
    """Return what in the cluster prevents the plan."""
    if not plan.partitions:
        return []
    if cluster.get("error"):
        return [
            Finding(
                "mig_cluster_unknown",
                "The cluster does not report which pods use the GPUs of this node.",
                str(cluster["error"]),
                "Correct the connection (kubegpu_kube), then run again.",
            )
        ]
    resources: Mapping[str, Any] = cluster.get("resources") or {}
    held = [pod for resource in resources.values() for pod in resource["pods"]]
    names = sorted({f"{pod['namespace']}/{pod['name']}" for pod in held})
    found = check_pods(plan, Pods(str(cluster.get("name")), tuple(names)))
    return [found] if found else []


def check_pods(plan: Plan, pods: Pods) -> Finding | None:
    """Return why pods prevent the plan, or None."""
    if not pods.names or not plan.interrupts:
        return None
    return Finding(
        "mig_pods",
        f"Pods use GPUs of the node {pods.node}, whose layout would change.",
        f"pods: {', '.join(pods.names)}",
        f"Let them end, or move them: kubectl drain {pods.node} --ignore-daemonsets; then run "
        "again.",
    )


def complete(
    node: Mapping[str, Any], plans: Sequence[GpuPlan], request: Request, usage: Usage
) -> Plan:
    """Return the plan of a node from those of its GPUs, with files, services and steps."""
    layouts = {one.gpu.uuid: one.after for one in plans if one.gpu.uuid}
    files: tuple[BootFile, ...] = ()
    if layouts or node["mig"]["managed"]:
        files = _changed_files(node, boot_files(layouts if request.at_boot else {}))
    if node["nvml"] is None and request.at_boot:
        # Predicted for a driver that is not loaded yet, without which no UUID is known.
        files = ()
    changing = [one for one in plans if one.change]
    steps = [_step(one, request) for one in changing]
    if files:
        absent = all(one.text is None for one in files)
        steps.append(
            Step(
                "mig",
                "disable" if absent else "enable",
                UNIT,
                "no layout has to be made at boot" if absent else "instances vanish at a reboot",
            )
        )
    unfinished = node["mig"]["unfinished"]
    if unfinished:
        reason = "an earlier run stopped them and was ended"
        steps.append(Step("mig", "start", ", ".join(unfinished), reason))
    return Plan(
        "change" if steps else "none",
        tuple(plans),
        files,
        tuple(dict.fromkeys(unit for one in changing for unit in holders(one, request, usage))),
        tuple(steps),
        () if steps else tuple(f"{one.gpu.title}: {one.after.describe()}" for one in plans),
        _warnings(plans, request),
    )


def difference(gpu: Gpu, target: Layout, reset: bool) -> GpuPlan:
    """Return what has to be changed for a layout of the GPU; equal instances stay.

    :param reset: whether the GPU may be reset.
    """
    before = gpu.layout or Layout(False)
    existing = before.instances
    # A reset that failed would fail again.
    can_reset = reset and needs_reset(gpu) and gpu.pending_why is None
    if before.enabled != target.enabled == gpu.pending and not can_reset:
        return GpuPlan(gpu, before, target, keep=existing, waits=True)
    keep = tuple(one for one in existing if target.enabled and one in target.instances)
    settled = before.enabled == target.enabled and gpu.pending in (None, target.enabled)
    return GpuPlan(
        gpu,
        before,
        target,
        None if settled else target.enabled,
        tuple(one for one in existing if one not in keep),
        tuple(one for one in target.instances if one not in keep),
        keep,
    )


def holders(plan: GpuPlan, request: Request, usage: Usage) -> tuple[str, ...]:
    """Return the services that have to be stopped for the change of a GPU."""
    if plan.mode is None and not plan.destroy:
        return ()
    units = {user.unit or "" for user in usage.of_gpu(plan.gpu)}
    return tuple(name for name in request.services if f"{name}.service" in units)


def check_use(plan: GpuPlan, request: Request, usage: Usage) -> Finding | None:
    """Return why programs prevent the change of a GPU, or None."""
    busy = tuple(one for one in plan.destroy if usage.of_instances(plan.gpu, (one,)))
    if plan.mode is not None:
        users = usage.of_gpu(plan.gpu)
    else:
        users = usage.of_instances(plan.gpu, busy) if busy else ()
    harmless = {*_BESIDE, _READS, *(f"{name}.service" for name in request.services)}
    names = [str(user) for user in users if user.unit not in harmless]
    if not names:
        return None
    what = "its MIG mode" if plan.mode is not None else counted(busy)
    return Finding(
        "mig_in_use",
        f"{plan.gpu.title} ({plan.gpu.address}) is in use: {what} cannot be changed.",
        f"used by {', '.join(names)}",
        "End these programs, or move their pods to another node, then run again.",
    )


def check_instances(gpu: Gpu) -> Finding | None:
    """Return why it is unknown which instances the GPU has, or None."""
    if gpu.layout is None or not gpu.layout.enabled or gpu.instances_known:
        return None
    return Finding(
        "mig_unreadable",
        f"The GPU instances of {gpu.title} cannot be read.",
        "nvidia-smi mig -lgi shows them to root only",
        "Read the node as root (become: true).",
    )


def needs_reset(gpu: Gpu) -> bool:
    """Return whether a change of the mode takes effect with a reset of the GPU only."""
    return gpu.generation in _RESET_GENERATIONS


def _plan_gpu(
    node: Mapping[str, Any],
    gpu: Gpu,
    entries: Sequence[Entry],
    request: Request,
    usage: Usage,
    skipped: list[Finding],
) -> GpuPlan | None:
    """Return the plan of a GPU; None if the configuration is not for it.

    :raises KubegpuError: it cannot get its layout.
    """
    matching = [entry for entry in entries if entry.matches(gpu)]
    if not matching:
        return None
    entry = matching[-1]
    cannot = _cannot(node, gpu)
    if cannot is not None:
        skipped.append(cannot)
        if entry.enabled and entry.names(gpu):
            raise cannot.error()
        return None
    if not entry.enabled:
        target = Layout(False)
    else:
        _check_driver(node, gpu, request)
        target = _target(gpu, entry, usage)
    plan = difference(gpu, target, request.reset)
    if plan.change:
        busy = check_use(plan, request, usage)
        if busy is not None:
            raise busy.error()
    return plan


def _cannot(node: Mapping[str, Any], gpu: Gpu) -> Finding | None:
    """Return why the GPU has no MIG here, or None."""
    function: Mapping[str, Any] = next(
        (one for one in node["gpus"] if one["address"] == gpu.address), {}
    )
    title = f"{gpu.title} ({gpu.name}, {gpu.generation})"
    if function.get("kernel_driver") == "vfio-pci":
        why, step = "is bound to vfio-pci for a virtual machine", "Partition it in that machine."
    elif (function.get("vgpu") or {}).get("guest"):
        why, step = "is a virtual GPU", "Its host decides on MIG."
    elif node["nvml"] is None:
        if in_table(gpu.device_id, gpu.board):
            return None
        why, step = "is not known to have MIG", "Load its driver first: then the card reports it."
    elif gpu.layout is not None:
        return None
    elif "RTX PRO" in gpu.name:
        why = "has MIG in its compute mode only, and with a recent vBIOS"
        step = (
            "Run displaymodeselector --gpumode=compute, and update the vBIOS (98.02.55 or later)."
        )
    else:
        why = "cannot do MIG"
        step = "Set nvidia_mig_config for GPUs with MIG only, in group_vars or host_vars."
    if gpu.generation in _WITHOUT_MIG:
        why = "cannot do MIG"
    return Finding("mig_not_possible", f"{title} {why}.", "", step)


def _check_driver(node: Mapping[str, Any], gpu: Gpu, request: Request) -> None:
    driver = request.driver_version or node["driver"]["loaded"] or ""
    oldest = oldest_driver(gpu.device_id)
    if driver and oldest and parse_driver(driver) < parse_driver(oldest):
        raise Finding(
            "mig_driver_too_old",
            f"Driver {driver} is too old for MIG on {gpu.title} ({gpu.name}).",
            f"the oldest one is {oldest}",
            "Install a newer driver (nvidia_driver_branch).",
        ).error()


def _target(gpu: Gpu, entry: Entry, usage: Usage) -> Layout:
    """Return the layout of a GPU with MIG.

    :raises KubegpuError: the card cannot have it.
    """
    unreadable = check_instances(gpu)
    if unreadable is not None:
        raise unreadable.error()
    if gpu.profiles is None:
        if not entry.counts and not entry.profile:
            return Layout(True, gpu.layout.instances if gpu.layout else ())
        raise Finding(
            "mig_profiles_unknown",
            f"The MIG profiles of {gpu.title} ({gpu.name}) are unknown.",
            "nvidia-smi mig -lgip lists none, as drivers up to 535 do while MIG is disabled",
            "Set nvidia_mig_config: all-enabled and run; then set the configuration.",
        ).error()
    counts = profile_counts(entry, gpu.profiles)
    names = [one.name for one in gpu.profiles]
    unknown = [name for name in counts if name not in names]
    if unknown:
        raise Finding(
            "mig_unknown_profile",
            f"{gpu.title} ({gpu.name}) has no MIG profile {', '.join(unknown)}.",
            f"its profiles: {', '.join(names)}",
            _LIST,
        ).error()
    existing = gpu.layout.instances if gpu.layout else ()
    layout = place(gpu.profiles, counts, existing, usage.instances(gpu))
    lacking = missing(counts, layout)
    if lacking:
        raise _does_not_fit(gpu, counts, layout).error()
    numbers = {one: one.number for one in existing}
    return Layout(True, tuple(replace(one, number=numbers.get(one)) for one in layout))


def _does_not_fit(gpu: Gpu, counts: Mapping[str, int], layout: Sequence[Any]) -> Finding:
    wanted = ", ".join(f"{count}x {name}" for name, count in counts.items())
    return Finding(
        "mig_does_not_fit",
        f"{wanted} does not fit on {gpu.title} ({gpu.name}).",
        f"the nearest layout that fits: {counted(layout)}",
        _LIST,
    )


def _changed_files(node: Mapping[str, Any], wanted: Sequence[BootFile]) -> tuple[BootFile, ...]:
    """Return the files to write; all of them if the unit is not enabled."""
    current: Mapping[str, str | None] = node["mig"]["at_boot"]
    changed = any(current.get(one.path) != _sha256(one.text) for one in wanted)
    enable = any(one.text is not None for one in wanted)
    return tuple(wanted) if changed or enable != node["mig"]["enabled"] else ()


def _sha256(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


def _step(plan: GpuPlan, request: Request) -> Step:
    reasons = [f"now {plan.before.describe()}"]
    if plan.keep:
        reasons.append(f"{len(plan.keep)} of {len(plan.before.instances)} instances are kept")
    if plan.gpu.from_table and plan.create:
        reasons.append("predicted; the card's own list decides")
    return Step(
        "mig",
        "partition" if plan.after.enabled else "disable",
        f"{plan.gpu.title}: {plan.after.describe()}",
        f"{'; '.join(reasons)} (configuration {request.config or 'as found'})",
    )


def _warnings(plans: Sequence[GpuPlan], request: Request) -> tuple[str, ...]:
    waiting = [one.reboot_reason for one in plans if one.waits]
    titles = [one.gpu.title for one in plans if one.mode is not None and needs_reset(one.gpu)]
    if titles and not request.reset:
        waiting.append(
            f"the MIG mode of {', '.join(titles)} takes effect with a reboot, because "
            "nvidia_mig_reset is false"
        )
    return tuple(waiting)
