# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the phases of the module package_set, and Ansible's own package module between them."""

from __future__ import annotations

import uuid
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import PARTS
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.internal_options import (
    with_internal,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.needrestart import ENVIRONMENT
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._background import (
    STOPPED,
    run_in_background,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._forms import tasks_failure
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._proxies import ProxiedAction
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._lost_connection import (
    lost_connection_fails,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._phases import take_over
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._progress import run_with_progress

_MODULE = "kubegpu.nodes.package_set"
_TIMEOUT = 3600
_LOCK_TIMEOUT = 600
_OUR_ROLES = "kubegpu.nodes."


class ActionModule(ProxiedAction):
    """One call of the module if nothing differs; otherwise plan, change and record."""

    TRANSFERS_FILES = False
    _supports_async = False
    _supports_check_mode = True
    # Of the package manager; empty: its own choice.
    _temporary = ""

    @lost_connection_fails
    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        variables = task_vars or {}
        options = {
            name: value for name, value in self._task.args.items() if not name.startswith("_")
        }
        # Run ID; lets the node detect that another run has taken over.
        run = uuid.uuid4().hex
        named = {"_run": run, "_lock_option": self._lock_option()}
        plan = self._module(options, variables, _phase="plan", **named)
        tasks = plan.pop("_tasks", None)
        result.update(plan)
        if plan.get("failed") or not plan.get("changed") or tasks is None:
            return result
        wrong = tasks_failure("package_set", tasks)
        if wrong:
            return {**wrong, "failed": True, "changed": False}
        self._temporary = tasks["temporary"]
        failure, stopped = self._change(tasks["calls"], options, variables)
        recorded = self._module(
            options,
            variables,
            _phase="record",
            _failure=failure,
            _named=tasks["named"],
            _streams=tasks["streams"],
            **named,
        )
        take_over(recorded, result)
        if recorded.get("failed"):
            result.update(failed=True, msg=recorded.get("msg", failure))
            own = {"code": STOPPED} if stopped else {}
            result.update({name: recorded[name] for name in PARTS if name in recorded}, **own)
            if "exception" in recorded:
                result["exception"] = recorded["exception"]
        elif "packages" in recorded:
            result["packages"] = recorded["packages"]
            result["services_to_restart"] = recorded.get("services_to_restart", [])
        return result

    def _lock_option(self) -> str:
        """Return what sets the wait for the lock: a variable, in our roles, or the option."""
        role = self._task._role
        ours = role is not None and role.get_name().startswith(_OUR_ROLES)
        return "kubegpu_packages.lock_timeout" if ours else "lock_timeout"

    def _compute_environment_string(self, raw_environment_out: dict[str, Any] | None = None) -> str:
        text: str = super()._compute_environment_string(raw_environment_out)
        if raw_environment_out is not None or not self._for_this_module:
            return text
        # Last, so that nothing else sets it for the package manager.
        own = {**ENVIRONMENT, **({"TMPDIR": self._temporary} if self._temporary else {})}
        return f"{text} {self._connection._shell.env_prefix(**own)}".strip()

    def _change(
        self, calls: list[dict[str, Any]], options: dict[str, Any], variables: dict[str, Any]
    ) -> tuple[str, bool]:
        """Make the calls; return the output of the first that fails, and whether it was stopped."""
        for call in calls:
            answer = self._call(call["module"], call["arguments"], options, variables)
            if answer.get("failed"):
                return _output(answer), answer.get("code") == STOPPED
        return "", False

    def _call(
        self,
        name: str,
        arguments: dict[str, Any],
        options: dict[str, Any],
        variables: dict[str, Any],
    ) -> dict[str, Any]:
        what = f"packages {options.get('name')}"
        if boolean(options.get("background", False), strict=False):
            # Waiting for the lock does not shorten the time for the change.
            limit = int(options.get("timeout", _TIMEOUT))
            limit += int(options.get("lock_timeout", _LOCK_TIMEOUT))
            return run_in_background(self, name, arguments, variables, limit=limit, what=what)
        return run_with_progress(self, name, arguments, variables, f"{what}: running")

    def _module(
        self, options: dict[str, Any], variables: dict[str, Any], **internal: Any
    ) -> dict[str, Any]:
        answer = run_with_progress(
            self, _MODULE, with_internal(options, **internal), variables, "running package_set"
        )
        answer.pop("invocation", None)
        return answer


def _output(answer: dict[str, Any]) -> str:
    """Return all messages and output of a failed module."""
    parts = [str(answer.get(name) or "") for name in ("msg", "stdout", "stderr")]
    return "\n".join(dict.fromkeys(part for part in parts if part)) or "no answer"
