# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""nvidia_mig: change the MIG layout of a node, or restore the one that was found."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .._core.errors import KubegpuError, RolledBackError
from .._host.command import Runner
from .._host.files import FileState, read_file
from .._host.reader import NodeReader
from .._known_faults.device_users import container_unit, find_users
from .._record.store import StateStore
from .boot_paths import UNIT
from .facts import read_capabilities
from .gpu import change_gpu, current
from .plan import check_pods, difference, needs_reset, plan_mig
from .record import FILES, RECORD, Record
from .reset import Resetter
from .restore import plan_restore
from .services import CDI_UNIT, Services, with_exporter
from .smi import NvidiaSmi
from .state import Usage
from .types import METRICS_TIMER, BootFile, GpuPlan, Plan, Pods, Request


@dataclass(frozen=True)
class Dependencies:
    """Access to the node. ``facts`` reads ``gpu_node``.

    ``leaving`` are containers, by ID, that have ended before the layout is changed. In check mode
    they still run, and their processes are no users. ``pods`` use GPUs of the node.
    """

    run: Runner
    reader: NodeReader
    store: StateStore
    facts: Callable[[], Mapping[str, Any]]
    timeout: int
    warn: Callable[[str], None]
    leaving: Collection[str] = ()
    pods: Pods = field(default_factory=Pods)


def present(request: Request, node: Dependencies, check_mode: bool) -> dict[str, Any]:
    """Bring the node to the requested layout; return the module's result.

    :raises KubegpuError: it is refused, or failed and was rolled back.
    """
    with _locked(node, check_mode):
        facts = node.facts()
        if facts["nvml"] is None and not check_mode:
            raise KubegpuError(
                "MIG cannot be changed: the driver does not answer.",
                evidence=str(facts["driver"]["loaded"] or "no driver is loaded"),
                next_step="Load the driver (role nvidia_driver), then run again.",
            )
        plan = plan_mig(facts, request, _usage(node, check_mode))
        _check(plan)
        held = check_pods(plan, node.pods)
        if held is not None:
            raise held.error()
        return _run(plan, request, node, check_mode)


def absent(request: Request, node: Dependencies, check_mode: bool) -> dict[str, Any]:
    """Restore the layout that was found before the first change; return the module's result.

    The record remains until each GPU of it that is in the machine is restored.

    :raises KubegpuError: a GPU is in use or cannot be read, or it failed and was rolled back.
    """
    with _locked(node, check_mode):
        record = Record.from_json(node.store.get(RECORD))
        if record is None:
            return _run(Plan("none"), request, node, check_mode)
        plan = plan_restore(node.facts(), record, request, _usage(node, check_mode), node.pods)
        _check(plan)
        for note in plan.notes:
            node.warn(note)
        result = _run(plan, request, node, check_mode)
        # A GPU that gets MIG with the next boot gets its instances by another run.
        if not check_mode and not (result["reboot_required"] and _enabling(plan)):
            node.store.drop(RECORD)
        return result


def _check(plan: Plan) -> None:
    if plan.action == "refuse":
        raise KubegpuError("\n".join(plan.reasons))


def _enabling(plan: Plan) -> bool:
    return any(one.after.enabled and not one.before.enabled for one in plan.gpus)


@contextlib.contextmanager
def _locked(node: Dependencies, check_mode: bool) -> Iterator[None]:
    with contextlib.nullcontext() if check_mode else node.store.transaction():
        yield


def _usage(node: Dependencies, check_mode: bool) -> Usage:
    ended = set(map(container_unit, node.leaving if check_mode else ()))
    users = [user for user in find_users(node.reader) if user.unit not in ended]
    return Usage(with_exporter(node.run, users), read_capabilities(node.reader))


def _run(plan: Plan, request: Request, node: Dependencies, check_mode: bool) -> dict[str, Any]:
    """Apply the plan, and return the module's result."""
    diff = [_diff(one) for one in plan.gpus if one.change]
    diff += [_file_diff(one) for one in plan.files]
    reboots = [one.reboot_reason for one in plan.gpus if one.waits]
    if plan.change and not check_mode:
        reboots += _change(plan, request, node)
    return {
        "changed": plan.change,
        "plan": plan.to_json(),
        "reboot_required": bool(reboots),
        "reboot_reason": "; ".join(reboots),
        "diff": diff,
    }


def _change(plan: Plan, request: Request, node: Dependencies) -> list[str]:
    """Apply the plan; return why a reboot is needed."""
    changing = [one for one in plan.gpus if one.change]
    record = Record.from_json(node.store.get(RECORD)) or Record()
    services = Services(node.run, node.warn)
    stopped = services.to_start(plan.stop, request.services, plan.interrupts)
    cdi = [CDI_UNIT] if changing and services.exists(CDI_UNIT) else []
    # Recorded first: a run that is killed leaves units that the next one starts.
    record = record.with_change(
        {one.gpu.uuid: one.before for one in plan.gpus},
        {one.gpu.uuid: one.gpu.address for one in plan.gpus},
        {one.gpu.uuid for one in changing},
        (*stopped, *cdi),
    )
    node.store.put(RECORD, record.to_json())
    waiting: list[GpuPlan] = []
    try:
        # A refresh that the load of the module has started holds the GPUs.
        services.stop([unit for unit in stopped if unit in (*plan.stop, METRICS_TIMER)] + cdi)
        waiting = _change_gpus(changing, request, node)
        _write_files(plan.files, node)
    finally:
        if changing:
            NvidiaSmi(node.run, node.timeout).make_device_files()
        services.start(record.stopped)
        node.store.put(RECORD, record.finished(_reset_in_vain(waiting, request)).to_json())
    return [one.reboot_reason for one in waiting]


def _reset_in_vain(waiting: Sequence[GpuPlan], request: Request) -> dict[str, str]:
    """Return what the driver said to the GPUs that were reset, and still wait for a reboot."""
    return {
        one.gpu.uuid: one.gpu.pending_why or ""
        for one in waiting
        if request.reset and needs_reset(one.gpu)
    }


def _change_gpus(plans: Sequence[GpuPlan], request: Request, node: Dependencies) -> list[GpuPlan]:
    """Change the GPUs, or restore all of them; return those that wait for a reboot.

    :raises RolledBackError: a change failed.
    """
    smi = NvidiaSmi(node.run, node.timeout)
    resetter = Resetter(smi, node.run, node.reader, node.warn) if request.reset else None
    waiting = []
    for number, plan in enumerate(plans):
        try:
            gpu = change_gpu(smi, plan, resetter)
        except KubegpuError as error:
            left = _restore(smi, plans[: number + 1], resetter)
            raise RolledBackError(
                error.cause,
                evidence=error.evidence,
                next_step="The earlier layout is restored."
                if not left
                else f"Not restored: {'; '.join(left)}. {error.next_step}",
            ) from error
        if gpu.pending_why is not None:
            waiting.append(replace(plan, gpu=gpu))
    return waiting


def _restore(smi: NvidiaSmi, plans: Sequence[GpuPlan], resetter: Resetter | None) -> list[str]:
    """Restore the layout of the GPUs before the run; return what was not restored."""
    left = []
    for plan in reversed(plans):
        try:
            back = difference(current(smi, plan.gpu), plan.before, resetter is not None)
            gpu = change_gpu(smi, back, resetter)
        except KubegpuError as error:
            left.append(f"{plan.gpu.title}: {plan.before.describe()} ({error.cause})")
        else:
            if gpu.pending_why is not None:
                left.append(replace(back, gpu=gpu).reboot_reason)
    return left


def _write_files(files: Sequence[BootFile], node: Dependencies) -> None:
    """Write or remove the files for the boot, and enable or disable their unit."""
    if not files:
        return
    remove = all(file.text is None for file in files)
    if remove:
        # While its file is there. Once it has run, systemd would keep it as active without a file.
        node.run(["systemctl", "disable", "--now", UNIT])
    for file in files:
        key = f"{FILES}{file.path}"
        if file.text is not None:
            after = FileState(file.path, file.text.encode(), 0o644)
            node.store.write_recorded(key, read_file(file.path), after, {})
        elif node.store.record(key) is not None:
            node.store.write_undone(key, FileState(file.path))
    node.run(["systemctl", "daemon-reload"])
    if not remove:
        answer = node.run(["systemctl", "enable", UNIT])
        if not answer.ok:
            raise KubegpuError(
                f"systemctl enable {UNIT} failed.",
                evidence=answer.last_output(),
                next_step="The layout is there, and would be gone after a reboot.",
            )


def _diff(plan: GpuPlan) -> dict[str, str]:
    header = f"MIG of {plan.gpu.title} ({plan.gpu.address})"
    return {
        "before_header": header,
        "after_header": header,
        "before": plan.before.lines(),
        "after": plan.after.lines(),
    }


def _file_diff(file: BootFile) -> dict[str, str]:
    content = read_file(file.path).content
    return {
        "before_header": file.path,
        "after_header": file.path,
        "before": "" if content is None else content.decode(errors="replace"),
        "after": file.text or "",
    }
