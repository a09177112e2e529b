# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the NVLink fabric of a node, and wait for it: a part of the layer nvml.

A GPU behind NVSwitches answers NVML at once, and no CUDA program until it has joined the fabric.
Nothing is touched here: clock, runner and reader are passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .._core.finding import Finding
from .._diagnosis.known_errors import explain
from .._driver.plan.fabric import (
    IMEX_UNIT,
    MANAGER_UNIT,
    Needs,
    describe_drift,
    drifted_components,
    needs,
)
from .._driver.types import Request

if TYPE_CHECKING:
    from .._host.command import Runner

COMPLETED = "completed"
_PAUSE = 2
_SITE = (
    "Run kubegpu.nodes.site for this node with a wish for the driver (nvidia_driver_branch): role "
    "nvidia_driver installs the fabric manager in the driver's version and starts it."
)


@dataclass(frozen=True)
class Fabric:
    """What is known of the fabric.

    :param devices: state and status of each GPU; None for one that has no such state.
    :param unit: the state of the fabric manager's unit; None where there is no such unit.
    :param words: the last that it said.
    :param waited: seconds.
    :param needs: what the node needs, by what it has and by what the user says of it.
    """

    devices: tuple[tuple[str, str | None] | None, ...] = ()
    unit: str | None = None
    words: str = ""
    waited: int = 0
    needs: Needs = field(default_factory=Needs)

    @property
    def open(self) -> tuple[str, ...]:
        """Return the states of the GPUs that have not joined."""
        return tuple(
            f"{state} ({status})" if state == COMPLETED else state
            for state, status in filter(None, self.devices)
            if state != COMPLETED or status not in (None, "success")
        )

    @property
    def known(self) -> bool:
        return any(self.devices)


def read_fabric(devices: Sequence[Mapping[str, Any]], unit: str | None) -> Fabric:
    """Return what the fact ``nvml`` says of the fabric."""
    found = (device.get("fabric") for device in devices)
    return Fabric(tuple((one["state"], one["status"]) if one else None for one in found), unit)


def look(
    node: Mapping[str, Any],
    run: Runner,
    devices: Callable[[], Sequence[Mapping[str, Any]]],
    timeout: int,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
    managed: str = "auto",
) -> Fabric | None:
    """Return how the fabric stands after it has had time to come up; None without a fabric.

    :param managed: whether the fabric manager is asked for, as option ``fabric`` says it.
    :param devices: asks the driver again, as the fact ``nvml`` has it.
    """
    if node["nvml"] is None:
        return None
    unit = node["driver"]["services"].get(MANAGER_UNIT)
    fabric = read_fabric(node["nvml"]["devices"], unit)
    wanted = needs(node, Request(fabric=managed))
    if not (fabric.known or wanted.manager):
        return None
    begin = clock()
    while _coming(fabric, wanted.manager) and clock() - begin < timeout:
        sleep(_PAUSE)
        state = run(["systemctl", "is-active", f"{MANAGER_UNIT}.service"], timeout=20)
        said = state.stdout.split()
        fabric = read_fabric(devices(), said[0] if said and unit else unit)
    fabric = replace(fabric, waited=int(clock() - begin), needs=wanted)
    if wanted.manager and fabric.unit not in (None, "active"):
        journal = run(
            ["journalctl", "--unit", MANAGER_UNIT, "--no-pager", "--output=cat", "--lines=20"],
            timeout=20,
        )
        fabric = replace(fabric, words=journal.stdout.strip())
    return fabric


def _coming(fabric: Fabric, managed: bool) -> bool:
    """Return whether waiting can help."""
    if managed and fabric.unit != "active":
        return fabric.unit in ("activating", "reloading")
    return any(one != COMPLETED and not one.startswith(COMPLETED) for one in fabric.open)


def fault(node: Mapping[str, Any], fabric: Fabric | None) -> Finding | None:
    """Return why the fabric cannot be used, if that is so."""
    if node["driver"]["services"].get(IMEX_UNIT) == "failed":
        return Finding(
            "imex_failed",
            "The IMEX service failed: memory of GPUs in other nodes cannot be used.",
            f"systemctl is-active {IMEX_UNIT} says failed",
            f"Look at: journalctl --unit {IMEX_UNIT}; /etc/nvidia-imex/nodes_config.cfg has to be "
            "the same on all nodes of the domain, and the service of the driver's very version.",
        )
    if fabric is None:
        return None
    wanted = fabric.needs
    if wanted.manager and fabric.unit != "active" and (fabric.open or not fabric.known):
        return _not_running(node, fabric, wanted.why)
    if not fabric.open:
        return None
    count = f"{len(fabric.open)} of {len(fabric.devices)} GPUs"
    states = ", ".join(sorted(set(fabric.open))).replace("_", " ")
    cause = (
        f"{count} {'has' if len(fabric.open) == 1 else 'have'} not joined the NVLink fabric: CUDA "
        "programs fail with error 802, system not yet initialized."
    )
    if wanted.manager:
        step = (
            f"Look at: journalctl --unit {MANAGER_UNIT}, /var/log/fabricmanager.log, and dmesg | "
            "grep -i -e SXid -e Xid."
        )
    elif node["nvswitches"]:
        step = (
            "See that the fabric manager runs for this node's NVSwitches: nvidia_driver_fabric is "
            "false, so that this collection leaves it alone."
        )
    else:
        step = (
            "This node has no NVSwitches of its own: see that the fabric manager runs where they "
            "are (the host of this virtual machine, or the rack's switch trays)."
        )
    evidence = f"fabric state: {states}; seen for {fabric.waited} s"
    return Finding("fabric_not_ready", cause, evidence, step)


def _not_running(node: Mapping[str, Any], fabric: Fabric, why: str) -> Finding:
    driver = node["driver"]
    drift = drifted_components(driver["packages"], driver["loaded"] or "")
    seen = [f"systemctl is-active {MANAGER_UNIT} says {fabric.unit or 'that there is none'}"]
    if drift:
        seen.append(describe_drift(drift, driver["loaded"] or "of another version"))
    known = explain(fabric.words)
    if known:
        found = known[0]
        return replace(found, evidence="; ".join([found.evidence, *seen]))
    if fabric.words:
        seen.append(fabric.words.splitlines()[-1])
    state = "is not there" if fabric.unit is None else f"does not run ({fabric.unit})"
    return Finding(
        "fabric_manager_not_running",
        f"NVIDIA's fabric manager {state}, and this node needs it ({why}): CUDA programs fail with "
        "error 802, system not yet initialized.",
        "; ".join(seen),
        _SITE,
    )


def proof(fabric: Fabric | None) -> str:
    """Return what was shown of the fabric."""
    if fabric is None:
        return ""
    shown = []
    if fabric.known:
        joined = sum(one is not None for one in fabric.devices)
        shown.append(f"fabric completed for {joined} GPU{'' if joined == 1 else 's'}")
    if fabric.unit == "active":
        shown.append(f"{MANAGER_UNIT} runs")
    return "".join(f", {one}" for one in shown)
