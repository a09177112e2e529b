# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the health of a node's GPUs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from .._core.finding import Finding
from .._hardware.kernel_drivers import KERNEL_DRIVERS
from .._hardware.vendors import DRIVERS, container_gpus, gpu_vendors
from .._hardware.vgpu_licence import UNLICENSED
from .._host.bounded import Hang
from .._known_faults.blocked import find_blocked
from .._known_faults.codes import GPU_UNSUPPORTED, VGPU_BRANCH, WRONG_MODULES
from .._known_faults.common import VGPU_UNLICENSED, driver_hangs
from .._known_faults.explain import explain
from .._known_faults.licence import licence_fault
from .._known_faults.predicates import partial
from .._known_faults.rules.xids_data import ERROR, INFO, RESET_STEP, WARNING
from .data import (
    ERROR_TEXT,
    FLAGS,
    LOST_TEXT,
    PENDING_MODES,
    RECOVERY_ACTIONS,
    RESET_TEXT,
    STATUS_FINDINGS,
    STATUS_TEXTS,
    THRESHOLDS,
    Threshold,
)
from .judge_events import other_events
from .judge_log import judge_switches, judge_xids, worst
from .types import ANSWERED, HUNG, MISSING, Event, Judged, Node, PciGpu, Request, SmiGpu

_ORDER = {ERROR: 0, WARNING: 1, INFO: 2}
_WIDTH_STEP = (
    "Drain the node and switch it off; seat the card and the riser again, clean the contacts, and "
    "try another slot. If it persists: the riser, the board, the card."
)
_BROKEN_STEP = "Check nvidia-smi -q for this GPU and dmesg | grep -i -e NVRM -e Xid."
_LOST = "GPU is lost"
_NOT_STARTED = ("gpu_init_failed", "gpu_probe_failed", "driver_message")
# What says why a GPU did not start.
_WHY_NOT_STARTED = (
    VGPU_BRANCH,
    GPU_UNSUPPORTED,
    WRONG_MODULES,
    "gsp_firmware_failed",
    "bar_not_assigned",
)


def judge(node: Node, request: Request) -> list[Judged]:
    """Return the findings, the worst first; the order of what was read does not matter."""
    found = [
        *_smi_findings(node),
        *_blocked(node),
        *(finding for gpu in node.gpus for finding in _pci_findings(gpu, request)),
        *(finding for gpu in node.smi.gpus for finding in _smi_gpu(gpu, request)),
        *(finding for gpu in node.smi.gpus for finding in _licence(gpu, node.now)),
        *judge_xids(node.events, request.xids),
        *judge_switches(node.events),
        *other_events(node, {gpu.address for gpu in _of_nvidia(node)}),
    ]
    return sorted(_merged(_without_consequences(found)), key=_place)


def _without_consequences(found: Sequence[Judged]) -> list[Judged]:
    """Return the findings without failed starts of a GPU of which another finding says why."""
    told = {one.address for one in found if one.finding.code in _WHY_NOT_STARTED}

    def is_told(one: Judged) -> bool:
        return bool(told if not one.address else told & {one.address, ""})

    return [one for one in found if one.finding.code not in _NOT_STARTED or not is_told(one)]


def _place(one: Judged) -> tuple[Any, ...]:
    return (
        _ORDER[one.severity],
        one.address,
        one.finding.code,
        one.xids,
        one.finding.cause,
        one.finding.evidence,
    )


def _merged(found: Iterable[Judged]) -> list[Judged]:
    """Return the findings with one for each code and GPU; a state has the events of its code."""
    states: dict[tuple[str, str], Judged] = {}
    events: list[Judged] = []
    for one in sorted(found, key=_place):
        key = (one.finding.code, one.address)
        if one.xids or (one.last is not None and one.count is not None):
            events.append(one)
        else:
            states[key] = _joined(states[key], one) if key in states else one
    rest = []
    for one in events:
        key = (one.finding.code, one.address)
        if key in states:
            states[key] = _joined(states[key], one)
        else:
            rest.append(one)
    return [*states.values(), *rest]


def _joined(one: Judged, other: Judged) -> Judged:
    evidence = dict.fromkeys((one.finding.evidence, other.finding.evidence))
    counts = [count for count in (one.count, other.count) if count is not None]
    times = [last for last in (one.last, other.last) if last is not None]
    return replace(
        one,
        finding=replace(one.finding, evidence="; ".join(filter(None, evidence))),
        severity=worst((one.severity, other.severity)),
        xids=tuple(sorted({*one.xids, *other.xids})),
        count=max(counts) if counts else None,
        last=max(times) if times else None,
    )


def _smi_findings(node: Node) -> list[Judged]:
    """Return what the answer of nvidia-smi as a whole shows."""
    smi = node.smi
    wanted = _of_nvidia(node)
    if not wanted:
        return []
    if smi.status == HUNG:
        return [_hang(node)]
    if smi.driver is None and _blocked_driver(node, "nvidia"):
        return []
    if smi.driver is None:
        (finding,) = explain(STATUS_TEXTS[9])
        evidence = "/proc/driver/nvidia/version does not exist"
        return [Judged(replace(finding, evidence=evidence), ERROR)]
    if smi.status == MISSING:
        finding = Finding(
            "nvidia_smi_missing",
            "The driver cannot be asked: this node has no nvidia-smi.",
            next_step="Install the driver's utilities (nvidia-utils-<branch>, nvidia-smi); the "
            "role nvidia_driver does it.",
        )
        return [Judged(finding, ERROR)]
    found = _status(node)
    known = {gpu.address for gpu in smi.gpus}
    missing = [gpu.address for gpu in wanted if gpu.address not in known]
    if smi.status == ANSWERED and missing:
        found += [_not_counted(address, len(smi.gpus), len(wanted)) for address in missing]
    return found


def _blocked(node: Node) -> list[Judged]:
    """Return the drivers that no GPU is bound to because their modules are blocked."""
    # A card of a second vendor without a driver is there for the screen.
    found = [_blocked_driver(node, vendor) for vendor in gpu_vendors(_facts(node))]
    return [Judged(one, ERROR) for one in found if one is not None]


def _blocked_driver(node: Node, vendor: str) -> Finding | None:
    bound = {gpu.kernel_driver for gpu in node.gpus if gpu.vendor == vendor}
    # One that is bound to vfio-pci is a virtual machine's.
    free = bound & {None, *KERNEL_DRIVERS}
    if not free or bound & set(DRIVERS[vendor]):
        return None
    return find_blocked({"blocked_modules": node.blocked}, vendor)


def _of_nvidia(node: Node) -> list[PciGpu]:
    """Return the GPUs that NVIDIA's driver is to have."""
    return [gpu for gpu, fact in zip(node.gpus, _facts(node)) if container_gpus({"gpus": [fact]})]


def _facts(node: Node) -> list[dict[str, Any]]:
    """Return what decides which vendors' GPUs a node offers."""
    return [{"vendor": gpu.vendor, "kernel_driver": gpu.kernel_driver} for gpu in node.gpus]


def _not_counted(address: str, count: int, wanted: int) -> Judged:
    return Judged(
        Finding(
            "gpu_missing_in_nvml",
            f"The driver does not count GPU {address}, which is on the PCI bus.",
            f"nvidia-smi lists {count} of {wanted} GPUs",
            "Check dmesg | grep -i -e NVRM -e Xid for this GPU: one that fell off the bus comes "
            "back by powering the node off and on.",
        ),
        ERROR,
        address,
    )


def _hang(node: Node) -> Judged:
    xids = sorted({event.number for event in node.events if _is_recent(event)})
    more = f"Xids since boot: {', '.join(map(str, xids))}" if xids else ""
    hang = node.smi.hang or Hang("nvidia-smi", 0, 0.0, None, None, left=False)
    return Judged(driver_hangs(asdict(hang), more), ERROR)


def _is_recent(event: Event) -> bool:
    return event.kind == "xid" and event.boot == 0


def _status(node: Node) -> list[Judged]:
    """Return the finding of nvidia-smi's status and of what it printed beside its document."""
    smi = node.smi
    if smi.status == ANSWERED and smi.rc == 0 and not smi.text:
        return []
    known = explain(smi.text, partial(smi.driver)) if smi.text else []
    if not known and smi.rc in STATUS_TEXTS:
        known = explain(STATUS_TEXTS[smi.rc])[:1]
    if not known and smi.rc in STATUS_FINDINGS:
        known = [STATUS_FINDINGS[smi.rc]]
    if known:
        status = f"nvidia-smi -q -x ended with status {smi.rc}"
        evidence = f"{status}: {smi.text}" if smi.text else status
        return [Judged(replace(known[0], evidence=evidence[:500]), ERROR)]
    if smi.status == ANSWERED:
        return []
    how = "was ended by a signal" if (smi.rc or 0) < 0 else f"ended with status {smi.rc}"
    return [
        Judged(
            Finding(
                "driver_not_answering",
                f"The driver {smi.driver} is loaded, but does not answer.",
                f"nvidia-smi -q -x {how}. {smi.error or smi.text}"[:500],
                "Check: dmesg | grep -i -e NVRM -e Xid.",
            ),
            ERROR,
        )
    ]


def _pci_findings(gpu: PciGpu, request: Request) -> list[Judged]:
    """Return what sysfs shows of a GPU of any vendor."""
    if gpu.lost:
        (finding,) = explain(_LOST)
        evidence = "its PCI configuration space reads as ones only"
        return [Judged(replace(finding, evidence=evidence), ERROR, gpu.address)]
    found = [
        Judged(
            Finding(
                "pcie_width",
                f"The PCI Express link of GPU {gpu.address} has {link.width} lanes, and both of "
                f"its ends have {link.width_max}.",
                f"/sys/bus/pci/devices/{link.address}/current_link_width is {link.width}",
                _WIDTH_STEP,
            ),
            WARNING,
            gpu.address,
        )
        for link in gpu.narrow
    ]
    return [*found, *_thresholds(gpu.address, gpu.values, request)]


def _smi_gpu(gpu: SmiGpu, request: Request) -> list[Judged]:
    """Return what nvidia-smi shows of a GPU."""
    address = gpu.address or gpu.uuid or str(gpu.index)
    found = _thresholds(address, gpu.values, request)
    for flag in FLAGS:
        if gpu.values[flag.group][flag.name]:
            cause = flag.cause.format(gpu=address)
            evidence = f"nvidia-smi: {flag.group}.{flag.name} is yes"
            finding = Finding(flag.code, cause, evidence, flag.next_step)
            found.append(Judged(finding, flag.severity, address))
    found += _recovery(address, gpu.values["recovery"]["action"])
    found += _modes(address, gpu.values)
    slowdowns = gpu.values["clocks"]["slowdowns"]
    if slowdowns:
        found.append(
            Judged(
                Finding(
                    "hw_slowdown",
                    f"GPU {address} runs with lower clocks because of heat or power.",
                    f"nvidia-smi: {', '.join(slowdowns)} active",
                    "Check fans, air flow, power supply and power cables of the machine.",
                ),
                WARNING,
                address,
            )
        )
    return [*found, *_fabric(address, gpu.values["fabric"]), *_broken(address, gpu.broken)]


def _licence(gpu: SmiGpu, now: float) -> list[Judged]:
    """Return whether a virtual GPU lacks its licence."""
    licence = gpu.values["licence"]
    address = gpu.address or gpu.uuid or str(gpu.index)
    fault = licence_fault(address, licence, now)
    if fault is None:
        return []
    certain = fault.code == VGPU_UNLICENSED and licence["state"] == UNLICENSED
    return [Judged(fault, ERROR if certain else WARNING, address)]


def _recovery(address: str, action: str | None) -> list[Judged]:
    severity = RECOVERY_ACTIONS.get(action, ERROR) if action is not None else INFO
    if severity == INFO:
        return []
    cause = f"The driver says that GPU {address} needs: {action}."
    step = f"Drain the node, then: {action}. {RESET_STEP if action == 'reset' else ''}".strip()
    evidence = f"nvidia-smi: gpu_recovery_action is {action}"
    return [Judged(Finding("recovery_action", cause, evidence, step), severity, address)]


def _modes(address: str, values: Mapping[str, Mapping[str, Any]]) -> list[Judged]:
    found = []
    for row in PENDING_MODES:
        now, pending = values[row.group]["mode"], values[row.group]["mode_pending"]
        if None not in (now, pending) and now != pending:
            cause = row.cause.format(gpu=address, now=now, pending=pending)
            evidence = f"nvidia-smi: {now}, pending {pending}"
            finding = Finding(row.code, cause, evidence, row.next_step)
            found.append(Judged(finding, WARNING, address))
    return found


def _fabric(address: str, fabric: Mapping[str, Any]) -> list[Judged]:
    """Return whether the GPU has joined its NVLink fabric, and how that is."""
    state, status = fabric["state"], fabric["status"]
    found = []
    if state is not None and (state != "completed" or status not in (None, "success")):
        found.append(
            Judged(
                Finding(
                    "fabric_not_ready",
                    f"GPU {address} has not joined the NVLink fabric: CUDA programs fail with "
                    "error 802, system not yet initialized.",
                    f"nvidia-smi: fabric state {state}, status {status}",
                    "Check the fabric manager: journalctl --unit nvidia-fabricmanager, "
                    "/var/log/fabricmanager.log, and dmesg | grep -i -e SXid -e Xid.",
                ),
                ERROR,
                address,
            )
        )
    bad = [
        f"{name} is {'yes' if fabric[name] is True else fabric[name]}"
        for name, words in (
            ("health", ("healthy",)),
            ("bandwidth", ("full",)),
            ("route_unhealthy", (False,)),
            ("route_recovery", (False,)),
            ("access_timeout_recovery", (False,)),
        )
        if fabric[name] is not None and fabric[name] not in words
    ]
    if bad:
        finding = Finding(
            "fabric_degraded",
            f"The NVLink fabric of GPU {address} is degraded.",
            f"nvidia-smi: fabric {', '.join(bad)}",
            "Check nvidia-smi nvlink -s, the fabric manager's log, cables and trays.",
        )
        found.append(Judged(finding, WARNING, address))
    return found


def _broken(address: str, broken: Mapping[str, Sequence[str]]) -> list[Judged]:
    """Return the texts in the place of values that show a fault."""
    found = []
    for text, names in sorted(broken.items()):
        evidence = f"nvidia-smi: {text} in the place of {', '.join(names)}"
        if text == LOST_TEXT:
            finding = replace(explain(_LOST)[0], evidence=evidence)
        elif text == RESET_TEXT:
            cause = f"GPU {address} has to be reset before it can be used again."
            finding = Finding("recovery_action", cause, evidence, RESET_STEP)
        else:
            finding = Finding(
                "gpu_values_unreadable",
                f"nvidia-smi cannot read all values of GPU {address}.",
                evidence,
                _BROKEN_STEP,
            )
        severity = WARNING if finding.code == "gpu_values_unreadable" else ERROR
        if text not in (LOST_TEXT, RESET_TEXT, ERROR_TEXT):
            # Also of values that a card does not have.
            severity = INFO
        found.append(Judged(finding, severity, address))
    return found


def _thresholds(
    address: str, values: Mapping[str, Mapping[str, Any]], request: Request
) -> list[Judged]:
    found = []
    for row in THRESHOLDS:
        limit = request.thresholds.get(row.name, row.limit)
        numbers = [values.get(group, {}).get(name) for group, name in row.values]
        known = [number for number in numbers if number is not None]
        if limit is None or not known:
            continue
        value = sum(known)
        if value < limit if row.least else value > limit:
            found.append(_exceeded(row, address, value, limit))
    return found


def _exceeded(row: Threshold, address: str, value: float, limit: float) -> Judged:
    cause = row.cause.format(gpu=address, value=value, limit=f"{limit:g}")
    names = ", ".join(".".join(name) for name in row.values)
    least = "at least" if row.least else "at most"
    evidence = f"{names}: {value}, {least} {limit:g} is not a finding ({row.name})"
    return Judged(
        Finding(row.code, cause, evidence, row.next_step),
        row.severity,
        address,
        count=int(value) if row.since_boot else None,
    )
