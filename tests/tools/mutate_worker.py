# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs tests again and again in a copy of the checkout, each time in a process that is forked.

The libraries that tests import are there already then: their import costs more than most tests.
One JSON object a line comes in (``Job``), one goes out (``Outcome``).
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

# What tests and node code import, and a mutant never is. One that is not there is not needed.
_LIBRARIES = (
    "pytest", "_pytest.assertion.rewrite", "hypothesis", "_hypothesis_pytestplugin", "tomlkit",
    "tomllib", "yaml", "ansible.module_utils.basic", "ansible.module_utils.testing",
    "ansible.module_utils.urls", "multiprocessing", "unittest.mock",
)  # fmt: skip
_PASSED, _FAILED, _STOPPED = 0, 1, 2
_BEST_OF_MEMORY = 4 << 30


def _tests(job: dict[str, Any], log: Path) -> NoReturn:
    """Run the tests of a job, as a process of its own. Endless loops end by the limits."""
    code = 70
    try:
        os.setsid()
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(output, stream)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (job["cpu"], job["cpu"]))
        resource.setrlimit(resource.RLIMIT_AS, (_BEST_OF_MEMORY, _BEST_OF_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        pytest = importlib.import_module("pytest")
        code = int(pytest.main(["-x", "-q", *job["options"], *job["tests"]]))
    except BaseException:
        traceback.print_exc()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _run(job: dict[str, Any], log: Path) -> dict[str, Any]:
    """Fork, wait for the end or the time limit, and leave no process behind."""
    begin = time.monotonic()
    child = os.fork()
    if child == 0:
        _tests(job, log)
    ended = os.pidfd_open(child)
    try:
        in_time = bool(select.select([ended], [], [], job["seconds"])[0])
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            # Before setsid the process is in our group.
            os.kill(child, signal.SIGKILL)
        _pid, status, usage = os.wait4(child, 0)
        os.close(ended)
    code = os.waitstatus_to_exitcode(status)
    if not in_time or -code in (signal.SIGXCPU, signal.SIGKILL):
        end = "time limit"
    elif code < 0:
        end = f"error: signal {-code}"
    else:
        end = {_PASSED: "passed", _FAILED: "failed", _STOPPED: "failed"}.get(code, f"error {code}")
    return {
        "end": end,
        "cpu": usage.ru_utime + usage.ru_stime,
        "seconds": time.monotonic() - begin,
        "output": log.read_text(encoding="utf-8", errors="replace") if end != "passed" else "",
    }


def main() -> None:
    """Take jobs from standard input until it ends."""
    sys.path.insert(0, os.getcwd())
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    log = Path("build", "mutate.log")
    log.parent.mkdir(exist_ok=True)
    for line in sys.stdin:
        job = json.loads(line)
        path, changed = job.get("path"), job.get("text")
        if path:
            as_it_was = Path(path).read_bytes()
            Path(path).write_text(changed, encoding="utf-8")
        try:
            outcome = _run(job, log)
        finally:
            if path:
                Path(path).write_bytes(as_it_was)
        print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main()
