# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the lines of the kernel's log that are no Xids. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from .._core.finding import Finding
from .._known_faults.drm_events import STARTS, uncovered_codes
from .._known_faults.explain import explain
from .._known_faults.predicates import Facts
from .._known_faults.rules.xids_data import INFO, WARNING
from .judge_log import describe
from .types import ANSWERED, Event, Judged, Node, PciGpu, Seen, judged


def other_events(node: Node, nvidia: Collection[str], facts: Facts) -> list[Judged]:
    """Return the findings of the other lines of the present boot.

    :param nvidia: the addresses of the GPUs that NVIDIA's driver is to have.
    :param facts: what is known of the node, as in its facts.
    """
    found = []
    answered = {gpu.address for gpu in node.smi.gpus}
    all_answer = node.smi.status == ANSWERED and answered.issuperset(nvidia)
    for event in node.events:
        if event.boot != 0:
            continue
        if event.kind == "driver":
            works = event.address in answered if event.address else all_answer
            found.append(_driver_event(event, works, facts))
        elif event.kind == "mismatch":
            found.append(_mismatch(event, node.smi.status, facts))
        elif event.kind == "hung_task":
            found.append(_hung_task(event))
    return [*found, *_kernel_drivers(node, facts)]


def _of_event(finding: Finding, severity: str, event: Event) -> Judged:
    seen = Seen((), event.count, event.last)
    return judged(replace(finding, evidence=describe(event)), severity, event.address, seen)


def _named(event: Event, facts: Facts) -> Finding:
    """Return the finding of the code by which the event was counted, if the facts allow it."""
    otherwise = Finding(
        event.variant,
        f"The kernel's log has a message of the driver of GPU {event.address}.",
        next_step="Check the message in dmesg.",
        severity=WARNING,
    )
    found = [*explain(event.sample, facts), otherwise]
    return next((one for one in found if one.code == event.variant), found[0])


def _driver_event(event: Event, works: bool, facts: Facts) -> Judged:
    """Return what NVIDIA's driver said of a GPU; a failed start is over if it answers now."""
    finding = _named(event, facts)
    remains = finding.code == "driver_oops" or (
        finding.code == "gpu_needs_reset" and not event.address
    )
    severity = finding.severity if remains or not works else INFO
    return _of_event(finding, severity, event)


def _mismatch(event: Event, status: str, facts: Facts) -> Judged:
    seen = {"driver_agrees": status == ANSWERED, "module_of_disk_loaded": False}
    (finding,) = explain("NVRM: API mismatch", facts, seen=seen)[:1]
    if status == ANSWERED:
        who = f" ({', '.join(event.programs)})" if event.programs else ""
        finding = replace(
            finding,
            cause=f"Programs{who} loaded libraries of another version than the module's since "
            f"boot: {', '.join(event.versions) or 'unknown versions'}. nvidia-smi answers, so that "
            "the node's own libraries fit.",
            next_step="If it continues: look for containers with libraries of the driver in their "
            "image, and for programs that were started before an upgrade.",
        )
    return _of_event(finding, INFO if status == ANSWERED else WARNING, event)


def _hung_task(event: Event) -> Judged:
    finding = Finding(
        "driver_hangs",
        f"Programs that use NVIDIA's driver waited for minutes in the kernel since boot: "
        f"{', '.join(event.programs)}.",
        next_step="Check dmesg | grep -i -e NVRM -e Xid; drain the node and reboot it if "
        "it continues.",
    )
    return _of_event(finding, WARNING, event)


def _kernel_drivers(node: Node, facts: Facts) -> list[Judged]:
    """Return what the drivers of AMD and Intel said of their GPUs since boot."""
    gpus = {gpu.address: gpu for gpu in node.gpus if gpu.vendor != "nvidia"}
    events = [event for event in node.events if event.kind == "kernel_driver" and event.boot == 0]
    codes: dict[str, set[str]] = {}
    for event in events:
        codes.setdefault(_gpu_of(event, gpus), set()).add(event.variant)
    told = {address: uncovered_codes(of_gpu) for address, of_gpu in codes.items()}
    return [
        _kernel_driver(replace(event, address=_gpu_of(event, gpus)), gpus, facts)
        for event in events
        if _gpu_of(event, gpus) in gpus and event.variant in told[_gpu_of(event, gpus)]
    ]


def _gpu_of(event: Event, gpus: Mapping[str, PciGpu]) -> str:
    """Return the GPU of an event; a line without an address is of the only one."""
    return next(iter(gpus)) if not event.address and len(gpus) == 1 else event.address


def _kernel_driver(event: Event, gpus: Mapping[str, PciGpu], facts: Facts) -> Judged:
    finding = _named(event, facts)
    severity = finding.severity
    if event.variant in STARTS and gpus[event.address].kernel_driver:
        # The driver serves the GPU anyway, without a part of its functions.
        severity = WARNING
    return _of_event(finding, severity, event)
