# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reset a GPU whose MIG mode is pending.

A loaded nvidia_drm holds each GPU, also without a user of its own, so that no GPU is reset ("In use
by another client", https://github.com/NVIDIA/mig-parted/issues/181). It is unloaded for the reset
if nothing uses it. In a virtual machine a reset is not supported as a rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .._host.command import Runner
from .._host.reader import NodeReader
from .._known_faults.answers import is_in_use, said_by_smi
from .smi import NvidiaSmi
from .types import Gpu

_DRM = "nvidia_drm"
_USERS = f"/sys/module/{_DRM}/refcnt"


@dataclass(frozen=True)
class Resetter:
    """Resets GPUs."""

    smi: NvidiaSmi
    run: Runner
    reader: NodeReader
    warn: Callable[[str], None]

    def reset(self, gpu: Gpu) -> str:
        """Reset the GPU; return the output. Whether it succeeded is for the caller to read."""
        output = self.smi.reset(gpu)
        users = self.reader.read_line(_USERS)
        if users is None or not is_in_use(output):
            return output
        if users != "0":
            return f"{output}\n{_DRM} is loaded and has {users} users, such as a display"
        return self._without_drm(gpu) or f"{output}\n{_DRM} is loaded: modprobe -r {_DRM} failed"

    def _without_drm(self, gpu: Gpu) -> str:
        """Reset the GPU while nvidia_drm is not loaded; nothing if it cannot be unloaded."""
        if not self.run(["modprobe", "-r", _DRM]).ok:
            return ""
        try:
            return self.smi.reset(gpu)
        finally:
            answer = self.run(["modprobe", _DRM])
            if not answer.ok:
                self.warn(
                    f"{_DRM} was unloaded to reset {gpu.title}, and is not loaded again: "
                    f"{answer.last_output()}. Next step: modprobe {_DRM}"
                )


def last_line(output: str) -> str:
    """Return the last line that says why a mode is pending; empty if none does."""
    return (said_by_smi(output) or [""])[-1]
