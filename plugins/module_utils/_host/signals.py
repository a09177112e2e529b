# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Let a module clean up when a signal asks it to stop."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal asked the module to stop; its text is the signal's name.

    No subclass of Exception, so that no handler of ordinary errors swallows it.
    """


def raise_on_signals() -> None:
    """Raise :class:`Interrupted` in the main thread on the first signal; ignore those after it."""
    for number in SIGNALS:
        signal.signal(number, _interrupt)


def ignore_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def end_children() -> None:
    """Ask the child processes of this process to end."""
    with contextlib.suppress(OSError, ValueError):
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as handle:
            children = [int(word) for word in handle.read().split()]
        for child in children:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGTERM)


def _interrupt(number: int, _frame: Any) -> None:
    ignore_signals()
    raise Interrupted(signal.Signals(number).name)
