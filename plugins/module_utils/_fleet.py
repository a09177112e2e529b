# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which nodes take part: small, since each process of a run that has a filter imports it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_VENDORS = ("nvidia", "amd", "intel")


def gpu_vendor(gpus: Sequence[Mapping[str, Any]]) -> str:
    """Return the vendor whose GPUs decide what is done with the node, or ``none``.

    NVIDIA comes first: a server with an NVIDIA card and an on-board Intel chip is an NVIDIA node.
    """
    found = {gpu["vendor"] for gpu in gpus}
    return next((vendor for vendor in _VENDORS if vendor in found), "none")


def hosts_with(
    hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]], key: str | None = None
) -> list[str]:
    """Return the hosts whose variable ``key`` is true; without one, those whose node was read."""
    known = [host for host in hosts if host in hostvars]
    if key is None:
        return [host for host in known if "gpu_node" in hostvars[host].get("ansible_facts", ())]
    return [host for host in known if hostvars[host].get(key) is True]
