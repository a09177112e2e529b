# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GPUs with NVLink beyond one board, and the names of the components they need. Data, not code.

Sources as in ``_driver/plan/fabric.py``. Separate from it because the facts need only this, and a
node compiles each file that is sent.
"""

from __future__ import annotations

import re

# GPUs on a board whose NVSwitches are no PCI functions of the node: they are reached through
# ConnectX-7 bridges, by the subnet manager that the fabric manager starts.
BRIDGED_BOARDS = {
    "2901": "HGX B200",
    "2909": "HGX B200",
    "3182": "HGX B300",
}
# GPUs of a rack's compute tray: the fabric manager runs in the rack's switch trays.
RACKS = {
    "2941": "GB200 NVL72",
    "31c2": "GB300 NVL72",
    "31c3": "GB300 NVL72",
}

_OF_FABRIC = re.compile(
    r"(?:nvidia-fabric-?manager|nvidia-imex|libnvidia-nscq|libnvsdm)(?:-(?P<branch>\d{3}))?(?::\w+)?\Z"
)


def is_component(name: str) -> bool:
    """Return whether a package is an NVLink component, which must have the driver's version."""
    return bool(_OF_FABRIC.match(name))


def branch_in_name(name: str) -> str | None:
    """Return the driver's branch in the name of a component; None without one."""
    match = _OF_FABRIC.match(name)
    return match["branch"] if match else None
