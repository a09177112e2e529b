# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Selects a TOML parser on the node."""

from __future__ import annotations

import base64
import importlib
import sys
from typing import Any

from .._core.errors import KubegpuError
from .._formats.toml_read import limited
from .._host.files import FileState, write_file
from .config_file import Parser

# What the action of a module sends to a node without a parser: the controller's tomlkit.
PARSER: dict[str, dict[str, Any]] = {"_tomlkit": {"type": "str", "no_log": True}}


def toml_parser(archive: str | None, folder: str) -> Parser:
    """Return the parser of Python (from 3.11), the node's tomlkit, or the one from ``archive``.

    :param archive: tomlkit as a zip file in base64; it is written into ``folder``.
    :raises KubegpuError: there is no parser.
    """
    try:
        return limited(_builtin())
    except ImportError:
        pass
    try:
        return limited(_tomlkit())
    except ImportError as error:
        if not archive:
            raise KubegpuError(
                "No TOML parser can be imported by the Python that runs this module.",
                evidence=f"Python {sys.version.split()[0]}: {error}",
                next_step="Install tomlkit on the controller (it is then sent along), or tomlkit "
                "or Python 3.11 on the node.",
            ) from error
    path = f"{folder}/kubegpu-tomlkit.zip"
    write_file(FileState(path, base64.b64decode(archive), 0o600))
    sys.path.append(path)
    try:
        return limited(_tomlkit())
    except ImportError as error:
        raise KubegpuError(
            "The tomlkit that the controller sent cannot be imported on the node.",
            evidence=f"Python {sys.version.split()[0]}: {error}",
            next_step="Install tomlkit or Python 3.11 on the node.",
        ) from error


def _builtin() -> Parser:
    loads: Parser = importlib.import_module("tomllib").loads
    return loads


def _tomlkit() -> Parser:
    tomlkit = importlib.import_module("tomlkit")

    def parse(text: str) -> dict[str, Any]:
        data: dict[str, Any] = tomlkit.parse(text).unwrap()
        return data

    return parse
