# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait for the NVLink fabric of a node and judge it; part of the layer ``nvml``.

A GPU behind NVSwitches answers NVML immediately, but runs no CUDA program until it has joined the
fabric. Clock, runner and reader are passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .._core.finding import Finding
from .._driver.components import IMEX_UNIT, MANAGER_UNIT
from .._driver.plan.fabric import (
    Needs,
    describe_drift,
    drifted_components,
    needs,
)
from .._driver.types import Request
from .._known_faults.broken_gpus import lost_gpu, reset_gpu
from .._known_faults.explain import explain

if TYPE_CHECKING:
    from .._host.command import Runner

COMPLETED = "completed"
# Texts of a GPU that is lost or has to be reset, in the place of the state: waiting does not help.
_LOST, _RESET = _FAULTS = ("is_lost", "requires_reset")
# Seconds between two queries.
_INTERVAL = 2
_SITE = (
    "Run kubegpu.nodes.site for this node with a requested driver (nvidia_driver_branch): role "
    "nvidia_driver installs the fabric manager in the driver's version and starts it."
)


@dataclass(frozen=True)
class Fabric:
    """State of the fabric.

    :param devices: state and status of each GPU; None for a GPU without a fabric state.
    :param unit: state of the fabric manager's unit; None if there is no such unit.
    :param journal: end of the unit's journal.
    :param waited: seconds that were waited for the fabric.
    :param needs: the components that the node needs, from its hardware and the options.
    """

    devices: tuple[tuple[str, str | None] | None, ...] = ()
    unit: str | None = None
    journal: str = ""
    waited: int = 0
    needs: Needs = field(default_factory=Needs)

    @property
    def not_joined(self) -> tuple[str, ...]:
        """Return the states of the GPUs that have not joined the fabric."""
        return tuple(
            f"{state} ({status})" if state == COMPLETED else state
            for state, status in filter(None, self.devices)
            if state != COMPLETED or status not in (None, "success")
        )

    @property
    def has_state(self) -> bool:
        """Return whether any GPU reports a fabric state."""
        return any(self.devices)


def read_fabric(devices: Sequence[Mapping[str, Any]], unit: str | None) -> Fabric:
    """Return the state of the fabric from the devices of the fact ``nvml``."""
    found = (device.get("fabric") for device in devices)
    return Fabric(tuple((one["state"], one["status"]) if one else None for one in found), unit)


def wait_for_fabric(
    node: Mapping[str, Any],
    run: Runner,
    devices: Callable[[], Sequence[Mapping[str, Any]]],
    timeout: int,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
    managed: str = "auto",
) -> Fabric | None:
    """Return the state of the fabric, after waiting for it to come up; None without a fabric.

    :param devices: queries the driver again, and returns the devices as the fact ``nvml``.
    :param timeout: seconds to wait at most.
    :param managed: the option ``fabric``: whether the fabric manager must run.
    """
    if node["nvml"] is None:
        return None
    unit = node["driver"]["services"].get(MANAGER_UNIT)
    fabric = read_fabric(node["nvml"]["devices"], unit)
    required = needs(node, Request(fabric=managed))
    if not (fabric.has_state or required.manager):
        return None
    start = clock()
    while _pending(fabric, required.manager) and clock() - start < timeout:
        sleep(_INTERVAL)
        state = run(["systemctl", "is-active", f"{MANAGER_UNIT}.service"], timeout=20)
        output = state.stdout.split()
        fabric = read_fabric(devices(), output[0] if output and unit else unit)
    fabric = replace(fabric, waited=int(clock() - start), needs=required)
    if required.manager and fabric.unit not in (None, "active"):
        journal = run(
            ["journalctl", "--unit", MANAGER_UNIT, "--no-pager", "--output=cat", "--lines=20"],
            timeout=20,
        )
        fabric = replace(fabric, journal=journal.stdout.strip())
    return fabric


def _pending(fabric: Fabric, managed: bool) -> bool:
    """Return whether the fabric may still come up."""
    if managed and fabric.unit != "active":
        return fabric.unit in ("activating", "reloading")
    return any(
        not one.startswith(COMPLETED) and not any(text in one for text in _FAULTS)
        for one in fabric.not_joined
    )


def fabric_fault(node: Mapping[str, Any], fabric: Fabric | None) -> Finding | None:
    """Return why the fabric cannot be used; None if it can."""
    if node["driver"]["services"].get(IMEX_UNIT) == "failed":
        return Finding(
            "imex_failed",
            "The IMEX service failed: memory of GPUs in other nodes cannot be used.",
            f"systemctl is-active {IMEX_UNIT} says failed",
            f"Check: journalctl --unit {IMEX_UNIT}; /etc/nvidia-imex/nodes_config.cfg must be "
            "the same on all nodes of the domain, and the service must have the driver's version.",
        )
    if fabric is None:
        return None
    required = fabric.needs
    if required.manager and fabric.unit != "active" and (fabric.not_joined or not fabric.has_state):
        return _not_running(node, fabric, required.why)
    if not fabric.not_joined:
        return None
    broken = _broken_gpu(fabric)
    if broken is not None:
        return broken
    count = f"{len(fabric.not_joined)} of {len(fabric.devices)} GPUs"
    states = ", ".join(sorted(set(fabric.not_joined))).replace("_", " ")
    cause = (
        f"{count} {'has' if len(fabric.not_joined) == 1 else 'have'} not joined the NVLink fabric: "
        "CUDA programs fail with error 802, system not yet initialized."
    )
    if required.manager:
        step = (
            f"Check: journalctl --unit {MANAGER_UNIT}, /var/log/fabricmanager.log, and dmesg | "
            "grep -i -e SXid -e Xid."
        )
    elif node["nvswitches"]:
        step = (
            "Check that the fabric manager runs for this node's NVSwitches: nvidia_driver_fabric "
            "is false, so that this collection does not manage it."
        )
    else:
        step = (
            "This node has no NVSwitches: check that the fabric manager runs where they "
            "are (the host of this virtual machine, or the rack's switch trays)."
        )
    evidence = f"fabric state: {states}; seen for {fabric.waited} s"
    return Finding("fabric_not_ready", cause, evidence, step)


def _broken_gpu(fabric: Fabric) -> Finding | None:
    """Return the fault of a GPU that nvidia-smi prints in the place of its state."""
    states = ", ".join(sorted(set(fabric.not_joined)))
    evidence = f"nvidia-smi: fabric state: {states.replace('_', ' ')}"
    if _LOST in states:
        return lost_gpu(evidence)
    if _RESET in states:
        return reset_gpu(evidence)
    return None


def _not_running(node: Mapping[str, Any], fabric: Fabric, why: str) -> Finding:
    driver = node["driver"]
    drift = drifted_components(driver["packages"], driver["loaded"] or "")
    evidence = [f"systemctl is-active {MANAGER_UNIT} says {fabric.unit or 'that there is none'}"]
    if drift:
        evidence.append(describe_drift(drift, driver["loaded"] or "of another version"))
    known = explain(fabric.journal, node)
    if known:
        found = known[0]
        return replace(found, evidence="; ".join([found.evidence, *evidence]))
    if fabric.journal:
        evidence.append(fabric.journal.splitlines()[-1])
    state = "does not exist" if fabric.unit is None else f"does not run ({fabric.unit})"
    return Finding(
        "fabric_manager_not_running",
        f"NVIDIA's fabric manager {state}, and this node needs it ({why}): CUDA programs fail with "
        "error 802, system not yet initialized.",
        "; ".join(evidence),
        _SITE,
    )


def describe(fabric: Fabric | None) -> str:
    """Return what was verified of the fabric, to append to the proof of the layer."""
    if fabric is None:
        return ""
    shown = []
    if fabric.has_state:
        joined = sum(one is not None for one in fabric.devices)
        shown.append(f"fabric completed for {joined} GPU{'' if joined == 1 else 's'}")
    if fabric.unit == "active":
        shown.append(f"{MANAGER_UNIT} runs")
    return "".join(f", {one}" for one in shown)
