# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One node as a row of the plan table: what it is, what is there, what would change and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_VENDORS = ("nvidia", "amd", "intel")
_NEW_CONFIGURATION = "the running daemon does not know the new configuration"
_NOT_READ = "the node could not be read"


def gpu_vendor(gpus: Sequence[Mapping[str, Any]]) -> str:
    """Return the vendor whose GPUs decide what is done with the node, or ``none``.

    NVIDIA comes first: a server with an NVIDIA card and an on-board Intel chip is an NVIDIA node.
    """
    found = {gpu["vendor"] for gpu in gpus}
    return next((vendor for vendor in _VENDORS if vendor in found), "none")


def describe_gpus(gpus: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the GPUs as people say them: ``4x Tesla V100-SXM2-16GB (volta)``."""
    counted: dict[str, int] = {}
    for gpu in gpus:
        name = gpu["product"] or f"{gpu['vendor']} {gpu['device_id']}"
        generation = gpu["generation"] or "unknown"
        guest = ", vGPU guest" if (gpu.get("vgpu") or {}).get("guest") else ""
        text = f"{name} ({generation}{guest})"
        counted[text] = counted.get(text, 0) + 1
    return [f"{count}x {text}" for text, count in counted.items()]


def node_plan(
    name: str,
    node: Mapping[str, Any] | None,
    toolkit: Mapping[str, Any] | None = None,
    results: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return the row of one node, with lists where a person reads one item a line.

    :param name: the inventory name.
    :param node: the facts ``gpu_node``, or None where the node could not be read.
    :param toolkit: the plan of :func:`plan_toolkit` as JSON values, where there is one.
    :param results: answers of ``containerd_runtime`` and ``docker_runtime`` in check mode, by
        engine; they know more than the facts and replace the plan's own step for that engine.
    """
    if not node:
        return _row(name, action="unknown", why=[_NOT_READ])
    present = _present(node)
    row = _row(name, node=node, gpus=describe_gpus(node["gpus"]), present=present)
    if gpu_vendor(node["gpus"]) == "none":
        return {
            **row,
            "action": "none",
            "changes": [],
            "why": ["no GPU: nothing to do"],
        }
    if toolkit is None:
        return {
            **row,
            "action": "none",
            "why": ["no NVIDIA GPU: this release prepares NVIDIA nodes"],
        }
    if toolkit["action"] == "refuse":
        return {**row, "action": "refuse", "why": list(toolkit["reasons"])}
    asked = results or {}
    steps = [step for step in toolkit["steps"] if step["step"] not in asked]
    for engine, result in asked.items():
        known = _result_steps(engine, result)
        # What follows from installing the toolkit a module cannot know before it is there.
        known += [
            step
            for step in toolkit["steps"]
            if step["step"] == engine
            and step["action"] == "restart"
            and not any(one["action"] == "restart" for one in known)
        ]
        steps.extend(known)
    return {
        **row,
        "action": "change" if steps else "none",
        "steps": steps,
        "changes": [_change_words(step) for step in steps],
        "why": [step["reason"] for step in steps] or ["all is as wished"],
        "warnings": [
            *toolkit["warnings"],
            *(problem["cause"] for problem in node["problems"]),
        ],
    }


def node_result(
    name: str, toolkit: Mapping[str, Any], results: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the row of one node after a run.

    :param name: the inventory name.
    :param toolkit: the plan that was carried out.
    :param results: what ``containerd_runtime`` and ``docker_runtime`` answered, by engine.
    """
    still_open = [
        f"restart {engine}: {result.get('restart_reason') or 'its daemon is older than its file'}"
        for engine, result in results.items()
        if result.get("restart_required")
    ]
    return {
        "node": name,
        "toolkit": toolkit["version"],
        "containerd": _engine_words(results.get("containerd")),
        "docker": _engine_words(results.get("docker")),
        "open": [*still_open, *toolkit["warnings"]],
    }


def fleet_rows(
    hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]], key: str
) -> list[dict[str, Any]]:
    """Return each host's row, kept under ``key``; one that failed before it had one says so."""
    rows: list[dict[str, Any]] = []
    for host in hosts:
        row = hostvars[host].get(key)
        rows.append(dict(row) if row else _row(host, None, action="unknown", why=[_NOT_READ]))
    return rows


def _engine_words(result: Mapping[str, Any] | None) -> list[str]:
    if result is None:
        return []
    handlers = result.get("handlers") or result.get("runtimes") or {}
    default = result.get("default_runtime")
    return [
        ", ".join(f"{name} (default)" if name == default else str(name) for name in handlers)
        or "no handlers",
        "changed" if result.get("changed") else "unchanged",
    ]


def _row(
    name: str,
    node: Mapping[str, Any] | None = None,
    gpus: Sequence[str] = (),
    present: Sequence[str] = (),
    action: str = "none",
    why: Sequence[str] = (),
) -> dict[str, Any]:
    system = "" if node is None else f"{node['os']['id']} {node['os']['version'] or ''}".strip()
    return {
        "node": name,
        "os": system,
        "gpus": list(gpus),
        "present": list(present),
        "action": action,
        "steps": [],
        "changes": [],
        "why": list(why),
        "warnings": [],
    }


def _present(node: Mapping[str, Any]) -> list[str]:
    runtimes = node["runtimes"]
    found = [
        f"{name} {runtimes[name]['version']}"
        for name in ("containerd", "docker", "crio")
        if runtimes[name]
    ]
    if node["driver"]["loaded"]:
        found.insert(0, f"driver {node['driver']['loaded']}")
    if node["container_toolkit"]["version"]:
        found.append(f"toolkit {node['container_toolkit']['version']}")
    return found


def _result_steps(engine: str, result: Mapping[str, Any]) -> list[dict[str, str]]:
    if result.get("failed"):
        message = str(result.get("msg", "")).splitlines()
        return [_step(engine, "fail", "", message[0] if message else "")]
    steps = []
    if result.get("changed"):
        # The first reason is for the change; the others are remarks of the module's own report.
        reason = next(iter(result.get("reasons") or ()), "the configuration differs")
        steps.append(_step(engine, "configure", "", reason))
    if result.get("reloaded"):
        steps.append(_step(engine, "reload", "", _NEW_CONFIGURATION))
    if result.get("restarted"):
        reason = str(result.get("restart_reason") or _NEW_CONFIGURATION)
        steps.append(_step(engine, "restart", "", reason))
    elif result.get("restart_required"):
        reason = str(result.get("restart_reason") or _NEW_CONFIGURATION)
        steps.append(_step(engine, "wait for a restart", "", reason))
    return steps


def _change_words(step: Mapping[str, str]) -> str:
    # An address is long and stands in the JSON.
    detail = "" if step["step"] == "repository" else step["detail"]
    return f"{step['step']}: {step['action']} {detail}".rstrip()


def _step(step: str, action: str, detail: str, reason: str) -> dict[str, str]:
    return {"step": step, "action": action, "detail": detail, "reason": reason}
