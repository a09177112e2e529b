# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stage ends with the process that runs it, also when that one is killed."""

from __future__ import annotations

import os
import select
import subprocess
import sys

import pytest

from tests.tools import attached
from tests.tools.environments import REPOSITORY

PATIENCE = 60.0
SLEEPER = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
# A stage as `run_stages` starts it: a process, and one that it starts itself.
NESTED = [sys.executable, "-c", f"import subprocess; subprocess.run({SLEEPER!r})"]


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_status_is_the_commands(code):
    argv = [sys.executable, attached.__file__, sys.executable, "-c", f"raise SystemExit({code})"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as process:
        # `with` closes the pipe at its end only.
        assert process.wait(PATIENCE) == code


@pytest.mark.parametrize("command", [SLEEPER, NESTED])
def test_all_ends_where_the_caller_is_killed(command):
    """The caller is a process that holds the pipe; the output closes when nobody is left."""
    caller = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, {attached.__file__!r}, *{command!r}],"
        " stdin=subprocess.PIPE)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", caller], stdout=subprocess.PIPE, cwd=REPOSITORY
    ) as process:
        assert process.stdout is not None
        output = process.stdout.fileno()
        assert os.read(output, 10) == b"up\n"
        process.kill()
        readable, _writable, _errors = select.select([output], [], [], PATIENCE)
        assert readable and os.read(output, 10) == b"", "somebody still holds the output"
