# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads handlers and CRI settings from the output of ``containerd config dump``. Pure.

A separate file with few imports, because the facts use it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._formats.toml_read import read_toml
from .data import CRI_GRPC, CRI_NAMES, CRI_RUNTIME

# Tables of the CRI plugin, of config version 3 and later, 2, and 1.
_CRI_TABLES = (CRI_RUNTIME, CRI_GRPC, "cri")


def read_effective(dump: str) -> dict[str, Any]:
    """Return handlers, default handler and state of CRI and CDI from ``containerd config dump``.

    :raises ValueError: the text is not TOML.
    """
    data = read_toml(dump)
    disabled = set(data.get("disabled_plugins") or ())
    plugins = data.get("plugins") or {}
    whole: Mapping[str, Any] = next(
        (
            plugins[name]
            for name in _CRI_TABLES
            if isinstance(plugins.get(name), dict) and "containerd" in plugins[name]
        ),
        {},
    )
    cri: Mapping[str, Any] = whole.get("containerd") or {}
    cdi = whole.get("enable_cdi")
    handlers = {
        name: _handler(table)
        for name, table in (cri.get("runtimes") or {}).items()
        if isinstance(table, dict)
    }
    return {
        "handlers": handlers,
        "default_handler": (cri.get("default_runtime_name") or "runc") if cri else None,
        "cri_enabled": bool(cri) and not disabled & CRI_NAMES,
        # 1.6 has no such setting.
        "cdi_enabled": None if cdi is None else bool(cdi),
    }


def _handler(table: Mapping[str, Any]) -> dict[str, Any]:
    options = table.get("options") or {}
    # Option names are read without regard to case.
    path = next((value for key, value in options.items() if key.lower() == "binaryname"), None)
    return {"type": table.get("runtime_type") or None, "path": path or None, "options": options}
