# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the phases of the module cuda_toolkit, and the modules for its packages and runfiles."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.common.validation import check_type_dict

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import failure
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.internal_options import (
    with_internal,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.proxy_options import PROXIES
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._background import run_in_background
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fetch import (
    FetchResult,
    fetch,
    named_runfile,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._forms import tasks_failure
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._phases import (
    Failed,
    PhasedAction,
    merge,
    or_fail,
    seconds,
    take_over,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._progress import run_with_progress

_MODULE = "kubegpu.nodes.cuda_toolkit"
_PACKAGES = "kubegpu.nodes.package_set"


class ActionModule(PhasedAction):
    """One module call if nothing differs; otherwise plan, begin, install and finish."""

    module = "cuda_toolkit"

    def work(
        self, options: dict[str, Any], task_vars: dict[str, Any], result: dict[str, Any]
    ) -> None:
        limit, variables = seconds(options, "install_timeout"), task_vars

        def module(phase: str, what: str = "", **internal: Any) -> dict[str, Any]:
            arguments = with_internal(options, _phase=phase, **internal)
            if what:
                answer = run_in_background(
                    self, _MODULE, arguments, variables, limit=limit, what=what
                )
            else:
                text = f"CUDA toolkits: {phase}"
                answer = run_with_progress(self, _MODULE, arguments, variables, text)
            answer.pop("invocation", None)
            take_over(answer, result)
            return or_fail(answer)

        plan = module("plan")
        tasks = plan.pop("_tasks", None)
        wrong = tasks_failure("cuda_toolkit", tasks)
        if wrong:
            raise Failed(wrong)
        result.update(plan)
        if not tasks["needed"]:
            return
        if self._task.check_mode:
            for arguments in tasks["sets"]:
                self._set(arguments, options, variables, result, limit)
            return
        named = check_type_dict(options.get("runfiles") or {})
        files = [
            (entry, self._fetch(entry, named.get(entry["version"]), variables, limit))
            for entry in tasks["runfiles"]
        ]
        absent = options.get("state") == "absent"
        module("uninstall" if absent else "begin")
        for entry, place in files:
            what = f"installer of CUDA {entry['version']}"
            module("runfile", what=what, _version=entry["version"], _runfile=place.path)
        for arguments in tasks["sets"]:
            self._set(arguments, options, variables, result, limit)
        for _entry, place in files:
            if place.cached:
                # It takes gigabytes, and the toolkit has its own uninstaller.
                self._execute_module(
                    module_name="ansible.builtin.file",
                    module_args={"path": place.path, "state": "absent"},
                    task_vars=variables,
                )
        finished = module("finish")
        for name in ("default", "compilers"):
            result[name] = finished[name]

    def _fetch(
        self, entry: dict[str, Any], given: object, variables: dict[str, Any], limit: int
    ) -> FetchResult:
        def execute(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
            what = f"download of CUDA {entry['version']}"
            return self.execute(name, arguments, variables, limit=limit, what=what)

        try:
            return fetch(self, named_runfile(given), variables, execute=execute)
        except KubegpuError as error:
            raise Failed(failure(error)) from error

    def _set(
        self,
        arguments: dict[str, Any],
        options: dict[str, Any],
        variables: dict[str, Any],
        result: dict[str, Any],
        limit: int,
    ) -> None:
        """Run package_set and merge its result."""
        given = {**arguments, "timeout": limit}
        for name in ("lock_timeout", "state_path", *PROXIES):
            if name in options:
                given[name] = options[name]
        merge(self.other(_PACKAGES, given, variables), result)
