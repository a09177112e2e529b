# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module of the same name, and shows which nodes are waited for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._lost_connection import ModuleAction
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._missing_rights import (
    with_all_rights,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._progress import some_names


class ActionModule(ModuleAction):
    """Nothing else is its own."""

    def waits_for(self, options: Mapping[str, Any]) -> str:
        nodes = some_names(options.get("nodes"))
        if options.get("state") == "absent":
            return f"ending the pause of {nodes}"
        if self._task.check_mode:
            return f"looking at the pods of {nodes}"
        return f"waiting until the pods of the GPU stack have left {nodes}"

    def ended(self, result: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        return with_all_rights(self, result, task_vars)
