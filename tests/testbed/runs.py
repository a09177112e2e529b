# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run of the tests starts ends with it, also when it is killed.

A run is known by the process that began it and by the time of that process's start. Its name is in
the environment of all that it starts, and a label on its containers and networks. A process of its
own waits for the run's end and removes what is left; should that one be killed too, the next
command that starts the engine does it. What a person brought up has no such name, and stays.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.testbed import engine, nodes
from tests.testbed.paths import REPOSITORY, RUN_LABEL, RUN_VARIABLE, cache, locked
from tests.testbed.processes import has_ended, own_name

_PATIENCE = 20.0
# The run's own folder for temporary files, in the environment beside its name.
_FOLDER = "KUBEGPU_TEST_RUN_FOLDER"


def begin() -> None:
    """Make this process the beginning of a run, unless it is a part of one."""
    name = os.environ.setdefault(RUN_VARIABLE, own_name())
    if name != own_name() or os.environ.get(_FOLDER):
        return
    # Its path is short, for sockets lie below it; others read it, as apt's own user does.
    folder = tempfile.mkdtemp(prefix="kg-")
    os.chmod(folder, 0o755)
    os.environ.update({_FOLDER: folder, "TMPDIR": folder})
    tempfile.tempdir = None
    log = cache() / "runs" / "watch.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("wb") as output:
        subprocess.Popen(
            [sys.executable, "-m", "tests.testbed.runs", name, folder],
            cwd=REPOSITORY,
            # It is no part of the run, and a signal to the run's group is not for it.
            env=_without_run(),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def end() -> None:
    """Remove what the run of this process started; only the process that began it does so."""
    name = os.environ.get(RUN_VARIABLE, "")
    if name != own_name():
        return
    _finish(name, os.environ.get(_FOLDER, ""))
    for variable in (RUN_VARIABLE, _FOLDER, "TMPDIR"):
        os.environ.pop(variable, None)
    tempfile.tempdir = None


def sweep(name: str = "") -> None:
    """Remove what runs left that have ended, and all of the run ``name``."""

    def gone(other: str) -> bool:
        return other == name or has_ended(other)

    with locked("sweep"):
        _end_processes(gone)
        if engine.answers():
            nodes.remove_labelled(RUN_LABEL, gone)


def _without_run() -> dict[str, str]:
    ours = (RUN_VARIABLE, _FOLDER, "TMPDIR")
    return {key: value for key, value in os.environ.items() if key not in ours}


def _processes(gone: Callable[[str], bool]) -> Iterator[int]:
    """The processes of such runs, by their environment, save this one and those that began it."""
    mine = set(_ancestors(os.getpid()))
    mark = f"{RUN_VARIABLE}=".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in mine:
            continue
        with contextlib.suppress(OSError):
            for word in (entry / "environ").read_bytes().split(b"\0"):
                if word.startswith(mark) and gone(word[len(mark) :].decode(errors="replace")):
                    yield int(entry.name)


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 0:
        yield pid
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        pid = int(fields[1])


def _end_processes(gone: Callable[[str], bool]) -> None:
    """End them, politely first; a process that one of them starts meanwhile is found again."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            handles = []
            for pid in _processes(gone):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    handle = os.pidfd_open(pid)
                    handles.append(handle)
                    signal.pidfd_send_signal(handle, number)
            if not handles:
                return
            for handle in handles:
                _wait(handle, max(0.0, deadline - time.monotonic()))
                os.close(handle)


def _wait(handle: int, seconds: float | None) -> None:
    """Wait until the process of this handle has ended."""
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    waiting.poll(None if seconds is None else seconds * 1000)


def _finish(name: str, folder: str) -> None:
    sweep(name)
    if folder:
        _remove(Path(folder))
    engine.stop_unused(name)


def _remove(folder: Path) -> None:
    """Remove a folder; what a killed daemon left mounted below it is unmounted first."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for place in reversed([one for one in mounts if one.startswith(f"{folder}/")]):
        subprocess.run(["umount", "--lazy", place], check=False)
    shutil.rmtree(folder, ignore_errors=True)


def _watch(name: str, folder: str) -> None:
    """Wait for the end of the process that began the run, then clean up after it."""
    # The checkout may be gone by then.
    os.chdir("/")
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(int(name.split(".")[2]))
        if not has_ended(name):
            _wait(handle, None)
    _finish(name, folder)


if __name__ == "__main__":
    _watch(*sys.argv[1:])
