# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Words that all forms of the report share. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
