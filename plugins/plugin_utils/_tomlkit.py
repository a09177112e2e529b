# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sends the controller's tomlkit to nodes whose Python has no TOML parser, as a zip file."""

from __future__ import annotations

import base64
import functools
import importlib.util
import io
import os
import zipfile
from collections.abc import Mapping
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.internal_options import (
    with_internal,
)

# The first Python with a TOML parser.
_BUILTIN_PARSER = (3, 11)


def with_parser(arguments: Mapping[str, Any], task_vars: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a module, with the library if the node needs it."""
    archive = tomlkit_archive() if needs_parser(task_vars) else None
    return with_internal(arguments, **({} if archive is None else {"_tomlkit": archive}))


def needs_parser(task_vars: Mapping[str, Any]) -> bool:
    """Return whether the node needs the library: no fact shows that its Python can parse TOML."""
    facts = task_vars.get("ansible_facts")
    gpu_node = facts.get("gpu_node") if isinstance(facts, Mapping) else None
    python = gpu_node.get("python") if isinstance(gpu_node, Mapping) else None
    if not isinstance(python, Mapping):
        return True
    if python.get("tomlkit"):
        return False
    try:
        version = tuple(int(part) for part in str(python.get("version")).split(".")[:2])
    except ValueError:
        return True
    return version < _BUILTIN_PARSER


@functools.lru_cache(maxsize=1)
def tomlkit_archive() -> str | None:
    """Return the controller's tomlkit as a zip file in base64, None if it is not installed."""
    found = importlib.util.find_spec("tomlkit")
    folder = next(iter(found.submodule_search_locations or ()), None) if found else None
    if folder is None:
        return None
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(os.listdir(folder)):
            if name.endswith(".py"):
                # A fixed date, so that the same library always gives the same argument.
                entry = zipfile.ZipInfo(f"tomlkit/{name}", (1980, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                with open(os.path.join(folder, name), "rb") as source:
                    archive.writestr(entry, source.read())
    return base64.b64encode(buffer.getvalue()).decode()
