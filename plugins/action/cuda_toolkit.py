# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Let the module cuda_toolkit have its packages and its runfiles from the modules for them."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.kubegpu.nodes.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._background import run_in_background
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fetch import (
    FetchResult,
    fetch,
)

_MODULE = "kubegpu.nodes.cuda_toolkit"
_PACKAGES = "kubegpu.nodes.package_set"
_LISTS = ("warnings", "deprecations")


class _Failed(Exception):
    """The task has failed with this answer."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer.get("msg"))
        self.answer = answer


class ActionModule(ActionBase):
    """One call of the module where nothing differs; otherwise plan, begin, install, finish."""

    TRANSFERS_FILES = True
    _supports_async = False
    _supports_check_mode = True
    _requires_connection = True

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        if self._task.async_val:
            return {
                **result,
                "failed": True,
                "msg": "cuda_toolkit is not run with async. Next step: take async out of the "
                "task; what takes long runs detached from the connection by itself.",
            }
        options = {name: value for name, value in self._task.args.items() if name[:1] != "_"}
        try:
            self._work(options, task_vars or {}, result)
        except _Failed as error:
            result.update(failed=True, **error.answer)
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return result

    def _work(
        self, options: dict[str, Any], variables: dict[str, Any], result: dict[str, Any]
    ) -> None:
        limit = int(options.get("install_timeout") or 3600)

        def module(phase: str, what: str = "", **internal: Any) -> dict[str, Any]:
            arguments = {**options, "_phase": phase, **internal}
            if what:
                answer = run_in_background(
                    self, _MODULE, arguments, variables, limit=limit, what=what
                )
            else:
                answer = self._execute_module(
                    module_name=_MODULE, module_args=arguments, task_vars=variables
                )
            return _taken(answer, result)

        plan = module("plan")
        tasks = plan.pop("_tasks")
        result.update(plan)
        if not tasks["needed"]:
            return
        if self._task.check_mode:
            for arguments in tasks["sets"]:
                self._set(arguments, options, variables, result, limit)
            return
        files = [(entry, self._fetch(entry, variables)) for entry in tasks["runfiles"]]
        absent = options.get("state") == "absent"
        module("uninstall" if absent else "begin")
        for entry, place in files:
            what = f"installer of CUDA {entry['version']}"
            module("runfile", what=what, _version=entry["version"], _runfile=place.path)
        for arguments in tasks["sets"]:
            self._set(arguments, options, variables, result, limit)
        for _entry, place in files:
            if place.cached:
                # Gigabytes, and the toolkit has its own uninstaller.
                self._execute_module(
                    module_name="ansible.builtin.file",
                    module_args={"path": place.path, "state": "absent"},
                    task_vars=variables,
                )
        finished = module("finish")
        for name in ("default", "compilers"):
            result[name] = finished[name]

    def _fetch(self, entry: dict[str, Any], variables: dict[str, Any]) -> FetchResult:
        runfile = {
            "url": entry["url"],
            "path": entry["file"],
            "remote": entry["remote"],
            "checksum": entry["checksum"],
        }
        try:
            return fetch(self, runfile, variables)
        except KubegpuError as error:
            raise _Failed({"msg": str(error)}) from error

    def _set(
        self,
        arguments: dict[str, Any],
        options: dict[str, Any],
        variables: dict[str, Any],
        result: dict[str, Any],
        limit: int,
    ) -> None:
        """Have a set of packages changed, and take over what it changed."""
        given = {**arguments, "timeout": limit}
        for name in ("lock_timeout", "state_path"):
            if name in options:
                given[name] = options[name]
        answer = _taken(self.other(_PACKAGES, given, variables), result)
        if answer.get("changed"):
            result["changed"] = True
        if "diff" in answer:
            result["diff"] = [*result.get("diff", []), *answer["diff"]]

    def other(
        self, name: str, arguments: dict[str, Any], task_vars: dict[str, Any]
    ) -> dict[str, Any]:
        """Run another action of the collection, as if it were this task's."""
        task = self._task.copy()
        task.args = arguments
        action = self._shared_loader_obj.action_loader.get(
            name,
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        answer: dict[str, Any] = action.run(task_vars=task_vars)
        return answer


def _taken(answer: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """Take over warnings; raise where it failed."""
    answer.pop("invocation", None)
    for name in _LISTS:
        texts = answer.pop(name, None) or ()
        known = result.setdefault(name, []) if texts else []
        known.extend(text for text in texts if text not in known)
    if answer.get("failed"):
        raise _Failed(
            {
                name: value
                for name, value in answer.items()
                if name in ("msg", "exception", "module_stdout", "module_stderr", "rc")
            }
        )
    return answer
