# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CDI specifications of NVIDIA's GPUs: what one was made for, and what has to be done."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ._errors import KubegpuError

KIND = "nvidia.com/gpu"
SERVICE = "nvidia-cdi-refresh.service"

# nvidia-ctk mounts the driver's libraries under their full version.
_LIBRARY = re.compile(r"lib(?:cuda|nvidia-ml)\.so\.(\d+\.\d+(?:\.\d+)?)\b")


@dataclass(frozen=True)
class CdiState:
    """A specification as it stands: None where there is none or its driver cannot be told."""

    exists: bool
    driver_version: str | None

    def describe(self) -> str:
        """Return one line for a diff; the whole text would be hundreds of library paths."""
        if not self.exists:
            return ""
        return f"{KIND} for driver {self.driver_version or 'unknown'}\n"


def read_specification(text: str | None) -> CdiState:
    """Return what a specification says of itself."""
    if not text or KIND not in text:
        return CdiState(False, None)
    found = _LIBRARY.search(text)
    return CdiState(True, found.group(1) if found else None)


def needs_refresh(state: CdiState, driver_version: str | None) -> str | None:
    """Return why the specification has to be made again, or None."""
    if not state.exists:
        return "no CDI specification is there"
    if driver_version and state.driver_version != driver_version:
        return f"it was made for driver {state.driver_version or 'unknown'}, not {driver_version}"
    return None


def check_generated(text: str, words: str) -> None:
    """Raise where ``nvidia-ctk cdi generate`` gave nothing that a runtime could use."""
    if not read_specification(text).exists:
        raise KubegpuError(
            "nvidia-ctk cdi generate made no CDI specification.",
            evidence=words or "it printed nothing",
            next_step="Check with nvidia-smi that the driver answers on this node.",
        )
