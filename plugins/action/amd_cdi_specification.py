# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the module of the same name."""

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._lost_connection import ModuleAction


class ActionModule(ModuleAction):
    """Ansible's own action, except that a lost connection is a failure."""
