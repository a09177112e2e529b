# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the values that nvidia-smi and sysfs show of a GPU. Pure.

The health of a node and :func:`.explain`, for a document that somebody pasted, ask the same
functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Optional

from ..._core.finding import ERROR, INFO, WARNING, Finding, Subject
from ..._hardware.vgpu_licence import UNLICENSED
from ..broken_gpus import lost_gpu, reset_gpu
from ..common import VGPU_UNLICENSED
from ..licence import licence_fault
from ..rules.nvidia_smi import (
    ERROR_TEXT,
    FLAGS,
    LOST_TEXT,
    PENDING_MODES,
    RECOVERY_ACTIONS,
    RESET_TEXT,
    THRESHOLDS,
    Threshold,
)
from ..rules.xids_data import RESET_STEP
from .nvidia_smi import SmiGpu, read_any

Limits = Mapping[str, Optional[float]]
#: The name in a finding's details of a number that counts from 0 after a reboot.
COUNT = "count"
_BROKEN_STEP = "Check nvidia-smi -q for this GPU and dmesg | grep -i -e NVRM -e Xid."
_NO_LIMITS: Limits = {}


def findings(text: str) -> list[Finding]:
    """Return what the output of nvidia-smi in a text shows of its GPUs; the worst first."""
    found = [one for gpu in read_any(text) for one in (*judge_gpu(gpu), *judge_licence(gpu, 0.0))]
    order = (ERROR, WARNING, INFO)
    return sorted(found, key=lambda one: order.index(one.severity))


def name_of(gpu: SmiGpu) -> str:
    """Return the address of a GPU, or what else names it."""
    return gpu.address or gpu.uuid or str(gpu.index)


def judge_gpu(gpu: SmiGpu, limits: Limits = _NO_LIMITS) -> list[Finding]:
    """Return what nvidia-smi shows of a GPU.

    :param limits: a user's limits, by the name of the threshold.
    """
    address = name_of(gpu)
    found = judge_thresholds(address, gpu.values, limits)
    for flag in FLAGS:
        if gpu.values[flag.group][flag.name]:
            cause = flag.cause.format(gpu=address)
            evidence = f"nvidia-smi: {flag.group}.{flag.name} is yes"
            found.append(
                _finding(flag.code, cause, evidence, flag.next_step, flag.severity, address)
            )
    found += _recovery(address, gpu.values["recovery"]["action"])
    found += _modes(address, gpu.values)
    slowdowns = gpu.values["clocks"]["slowdowns"]
    if slowdowns:
        found.append(
            _finding(
                "hw_slowdown",
                f"GPU {address} runs with lower clocks because of heat or power.",
                f"nvidia-smi: {', '.join(slowdowns)} active",
                "Check fans, air flow, power supply and power cables of the machine.",
                WARNING,
                address,
            )
        )
    return [*found, *_fabric(address, gpu.values["fabric"]), *_broken(address, gpu.broken)]


def judge_licence(gpu: SmiGpu, now: float) -> list[Finding]:
    """Return whether a virtual GPU lacks its licence.

    :param now: Unix time of the node; 0 does not compare the licence's end with it.
    """
    licence = gpu.values["licence"]
    fault = licence_fault(name_of(gpu), licence, now)
    if fault is None:
        return []
    certain = fault.code == VGPU_UNLICENSED and licence["state"] == UNLICENSED
    severity = ERROR if certain else WARNING
    return [replace(fault, severity=severity, subject=Subject(gpu=name_of(gpu)))]


def judge_thresholds(
    address: str, values: Mapping[str, Mapping[str, Any]], limits: Limits = _NO_LIMITS
) -> list[Finding]:
    """Return the numbers of a GPU of any vendor that are higher, or lower, than they may be."""
    found = []
    for row in THRESHOLDS:
        limit = limits.get(row.name, row.limit)
        numbers = [values.get(group, {}).get(name) for group, name in row.values]
        known = [number for number in numbers if number is not None]
        if limit is None or not known:
            continue
        value = sum(known)
        if value < limit if row.least else value > limit:
            found.append(_exceeded(row, address, value, limit))
    return found


def _exceeded(row: Threshold, address: str, value: float, limit: float) -> Finding:
    cause = row.cause.format(gpu=address, value=value, limit=f"{limit:g}")
    names = ", ".join(".".join(name) for name in row.values)
    least = "at least" if row.least else "at most"
    evidence = f"{names}: {value}, {least} {limit:g} is not a finding ({row.name})"
    found = _finding(row.code, cause, evidence, row.next_step, row.severity, address)
    return replace(found, details={COUNT: str(int(value))}) if row.since_boot else found


def _finding(
    code: str, cause: str, evidence: str, next_step: str, severity: str, address: str
) -> Finding:
    return Finding(
        code, cause, evidence, next_step, severity=severity, subject=Subject(gpu=address)
    )


def _recovery(address: str, action: str | None) -> list[Finding]:
    severity = RECOVERY_ACTIONS.get(action, ERROR) if action is not None else INFO
    if severity == INFO:
        return []
    cause = f"The driver says that GPU {address} needs: {action}."
    step = f"Drain the node, then: {action}. {RESET_STEP if action == 'reset' else ''}".strip()
    evidence = f"nvidia-smi: gpu_recovery_action is {action}"
    return [_finding("recovery_action", cause, evidence, step, severity, address)]


def _modes(address: str, values: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    found = []
    for row in PENDING_MODES:
        now, pending = values[row.group]["mode"], values[row.group]["mode_pending"]
        if None not in (now, pending) and now != pending:
            cause = row.cause.format(gpu=address, now=now, pending=pending)
            evidence = f"nvidia-smi: {now}, pending {pending}"
            found.append(_finding(row.code, cause, evidence, row.next_step, WARNING, address))
    return found


def _fabric(address: str, fabric: Mapping[str, Any]) -> list[Finding]:
    """Return whether the GPU has joined its NVLink fabric, and how that is."""
    state, status = fabric["state"], fabric["status"]
    found = []
    if state is not None and (state != "completed" or status not in (None, "success")):
        found.append(
            _finding(
                "fabric_not_ready",
                f"GPU {address} has not joined the NVLink fabric: CUDA programs fail with error "
                "802, system not yet initialized.",
                f"nvidia-smi: fabric state {state}, status {status}",
                "Check the fabric manager: journalctl --unit nvidia-fabricmanager, "
                "/var/log/fabricmanager.log, and dmesg | grep -i -e SXid -e Xid.",
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
        found.append(
            _finding(
                "fabric_degraded",
                f"The NVLink fabric of GPU {address} is degraded.",
                f"nvidia-smi: fabric {', '.join(bad)}",
                "Check nvidia-smi nvlink -s, the fabric manager's log, cables and trays.",
                WARNING,
                address,
            )
        )
    return found


def _broken(address: str, broken: Mapping[str, Sequence[str]]) -> list[Finding]:
    """Return the texts in the place of values that show a fault."""
    found = []
    subject = Subject(gpu=address)
    for text, names in sorted(broken.items()):
        evidence = f"nvidia-smi: {text} in the place of {', '.join(names)}"
        if text == LOST_TEXT:
            found.append(replace(lost_gpu(evidence), subject=subject))
        elif text == RESET_TEXT:
            found.append(replace(reset_gpu(evidence, f"GPU {address}"), subject=subject))
        else:
            found.append(
                _finding(
                    "gpu_values_unreadable",
                    f"nvidia-smi cannot read all values of GPU {address}.",
                    evidence,
                    _BROKEN_STEP,
                    # Others stand also for values that a card does not have.
                    WARNING if text == ERROR_TEXT else INFO,
                    address,
                )
            )
    return found
