# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Versions of NVIDIA's driver that a text itself shows, where facts do not have them. Pure.

People paste what nvidia-smi, /proc/driver/nvidia/version and modinfo say one after the other.
"""

from __future__ import annotations

import re

from .predicates import Facts

_VERSION = r"(?P<version>\d{3}\.\d{1,4}(?:\.\d{1,3})?)"
_LOADED = re.compile(
    rf"NVRM version: NVIDIA UNIX [^\n]{{1,60}}?Kernel Module[^\n]{{1,40}}?{_VERSION}"
)
_LIBRARY = re.compile(rf"NVML library version: {_VERSION}")
_INSTALLED = re.compile(
    rf"^filename:[^\n]{{1,200}}/nvidia\.ko[^\n]{{0,20}}\n(?:[^\n]{{0,300}}\n){{0,8}}?version: "
    rf"{{1,16}}"
    rf"{_VERSION}",
    re.MULTILINE,
)


def with_text(facts: Facts, text: str) -> Facts:
    """Return facts with the versions of the driver that a text shows in addition."""
    driver = facts.get("driver") or {}
    if "NVML library version" not in text and "filename:" not in text:
        return facts
    loaded, library, installed = (
        _first(pattern, text) for pattern in (_LOADED, _LIBRARY, _INSTALLED)
    )
    if loaded.startswith(f"{library}.") or not loaded:
        # NVML leaves the last part of its version out.
        library = ""
    said = {"loaded": loaded, "userland": library, "installed": installed}
    new = {name: one for name, one in said.items() if one and not driver.get(name)}
    return {**facts, "driver": {**driver, **new}} if new else facts


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match["version"] if match else ""
