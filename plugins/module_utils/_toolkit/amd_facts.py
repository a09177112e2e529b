# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""AMD's container toolkit of a node: the fact ``amd_container_toolkit``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._packages import installed
from .._packages.installed import Package
from .amd_cdi import KEY, made_for, read_amd_specification
from .amd_data import PACKAGE, PACKAGE_SET

if TYPE_CHECKING:
    from .._host.reader import NodeReader

# amd-ctk writes the first one; the second is the default of its library.
_FOLDERS = ("/etc/cdi", "/var/run/cdi")
_DEVICES = "/dev/dri"


def read_amd_toolkit(
    reader: NodeReader,
    packages: Sequence[Package],
    record: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the fact.

    :param record: the node's record; None if it cannot be read.
    """
    ours = installed.select(packages, (PACKAGE,))
    values: Mapping[str, Any] = (record or {}).get("values") or {}
    files: Mapping[str, Any] = (record or {}).get("files") or {}
    return {
        "version": installed.versions(ours).get(PACKAGE),
        "held": installed.held(ours),
        "cdi_spec": _specification(reader, files),
        "render_nodes": [
            f"{_DEVICES}/{name}"
            for name in sorted(reader.list_dir(_DEVICES))
            if name.startswith("renderD")
        ],
        "interrupted": [
            str(one["path"]) for one in values.get(f"package_set_preserved:{PACKAGE_SET}") or ()
        ],
    }


def _specification(reader: NodeReader, files: Mapping[str, Any]) -> dict[str, Any] | None:
    for folder in _FOLDERS:
        path = f"{folder}/amd.json"
        found = read_amd_specification(reader.read_text(path))
        if found is not None:
            recorded = files.get(f"{KEY}{path}")
            details = recorded.get("details") if isinstance(recorded, Mapping) else None
            return {
                "path": path,
                "devices": list(found.devices),
                "nodes": list(found.nodes),
                "made_for": made_for(details if isinstance(details, Mapping) else None),
            }
    return None
