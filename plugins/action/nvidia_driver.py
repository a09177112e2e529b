# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the phases of the module nvidia_driver, with packages and downloads by other modules."""

from __future__ import annotations

import base64
import contextlib
import uuid
from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.release import __version__

from ansible_collections.kubegpu.nodes.plugins.module_utils._distro.kernel_packages import (
    without_dkms,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._distro.upstream import package_base
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply import package_calls
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.failures import (
    lacks_dkms,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.loading import (
    unbuilt_kernels,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.redact import redact
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.arguments import ARGUMENT_SPEC
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.options import read_options
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.packages import (
    streams_of_installed,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.plan import plan_driver
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.sent_plan import (
    CODE,
    SentPlan,
    planned_for,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.types import GRIDD_UNIT, Plan
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import (
    InputError,
    KubegpuError,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import failure
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.internal_options import (
    with_internal,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.proxy_options import PROXIES
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.vgpu_licence import (
    token_fault,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._background import (
    STOPPED,
    run_in_background,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fetch import fetch, named_runfile
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._forms import (
    CODE as OTHER_FORM_CODE,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._forms import (
    facts_failure,
    tasks_failure,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._hosts import OTHER_FORM, facts
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._paths import find_file
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._phases import (
    DEFAULT_TIMEOUT,
    Failed,
    PhasedAction,
    merge,
    or_fail,
    seconds,
    take_over,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._progress import run_with_progress
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._runs import this_run

_MODULE = "kubegpu.nodes.nvidia_driver"
_FACTS = "kubegpu.nodes.gpu_node_facts"
_PACKAGES = "kubegpu.nodes.package_set"
_FINISH_TIMEOUT = 3600
# Seconds: the module stops the installer itself and reports its log, before the job is stopped.
_MARGIN = 120


class ActionModule(PhasedAction):
    """Plans on the controller. Where nothing differs, one call of the module follows."""

    module = "nvidia_driver"

    def work(
        self, options: dict[str, Any], task_vars: dict[str, Any], result: dict[str, Any]
    ) -> None:
        if "license" in options:
            # The module's alias; with both, the module warns.
            options["licence"] = options.pop("license")
        internal = {
            "_token": self._token(options, task_vars, result),
            # Run ID; lets the node detect that another run has taken over.
            "_run": uuid.uuid4().hex,
        }
        _DriverChange(self, options, internal, task_vars, result).do()

    def _token(
        self, options: dict[str, Any], task_vars: dict[str, Any], result: dict[str, Any]
    ) -> str:
        """Return the licence token from the controller in base64; empty without one."""
        licence = options.get("licence")
        path = licence.get("token_path") if isinstance(licence, dict) else None
        if not path or options.get("state") == "absent":
            return ""
        try:
            found = find_file("licence.token_path", str(path), task_vars, self.search)
            real = self._loader.get_real_file(found)
            with open(real, "rb") as handle:
                token = handle.read()
        except InputError as error:
            raise Failed(failure(error)) from error
        except OSError as error:
            raise AnsibleError(f"licence.token_path: {path} cannot be read: {error}") from error
        if not token.strip():
            raise AnsibleError(
                f"licence.token_path: {path} is empty; nothing was changed. Next step: download "
                "the client configuration token again."
            )
        fault = token_fault(f"licence.token_path: {path}", token)
        if fault:
            result.setdefault("warnings", []).append(fault)
        return base64.b64encode(token).decode()


class _DriverChange:
    """One run of the action: its options and its result."""

    def __init__(
        self,
        action: ActionModule,
        options: dict[str, Any],
        internal: dict[str, Any],
        task_vars: dict[str, Any],
        result: dict[str, Any],
    ) -> None:
        self._action = action
        self._options = options
        self._internal = internal
        self._task_vars = task_vars
        self._result = result
        self._limit = DEFAULT_TIMEOUT
        self._facts: Mapping[str, Any] = {}

    def do(self) -> None:
        self._limit = seconds(self._options, "build_timeout")
        run = this_run(__version__)
        given = {**self._options, "today": run.today, "controller": run.controller}
        try:
            self._request, self._tables = read_options(given)
        except KubegpuError as error:
            raise Failed(failure(error)) from error
        self._check_options()
        answer = self._begin_or_compare()
        tasks = answer.pop("_tasks", None)
        wrong = tasks_failure("nvidia_driver", tasks)
        if wrong:
            raise Failed(wrong)
        self._result.update(answer, plan=self._sent.plan.to_json())
        if tasks["needed"]:
            self._change(self._sent.plan, tasks["runfile"])

    def _check_options(self) -> None:
        """Refuse what the module would refuse, before it begins."""
        found = ArgumentSpecValidator(ARGUMENT_SPEC).validate(self._options)
        if found.error_messages:
            raise Failed({"msg": redact("; ".join(found.error_messages))})

    def _begins_at_once(self) -> bool:
        """Return whether the plan alone says that there is a change.

        An installer is fetched, and a driver that is removed is compared, before.
        """
        plan = self._sent.plan
        return (
            plan.change
            and plan.action not in ("refuse", "remove")
            and "runfile" not in (plan.source, plan.uninstall)
            and not self._action._task.check_mode
        )

    def _change(self, plan: Plan, given: dict[str, Any] | None) -> None:
        """Apply the plan.

        :param given: the runfile to be run.
        """
        absent = self._request.state == "absent"
        # In check mode too: a wrong file is refused.
        runfile = self._fetch(given)
        if self._action._task.check_mode:
            for arguments in self._sets(plan):
                merge(self._set(arguments), self._result)
            return
        try:
            # An uninstaller takes a minute and must not be interrupted either.
            uninstalls = "runfile" in (plan.uninstall, plan.source if absent else None)
            what = "uninstaller of the NVIDIA driver" if uninstalls else ""
            if not self._begins_at_once():
                self._module("begin", what=what, _runfile=runfile)
            for arguments in self._sets(plan):
                merge(self._set(arguments), self._result)
            if given is not None:
                what = f"installer of the NVIDIA driver {given.get('version') or ''}"
                self._module("runfile", what=what.strip())
        except Failed as error:
            # Nothing was changed on a node that is another one.
            if absent or error.answer.get("code") == CODE:
                raise
            raise self._roll_back(error, runfile=given is not None) from error
        if not absent:
            self._plan_the_rest()
        guest = GRIDD_UNIT in plan.services and self._options.get("licence")
        last = ", module and licence" if guest else " and module"
        finished = self._module("finish", what=f"NVIDIA driver: initial RAM disk{last}")
        # ``changed`` is that of the comparison.
        self._result.update({**finished, "changed": self._result["changed"]})

    def _begin_or_compare(self) -> dict[str, Any]:
        """Plan, and return what the node says of the plan.

        Facts that were read before are enough if the node is still as they say.
        """
        known = facts(self._task_vars)
        if known is not None:
            try:
                self._plan(known)
                # The repository has been added since.
                if self._sent.plan.repository is None or self._action._task.check_mode:
                    return self._first_phase()
            except Failed as error:
                if error.answer.get("code") not in (CODE, OTHER_FORM_CODE):
                    raise
        self._plan(self._read())
        return self._first_phase()

    def _first_phase(self) -> dict[str, Any]:
        if not self._begins_at_once():
            return self._module("plan")
        try:
            return self._module("begin")
        except Failed as error:
            if error.answer.get("code") == CODE:
                raise
            raise self._roll_back(error, runfile=False) from error

    def _plan_the_rest(self) -> None:
        """Plan again for the node with the new packages: verified, configured and loaded by it."""
        found = self._read()
        if unbuilt_kernels(found):
            self._module("build", what="NVIDIA driver: build of kernel modules")
            found = self._read()
        self._plan(found)

    def _read(self) -> Mapping[str, Any]:
        """Return the facts of the node, read now."""
        path = self._options.get("state_path")
        arguments = {} if path is None else {"state_path": path}
        text = "NVIDIA driver: reading the node"
        answer = run_with_progress(self._action, _FACTS, arguments, self._task_vars, text)
        take_over(answer, self._result)
        found: Any = (or_fail(answer).get("ansible_facts") or {}).get("gpu_node")
        wrong = facts_failure(found)
        if wrong:
            raise Failed(wrong)
        node: Mapping[str, Any] = found
        return node

    def _plan(self, node: Mapping[str, Any]) -> None:
        """Plan for a node with these facts."""
        self._facts = node
        try:
            plan = plan_driver(node, self._request, self._tables)
            streams = streams_of_installed(node, self._tables)
            self._sent = SentPlan(plan, planned_for(node), streams)
        except KubegpuError as error:
            raise Failed(failure(error)) from error
        except OTHER_FORM as fault:
            wrong = KubegpuError(
                f"The driver cannot be planned: {type(fault).__name__}: {fault}.",
                next_step="Report it with the facts of the host, which the playbook diagnose "
                "collects.",
                code=OTHER_FORM_CODE,
            )
            raise Failed(failure(wrong)) from fault

    def _sets(self, plan: Plan) -> list[dict[str, Any]]:
        """Return the arguments of each call of package_set, in order."""
        if self._request.state == "present":
            return package_calls.install_calls(plan)
        driver = self._facts["driver"]
        # A pending change is undone by the records of the package sets.
        if plan.action == "remove" and not driver["managed"] and not driver["pending"]:
            return package_calls.removal_calls(plan)
        return package_calls.restore_calls()

    def _roll_back(self, error: Failed, *, runfile: bool) -> Failed:
        """Explain the failure and roll back; return the failure with the outcome."""
        message = str(error.answer.get("msg") or "no answer")
        what = "NVIDIA driver: clearing away what its installer left" if runfile else ""
        try:
            failed = {"msg": message, "code": error.answer.get("code") or ""}
            explanation = self._module("explain", what=what, _failure=failed)
        except Failed as second:
            return Failed({**error.answer, "msg": f"{message}\n{second}", "rolled_back": False})
        answer = {**error.answer, **explanation["failure"], "rolled_back": False}
        answer["msg"] = explanation["message"]
        # Ansible would show it before the message.
        answer.pop("exception", None)
        if explanation["keep"]:
            answer["msg"] += (
                "\nWhat was done so far is kept and recorded; the next run continues from there."
            )
            return Failed(answer)
        notes = []
        for arguments in explanation["sets"]:
            put = self._set(arguments)
            if put.get("failed"):
                notes.append(f"the packages ({put.get('msg')})")
        try:
            back = self._module("rollback", what="NVIDIA driver: restore the previous driver")
            notes.extend(back.get("notes", []))
        except Failed as second:
            notes.append(f"the configuration ({second})")
        if notes:
            answer["msg"] += "\nThis could not be restored: " + "; ".join(notes)
        elif explanation["unchanged"] and not explanation["sets"]:
            answer["msg"] += "\nNothing was changed."
        else:
            answer["rolled_back"] = True
            answer["msg"] += (
                f"\nRolled back: {explanation['before'] or 'no driver'} is installed, as before."
            )
        return Failed(answer)

    def _fetch(self, runfile: dict[str, Any] | None) -> dict[str, Any] | None:
        """Copy or download the runfile to the node; return its path and checksum."""
        if runfile is None:
            return None
        known = {name: runfile.get(name) for name in ("file", "cached", "sha256")}
        if all(value is not None for value in known.values()):
            # An interrupted run left it on the node; it is used if it is unchanged.
            with contextlib.suppress(KubegpuError):
                there = {"path": known["file"], "remote": True, "checksum": known["sha256"]}
                found = fetch(self._action, there, self._task_vars)
                return {**known, "file": found.path, "cached": known["cached"] or found.cached}
        try:
            named = named_runfile(self._options.get("runfile"))
            found = fetch(self._action, named, self._task_vars, execute=self._execute)
        except KubegpuError as error:
            raise Failed(failure(error)) from error
        return {"file": found.path, "cached": found.cached, "sha256": found.sha256}

    def _execute(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return self._action.execute(
            name,
            arguments,
            self._task_vars,
            limit=self._limit,
            what="download of the NVIDIA driver",
        )

    def _set(self, arguments: dict[str, Any]) -> dict[str, Any]:
        given = dict(arguments)
        for name in ("lock_timeout", "state_path", *PROXIES):
            if name in self._options:
                given[name] = self._options[name]
        if given.get("background"):
            given["timeout"] = self._limit
        answer = self._action.other(_PACKAGES, given, self._task_vars)
        if answer.get("failed") and lacks_dkms(answer):
            hint = without_dkms(package_base(self._facts["os"])["id"] or "")
            answer["msg"] += f" {hint}".rstrip()
        if answer.get("failed") and answer.get("code") == STOPPED:
            answer["msg"] += f" Next step: raise build_timeout, which is {self._limit} seconds."
        return answer

    def _module(self, phase: str, what: str = "", **internal: Any) -> dict[str, Any]:
        """Run a phase of the module.

        :param what: a description; the phase then runs detached from the connection.
        """
        sent = self._sent.to_json()
        arguments = with_internal(
            self._options, _phase=phase, _plan=sent, **self._internal, **internal
        )
        if what:
            answer = run_in_background(
                self._action,
                _MODULE,
                arguments,
                self._task_vars,
                limit=_MARGIN
                + (self._limit if phase == "runfile" else max(self._limit, _FINISH_TIMEOUT)),
                what=what,
            )
        else:
            text = f"NVIDIA driver: {phase}"
            answer = run_with_progress(self._action, _MODULE, arguments, self._task_vars, text)
        answer.pop("invocation", None)
        take_over(answer, self._result)
        return or_fail(answer)
