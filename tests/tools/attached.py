# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a command that ends with the process that asked for it, however that one ends.

``python -m tests.tools.attached COMMAND``: the caller holds the writing end of standard input. When
it is closed, as the kernel does for a process that is killed, the command's whole process group is
told to end, and killed if it does not.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence

# Time for fixtures to take down what they brought up.
_GRACE_SECONDS = 60.0


def main(command: Sequence[str]) -> int:
    """Return the command's exit status; 1 where it was ended."""
    # Ctrl-C reaches the caller, and from there this process by its standard input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    ended = os.pidfd_open(process.pid)
    readable, _writable, _errors = select.select([ended, sys.stdin], [], [])
    if ended not in readable:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_SECONDS)
        return 1
    code = process.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
