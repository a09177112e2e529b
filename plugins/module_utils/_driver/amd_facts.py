# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""AMD's driver of a node: the fact ``amd_driver``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._packages import installed
from .._packages.installed import Package
from .amd_data import MODULE, PACKAGE_SET, PACKAGES
from .facts import read_dkms

if TYPE_CHECKING:
    from .._host.reader import NodeReader

# As the package's version without the number of the release: 6.16.6-2238411.24.04.
_DKMS_VERSION = r"\d[\w.+~-]*"


def read_amd_driver(
    reader: NodeReader, packages: Sequence[Package], record: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the fact.

    :param record: the node's record; None if it cannot be read.
    """
    ours = installed.select(packages, PACKAGES)
    values: Mapping[str, Any] = (record or {}).get("values") or {}
    managed = f"package_set:{PACKAGE_SET}" in values
    return {
        "packages": installed.versions(ours),
        "held": installed.held(ours),
        "dkms": read_dkms(reader, MODULE, _DKMS_VERSION),
        "pending_reboot": bool(ours or managed) and _is_other(reader),
        "managed": managed,
    }


def _is_other(reader: NodeReader) -> bool:
    """Return whether the loaded module is not the one on the disk.

    Releases can have one version; the checksum of the sources differs.
    """
    loaded = reader.read_line(f"/sys/module/{MODULE}/srcversion")
    if not loaded:
        return False
    answer = reader.run(["modinfo", "--field", "srcversion", MODULE])
    on_disk = answer.stdout.strip() if answer is not None and answer.ok else ""
    return bool(on_disk) and on_disk != loaded
