# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands of this machine: list arguments, C locale, root through sudo where needed."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_STARTED = time.monotonic()


class TestbedError(Exception):
    """Something that the person at the keyboard has to know."""

    __test__ = False


def say(text: str) -> None:
    """A progress line with the seconds since the command began."""
    print(f"[{time.monotonic() - _STARTED:6.1f} s] {text}", flush=True)


def as_root(argv: Sequence[str]) -> list[str]:
    """The same command, with sudo in front where this user is not root."""
    return list(argv) if os.geteuid() == 0 else ["sudo", "-E", *argv]


def run(
    argv: Sequence[str],
    *,
    root: bool = False,
    check: bool = True,
    stdin: str | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float = 600,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command and give its output back; TestbedError quotes the end of it on failure."""
    command = as_root(argv) if root else list(argv)
    try:
        done = subprocess.run(
            command,
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            env={**os.environ, "LC_ALL": "C.UTF-8", **(environment or {})},
            timeout=timeout,
            cwd=cwd,
        )
    except FileNotFoundError as error:
        raise TestbedError(f"{command[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise TestbedError(f"no answer within {timeout:.0f} s: {shlex.join(command)}") from error
    if check and done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise TestbedError(f"exit status {done.returncode}: {shlex.join(command)}\n{tail}")
    return done


def stream(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    log: Path | None = None,
    shown: Callable[[str], bool] = lambda _line: True,
) -> tuple[int, str]:
    """Run a command whose output a person follows; gives exit status and the whole output.

    :param shown: whether a line is shown; the log has all of them.
    """
    lines: list[str] = []
    with subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, **(environment or {})},
        cwd=cwd,
    ) as process:
        for line in process.stdout or ():
            if shown(line):
                sys.stdout.write(line)
                sys.stdout.flush()
            lines.append(line)
    text = "".join(lines)
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(text)
    return process.returncode, text
