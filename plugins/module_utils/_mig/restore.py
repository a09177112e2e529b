# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide how a node gets the MIG layout back that was found before the first change. Pure.

A GPU of the record that the driver does not show may be in the machine, and still have the layout
of this collection: it is a reason to refuse, so that the record remains for a later run. One that
is not on the PCI bus any more, such as a replaced card, is left out, or no later run could succeed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .._core.failure import parts
from .._core.finding import Finding
from .plan import check_instances, check_pods, check_use, complete, difference
from .record import Record
from .state import Usage, read_gpus
from .types import Gpu, Plan, Pods, Request


def plan_restore(
    node: Mapping[str, Any], record: Record, request: Request, usage: Usage, pods: Pods
) -> Plan:
    """Return the plan of a node whose GPUs get the layouts of the record.

    :param node: the fact ``gpu_node``.
    :param pods: pods of a cluster that use its GPUs.
    """
    shown = {gpu.uuid: gpu for gpu in read_gpus(node) if gpu.uuid in record.found}
    hidden = _hidden(node)
    unseen = {uuid: record.addresses.get(uuid, "") for uuid in record.found if uuid not in shown}
    # Without an address, which earlier releases did not record, it could be each GPU.
    kept = {uuid: at for uuid, at in unseen.items() if (at in hidden if at else hidden)}
    unknown = [_unknown(gpu) or check_instances(gpu) for gpu in shown.values()]
    refusals = [_not_shown(node, kept, hidden) if kept else None, *unknown]
    if not any(refusals):
        plans = [difference(gpu, record.found[uuid], request.reset) for uuid, gpu in shown.items()]
        plan = complete(node, plans, replace(request, config="", at_boot=False), usage)
        refusals = [check_pods(plan, pods)]
        refusals += [check_use(one, request, usage) for one in plans if one.change]
        if not any(refusals):
            return replace(plan, notes=tuple(_gone(uuid, unseen[uuid]) for uuid in unseen))
    return Plan(
        "refuse",
        reasons=tuple(one.message for one in refusals if one),
        refusals=tuple(parts(one.error()) for one in refusals if one),
    )


def _hidden(node: Mapping[str, Any]) -> dict[str, str]:
    """Return the GPUs on the PCI bus that the driver does not show: address and kernel driver."""
    devices = node["nvml"]["devices"] if node["nvml"] else ()
    shown = {device["address"] for device in devices}
    return {
        gpu["address"]: str(gpu["kernel_driver"] or "none")
        for gpu in node["gpus"]
        if gpu["vendor"] == "nvidia" and gpu["address"] not in shown
    }


def _not_shown(
    node: Mapping[str, Any], kept: Mapping[str, str], hidden: Mapping[str, str]
) -> Finding:
    drivers = "; ".join(f"{address}: kernel driver {name}" for address, name in hidden.items())
    return Finding(
        "mig_gpu_not_shown",
        f"The MIG layout of {', '.join(map(_name, kept, kept.values()))} cannot be restored: the "
        "driver does not show each GPU on the PCI bus.",
        f"{'' if node['nvml'] else 'the driver does not answer; '}{drivers}",
        "Load the driver (role nvidia_driver), or take the GPU back from another kernel driver, "
        "then run again. What was found remains in the record; a GPU that is taken out of the "
        "machine is left out.",
    )


def _unknown(gpu: Gpu) -> Finding | None:
    """Return that the driver does not tell whether MIG is enabled on the GPU, or None."""
    if gpu.layout is not None:
        return None
    return Finding(
        "mig_mode_unknown",
        f"The MIG layout of {gpu.title} ({gpu.address}) cannot be restored: the driver reports no "
        "MIG mode of it.",
        "nvidia-smi shows the mode as N/A",
        f"Check: nvidia-smi -i {gpu.uuid} --query-gpu=mig.mode.current --format=csv, and load a "
        "driver that has MIG on this card, then run again. What was found remains in the record.",
    )


def _gone(uuid: str, address: str) -> str:
    return (
        f"{_name(uuid, address)} is not in this machine any more: its MIG layout is not restored, "
        "and is dropped from the record."
    )


def _name(uuid: str, address: str) -> str:
    return f"{uuid} ({address})" if address else uuid
