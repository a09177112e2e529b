# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module of the same name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._lost_connection import ModuleAction


class ActionModule(ModuleAction):
    """Ansible's own action, except for the handling of a lost connection and its lines."""

    def waits_for(self, options: Mapping[str, Any]) -> str:
        if options.get("state") in ("due", "passed"):
            return "writing the node's record"
        return "verifying the GPUs of the node, and containers that use them"
