# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tell what a long task waits for, and since when: after half a minute, then once a minute.

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


class Teller:
    """Tells the lines of one task, each in its time.

    :param action: the task's action. With ``no_log``, only the time is told.
    """

    def __init__(
        self,
        action: ActionBase,
        task_vars: dict[str, Any] | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host = str((task_vars or {}).get("inventory_hostname", "node"))
        self._hides = bool(action._task.no_log)
        self._clock = clock
        self._begin = clock()
        self._due = self._begin + _FIRST

    @property
    def pause(self) -> float:
        """The seconds until a line is due; 0 if one is."""
        return max(0.0, self._due - self._clock())

    def tell(self, text: str, limit: float = 0) -> None:
        """Tell this of the host, whether or not it is time.

        :param limit: seconds that the task may take; 0 if that is not known.
        """
        self.tell_all([f"{self._host}: {text}"], limit)

    def tell_all(self, lines: Iterable[str], limit: float = 0) -> None:
        """Tell lines that name their host themselves."""
        now = self._clock()
        self._due = now + _NEXT
        time_of_all = f"for {duration(now - self._begin)}"
        if limit:
            time_of_all += f" of at most {duration(limit)}"
        for line in [f"{self._host}: running"] if self._hides else lines:
            display.display(printable(f"{line}, {time_of_all}"), stderr=True)


@contextlib.contextmanager
def telling(action: ActionBase, task_vars: dict[str, Any] | None, text: str) -> Iterator[None]:
    """Tell ``text`` while the block runs, which cannot tell anything itself.

    The thread ends before the block is left: a process that exits while it writes to Ansible's
    queue would leave the queue locked.
    """
    ended = threading.Event()
    teller = Teller(action, task_vars)

    def work() -> None:
        while not ended.wait(teller.pause):
            teller.tell(text)

    thread = threading.Thread(target=work, name="kubegpu-telling", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
