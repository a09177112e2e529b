# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of the teardown table: what was restored on a node, in the words of the plan table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.steps import change_text

from .drivers import driver_pending, pending_text
from .nodes import describe_gpus, unknown_row
from .steps import CONFIGURATION, NEW_CONFIGURATION, result_steps, row_step

Result = Mapping[str, Any]
Step = dict[str, str]

# What the tasks of a teardown register, in their order: the variable, and of what it is the result:
# part, step, action, and the name of what is removed. No role reads them.
TASKS: tuple[tuple[str, str, str, str, str], ...] = (
    ("gpu_monitoring_removed_exporter", "monitoring", "exporter", "remove", ""),
    ("gpu_monitoring_removed_packages", "monitoring", "packages", "restore", ""),
    ("gpu_monitoring_removed_repository", "monitoring", "repository", "remove", ""),
    ("amd_container_toolkit_removed_docker", "toolkit", "docker", "remove runtime", ""),
    ("amd_container_toolkit_removed_cdi", "AMD toolkit", "CDI specification", "remove", ""),
    ("amd_container_toolkit_removed_packages", "AMD toolkit", "packages", "restore", ""),
    ("amd_container_toolkit_removed_repository", "AMD toolkit", "repository", "remove", ""),
    ("amd_driver_removed_packages", "AMD driver", "packages", "restore", ""),
    ("amd_driver_removed_repository", "AMD driver", "repository", "remove", ""),
    ("nvidia_container_toolkit_removed_docker", "toolkit", "docker", "remove runtime", ""),
    ("nvidia_container_toolkit_removed_containerd", "toolkit", "containerd", "remove runtime", ""),
    ("nvidia_container_toolkit_removed_crio", "toolkit", "crio", "remove runtime", ""),
    ("nvidia_container_toolkit_removed_cdi", "toolkit", "cdi", "remove", "specification"),
    ("nvidia_container_toolkit_removed_config", "toolkit", "config", "restore", ""),
    ("nvidia_container_toolkit_removed_packages", "toolkit", "packages", "restore", ""),
    ("nvidia_container_toolkit_removed_repository", "toolkit", "repository", "remove", ""),
    ("cuda_toolkit_removed", "cuda", "packages", "restore", ""),
    ("cuda_toolkit_removed_repository", "cuda", "repository", "remove", ""),
    ("nvidia_mig_removed", "mig", "layout", "restore", ""),
    ("nvidia_driver_result", "driver", "packages", "remove", ""),
    ("nvidia_driver_removed_repositories", "driver", "repository", "remove", ""),
    ("gpu_acceptance_removed", "acceptance", "result", "delete", ""),
)  # fmt: skip
_ENGINES = ("docker", "containerd", "crio")
# Of a module that gives no reason.
_WHY = "this collection set it up"
_REBOOTS = ("nvidia_driver_result", "nvidia_mig_removed")
_NOTHING = "nothing of this collection is on it"


def teardown_row(
    name: str,
    variables: Mapping[str, Any],
    node: Mapping[str, Any] | None,
    reason: str = "",
    *,
    waits: bool = False,
) -> dict[str, Any]:
    """Return the row of one node: what was restored, or in check mode would be, and what remains.

    :param variables: the variables of the host, with what the tasks registered.
    :param node: the fact ``gpu_node``; None if the node was not read.
    :param reason: why the node is not restored, or not completely; empty if it is.
    :param waits: whether its batch was not started.
    """
    steps = list(_steps(variables))
    row = unknown_row(name, reason or _NOTHING)
    return {
        **row,
        "action": "unknown" if reason else "change" if steps else "none",
        "gpus": describe_gpus(node["gpus"]) if node else [],
        "steps": steps,
        "changes": [change_text(step) for step in steps],
        "why": [step["reason"] for step in steps] or [_see(waits=waits) if reason else _NOTHING],
        "open": [*([reason] if reason else []), *_open(variables)],
    }


def _see(*, waits: bool) -> str:
    return "not started, see below" if waits else "see below"


def _steps(variables: Mapping[str, Any]) -> Iterator[Step]:
    for variable, part, step, action, detail in TASKS:
        result = variables.get(variable) or {}
        if result.get("failed") or not result.get("changed"):
            continue
        if step in _ENGINES:
            yield from _of_runtime(part, step, action, detail, result)
            continue
        planned = (result.get("plan") or {}).get("steps")
        own = row_step(step, action, detail or _detail(step, result), _why(result))
        yield from ({"part": part, **one} for one in planned or (own,))


def _of_runtime(part: str, engine: str, action: str, detail: str, result: Result) -> Iterator[Step]:
    for one in result_steps(engine, result):
        if one["detail"] == CONFIGURATION:
            yield {"part": part, **row_step(engine, action, detail, _why(result))}
        else:
            yield {"part": part, **one}


def _why(result: Result) -> str:
    return str(next(iter(result.get("reasons") or ()), _WHY)).rstrip(".")


def _detail(step: str, result: Result) -> str:
    """Return the packages that are removed."""
    if step != "packages":
        return ""
    gone = [name for name in result.get("previous") or {} if name not in result.get("packages", {})]
    return ", ".join(gone)


def _open(variables: Mapping[str, Any]) -> list[str]:
    """Return the reboot and the restarts that remain to be done."""
    found = []
    for variable in _REBOOTS:
        result = variables.get(variable) or {}
        rebooted = (variables.get("nvidia_driver_removed_reboot") or {}).get("rebooted")
        if result.get("changed") and not rebooted:
            found += [pending_text(one) for one in driver_pending(None, result)]
    for variable, _part, engine, *_what in TASKS:
        result = variables.get(variable) or {}
        if engine in _ENGINES and result.get("restart_required"):
            found.append(f"restart {engine}: {result.get('restart_reason') or NEW_CONFIGURATION}")
    return list(dict.fromkeys(found))
