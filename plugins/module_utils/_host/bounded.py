# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a program with limits of time and output, and pass its output on in parts.

The runner of ``command.py`` keeps the whole output, and waits some seconds longer than its limit.
Here a program is killed with its process group when a limit is reached. One that cannot be killed
(state D: a hung driver) is left behind, and its state in the kernel is returned.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .command import C_LOCALE, NOT_FOUND, TIMED_OUT, Result
from .environment import clean_environment

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

_PART = 65536
_MOST_ERRORS = 65536
# Seconds to wait for a process after SIGKILL, and between two checks of it.
_AFTER_KILL = 2.0
_INTERVAL = 0.02
# Seconds after which a program is found to have ended, although a child keeps its output open.
_LOOK = 0.5


@dataclass(frozen=True)
class Hang:
    """A program that did not end in time.

    :param state: its state in the kernel before it was killed: D cannot be interrupted.
    :param wchan: the function of the kernel in which it waited; None if that is not readable.
    :param left: whether it is still there after SIGKILL.
    """

    program: str
    pid: int
    seconds: float
    state: str | None
    wchan: str | None
    left: bool


#: A :class:`Hang` as an option of a module: what another module has found is not asked again.
HANG_ARGUMENTS: dict[str, dict[str, Any]] = {
    "program": {"type": "str", "required": True},
    "pid": {"type": "int", "default": 0},
    "seconds": {"type": "float", "default": 0.0},
    "state": {"type": "str"},
    "wchan": {"type": "str"},
    "left": {"type": "bool", "default": False},
}


def read_hang(given: Mapping[str, Any] | None) -> Hang | None:
    """Return the hang that an option or a fact has; None without one."""
    return Hang(**{name: given[name] for name in HANG_ARGUMENTS}) if given else None


@dataclass(frozen=True)
class Ended:
    """How a program ended.

    :param rc: its status; 127 if there is no such program, None if a limit was reached.
    :param size: the bytes of its output that were passed on.
    :param hang: set if the limit of time was reached.
    :param too_long: whether the limit of output was reached.
    """

    rc: int | None
    stderr: str = ""
    size: int = 0
    seconds: float = 0.0
    hang: Hang | None = None
    too_long: bool = False


# (argv, consume, seconds, most bytes) -> Ended
Stream = Callable[[Sequence[str], Callable[[bytes], None], float, int], Ended]


def module_stream(module: AnsibleModule) -> Stream:
    """Return a callable that runs a program of the module's node in the C locale.

    It is called with the arguments, a function that is given each part of the standard output, the
    limit in seconds, and the most bytes of output.
    """
    clean_environment(module.warn)

    def run(
        argv: Sequence[str], consume: Callable[[bytes], None], seconds: float, most: int
    ) -> Ended:
        program = module.get_bin_path(argv[0], required=False)
        if program is None:
            return Ended(NOT_FOUND, f"{argv[0]}: no such program")
        return _Program([program, *argv[1:]]).read(consume, seconds, most)

    return run


def run_bounded(
    stream: Stream, argv: Sequence[str], seconds: float, most: int
) -> tuple[Result, Hang | None]:
    """Return the result of a program with all its output, and how it hangs if it does."""
    parts: list[bytes] = []
    ended = stream(argv, parts.append, seconds, most)
    rc = TIMED_OUT if ended.rc is None else ended.rc
    return Result(rc, b"".join(parts).decode("utf-8", "replace"), ended.stderr), ended.hang


class _Program:
    """A program in a process group of its own."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = list(argv)
        self._begin = time.monotonic()
        self._has_ended = False
        self._status: int | None = None
        output, write_output = os.pipe()
        errors, write_errors = os.pipe()
        try:
            # run_command waits for a program that cannot be killed, and keeps all that it prints.
            self.pid = os.posix_spawn(  # pylint: disable=ansible-bad-function
                self._argv[0],
                self._argv,
                {**os.environ, **C_LOCALE},
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, write_output, 1),
                    (os.POSIX_SPAWN_DUP2, write_errors, 2),
                ],
                setpgroup=0,
                # Python ignores it, and a child would inherit that.
                setsigdef=[signal.SIGPIPE],
            )
        except OSError:
            os.close(output)
            os.close(errors)
            raise
        finally:
            os.close(write_output)
            os.close(write_errors)
        self._output, self._errors = output, errors

    def read(self, consume: Callable[[bytes], None], seconds: float, most: int) -> Ended:
        """Pass the output on until the program ends or a limit is reached."""
        errors, size, too_long = b"", 0, False
        pipes = {self._output, self._errors}
        deadline = self._begin + seconds
        try:
            while pipes and not too_long:
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                ready = select.select(list(pipes), [], [], min(left, _LOOK))[0]
                if not ready and self._ended():
                    break
                for pipe in ready:
                    part = os.read(pipe, _PART)
                    if not part:
                        pipes.discard(pipe)
                    elif pipe == self._errors:
                        errors = (errors + part)[:_MOST_ERRORS]
                    else:
                        too_long = size + len(part) > most
                        part = part[: most - size]
                        size += len(part)
                        consume(part)
            while not (too_long or self._ended()) and time.monotonic() < deadline:
                time.sleep(_INTERVAL)
            state, wchan = (None, None) if self._has_ended else self._in_kernel()
        finally:
            # What was started ends, too, if a signal ends this process.
            hung = not self._has_ended and not too_long
            self._kill()
        taken = round(time.monotonic() - self._begin, 3)
        hang = None
        if hung:
            name = os.path.basename(self._argv[0])
            hang = Hang(name, self.pid, taken, state, wchan, left=self._status is None)
        rc = None if hung or too_long else self._status
        return Ended(rc, errors.decode("utf-8", "replace"), size, taken, hang, too_long)

    def _ended(self) -> bool:
        """Return whether the program has ended. It keeps its pid until :meth:`_kill`."""
        if not self._has_ended:
            options = os.WEXITED | os.WNOHANG | os.WNOWAIT
            self._has_ended = os.waitid(os.P_PID, self.pid, options) is not None
        return self._has_ended

    def _in_kernel(self) -> tuple[str | None, str | None]:
        """Return the state of the process, and where in the kernel it waits."""
        status = _read(f"/proc/{self.pid}/stat").rpartition(")")[2].split()
        wchan = _read(f"/proc/{self.pid}/wchan").strip()
        # Without root the kernel says 0.
        return (status[0] if status else None), (wchan if wchan not in ("", "0") else None)

    def _kill(self) -> None:
        """Kill the process group, and wait a moment for the process.

        Before it is waited for, the pid cannot be that of another group.
        """
        os.close(self._output)
        os.close(self._errors)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        deadline = time.monotonic() + _AFTER_KILL
        while not self._ended() and time.monotonic() < deadline:
            time.sleep(_INTERVAL)
        if self._has_ended:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as handle:
            return handle.read()
    except OSError:
        return ""
