# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a module detached from the connection and wait for its result.

A lost connection kills the module that runs in it, and a killed package manager leaves packages
half configured. Ansible's own async_wrapper runs the module here, and its job file is polled, so
that the connection may be lost and restored.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._job_step import (
    Job,
    look_command,
    read_job,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._progress import (
    Progress,
    duration,
    run_with_progress,
)

display = Display()

# The default of every shell plugin; the module resolves it as the user that it runs as.
_ASYNC_DIR = "~/.ansible_async"
_STATUS = "ansible.builtin.async_status"
# Seconds that a node may be unreachable, including a reboot.
_PATIENCE = 600.0
# Seconds: the wrapper itself stops the job at its limit and then writes the result.
_GRACE = 30.0
#: The code of a job that took too long.
STOPPED = "job_stopped"
_INTERNAL = ("ansible_job_id", "started", "finished", "results_file")


class _Lost(Exception):
    """The node is unreachable for now."""


def run_in_background(
    action: ActionBase,
    name: str,
    arguments: dict[str, Any],
    task_vars: dict[str, Any],
    *,
    limit: int,
    what: str,
) -> dict[str, Any]:
    """Run the module ``name`` and return its result, as ``_execute_module`` would.

    :param limit: seconds after which the module is stopped.
    :param what: a description for the screen and for messages.
    :raises AnsibleConnectionFailure: the node was unreachable for too long.
    """
    if action._task.check_mode:
        return run_with_progress(action, name, arguments, task_vars, f"{what}: running")
    started = _start(action, name, arguments, task_vars, limit)
    job = started.get("ansible_job_id")
    if started.get("failed") or not job:
        return {"failed": True, "msg": f"{what}: the job could not be started.", **started}
    waiter = _Waiter(action, str(job), task_vars, what)
    try:
        result = waiter.wait(limit)
    finally:
        waiter.clean_up()
    if result.get("failed") and result.get("msg") == "Timeout exceeded":
        result["msg"] = f"{what}: not finished after {limit} seconds, and stopped."
        result["code"] = STOPPED
    return {key: value for key, value in result.items() if key not in _INTERNAL}


def _start(
    action: ActionBase,
    name: str,
    arguments: dict[str, Any],
    task_vars: dict[str, Any],
    limit: int,
) -> dict[str, Any]:
    # Ansible reads the limit from the task.
    before, action._task.async_val = action._task.async_val, limit
    try:
        started: dict[str, Any] = action._execute_module(
            module_name=name, module_args=arguments, task_vars=task_vars, wrap_async=True
        )
        return started
    finally:
        action._task.async_val = before


class _Waiter:
    """Polls one job."""

    def __init__(
        self,
        action: ActionBase,
        job: str,
        task_vars: dict[str, Any],
        what: str,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._action = action
        self._job = job
        self._task_vars = task_vars
        self._what = what
        self._sleep = sleep
        self._clock = clock
        self._host = str(task_vars.get("inventory_hostname", "node"))
        self._directory = action.get_shell_option("async_dir", default=_ASYNC_DIR)

    def wait(self, limit: int) -> dict[str, Any]:
        """Return the job's result, or a failure if it ended without one.

        :param limit: seconds.
        """
        begin = answered = self._clock()
        progress = Progress(self._action, self._task_vars, self._clock)
        pause, lost = 1.0, False
        while True:
            self._sleep(pause)
            pause = min(pause + 1.0, 5.0)
            now = self._clock()
            try:
                status = self._status()
                answered = self._clock()
                if status.get("finished"):
                    return status
                # The node may have rebooted: the job is looked at first.
                if lost or not progress.pause:
                    job = self._look()
                    lost = False
                    progress.show(self._text(job), limit)
                    if not job.alive:
                        return self._last_words()
            except _Lost as error:
                if self._clock() - answered > _PATIENCE:
                    raise AnsibleConnectionFailure(
                        f"{self._what}: the node has not answered for {_PATIENCE:.0f} seconds: "
                        f"{error}. The job may still run there."
                    ) from error
                lost = True
                display.warning(f"{self._host}: {self._what}: connection lost, trying again")
            if now - begin > limit + _GRACE + _PATIENCE:
                return self._failure(f"nothing was heard of it for {now - begin:.0f} seconds")

    def clean_up(self) -> None:
        """Remove the job file, and Ansible's folder for job files if it is empty."""
        try:
            self._execute({"jid": self._job, "mode": "cleanup"})
            self._command(f"rmdir {self._directory} 2>/dev/null || true")
        except _Lost:
            display.vvv(f"{self._host}: the job file {self._directory}/{self._job} is kept")

    def _last_words(self) -> dict[str, Any]:
        status = self._status()
        # It can have ended between two polls.
        return status if status.get("finished") else self._failure("it ended without an answer")

    def _failure(self, reason: str) -> dict[str, Any]:
        return {
            "failed": True,
            "msg": f"{self._what}: {reason}. It was killed (out of memory, or by a user), or "
            "the node was restarted.",
        }

    def _text(self, job: Job) -> str:
        since = "" if job.seconds is None else f" ({duration(job.seconds)})"
        return f"{self._what}: {job.step}{since}" if job.step else f"{self._what}: running"

    def _status(self) -> dict[str, Any]:
        status = self._execute({"jid": self._job, "mode": "status"})
        if "started" not in status and "finished" not in status:
            # No result: Python may be under upgrade, or the node may be shutting down.
            raise _Lost(str(status.get("msg") or "no answer"))
        return status

    def _look(self) -> Job:
        said = self._command(look_command(self._job.partition(".")[0]))
        job = read_job(str(said.get("stdout", "")))
        if job is None:
            raise _Lost(str(said.get("stderr") or "no answer"))
        return job

    def _execute(self, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = self._action._execute_module(
                module_name=_STATUS,
                module_args={**arguments, "_async_dir": self._directory},
                task_vars=self._task_vars,
            )
            return answer
        except AnsibleConnectionFailure as error:
            raise self._reset(error) from error

    def _command(self, command: str) -> dict[str, Any]:
        try:
            said: dict[str, Any] = self._action._low_level_execute_command(command)
            return said
        except AnsibleConnectionFailure as error:
            raise self._reset(error) from error

    def _reset(self, error: Exception) -> _Lost:
        try:
            self._action._connection.reset()
        except Exception as second:
            # Closing a lost connection can fail as well.
            display.vvv(f"{self._host}: {second}")
        # Uploaded files are lost after a reboot.
        self._action._connection._shell.tmpdir = None
        return _Lost(str(error))
