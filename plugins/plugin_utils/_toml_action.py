# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Base class of the actions of modules that parse TOML on the node."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._lost_connection import (
    lost_connection_fails,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._progress import show_progress
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._tomlkit import with_parser


class TomlAction(ActionBase):
    """Runs ``module`` once. With async, the first result names the job only."""

    module = ""
    _supports_check_mode = True
    _supports_async = True
    _requires_connection = True

    @lost_connection_fails
    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        asynchronous = self._task.async_val
        # A restart of k3s or RKE2 takes minutes.
        with show_progress(self, task_vars, f"running {self.module.rpartition('.')[2]}"):
            result.update(
                self._execute_module(
                    module_name=self.module,
                    module_args=with_parser(self._task.args, task_vars or {}),
                    task_vars=task_vars,
                    wrap_async=asynchronous,
                )
            )
        if not asynchronous:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return result
