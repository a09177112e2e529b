# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The health of a node: read, judge, compare, and the result of the module."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .._known_faults.documents.nvidia_smi import SmiGpu
from .._known_faults.rules.xids_data import ERROR
from .._known_faults.xids import in_line, sxid_severity
from .baseline import missing_gpus, new_findings, resolved_findings
from .facts import read_node
from .judge import judge
from .types import ANSWERED, Event, Judged, Node, PciGpu, Request, shown_time

if TYPE_CHECKING:
    from .._host.bounded import Stream
    from .._host.reader import NodeReader


def check_health(
    reader: NodeReader,
    stream: Stream,
    request: Request,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Return the result of the module."""
    begin = clock()
    node = read_node(reader, stream, request, clock)
    return {**result(node, request), "seconds": round(clock() - begin, 3)}


def result(node: Node, request: Request) -> dict[str, Any]:
    """Return what was read and found."""
    findings = judge(node, request)
    compared: dict[str, Any] = {"new": None, "resolved": None}
    if request.baseline is not None:
        findings = [*missing_gpus(node, request.baseline), *findings]
        fresh = new_findings(findings, request.baseline, node.boot_id)
        compared["new"] = [_finding(one) for one in fresh]
        if _all_read(node):
            compared["resolved"] = resolved_findings(findings, request.baseline, node)
    return {
        "changed": False,
        "ok": not any(one.severity == ERROR for one in findings),
        "gpus": _gpus(node),
        "events": [_event(event, request) for event in node.events],
        "findings": [_finding(one) for one in findings],
        **compared,
        "hangs": [asdict(node.smi.hang)] if node.smi.hang else [],
        "unseen": [{"what": what, "why": why} for what, why in node.unseen],
        "logs": [asdict(log) for log in node.logs],
        "driver_version": node.smi.driver,
        "boot_id": node.boot_id,
    }


def _all_read(node: Node) -> bool:
    """Return whether a finding that is not there is resolved: what was not read shows none."""
    nvidia = any(gpu.vendor == "nvidia" for gpu in node.gpus)
    log = next((log for log in node.logs if log.boot == 0), None)
    read = log is not None and not log.incomplete
    return (node.smi.status == ANSWERED or not nvidia) and (read or not node.gpus)


def _gpus(node: Node) -> list[dict[str, Any]]:
    """Return the GPUs on the bus with what nvidia-smi says of them, and GPUs that only it has."""
    known = {gpu.address: gpu for gpu in node.smi.gpus if gpu.address}
    on_bus = {gpu.address for gpu in node.gpus}
    both = [_gpu(gpu, known.get(gpu.address)) for gpu in node.gpus]
    return [*both, *(_gpu(None, gpu) for gpu in node.smi.gpus if gpu.address not in on_bus)]


def _gpu(pci: PciGpu | None, smi: SmiGpu | None) -> dict[str, Any]:
    values: dict[str, Mapping[str, Any]] = {**(pci.values if pci else {})}
    if smi:
        values.update(smi.values)
    return {
        "address": pci.address if pci else (smi.address or "") if smi else "",
        "vendor": pci.vendor if pci else "nvidia",
        "product": (pci.product if pci else None) or (smi.product if smi else None),
        "kernel_driver": pci.kernel_driver if pci else None,
        "index": smi.index if smi else None,
        "uuid": smi.uuid if smi else None,
        "serial": smi.serial if smi else None,
        "on_bus": pci is not None and not pci.lost,
        **{name: dict(group) for name, group in values.items()},
    }


def _event(event: Event, request: Request) -> dict[str, Any]:
    severity = None
    if event.kind == "xid":
        severity = in_line(event.number, event.sample, request.xids).severity
    elif event.kind == "sxid":
        severity = sxid_severity(event.number, event.sample)
    return {
        "boot": event.boot,
        "kind": event.kind,
        "number": event.number or None,
        "address": event.address,
        "severity": severity,
        "count": event.count,
        "first": shown_time(event.first),
        "last": shown_time(event.last),
        "sample": event.sample,
        "programs": list(event.programs),
        "mig_instances": list(event.instances),
        "versions": list(event.versions),
    }


def _finding(one: Judged) -> dict[str, Any]:
    return {
        **one.as_problem(),
        "address": one.subject.gpu,
        "xids": list(one.seen.xids),
        "count": one.seen.count,
        "last": shown_time(one.seen.last),
    }
