# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The finding for a driver whose kernel module a setting keeps from being loaded. Pure.

Apart from drm.py: the facts of a node need it only where a module is blocked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core.finding import Finding
from .._hardware.module_blocks import (
    MODULES,
    blocks_of,
    describe_blocks,
    stops_by_name,
    unblock_step,
)
from .._hardware.vendors import NAMES

# Who else writes such settings, and what that means.
_WRITERS = {
    "nvidia": "prime-select intel of Ubuntu's nvidia-prime writes such a file.",
    "amd": "AMD's GPU operator writes such a file where it installs the driver itself.",
    "intel": "",
}


def module_blocked(vendor: str, blocks: Sequence[Mapping[str, str]], modules: str) -> Finding:
    """Return the finding for a vendor's driver that is not loaded.

    :param modules: the names of the modules that are blocked.
    """
    by_name = stops_by_name(blocks)
    how = "modprobe refuses it as well" if by_name else "nothing loads it at boot"
    steps = [unblock_step(blocks), _WRITERS[vendor]]
    if not by_name:
        steps.append(f"Until then: modprobe {modules.split(maxsplit=1)[0]}.")
    return Finding(
        "module_blocked",
        f"{NAMES[vendor]}'s driver is not loaded: its kernel module ({modules}) is blocked, {how}.",
        describe_blocks(blocks),
        " ".join(filter(None, steps)),
        {"vendor": vendor, "module": modules.split(maxsplit=1)[0]},
    )


def find_blocked(node: Mapping[str, Any], vendor: str) -> Finding | None:
    """Return what blocks the modules of a vendor whose driver is not loaded.

    :param node: the fact ``gpu_node``, or a part of it with ``blocked_modules``.
    """
    blocks = blocks_of(node, MODULES[vendor])
    if not blocks:
        return None
    names = [name for name in MODULES[vendor] if blocks_of(node, [name])]
    return module_blocked(vendor, blocks, " and ".join(names))
