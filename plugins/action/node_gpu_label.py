# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the module of the same name."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._lost_connection import ModuleAction
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._missing_rights import (
    with_all_rights,
)


class ActionModule(ModuleAction):
    """Ansible's own action, except that a lost connection is a failure."""

    def ended(self, result: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        return with_all_rights(self, result, task_vars)
