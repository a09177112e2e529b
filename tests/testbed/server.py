# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Serve the repository to the nodes: on the gateway of their own bridge and nowhere else."""

from __future__ import annotations

import contextlib
import functools
import http.client
import http.server
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.testbed import network
from tests.testbed.paths import BUILD, REPOSITORY
from tests.testbed.repository import repository
from tests.testbed.shell import TestbedError

PORT = 8765
_PIDFILE = BUILD / "server.pid"
_LOG = BUILD / "server.log"


def url() -> str:
    """The repository's address as the nodes see it."""
    return f"http://{network.look().gateway}:{PORT}"


def up() -> str:
    """Start the server if it does not run; give its address."""
    folder = repository()
    gateway = network.look().gateway
    if _serves(gateway, folder):
        return url()
    down()
    BUILD.mkdir(parents=True, exist_ok=True)
    with _LOG.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.testbed", "serve", gateway, str(folder)],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _PIDFILE.write_text(f"{process.pid}\n")
    deadline = time.monotonic() + 10
    while not _serves(gateway, folder):
        if time.monotonic() > deadline or process.poll() is not None:
            raise TestbedError(f"the repository's server does not answer; see {_LOG}")
        time.sleep(0.1)
    return url()


def down() -> None:
    """Stop the server that we started, and nothing else."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(_PIDFILE.read_text())
        if b"tests.testbed" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGTERM)
    _PIDFILE.unlink(missing_ok=True)


def serve(address: str, folder: str) -> None:
    """Serve ``folder`` on ``address`` until stopped."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer((address, PORT), handler) as server:
        server.serve_forever()


def _serves(address: str, folder: Path) -> bool:
    connection = http.client.HTTPConnection(address, PORT, timeout=2)
    try:
        connection.request("GET", "/gpgkey")
        return connection.getresponse().read() == (folder / "gpgkey").read_bytes()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
