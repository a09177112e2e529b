# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Send requests to the running dockerd on its socket, and find programs in its PATH."""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Mapping
from typing import Any

from .._core.errors import KubegpuError

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


def call(
    path: str, method: str, target: str, body: Mapping[str, Any] | None = None, timeout: float = 60
) -> tuple[int, Any]:
    """Return the status and the document of a response; None for a response without one.

    Only for a running daemon: with socket activation the request would start one.

    :param timeout: seconds to wait for the connection and for each read.
    :raises KubegpuError: dockerd does not respond.
    """
    connection = _UnixConnection(path, timeout)
    headers = {} if body is None else {"Content-Type": "application/json"}
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method, target, text, headers)
        response = connection.getresponse()
        content = response.read()
        return response.status, json.loads(content) if content.strip() else None
    except (OSError, ValueError, RecursionError, http.client.HTTPException) as error:
        raise KubegpuError(
            f"dockerd does not answer on {path}.",
            evidence=f"{method} {target}: {type(error).__name__}: {error}",
            next_step="See that Docker runs: journalctl --unit docker.",
            code="docker_not_asked",
        ) from error
    finally:
        connection.close()


def read_info(path: str, timeout: float = 10.0) -> dict[str, Any] | None:
    """Return the response to ``GET /info``; None if dockerd does not respond."""
    try:
        status, data = call(path, "GET", "/info", timeout=timeout)
    except KubegpuError:
        return None
    return data if status == http.client.OK and isinstance(data, dict) else None


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
