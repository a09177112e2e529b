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
        if options.get("wait_timeout") in (None, "", 0, "0"):
            return "reading the cluster"
        expected = options.get("expected")
        # Not validated yet.
        if not isinstance(expected, Mapping) or not expected:
            offer = "the pods of the DaemonSets run"
        elif len(expected) == 1:
            offer = f"{some_names(expected)} offers its GPUs"
        else:
            offer = f"{some_names(expected)} offer their GPUs"
        return f"waiting until {offer} (limit {options['wait_timeout']} s)"

    def ended(self, result: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        result = with_all_rights(self, result, task_vars)
        if result.get("failed") and not self._task.failed_when:
            # Each has the message again, for each node; no task after this one reads them.
            result.pop("layers", None)
        elif result.get("failed"):
            parts = {name: result.get(name) or "" for name in ("cause", "evidence", "next_step")}
            result["layers"] = [
                {**layer, **parts} if layer.get("code") == "cluster_not_asked" else layer
                for layer in result.get("layers") or ()
            ]
        return result
