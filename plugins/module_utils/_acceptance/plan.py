# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide whether a node is tested, and with what. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._core.finding import Finding
from .._core.printable import printable
from .._known_faults.predicates import deciding
from .data import (
    BANDWIDTH_SECONDS,
    BURN_SECONDS,
    DCGM,
    DIAG_LEVELS,
    DIAG_SECONDS,
    FROM_LEVEL,
    GPU_BURN,
    LEVELS,
    TITLES,
    TOOLS,
    minima,
)
from .expected import devices, gpu_set, product
from .types import NEVER, NOTHING, REFUSE, REQUIRED, RUN, SKIP, Request

Object = Mapping[str, Any]
_RETRY = "Run accept again."


@dataclass(frozen=True)
class Host:
    """What is known of a host.

    :param facts: the fact ``gpu_node``.
    :param looked: the result of the module's step ``look``.
    :param drain: the row of the drain that was tried in check mode; None if that was not asked.
    :param failure: why the host cannot be planned.
    """

    name: str
    facts: Object
    looked: Object = field(default_factory=dict)
    drain: Object | None = None
    failure: str = ""


@dataclass(frozen=True)
class HostPlan:
    """What is done with a host.

    :param tests: the module's options of each test.
    :param missing: programs that the level would run and the node does not have.
    :param leave: the pods that leave the node.
    :param drain: whether what uses its GPUs leaves it, also what came after the plan.
    """

    action: str
    level: str
    reason: str = ""
    tests: tuple[Mapping[str, Any], ...] = ()
    missing: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()
    drain: bool = False
    findings: tuple[Finding, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "action": self.action,
            "level": self.level,
            "reason": self.reason,
            "tests": [dict(one) for one in self.tests],
            "missing": list(self.missing),
            "leave": list(self.leave),
            "drain": self.drain,
            "findings": [one.as_problem() for one in self.findings],
        }


def plan_host(request: Request, host: Host) -> HostPlan:
    """Return what is done with a host, and why."""
    reason = "" if host.failure else _why_nothing(request, host.facts)
    if reason:
        return HostPlan(NOTHING, request.level, reason)
    leave = _leaves(host.drain)
    findings = tuple(_refusals(request, host, leave))
    tests, missing = _tests(request, host)
    if not findings:
        findings = tuple(_no_tools(request, tests, missing))
    if findings:
        return HostPlan(REFUSE, request.level, missing=missing, leave=leave, findings=findings)
    return HostPlan(
        RUN,
        request.level,
        _why(request, host.facts),
        tests=tuple(tests),
        missing=missing,
        leave=leave,
        drain=request.drain,
    )


def plan_without_gpus(expected: int, *, others: bool) -> HostPlan:
    """Return the plan of a node that was read and has no NVIDIA GPU.

    :param expected: how many GPUs are expected of it; 0 if that is not said.
    :param others: whether nodes with NVIDIA GPUs are in the run. A run that tests none must not
        pass.
    """
    step = (
        "Check the card, its power and the PCI bus (lspci -d 10de:), in a virtual machine what the "
        "host passes through to it, or "
    )
    if expected:
        finding = Finding(
            "gpu_count_differs",
            f"The node has no NVIDIA GPU, and {expected} are expected: not tested.",
            "",
            f"{step}correct gpu_acceptance_expect.gpus.",
        )
    elif not others:
        finding = Finding(
            "no_gpu",
            "The node has no NVIDIA GPU, nor has any other host of this run: nothing was tested.",
            "",
            f"{step}run accept with the hosts that have GPUs.",
        )
    else:
        finding = Finding("no_gpu", "The node has no NVIDIA GPU.")
        return HostPlan(SKIP, "", findings=(finding,))
    return HostPlan(REFUSE, "", findings=(finding,))


def _why_nothing(request: Request, facts: Object) -> str:
    """Return why the node needs no test; empty if it does."""
    done = facts.get("acceptance")
    if request.again or not done or _what_differs(request, facts, done):
        return ""
    return f"accepted {done['at']} at the level {done['level']}, with driver {done['driver']}"


def _what_differs(request: Request, facts: Object, done: Object) -> str:
    """Return why the last result does not stand; empty if it does."""
    driver = str((facts.get("driver") or {}).get("loaded") or "")
    # A level that this release does not know is not above any other.
    rank = LEVELS.index(done["level"]) if done["level"] in LEVELS else -1
    if not done["passed"]:
        return f"it failed {done['at']}"
    if rank < LEVELS.index(request.level):
        return f"it was accepted at the level {done['level']} only"
    if driver != done["driver"]:
        return f"its driver was {done['driver']}, and is {driver or 'not loaded'}"
    if gpu_set(facts) != done["gpus"]:
        return "its GPUs are others"
    return ""


def _why(request: Request, facts: Object) -> str:
    done = facts.get("acceptance")
    if not done:
        return "it was not accepted yet"
    return _what_differs(request, facts, done) or "gpu_acceptance_again is set"


def _leaves(row: Object | None) -> tuple[str, ...]:
    """Return the pods that use GPUs: those that would leave, and those that may not."""
    seen = row or {}
    found = [*(seen.get("evicted") or ()), *(seen.get("waiting") or ())]
    names = [f"{one['namespace']}/{one['name']}" for one in found]
    names += [str(one["pod"]) for one in seen.get("findings") or () if one.get("pod")]
    return tuple(dict.fromkeys(names))


def _refusals(request: Request, host: Host, leave: Sequence[str]) -> list[Finding]:
    """Return why the node cannot be tested now."""
    if host.failure:
        return [not_looked_at(host.failure)]
    found = []
    if not (host.facts.get("driver") or {}).get("loaded") or not devices(host.facts):
        found.append(
            Finding(
                "driver_not_ready",
                "NVIDIA's driver is not loaded, or does not answer.",
                "",
                "Run the playbook site first, or diagnose to see why.",
            )
        )
    if any(one.get("mig_mode") == "enabled" for one in devices(host.facts)):
        found.append(
            Finding(
                "mig_is_on",
                "MIG is enabled, and the tests need whole GPUs.",
                "",
                "Run site with --skip-tags mig, then accept, then site, which partitions it; take "
                "a layout that is there away first.",
            )
        )
    used = host.looked.get("users") or ()
    if not request.drain and (used or leave):
        found.append(in_use([*used, *leave]))
    # Why pods cannot be evicted matters only where they are to be.
    asked = request.drain or not leave
    for one in ((host.drain or {}).get("findings") or ()) if asked else ():
        found.append(
            Finding(
                str(one["code"]),
                str(one["cause"]),
                str(one.get("evidence") or ""),
                str(one.get("next_step") or ""),
            )
        )
    return found


def not_looked_at(why: str) -> Finding:
    """Return the finding of a node that did not answer."""
    return Finding("not_looked_at", printable(why), "", _RETRY)


def in_use(users: Sequence[Any]) -> Finding:
    """Return the finding of a node with work on its GPUs."""
    return Finding(
        "gpus_in_use",
        "Programs use the GPUs, and the tests need all of them.",
        printable("; ".join(map(str, users))),
        "Wait until they end, or set gpu_acceptance_drain: true.",
    )


def _tests(request: Request, host: Host) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Return the tests that the level has and the node can run, and the missing programs."""
    programs = host.looked.get("programs") or {}
    tests, missing = [], []
    for tool in TOOLS:
        wanted = request.wants(tool)
        if wanted == NEVER or LEVELS.index(request.level) < LEVELS.index(FROM_LEVEL[tool]):
            continue
        if not programs.get(tool):
            missing.append(tool)
            continue
        tests.append(
            {
                "test": tool,
                "program": str(programs[tool]),
                "diag_level": DIAG_LEVELS[request.level],
                "minutes": request.burn_minutes,
                "timeout": request.timeout or _seconds(request, tool),
                "thresholds": _limits(request, host.facts),
                "gpus": len(devices(host.facts)),
                "facts": deciding(host.facts),
            }
        )
    return tests, tuple(missing)


def _seconds(request: Request, tool: str) -> int:
    if tool == DCGM:
        return DIAG_SECONDS[DIAG_LEVELS[request.level]]
    return request.burn_minutes * 60 + BURN_SECONDS if tool == GPU_BURN else BANDWIDTH_SECONDS


def _limits(request: Request, facts: Object) -> dict[str, float]:
    known = {**minima(product(facts)), **request.thresholds}
    return {name: float(value) for name, value in known.items() if value is not None}


def _no_tools(request: Request, tests: Sequence[Object], missing: Sequence[str]) -> list[Finding]:
    """Return the programs without which the level means nothing."""
    found = [
        Finding(
            "tool_missing",
            f"{TITLES[tool]} is not installed on the node, and gpu_acceptance_{tool} requires it.",
            "",
            f"Install it, or set gpu_acceptance_{tool}: auto.",
        )
        for tool in missing
        if request.wants(tool) == REQUIRED
    ]
    if not tests and request.level != LEVELS[0] and not found:
        found.append(
            Finding(
                "no_tool",
                f"The node has no program for the level {request.level}.",
                ", ".join(TITLES[tool] for tool in missing),
                "Install DCGM (gpu_monitoring_enabled, or NVIDIA's datacenter-gpu-manager-4), or "
                "set gpu_acceptance_level: quick, which needs no program.",
            )
        )
    return found
