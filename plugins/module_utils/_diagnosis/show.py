# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables of a diagnosis, which hosts fail, and the baseline of the next one. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core.errors import InputError
from .._core.message import TITLES, message
from .types import INFO, SEVERITIES, Object

NEVER = "never"


def rows(result: Object) -> list[dict[str, Any]]:
    """Return a row for each host and pod, with the root causes as notes; no notes for remarks.

    What could not be checked comes after the notes of all rows.

    A cluster that was not asked has a row.
    """
    hosts = [
        {
            "node": host,
            "gpus": one["gpus"],
            "verdict": one["verdict"],
            "roots": _shown(result, "host", host),
            "notes": _notes(result, "host", host),
            "notes_last": _unseen(result, host),
        }
        for host, one in result["hosts"].items()
    ]
    pods = [
        {
            "node": f"pod {one['pod']}",
            "gpus": [f"{count} {name}" for name, count in one["asks"].items()],
            "verdict": one["phase"] or "not there",
            "roots": list(dict.fromkeys(one["roots"])),
            "notes": _notes(result, "pod", one["pod"]),
        }
        for one in result["pods"]
    ]
    return [*hosts, *_cluster(result), *pods]


def _cluster(result: Object) -> list[dict[str, Any]]:
    """Return a row for what could not be seen and belongs to no host."""
    notes = _unseen(result, "")
    row: dict[str, Any] = {"node": "cluster", "gpus": None, "verdict": "not read", "roots": []}
    return [{**row, "notes": [], "notes_last": notes}] if notes else []


def _unseen(result: Object, host: str) -> list[str]:
    return [
        f"not checked: {row['what']} ({row['why']})"
        for row in result["unseen"]
        if row["host"] == host
    ]


def _own(result: Object, key: str, name: str) -> list[Object]:
    return [
        one
        for one in result["findings"]
        if one[key] == name and (key == "pod" or not one["pod"]) and one["severity"] != INFO
    ]


def _shown(result: Object, key: str, name: str) -> list[str]:
    return list(dict.fromkeys(one["id"] for one in _own(result, key, name)))


def _notes(result: Object, key: str, name: str) -> list[str]:
    return [_note(one) for one in _own(result, key, name)]


def _note(one: Object) -> str:
    head = f"{one['severity']}: {one['cause']} ({one['id']}, {one['confidence']})"
    shown = {**one, "follows": ", ".join(one["follows"])}
    return message(shown, head=head, names=TITLES, flat=True)


def node_rows(result: Object) -> list[dict[str, Any]]:
    """Return a row for each node that a pod without a node could have."""
    return [
        {
            "pod": pod["pod"],
            "node": node["name"],
            "fits": node["fits"],
            "because": node["because"],
        }
        for pod in result["pods"]
        for node in pod["nodes"]
    ]


def failures(result: Object, fail_on: str, hosts: Sequence[str]) -> dict[str, list[str]]:
    """Return the causes for which a host fails. What no host has is the first host's.

    :param fail_on: the least severity, or ``never``.
    :raises InputError: there is no such severity.
    """
    if fail_on == NEVER:
        return {}
    if fail_on not in SEVERITIES:
        raise InputError(
            f"gpu_diagnose_fail_on: unknown severity {fail_on!r}.",
            next_step=f"Name one of {', '.join((*SEVERITIES, NEVER))}.",
        )
    counted = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    found: dict[str, list[str]] = {}
    for one in result["findings"]:
        if one["severity"] in counted and hosts:
            host = one["host"] if one["host"] in hosts else hosts[0]
            found.setdefault(host, []).append(f"{one['subject']}: {one['id']}")
    return found


def baselines(before: Any) -> dict[str, dict[str, Any]]:
    """Return the GPUs of each host in an earlier result, as ``gpu_node_health`` takes them.

    What is no such result gives none: it may be of another release, or of another program.
    """
    hosts = before.get("hosts") if isinstance(before, Mapping) else None
    found = {}
    for host, one in hosts.items() if isinstance(hosts, Mapping) else ():
        devices = one.get("devices") if isinstance(one, Mapping) else None
        gpus = [
            dict(device)
            for device in (devices if isinstance(devices, (list, tuple)) else ())
            if isinstance(device, Mapping) and isinstance(device.get("address"), str)
        ]
        if gpus:
            found[str(host)] = {"findings": [], "gpus": gpus}
    return found
