# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run one of Ansible's own modules on a node, by the entry point of this collection's actions."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._phases import PhasedAction

_MODULES = ("command", "copy", "file", "slurp", "stat")
_OPTIONS = {
    "module": {"type": "str", "choices": list(_MODULES), "required": True},
    "arguments": {"type": "dict", "required": True},
}


class ActionModule(PhasedAction):
    """Facts that the node returns are dropped, and a lost connection can be a failure."""

    module = "node_builtin"

    def work(
        self, options: dict[str, Any], task_vars: dict[str, Any], result: dict[str, Any]
    ) -> None:
        _validation, given = self.validate_argument_spec(argument_spec=_OPTIONS)
        name, arguments = f"ansible.builtin.{given['module']}", given["arguments"]
        if given["module"] == "copy":
            # It reads a file of the controller, which an action does.
            result.update(self.other(name, arguments, task_vars))
            return
        result.update(
            self._execute_module(module_name=name, module_args=arguments, task_vars=task_vars)
        )
