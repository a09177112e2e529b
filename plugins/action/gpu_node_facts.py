# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module of the same name."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._answers import READS_REFUSED
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._lost_connection import ModuleAction
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._reading import (
    known_result,
    unread,
)


class ActionModule(ModuleAction):
    """Ansible's own action, except for a lost connection and for hosts that a play cannot have."""

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        known = known_result(task_vars or {}, str(self._task.args.get("root") or "/"))
        answer = known or {**self._read(tmp, task_vars), "become": bool(self._task.become)}
        # As of Ansible's own facts: -v does not print them.
        return {**answer, "_ansible_verbose_override": True}

    def _read(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Return the facts; for the first play, which shows it later, also why there are none."""
        if READS_REFUSED not in (task_vars or {}):
            return super().run(tmp, task_vars)
        try:
            return unread(super().run(tmp, task_vars))
        except AnsibleActionFail:
            raise
        except AnsibleError as error:
            how = "unreachable" if isinstance(error, AnsibleConnectionFailure) else "failed"
            return unread({how: True, "msg": str(error)})
