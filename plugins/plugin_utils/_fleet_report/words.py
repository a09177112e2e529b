# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Words that all forms of the report share. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

STATE_WORDS: Mapping[str, str] = {
    "failed": "Failed",
    "unknown": "Not read",
    "partly": "Read in part",
    "attention": "Attention",
    "ready": "Ready",
    "no_gpu": "No GPU",
}
# Names that are shown of many.
_SHOWN = 12
_RUNTIMES = ("containerd", "Docker", "CRI-O")


def by_node(changes: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """Return the texts of changes by node."""
    found: dict[str, list[str]] = {}
    for one in changes:
        found.setdefault(one["node"], []).append(one["text"])
    return list(found.items())


def limited(names: Sequence[str]) -> str:
    """Return the names, and of many how many more there are."""
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


@dataclass(frozen=True)
class Inventory:
    """The table of nodes.

    :param columns: title and cells of each column that says something.
    :param common: what all nodes have alike, by the title of the column that is left out.
    """

    columns: tuple[tuple[str, tuple[str, ...]], ...]
    common: Mapping[str, str]


def inventory(nodes: Sequence[Mapping[str, Any]]) -> Inventory:
    """Return the table of nodes without columns that are empty or alike in all rows."""
    rows = [_cells(node) for node in nodes]
    columns, common = [], {}
    for title in rows[0] if rows else ():
        cells = tuple(row[title] for row in rows)
        if title != "GPUs" and len(rows) > 1 and cells[0] and len(set(cells)) == 1:
            common[title] = cells[0]
        elif any(cells):
            columns.append((title, cells))
    return Inventory(tuple(columns), common)


def _cells(node: Mapping[str, Any]) -> dict[str, str]:
    versions, place = node["versions"], node["place"]
    driver = (versions.get("Driver", ""), versions.get("Kernel module", ""))
    runtimes = [f"{name} {versions[name]}" for name in _RUNTIMES if name in versions]
    return {
        "System": node["system"],
        "GPUs": node["product"],
        "Driver": " ".join(filter(None, driver)),
        "CUDA": versions.get("CUDA", ""),
        "Toolkit": versions.get("Container toolkit", ""),
        "Runtimes": ", ".join(runtimes),
        "Kernel": versions.get("Kernel", ""),
        "In the cluster": f"{place['node']}: {resources(place)}" if place else "",
    }


def alike(common: Mapping[str, str]) -> str:
    """Return what all nodes have alike as one text; empty for nothing."""
    return "; ".join(f"{title}: {value}" for title, value in common.items())


def nothing(report: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each part of the report that has nothing to show."""
    previous, found = report["previous"], []
    if not report["actions"]:
        found.append("Nothing to do.")
    if not previous["compared"]:
        found.append(previous["why"])
    elif not report["changes"]:
        found.append(f"Nothing has changed since the report of {previous['generated']}.")
    if not report["drift"]:
        found.append("No configuration drift: nodes with the same GPUs and system are alike.")
    return found


def resources(place: Mapping[str, Any] | None) -> str:
    """Return the GPUs that a node offers in its cluster: those in use, and all."""
    if not place:
        return ""
    texts = [
        f"{one['name']} {one['allocated']} of {one['allocatable']} in use"
        + (f" ({one['capacity']} there)" if one["capacity"] != one["allocatable"] else "")
        for one in place["resources"]
    ]
    if place["cordoned"]:
        texts.append("cordoned")
    if not place["ready"]:
        texts.append("not ready")
    return ", ".join(texts)
