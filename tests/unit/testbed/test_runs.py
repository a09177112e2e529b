# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run starts ends with it, also when it is killed, and its temporary folder goes."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.testbed import paths, runs

PATIENCE = 120.0
# It begins a run, starts a process in a session of its own, and makes a file.
RUN = """
import os, subprocess, sys, tempfile
from tests.testbed import runs
runs.begin()
handle, name = tempfile.mkstemp()
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(os.path.dirname(name), flush=True)
sys.stdin.read()
runs.end()
"""


@pytest.mark.parametrize("killed", [True, False])
def test_nothing_of_a_run_stays(killed):
    ours = (runs.RUN_VARIABLE, runs._FOLDER, "TMPDIR")
    with subprocess.Popen(
        [sys.executable, "-c", RUN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=paths.REPOSITORY,
        env={name: value for name, value in os.environ.items() if name not in ours},
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        folder = Path(process.stdout.readline().decode().strip())
        assert folder.is_dir() and folder != Path(os.environ["TMPDIR"])
        if killed:
            process.send_signal(signal.SIGKILL)
        process.stdin.close()
        # The process in a session of its own holds the other end until it is gone.
        ended, _write, _error = select.select([process.stdout], [], [], PATIENCE)
        assert ended and process.stdout.read() == b""
        deadline = time.monotonic() + PATIENCE
        while folder.exists():
            assert time.monotonic() < deadline, f"{folder} is kept"
            time.sleep(0.05)
