# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Query the running dockerd on its socket, and find programs in its PATH."""

from __future__ import annotations

import http.client
import json
import os
import socket
from typing import Any

_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        # For the Host header, which dockerd requires and ignores.
        super().__init__("docker", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(self.timeout)
            connection.connect(self._path)
        except OSError:
            connection.close()
            raise
        self.sock = connection


def read_info(path: str, timeout: float = 10.0) -> dict[str, Any] | None:
    """Return the response to ``GET /info``; None if dockerd does not respond.

    Only for a running daemon: with socket activation the request would start one.

    :param timeout: seconds to wait for the connection and for each read.
    """
    connection = _UnixConnection(path, timeout)
    try:
        connection.request("GET", "/info")
        response = connection.getresponse()
        data = json.loads(response.read()) if response.status == http.client.OK else None
    except (OSError, ValueError, RecursionError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return data if isinstance(data, dict) else None


def find_program(name: str, pid: int | None = None) -> str | None:
    """Return the program's path, found in the PATH of the process ``pid`` or in a default PATH."""
    if "/" in name:
        return name if _executable(name) else None
    for folder in _search_path(pid).split(":"):
        path = os.path.join(folder, name)
        if folder and _executable(path):
            return path
    return None


def _search_path(pid: int | None) -> str:
    if pid is not None:
        try:
            with open(f"/proc/{pid}/environ", "rb") as handle:
                for entry in handle.read().split(b"\0"):
                    if entry.startswith(b"PATH="):
                        return os.fsdecode(entry[5:])
        except OSError:
            pass
    return _DEFAULT_PATH


def _executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
