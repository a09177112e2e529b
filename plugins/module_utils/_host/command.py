# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run commands on the node, by a callable that is passed to domain code."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .environment import clean_environment

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

# Of the programs that are run, whatever the node's own is: what they write is read by apt's user,
# by container runtimes and by users.
_UMASK = 0o022
# Parsed output must not depend on the user's locale.
C_LOCALE = {"LC_ALL": "C", "LANG": "C", "LANGUAGE": "C"}
TIMED_OUT = 124
NOT_FOUND = 127
# Seconds from SIGTERM to SIGKILL.
_KILL_AFTER = 5.0
# Further seconds for timeout(1) to end.
_MARGIN = 5.0


@dataclass(frozen=True)
class Result:
    """The result of a command. ``rc`` is 127 if the program does not exist, 124 on a time-out."""

    rc: int
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        return self.rc == 0

    def last_output(self) -> str:
        """Return the last 15 lines of the error output, else of the output, as evidence."""
        text = (self.stderr.strip() or self.stdout.strip()).splitlines()
        return "\n".join(text[-15:])


# argv, timeout in seconds -> Result
Runner = Callable[..., Result]


class _Deadline:
    """Limits the time to wait for a command.

    timeout(1) ends a command with all its children. But it waits for the command's end, which does
    not come while the process is in uninterruptible sleep (state D: a hung driver, a dead NFS
    server). Then timeout(1) is ended, and the process left behind. Without timeout(1), the command
    itself is ended.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self.passed = False

    def watch(self, process: Any) -> None:
        """Start the timer; ``process`` is the Popen object of the command."""
        self._thread = threading.Thread(target=self._wait, args=(process,), daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _wait(self, process: Any) -> None:
        if self._over.wait(self._seconds):
            return
        self.passed = True
        process.terminate()
        if not self._over.wait(_KILL_AFTER):
            process.kill()


def _leave_terminal() -> None:
    """Give the programs that this process starts an empty standard input.

    Without pipelining, Ansible's ssh runs a module on a terminal. timeout(1) makes a command a
    background process, and one that reads the terminal is then stopped until its time is over
    (seen with ``ctr run``). The module's own arguments are read by now.
    """
    if os.isatty(0):
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)


def module_runner(module: AnsibleModule) -> Runner:
    """Return a callable that runs commands on the module's node, in the C locale.

    It is called as ``runner(argv, timeout=60, environment={})``, with the time limit in seconds,
    and returns a :class:`Result` for failed commands, too. Programs are those of folders that only
    root can change. They read nothing: see :func:`_leave_terminal`.
    """
    clean_environment(module.warn)
    _leave_terminal()

    def run(
        argv: Sequence[str], timeout: int = 60, environment: Mapping[str, str] | None = None
    ) -> Result:
        program = module.get_bin_path(argv[0], required=False)
        if program is None:
            return Result(NOT_FOUND, "", f"{argv[0]}: no such program")
        limiter = module.get_bin_path("timeout", required=False)
        prefix = [limiter, f"--kill-after={_KILL_AFTER:.0f}", str(timeout)] if limiter else []
        deadline = _Deadline(timeout + _KILL_AFTER + _MARGIN if limiter else timeout)
        try:
            rc, stdout, stderr = module.run_command(
                [*prefix, program, *argv[1:]],
                environ_update={**C_LOCALE, **(environment or {})},
                handle_exceptions=True,
                # Arguments are passed literally, including paths and passwords with $ or ~.
                expand_user_and_vars=False,
                errors="surrogateescape",
                before_communicate_callback=deadline.watch,
                umask=_UMASK,
            )
        finally:
            deadline.end()
        return Result(TIMED_OUT if deadline.passed else rc, stdout, stderr)

    return run
