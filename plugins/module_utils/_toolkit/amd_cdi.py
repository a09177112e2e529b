# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CDI specification of AMD GPUs: which devices it names. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .amd_data import CDI_KIND

#: Begins the key of the file in the node's record.
KEY = "cdi_specification:amd:"
_RENDER = "/dev/dri/renderD"


@dataclass(frozen=True)
class AmdSpecification:
    """A specification. ``devices``: names in it; ``nodes``: render nodes that it names."""

    devices: tuple[str, ...]
    nodes: tuple[str, ...]


def read_amd_specification(text: str | None) -> AmdSpecification | None:
    """Return the specification of a text; None if it is none of AMD GPUs."""
    try:
        data = json.loads(text or "")
        if data["kind"] != CDI_KIND:
            return None
        devices = [(str(one["name"]), one["containerEdits"]) for one in data["devices"]]
        paths = {
            str(node["path"]) for _name, edits in devices for node in edits.get("deviceNodes") or ()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return AmdSpecification(
        tuple(name for name, _edits in devices),
        tuple(sorted(path for path in paths if path.startswith(_RENDER))),
    )


def describe(nodes: Sequence[str] | None) -> str:
    """Return lines for a diff, by the devices for which a specification is made."""
    if nodes is None:
        return ""
    return "".join(f"{line}\n" for line in (CDI_KIND, *nodes))


def made_for(details: Mapping[str, Any] | None) -> list[str] | None:
    """Return the render nodes in the details of a file's record."""
    nodes = (details or {}).get("nodes")
    return [str(one) for one in nodes] if isinstance(nodes, list) else None
