# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Base of the actions whose module works in phases, with other modules in between."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._background import run_in_background
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._lost_connection import (
    VARIABLE,
    lost_connection_fails,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._progress import run_with_progress
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._proxies import ProxiedAction

# Modules that run detached from the connection: a download can be gigabytes.
_LONG = ("kubegpu.nodes.runfile_download",)
_TOLD = ("warnings", "deprecations")
# Texts of a failure that Ansible prints unchanged.
_PARTS = ("msg", "cause", "evidence", "next_step")
_SHOWN = (*_PARTS, "module_stdout", "module_stderr")
_SAID = (*_SHOWN, "code", "names", "exception", "rc")

DEFAULT_TIMEOUT = 3600


class Failed(Exception):
    """The task has failed with this result."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer.get("msg"))
        self.answer = answer


def seconds(options: dict[str, Any], name: str) -> int:
    """Return a time limit in seconds.

    :raises Failed: the option is not a positive whole number.
    """
    value = options.get(name)
    if value is None:
        return DEFAULT_TIMEOUT
    try:
        number = 0 if isinstance(value, bool) else int(value)
    except (TypeError, ValueError):
        number = 0
    if number < 1:
        raise Failed(
            {
                "msg": f"{name} is {value!r}; nothing was changed. Next step: give a whole "
                "number of seconds from 1 on."
            }
        )
    return number


def _shown(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a result without control characters in the texts that are printed."""
    return {
        name: printable(value) if isinstance(value, str) and name in _SHOWN else value
        for name, value in answer.items()
    }


def or_fail(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a module.

    :raises Failed: the module failed.
    """
    if answer.get("failed"):
        raise Failed({name: value for name, value in answer.items() if name in _SAID})
    return answer


def take_over(answer: dict[str, Any], result: dict[str, Any]) -> None:
    """Move a module's warnings into the task's result, each once."""
    for name in _TOLD:
        texts = answer.pop(name, None) or ()
        known = result.setdefault(name, []) if texts else []
        texts = [printable(text) if isinstance(text, str) else text for text in texts]
        known.extend(text for text in texts if text not in known)


def merge(answer: dict[str, Any], result: dict[str, Any]) -> None:
    """Merge the result of another action into the task's.

    :raises Failed: that action failed.
    """
    take_over(or_fail(answer), result)
    if answer.get("changed"):
        result["changed"] = True
    if "diff" in answer:
        result["diff"] = [*result.get("diff", []), *answer["diff"]]


class PhasedAction(ProxiedAction):
    """Runs ``work`` and turns its failure into that of the task."""

    TRANSFERS_FILES = True
    _supports_async = False
    _supports_check_mode = True
    _requires_connection = True
    # The module's short name.
    module = ""

    @lost_connection_fails
    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        if self._task.async_val:
            return {
                **result,
                "failed": True,
                "msg": f"{self.module} is not run with async. Next step: take async out of the "
                "task; what takes long runs detached from the connection by itself.",
            }
        options = {name: value for name, value in self._task.args.items() if name[:1] != "_"}
        try:
            self.work(options, task_vars or {}, result)
        except Failed as error:
            # The plan is left out, because it would hide the message.
            result.pop("plan", None)
            # A message that is not one of this collection is the cause.
            parts = {"cause": str(error), "evidence": "", "next_step": ""}
            result.update(failed=True, **_shown({**parts, **error.answer}))
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return result

    def work(
        self, options: dict[str, Any], task_vars: dict[str, Any], result: dict[str, Any]
    ) -> None:
        """Run the phases and fill the result.

        :raises Failed: the task fails.
        """
        raise NotImplementedError

    def search(self, path: str) -> str:
        """Return a file of the controller that Ansible finds, as for the copy of a file."""
        found: str = self._find_needle("files", path)
        return found

    def other(
        self, name: str, arguments: dict[str, Any], task_vars: dict[str, Any]
    ) -> dict[str, Any]:
        """Run another action of the collection with this task's connection; return its result."""
        task = self._task.copy()
        task.action, task.args = name, arguments
        action = self._shared_loader_obj.action_loader.get(
            name,
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        # A lost connection fails this task, without a rollback.
        answer: dict[str, Any] = action.run(task_vars={**task_vars, VARIABLE: False})
        return answer

    def execute(
        self,
        name: str,
        arguments: dict[str, Any],
        task_vars: dict[str, Any],
        *,
        limit: int,
        what: str,
    ) -> dict[str, Any]:
        """Run a module, detached from the connection if it can take long.

        :param limit: seconds.
        :param what: a description for messages.
        """
        if name in _LONG:
            return run_in_background(self, name, arguments, task_vars, limit=limit, what=what)
        return run_with_progress(self, name, arguments, task_vars, f"{what}: running")
