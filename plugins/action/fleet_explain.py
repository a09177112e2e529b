# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Explain a file of the controller with the log or the error of a program."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._controller_action import (
    ControllerAction,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._explain import (
    explain_text,
    explained_rows,
    nothing_known,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._paths import find_file

_MOST_BYTES = 64 << 20


class ActionModule(ControllerAction):
    """Runs on the controller only."""

    spec: Mapping[str, Any] = {
        "file": {"type": "str", "required": True},
        "variable": {"type": "str", "default": "file"},
        "facts": {"type": "dict"},
        "host": {"type": "str", "default": ""},
    }

    def work(self, options: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        path = find_file(options["variable"], options["file"], variables)
        text = _read(path, options["variable"])
        found = explain_text(text, options["facts"], options["host"])
        return {
            "findings": found,
            "rows": explained_rows(found),
            "otherwise": "" if found else nothing_known(text),
        }


def _read(path: str, variable: str) -> str:
    """Return the text of a file; bytes that are not UTF-8 are replaced."""
    try:
        size = os.stat(path).st_size
        if size > _MOST_BYTES:
            raise InputError(
                f"{variable}: {path} has {size >> 20} MiB, and {_MOST_BYTES >> 20} MiB are read at "
                "most.",
                next_step="Give the part of the log around the fault, such as its last 100,000 "
                "lines (tail --lines=100000).",
            )
        with open(path, "rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", errors="replace")
    except OSError as error:
        raise InputError(
            f"{variable}: {path} cannot be read.",
            evidence=error.strerror or str(error),
            next_step="Check its owner and mode.",
        ) from error
