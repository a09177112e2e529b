# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a test of the module detached from the connection, since it can take hours."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._background import run_in_background
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._lost_connection import (
    lost_connection_fails,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._phases import take_over
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._progress import run_with_progress

_MODULE = "kubegpu.nodes.gpu_node_acceptance"
# Seconds for the end of a test, and for DCGM's engine.
_AROUND = 240


class ActionModule(ActionBase):
    """Reads the node directly; a test is a job on the node that is polled."""

    TRANSFERS_FILES = False
    _supports_async = False
    _supports_check_mode = True

    @lost_connection_fails
    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        options = dict(self._task.args)
        timeout = str(options.get("timeout", ""))
        if options.get("step") == "test" and timeout.isascii() and timeout.isdigit():
            answer = run_in_background(
                self,
                _MODULE,
                options,
                task_vars or {},
                limit=int(timeout) + _AROUND,
                what=f"the test {options.get('test')}",
            )
        else:
            # The module says what is wrong with its options.
            text = "running gpu_node_acceptance"
            answer = run_with_progress(self, _MODULE, options, task_vars or {}, text)
        take_over(answer, result)
        result.update(answer)
        return result
