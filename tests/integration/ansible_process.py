# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``ansible-playbook`` and ``ansible`` without their start: each run is a fork of one process.

A run is the program itself, with its arguments, its own process and its exit status. What it shares
with the run before is what Python has imported and the modules that Ansible has packed: that is
two thirds of what a short run costs. The process that forks is ansible_forks.py.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

# Set where a run is to be a program of its own, a child of its caller, for it will be killed.
AS_PROGRAM = "KUBEGPU_ANSIBLE_AS_PROGRAM"
# A folder that gets what each test's runs printed, a file for each test.
OUTPUTS = "KUBEGPU_TEST_OUTPUTS"

_FORKS = Path(__file__).with_name("ansible_forks.py")
# Those that wait for their next run, by what they have read of the environment.
_idle: dict[str, list[_Forker]] = {}
_lock = threading.Lock()


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    timeout: float,
    prefix: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """Do as ``subprocess.run`` does with text that is captured; the first word names the program.

    :param prefix: what the process that forks is started by, as one that enters a namespace.
    :raises subprocess.TimeoutExpired: and the run is killed.
    """
    if os.environ.get(AS_PROGRAM):
        return subprocess.run(
            [*prefix, *argv],
            env=env, cwd=cwd, timeout=timeout, capture_output=True, text=True, check=False,
        )  # fmt: skip
    # Ansible reads its settings when it is imported. pytest tells the name of the test.
    given = {name: value for name, value in env.items() if not name.startswith("PYTEST_")}
    key = json.dumps([given, str(cwd), list(prefix)], sort_keys=True)
    with _lock:
        waiting = _idle.setdefault(key, [])
        forker = waiting.pop() if waiting else None
    forker = forker or _Forker(given, cwd, prefix)
    try:
        done = forker.run(argv, timeout)
    except BaseException:
        forker.close()
        raise
    with _lock:
        _idle[key].append(forker)
    _keep(done)
    return done


def _keep(done: subprocess.CompletedProcess[str]) -> None:
    folder = os.environ.get(OUTPUTS)
    if not folder:
        return
    # FILE::TEST (PHASE)
    test = os.environ.get("PYTEST_CURRENT_TEST", "none").rpartition("/")[2].partition(" (")[0]
    path = Path(folder, re.sub(r"[^\w.-]+", "-", test) + ".txt")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        words = shlex.join(done.args)
        file.write(f"$ {words}\n{done.stdout}{done.stderr}exit status {done.returncode}\n\n")


class _Forker:
    """The process that has Ansible imported; one run at a time."""

    def __init__(self, env: Mapping[str, str], cwd: Path, prefix: Sequence[str]):
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            # Without the folder of this file on its path.
            self._process = subprocess.Popen(
                [*prefix, sys.executable, "-P", str(_FORKS), str(theirs.fileno())],
                env=dict(env), cwd=cwd, pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip

    def run(self, argv: Sequence[str], timeout: float) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
            request = json.dumps(list(argv)).encode() + b"\n"
            socket.send_fds(self._ours, [request], [out.fileno(), error.fileno()])
            self._ours.settimeout(timeout)
            try:
                answer = self._ours.recv(64)
            except TimeoutError:
                raise subprocess.TimeoutExpired(list(argv), timeout) from None
            said = []
            for file in (out, error):
                file.seek(0)
                said.append(file.read().decode(errors="replace"))
        if not answer:
            raise RuntimeError(f"the process with Ansible has ended: {said}")
        return subprocess.CompletedProcess(list(argv), int(answer), *said)

    def close(self) -> None:
        """End it; a run that is under way is killed."""
        self._ours.close()
        self._process.wait()


@atexit.register
def _close_all() -> None:
    for forker in [one for waiting in _idle.values() for one in waiting]:
        forker.close()
    _idle.clear()
