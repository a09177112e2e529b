# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask CRI for its version again and again, and print for how long there was no answer.

Sent to a node on stdin of its Python, behind tests/testbed/cri.py and without what imports that:
``python3 - SECONDS``.
"""

from __future__ import annotations

import os
import sys
import time

from tests.testbed.cri import call

_PAUSE = 0.05
_STOP = "/run/bench-stop"


def answers() -> bool:
    try:
        return bool(call("Version", b""))
    except (OSError, SystemExit):
        return False


def watch(seconds: float) -> tuple[int, float]:
    """Return how often and how long nobody answered, until it is told to stop."""
    gaps, lost = 0, 0.0
    last = time.monotonic()
    end = last + seconds
    there = True
    while time.monotonic() < end and not os.path.exists(_STOP):
        now_there = answers()
        now = time.monotonic()
        if now_there:
            if not there:
                lost += now - last
            last = now
        elif there:
            gaps += 1
        there = now_there
        time.sleep(_PAUSE)
    if not there:
        # It has not come back.
        lost += time.monotonic() - last
    return gaps, lost


if __name__ == "__main__":
    print(*watch(float(sys.argv[1])))
