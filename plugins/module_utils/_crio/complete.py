# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a handler needs so that CRI-O starts with it and runs the requested program. Pure.

From cri-o/cri-o pkg/config/config.go (TranslateMonitorFields, ValidateRuntimes) and
internal/oci/oci.go, read on 2026-11-28, and run with v1.34.1's own code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .types import Runtime

# Handlers that start ordinary containers: by conmon, or by conmonrs ("pod").
OCI = frozenset({"", "oci", "pod"})
_CONMON = frozenset({"", "oci"})
# Settings of one program only, which a handler does not inherit.
OWN = frozenset({"runtime_path", "platform_runtime_paths", "runtime_config_path"})
_MONITOR = "monitor_path"
_TYPE = "runtime_type"
_INHERIT = "inherit_default_runtime"
_PLATFORMS = "platform_runtime_paths"
_VM_CONFIG = "runtime_config_path"
_WHY = {
    "runtime_path": "it runs another program",
    _MONITOR: "CRI-O searches conmon in PATH, and does not start if it is not there",
    _TYPE: "the type does not fit the program and its monitor",
    _INHERIT: "CRI-O replaces the program by that of the default runtime",
    _PLATFORMS: "CRI-O runs the program of the platform instead",
    _VM_CONFIG: "CRI-O ignores a handler that has it and is not of the type vm",
}


def lacking(
    handler: Mapping[str, Any], own: Runtime | None, conmon: str | None, runtime_path: str
) -> tuple[str, ...]:
    """Return the keys of a handler that are missing or differ from what it needs.

    :param own: the node's own runtime, whose monitor works.
    :param conmon: ``crio.runtime.conmon``, which CRI-O gives to every handler of the type oci.
    """
    settings: Mapping[str, Any] = own.settings if own else {}
    kind, own_kind = handler.get(_TYPE, ""), settings.get(_TYPE, "")
    monitor, own_monitor = handler.get(_MONITOR) or "", settings.get(_MONITOR) or ""
    needs = {
        "runtime_path": handler.get("runtime_path") != runtime_path,
        _INHERIT: bool(handler.get(_INHERIT)),
        _PLATFORMS: any(path != runtime_path for path in _values(handler.get(_PLATFORMS))),
        _VM_CONFIG: bool(handler.get(_VM_CONFIG)),
        _MONITOR: not monitor and bool(own_monitor) and not (conmon and kind in _CONMON),
        _TYPE: kind not in OCI
        or (monitor == own_monitor != "" and not _same_monitor(kind, own_kind)),
    }
    return tuple(key for key, needed in needs.items() if needed)


def completed(
    handler: Mapping[str, Any], inherited: Mapping[str, Any], lacks: tuple[str, ...]
) -> dict[str, Any]:
    """Return the handler with its own settings, and what it lacks from the inherited ones."""
    left_out = {*lacks, _PLATFORMS, _VM_CONFIG, _INHERIT}
    if _MONITOR in lacks and not _same_monitor(handler.get(_TYPE, ""), inherited.get(_TYPE, "")):
        left_out.add(_TYPE)
    return {**inherited, **{key: value for key, value in handler.items() if key not in left_out}}


def why(lacks: tuple[str, ...]) -> str:
    """Return the keys, each with what it does to the handler."""
    return "; ".join(f"{key} ({_WHY[key]})" for key in lacks)


def _same_monitor(one: str, other: str) -> bool:
    """Return whether handlers of these types have the same monitor: conmon, or conmonrs."""
    return (one in _CONMON) == (other in _CONMON)


def _values(paths: Any) -> list[Any]:
    return list(paths.values()) if isinstance(paths, Mapping) else []
