# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Explain a file of the controller with the log or the error of a program."""

from __future__ import annotations

import os
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._explain import (
    explain_text,
    explained_rows,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._paths import find_file

_MOST_BYTES = 64 << 20


class ActionModule(ActionBase):
    """Runs on the controller only and connects to no node."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(
            argument_spec={
                "file": {"type": "str", "required": True},
                "variable": {"type": "str", "default": "file"},
                "facts": {"type": "dict"},
                "host": {"type": "str", "default": ""},
            }
        )
        try:
            path = find_file(options["variable"], options["file"], task_vars or {})
            found = explain_text(
                _read(path, options["variable"]), options["facts"], options["host"]
            )
        except InputError as error:
            raise AnsibleActionFail(str(error)) from error
        result.update(changed=False, findings=found, rows=explained_rows(found))
        return result


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
