# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the health of a node's GPUs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

from .._core.finding import Finding
from .._hardware.kernel_drivers import KERNEL_DRIVERS
from .._hardware.vendors import DRIVERS, container_gpus, gpu_vendors
from .._host.bounded import Hang
from .._known_faults.blocked import find_blocked
from .._known_faults.broken_gpus import lost_gpu
from .._known_faults.codes import GPU_UNSUPPORTED, VGPU_BRANCH, WRONG_MODULES
from .._known_faults.common import driver_hangs
from .._known_faults.documents.nvidia_smi_judge import (
    COUNT,
    judge_gpu,
    judge_licence,
    judge_thresholds,
)
from .._known_faults.explain import explain
from .._known_faults.predicates import Facts, partial
from .._known_faults.rules.xids_data import ERROR, INFO, WARNING
from .judge_events import other_events
from .judge_log import judge_switches, judge_xids, worst
from .types import (
    ANSWERED,
    HUNG,
    MISSING,
    STATE,
    Event,
    Judged,
    Node,
    PciGpu,
    Request,
    Seen,
    judged,
)

_ORDER = {ERROR: 0, WARNING: 1, INFO: 2}
_WIDTH_STEP = (
    "Drain the node and switch it off; seat the card and the riser again, clean the contacts, and "
    "try another slot. If it persists: the riser, the board, the card."
)
#: What the driver's absence makes nvidia-smi end with.
_NO_DRIVER = "nvidia-smi ended with status 9"
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
    facts = _known(node)
    found = [
        *_smi_findings(node),
        *_blocked(node),
        *(finding for gpu in node.gpus for finding in _pci_findings(gpu, request)),
        *(
            _of_gpu(one)
            for gpu in node.smi.gpus
            for one in (*judge_gpu(gpu, request.thresholds), *judge_licence(gpu, node.now))
        ),
        *judge_xids(node.events, request.xids, facts),
        *judge_switches(node.events, facts),
        *other_events(node, {gpu.address for gpu in _of_nvidia(node)}, facts),
    ]
    return sorted(_merged(_without_consequences(found)), key=_place)


def _without_consequences(found: Sequence[Judged]) -> list[Judged]:
    """Return the findings without failed starts of a GPU of which another finding says why."""
    told = {one.subject.gpu for one in found if one.code in _WHY_NOT_STARTED}

    def is_told(one: Judged) -> bool:
        return bool(told if not one.subject.gpu else told & {one.subject.gpu, ""})

    return [one for one in found if one.code not in _NOT_STARTED or not is_told(one)]


def _place(one: Judged) -> tuple[Any, ...]:
    return (
        _ORDER[one.severity],
        one.subject.gpu,
        one.code,
        one.seen.xids,
        one.cause,
        one.evidence,
    )


def _merged(found: Iterable[Judged]) -> list[Judged]:
    """Return the findings with one for each code and GPU; a state has the events of its code."""
    states: dict[tuple[str, str], Judged] = {}
    events: list[Judged] = []
    for one in sorted(found, key=_place):
        key = (one.code, one.subject.gpu)
        if one.seen.xids or (one.seen.last is not None and one.seen.count is not None):
            events.append(one)
        else:
            states[key] = _joined(states[key], one) if key in states else one
    rest = []
    for one in events:
        key = (one.code, one.subject.gpu)
        if key in states:
            states[key] = _joined(states[key], one)
        else:
            rest.append(one)
    return [*states.values(), *rest]


def _joined(one: Judged, other: Judged) -> Judged:
    evidence = dict.fromkeys((one.evidence, other.evidence))
    counts = [count for count in (one.seen.count, other.seen.count) if count is not None]
    times = [last for last in (one.seen.last, other.seen.last) if last is not None]
    return replace(
        one,
        evidence="; ".join(filter(None, evidence)),
        severity=worst((one.severity, other.severity)),
        seen=Seen(
            tuple(sorted({*one.seen.xids, *other.seen.xids})),
            max(counts) if counts else None,
            max(times) if times else None,
        ),
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
        (finding,) = explain(_NO_DRIVER)
        evidence = "/proc/driver/nvidia/version does not exist"
        return [judged(replace(finding, evidence=evidence), ERROR)]
    if smi.status == MISSING:
        finding = Finding(
            "nvidia_smi_missing",
            "The driver cannot be asked: this node has no nvidia-smi.",
            next_step="Install the driver's utilities (nvidia-utils-<branch>, nvidia-smi); the "
            "role nvidia_driver does it.",
        )
        return [judged(finding, ERROR)]
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
    return [judged(one, ERROR) for one in found if one is not None]


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


def _known(node: Node) -> Facts:
    """Return what was read of the node, as the part of its facts that explanations ask for."""
    return {**partial(node.smi.driver, _facts(node)), "blocked_modules": node.blocked}


def _not_counted(address: str, count: int, wanted: int) -> Judged:
    return judged(
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
    return judged(driver_hangs(asdict(hang), more), ERROR)


def _is_recent(event: Event) -> bool:
    return event.kind == "xid" and event.boot == 0


def _status(node: Node) -> list[Judged]:
    """Return the finding of nvidia-smi's status and of what it printed beside its document."""
    smi = node.smi
    if smi.status == ANSWERED and smi.rc == 0 and not smi.text:
        return []
    status = f"nvidia-smi -q -x ended with status {smi.rc}"
    facts = _known(node)
    known = (explain(smi.text, facts) if smi.text else []) or explain(status, facts)
    if known:
        evidence = f"{status}: {smi.text}" if smi.text else status
        return [judged(replace(known[0], evidence=evidence[:500]), ERROR)]
    if smi.status == ANSWERED:
        return []
    how = "was ended by a signal" if (smi.rc or 0) < 0 else f"ended with status {smi.rc}"
    return [
        judged(
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
        finding = lost_gpu("its PCI configuration space reads as ones only")
        return [judged(finding, ERROR, gpu.address)]
    found = [
        judged(
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
    values = judge_thresholds(gpu.address, gpu.values, request.thresholds)
    return [*found, *map(_of_gpu, values)]


def _of_gpu(found: Finding) -> Judged:
    """Return a finding of a GPU with what is counted since boot."""
    count = found.details.get(COUNT)
    seen = STATE if count is None else Seen(count=int(count))
    return judged(found, found.severity, found.subject.gpu, seen)
