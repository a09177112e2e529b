# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The entry point of all actions that run modules on nodes.

A connection that is lost in a task: unreachable, or a failure that a block can rescue. Ansible
takes a host that becomes unreachable out of the run without any ``rescue``, and ends the run when
that host was a batch of ``serial`` by itself: no later play, no report. What a node answers is
cleaned here as well (``_answers.py``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action.normal import ActionModule as NormalAction

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._answers import (
    clean_output,
    refuse_facts,
    taken_over,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._forms import checked
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._progress import show_progress

# Set by the plays that work in batches.
VARIABLE = "__kubegpu_lost_connection_fails"
# Set by a play that changes nodes for the tasks that only ask what a module would change.
QUERY = "__kubegpu_queries"

Run = Callable[..., dict[str, Any]]


def lost_connection_fails(run: Run) -> Run:
    """Decorate an action's ``run``: if the play demands it, a lost connection fails the task.

    No host works with facts that are variables of this collection, and none returns such facts. A
    result of another form than the action's module has fails it in any case.
    """

    @functools.wraps(run)
    def reached(
        self: Any, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        variables = task_vars or {}
        # The action's file has the name of its module.
        name = type(self).__module__
        refuse_facts(name, variables)
        _clean_commands(self)
        try:
            result = taken_over(name, run(self, tmp, task_vars), _interpreter(self))
            result = checked(self, result)
            return _as_query(result) if _is_set(self, QUERY, variables) else result
        except AnsibleConnectionFailure as error:
            # The server of ssh chooses the text.
            text = printable(str(error))
            if not _is_set(self, VARIABLE, variables):
                if text == str(error):
                    raise
                raise AnsibleConnectionFailure(text) from None
            host = variables.get("inventory_hostname", "The host")
            return {
                "failed": True,
                "changed": False,
                "lost_connection": True,
                "msg": f"{host} became unreachable: {text}\nNext step: see that the machine is up "
                "and answers to ssh, and run again; what was begun is finished then.",
            }
        except AnsibleError as error:
            # Ansible's own actions quote what a command on the node printed.
            if printable(str(error)) == str(error):
                raise
            raise AnsibleActionFail(printable(str(error))) from None

    return reached


def _is_set(action: Any, name: str, variables: Mapping[str, Any]) -> bool:
    """Return whether a variable of a play is true; an action gets a template as it was written."""
    value = variables.get(name, False)
    if isinstance(value, str):
        value = action._templar.template(value)
    return boolean(value, strict=False)


def _as_query(result: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a query: what would change is no change that Ansible counts."""
    return {**result, "changed": False, "would_change": bool(result.get("changed"))}


def _clean_commands(action: Any) -> None:
    """Let an action see the output of each command on the node as ``clean_output`` returns it."""
    execute = getattr(action, "_low_level_execute_command", None)
    if execute is None:
        return

    def cleaned(*arguments: Any, **options: Any) -> Any:
        answer = execute(*arguments, **options)
        for name in ("stdout", "stderr"):
            if isinstance(answer.get(name), str):
                answer[name] = clean_output(answer[name])
        return answer

    action._low_level_execute_command = cleaned


def _interpreter(action: Any) -> dict[str, Any]:
    """Return the fact of the interpreter that Ansible has found on the node in this task."""
    key = getattr(action, "_discovered_interpreter_key", None)
    return {key: action._discovered_interpreter} if key else {}


class ModuleAction(NormalAction):
    """Runs the module of the action's own name, and tells that it runs if it takes long."""

    @lost_connection_fails
    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        with show_progress(self, task_vars, self.waits_for(self._task.args)):
            result: dict[str, Any] = super().run(tmp, task_vars)
        return self.ended(result, task_vars or {})

    def ended(self, result: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        """Return the result of the task from that of the module."""
        return result

    def waits_for(self, options: Mapping[str, Any]) -> str:
        """Return what a call with these options waits for, as a user would say it.

        :param options: as given, not validated.
        """
        return f"running {str(self._task.action).rpartition('.')[2]}"
