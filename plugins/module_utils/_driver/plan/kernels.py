# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernels of a node that need the driver. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._core.versions import version_numbers
from ..._distro.kernel_packages import ELSEWHERE, PROXMOX, kernel_headers


def relevant_kernels(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the kernels that need the driver: the running one, and the one of the next boot.

    In a container the running kernel is its host's: it is not on this disk, and nothing can be
    installed for it.
    """
    kernels = sorted(
        (kernel for kernel in node["kernels"] if kernel.get("on_disk", True)),
        key=lambda kernel: version_numbers(kernel["version"]),
    )
    running = [kernel for kernel in kernels if kernel["running"]]
    return [*running, *(kernel for kernel in kernels[-1:] if kernel not in running)]


def kernels_without_module(node: Mapping[str, Any]) -> tuple[str, ...]:
    """Return those of the running and the newest kernel that have no driver module."""
    return tuple(
        str(kernel["version"]) for kernel in relevant_kernels(node) if not kernel.get("driver")
    )


def running_kernel(node: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the running kernel if it is on the node's own disk."""
    for kernel in relevant_kernels(node):
        if kernel["running"]:
            return kernel
    return None


def missing_headers(node: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a warning for each kernel whose headers are in no archive of the distribution."""
    found = []
    for kernel in relevant_kernels(node):
        headers = kernel_headers(node["os"], kernel["version"])
        if kernel["headers"] or not headers.foreign:
            continue
        step = f"install {headers} from the repository of the kernel"
        if headers.foreign == PROXMOX:
            step = f"enable a repository of Proxmox VE, which has {headers}"
        elif headers.foreign != ELSEWHERE:
            step = f"install the headers of this kernel from {headers.foreign}"
        found.append(
            f"Kernel {kernel['version']} is not one of {node['os']['id']} (it is from "
            f"{headers.foreign}), and its headers are not installed: without them no module is "
            f"built for it. Next step: {step}, or boot a kernel of the distribution."
        )
    return tuple(found)
