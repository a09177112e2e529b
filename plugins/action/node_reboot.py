# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ansible's own action reboot, which tells that the node is waited for."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action.reboot import ActionModule as RebootAction

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._lost_connection import (
    lost_connection_fails,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._progress import show_progress


class ActionModule(RebootAction):
    """Nothing else is its own."""

    @lost_connection_fails
    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        with show_progress(self, task_vars, "waiting until the node has rebooted"):
            result: dict[str, Any] = super().run(tmp, task_vars)
        if result.get("failed") and self._connection.transport == "local":
            result["msg"] = (
                "The node needs a reboot, and Ansible runs on it. Next step: reboot the node "
                "yourself, then run the same command again; it continues from there."
            )
        return result
