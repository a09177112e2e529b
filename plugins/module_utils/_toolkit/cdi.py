# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CDI specifications of NVIDIA GPUs: their driver, and when they have to be made again. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .._core.errors import KubegpuError
from .._nvidia.toolkit_paths import CDI_REFRESH_UNIT

KIND = "nvidia.com/gpu"
SERVICE = CDI_REFRESH_UNIT

# The first program of NVIDIA that a specification has containers run.
_HOOK = re.compile(r"^[\s-]*path: *\"?(/\S*/nvidia-(?:cdi-hook|ctk))\"?\s*$", re.MULTILINE)
# deployments/systemd/nvidia-cdi-refresh.service, v1.18.0 to v1.20.1, as systemctl shows it:
# grep -qE PATTERN /lib/modules/RELEASE/modules.dep, from 1.19.1 on in a shell with
# || [ -e /dev/dxg ] behind it. Modules that are compressed are nvidia.ko.xz or nvidia.ko.zst.
_GREP = re.compile(r"grep -qE (?P<quote>[\"']?)(?P<pattern>\S+?)(?P=quote) (?P<file>/\S+)")
_OR_THERE = re.compile(r"\|\| \[ -e (\S+) \]")
_MODULE = re.compile(r"/(nvidia[\w-]*\.ko)\b")

# nvidia-ctk mounts the driver's libraries under their full version.
_LIBRARY = re.compile(r"lib(?:cuda|nvidia-ml)\.so\.(\d+\.\d+(?:\.\d+)?)\b")


@dataclass(frozen=True)
class CdiState:
    """The current specification. ``driver_version`` is None if there is none or it is unknown."""

    exists: bool
    driver_version: str | None

    def describe(self) -> str:
        """Return one line for a diff; the whole file has hundreds of library paths."""
        if not self.exists:
            return ""
        return f"{KIND} for driver {self.driver_version or 'unknown'}\n"


@dataclass(frozen=True)
class RefreshUnit:
    """The toolkit's unit, and the pattern and file of its ``ExecCondition``.

    ``or_there`` is a file whose presence also lets it start.
    """

    exists: bool = False
    pattern: str = ""
    file: str = ""
    or_there: str = ""
    # Whether systemd skipped the last start because of a condition.
    left_out: bool = False

    def declines(
        self, read: Callable[[str], str | None], exists: Callable[[str], bool]
    ) -> str | None:
        """Return why the unit would not start; None: it would, or that is unknown.

        :param read: returns the text of a file; None: there is no file.
        """
        if not self.pattern or (self.or_there and exists(self.or_there)):
            return None
        text = read(self.file) or ""
        try:
            if re.search(self.pattern, text):
                return None
        except re.error:
            return None
        modules = sorted(set(_MODULE.findall(text)), key=lambda name: (len(name), name))
        has = modules[0] if modules else "no module of NVIDIA's"
        return f"its ExecCondition looks for {self.pattern} in {self.file}, which has {has}"


def read_unit(properties: Mapping[str, str]) -> RefreshUnit:
    """Return the unit's state from the properties of ``systemctl show``."""
    condition = properties.get("ExecCondition", "")
    grep, other = _GREP.search(condition), _OR_THERE.search(condition)
    return RefreshUnit(
        properties.get("LoadState", "not-found") not in ("not-found", ""),
        grep["pattern"] if grep else "",
        grep["file"] if grep else "",
        other[1] if other else "",
        properties.get("Result") == "exec-condition" or properties.get("ConditionResult") == "no",
    )


def hook_of(text: str | None) -> str | None:
    """Return NVIDIA's program that this specification has containers run; None: there is none."""
    found = _HOOK.search(text or "")
    return found[1] if found else None


def read_specification(text: str | None) -> CdiState:
    """Return the state of a specification from its text."""
    if not text or KIND not in text:
        return CdiState(False, None)
    found = _LIBRARY.search(text)
    return CdiState(True, found.group(1) if found else None)


def needs_refresh(state: CdiState, driver_version: str | None) -> str | None:
    """Return why the specification has to be made again, or None."""
    if not state.exists:
        return "no CDI specification exists"
    if driver_version and state.driver_version != driver_version:
        return f"it was made for driver {state.driver_version or 'unknown'}, not {driver_version}"
    return None


def check_generated(text: str, output: str) -> None:
    """Check the output of ``nvidia-ctk cdi generate``.

    :param output: its last lines, for the evidence.
    :raises KubegpuError: it is not a CDI specification.
    """
    if not read_specification(text).exists:
        raise KubegpuError(
            "nvidia-ctk cdi generate made no CDI specification.",
            evidence=output or "it printed nothing",
            next_step="Check with nvidia-smi that the driver answers on this node.",
        )
