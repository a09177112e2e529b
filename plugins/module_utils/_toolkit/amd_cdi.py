# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CDI specification of AMD GPUs: which devices it names, and when it has to be made. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._core.errors import KubegpuError
from .amd_data import CDI_KIND

#: Begins the key of the file in the node's record.
KEY = "cdi_specification:amd:"
_RENDER = "/dev/dri/renderD"
_ALL = "all"


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


def stale(
    named: Sequence[str] | None, made_for: Sequence[str] | None, nodes: Sequence[str]
) -> str | None:
    """Return why the specification has to be made again; None if it fits.

    AMD's program leaves out devices that cannot compute, so that the devices of the node are
    compared with those that were there when it was made.

    :param named: the render nodes that it names; None: there is no specification.
    :param made_for: the render nodes that were there when this collection made it; None if another
        program did.
    :param nodes: the render nodes that are there.
    """
    if named is None:
        return "no CDI specification exists"
    gone = sorted(set(named) - set(nodes))
    if gone:
        return f"it names {', '.join(gone)}, which {'is' if len(gone) == 1 else 'are'} not there"
    if made_for is not None and list(made_for) != list(nodes):
        return f"it was made for {', '.join(made_for) or 'no device'}"
    return None


def check_generated(text: str | None, output: str) -> AmdSpecification:
    """Return the specification that ``amd-ctk cdi generate`` made.

    :param output: its last lines, for the evidence.
    :raises KubegpuError: it is no specification, or has no GPU.
    """
    made = read_amd_specification(text)
    if made is None:
        raise KubegpuError(
            "amd-ctk cdi generate made no CDI specification.",
            evidence=output,
            next_step="Run amd-ctk --debug cdi generate on the node; amdgpu has to be loaded.",
        )
    if not [name for name in made.devices if name != _ALL]:
        raise KubegpuError(
            "The CDI specification that amd-ctk made has no GPU.",
            evidence=output,
            next_step="amd-ctk knows the GPUs of /sys/class/kfd/kfd/topology/nodes alone: look at "
            "dmesg | grep -e amdgpu -e kfd for why the GPU is not there.",
        )
    return made


def describe(nodes: Sequence[str] | None) -> str:
    """Return lines for a diff, by the devices for which a specification is made."""
    if nodes is None:
        return ""
    return "".join(f"{line}\n" for line in (CDI_KIND, *nodes))


def made_for(details: Mapping[str, Any] | None) -> list[str] | None:
    """Return the render nodes in the details of a file's record."""
    nodes = (details or {}).get("nodes")
    return [str(one) for one in nodes] if isinstance(nodes, list) else None
