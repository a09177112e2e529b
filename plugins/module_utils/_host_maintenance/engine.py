# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The containers of the host's dockerd: read, stop, start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .._core.errors import KubegpuError
from .containers import gpu_runtimes, read_container
from .types import NO_POLICY, Container, Stopped

# method, path, body, timeout in seconds -> status and document
Call = Callable[..., "tuple[int, Any]"]

_OK = (200, 201, 204)
# The container is in the requested state already.
_SAME = 304
_MISSING = 404
# What Docker itself takes if a container has none.
_STOP_TIMEOUT = 10
# Docker kills a container after its time, and then has to unmount its files.
_MARGIN = 60


class Engine:
    """Requests to one dockerd."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def running(self) -> list[Container]:
        """Return the running containers.

        :raises KubegpuError: dockerd does not answer, or refuses.
        """
        info = self._get("/info")
        runtimes = gpu_runtimes(info if isinstance(info, dict) else {})
        found = []
        for one in self._get("/containers/json") or ():
            # It can end between the two requests.
            data = self._get(f"/containers/{one['Id']}/json")
            if data is not None and (data.get("State") or {}).get("Running"):
                found.append(read_container(data, runtimes))
        return found

    def is_running(self, identity: str) -> bool | None:
        """Return whether the container runs; None if it does not exist any more."""
        data = self._get(f"/containers/{identity}/json")
        return None if data is None else bool((data.get("State") or {}).get("Running"))

    def stop(self, container: Container) -> None:
        """Stop a container as ``docker stop`` does; one that has ended is no error.

        A container with a restart policy would come back when dockerd is restarted, even one that
        was stopped manually, so that it has none until it is started again.
        """
        if container.policy != NO_POLICY:
            self._set_policy(container.id, NO_POLICY, 0)
        limit = _STOP_TIMEOUT if container.stop_timeout is None else container.stop_timeout
        # A negative time means that Docker waits without a limit.
        timeout = limit + _MARGIN if limit >= 0 else None
        self._post(f"/containers/{container.id}/stop", None, timeout)

    def start(self, stopped: Stopped) -> None:
        """Start a container, and restore its restart policy."""
        self._post(f"/containers/{stopped.id}/start")
        if stopped.policy != NO_POLICY:
            self._set_policy(stopped.id, stopped.policy, stopped.retries)

    def _set_policy(self, identity: str, name: str, retries: int) -> None:
        policy = {"Name": name, "MaximumRetryCount": retries}
        self._post(f"/containers/{identity}/update", {"RestartPolicy": policy})

    def _get(self, path: str) -> Any:
        """Return the document; None if there is no such container."""
        return self._send("GET", path)

    def _post(
        self, path: str, body: Mapping[str, Any] | None = None, timeout: float | None = _MARGIN
    ) -> None:
        self._send("POST", path, body, timeout)

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        timeout: float | None = _MARGIN,
    ) -> Any:
        status, data = self._call(method, path, body, timeout)
        if status in _OK:
            return data
        if status in (_SAME, _MISSING):
            return None
        message = data.get("message") if isinstance(data, dict) else None
        raise KubegpuError(
            "dockerd refused a request.",
            evidence=f"{method} {path}: {status} {message or ''}".rstrip(),
            next_step="See what the message names, and run again.",
            code="docker_refused",
        )
