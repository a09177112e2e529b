# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The initial RAM disks of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._core.errors import KubegpuError
from ..._distro.kernel_packages import initramfs_tools
from ..._host.command import Runner

if TYPE_CHECKING:
    from ..._host.reader import NodeReader

_INITRAMFS_TIMEOUT = 1800
_FOLDERS = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")


def rebuild_initramfs(run: Runner, reader: NodeReader, family: str | None = None) -> str:
    """Rebuild the initial RAM disks of all kernels; return why not, or an empty text.

    :param family: the distribution's family, whose own program is preferred.
    :raises KubegpuError: the program failed.
    """
    for program, *arguments in initramfs_tools(family):
        if reader.first([f"{folder}/{program}" for folder in _FOLDERS]) is None:
            continue
        answer = run([program, *arguments], timeout=_INITRAMFS_TIMEOUT)
        if not answer.ok:
            raise KubegpuError(
                f"The initial RAM disk cannot be rebuilt: {program} failed.",
                evidence=answer.last_output(),
                next_step="Fix what it says (usually a full /boot), then run again.",
            )
        return ""
    return "no program that builds an initial RAM disk is on this node"
