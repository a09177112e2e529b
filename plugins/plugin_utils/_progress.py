# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Progress of long tasks: what they wait for, and how long; after 30 s, then once a minute.

The lines go to standard error and to Ansible's log. Ansible does not flush standard output while a
task runs, so that a line there reaches a file or a pipe only with the next task; and a program may
read it, as with the callback ``json``.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable

display = Display()

_FIRST = 30.0
_NEXT = 60.0
_MOST_NAMES = 5


def duration(seconds: float) -> str:
    """Return seconds as minutes and seconds."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"


def some_names(named: Any) -> str:
    """Return the first keys of an option as it was given, which may be anything."""
    names = [str(name) for name in named] if isinstance(named, Mapping) else []
    more = len(names) - _MOST_NAMES
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{shown} and {more} more" if more > 0 else shown or "no node"


class Progress:
    """Shows the lines of a task or of one of its steps when they are due.

    :param action: the task's action. With ``no_log``, only the time is shown.
    """

    def __init__(
        self,
        action: ActionBase,
        task_vars: dict[str, Any] | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.host = str((task_vars or {}).get("inventory_hostname", "node"))
        self._hides = bool(action._task.no_log)
        self._clock = clock
        self._begin = clock()
        self._due = self._begin + _FIRST

    @property
    def pause(self) -> float:
        """The seconds until a line is due; 0 if one is."""
        return max(0.0, self._due - self._clock())

    def show(self, text: str, limit: float = 0) -> None:
        """Show this for the host, whether or not a line is due.

        :param limit: seconds that the task may take; 0 if that is not known.
        """
        self.show_all([f"{self.host}: {text}"], limit)

    def show_all(self, lines: Iterable[str], limit: float = 0) -> None:
        """Show lines that name their host themselves."""
        now = self._clock()
        self._due = now + _NEXT
        time_of_all = f"for {duration(now - self._begin)}"
        if limit:
            time_of_all += f" of at most {duration(limit)}"
        for line in [f"{self.host}: running"] if self._hides else lines:
            display.display(printable(f"{line}, {time_of_all}"), stderr=True)


@contextlib.contextmanager
def show_lines(progress: Progress, lines: Iterable[str], late: float = 0) -> Iterator[None]:
    """Show the lines while the block runs, which cannot show anything itself.

    The thread ends before the block is left: a process that exits while it writes to Ansible's
    queue would leave the queue locked.

    :param late: seconds that a line may be late.
    """
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(progress.pause + late):
            progress.show_all(lines)

    thread = threading.Thread(target=work, name="kubegpu-progress", daemon=True)
    try:
        # A machine that has no thread left shows nothing; the task itself continues.
        with contextlib.suppress(RuntimeError):
            thread.start()
        yield
    finally:
        ended.set()
        if thread.ident:
            thread.join()


@contextlib.contextmanager
def show_progress(
    action: ActionBase, task_vars: dict[str, Any] | None, text: str
) -> Iterator[None]:
    """Show ``text`` for the host while the block runs."""
    progress = Progress(action, task_vars)
    with show_lines(progress, [f"{progress.host}: {text}"]):
        yield


def run_with_progress(
    action: ActionBase,
    name: str,
    arguments: dict[str, Any],
    task_vars: dict[str, Any],
    text: str,
) -> dict[str, Any]:
    """Run the module ``name`` and return its result, as ``_execute_module`` would."""
    with show_progress(action, task_vars, text):
        answer: dict[str, Any] = action._execute_module(
            module_name=name, module_args=arguments, task_vars=task_vars
        )
    return answer
