# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the status and the runtime handlers of a running CRI service."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

from .._core.errors import KubegpuError
from .._host.command import Runner


@dataclass(frozen=True)
class CriStatus:
    """Status of a CRI service. ``handlers`` is None if the tool used does not list them."""

    ready: bool
    handlers: frozenset[str] | None = None
    message: str = ""


CRIO_SOCKET = "/var/run/crio/crio.sock"


def read_status(
    run: Runner, socket: str, crictl: str = "crictl", ctr: tuple[str, ...] | None = ("ctr",)
) -> CriStatus:
    """Return the status as reported by ``crictl``, or by ``ctr`` if ``crictl`` is not installed.

    ``ctr`` reports whether the CRI plugin runs, but not its handlers. With ``ctr=None`` (CRI-O) and
    without ``crictl``, the service counts as ready.
    """
    info = run([crictl, f"--runtime-endpoint=unix://{socket}", "--timeout=5s", "info"])
    if info.rc != 127:
        return read_info(info.stdout) if info.ok else CriStatus(False, message=info.last_output())
    if ctr is None:
        return CriStatus(True)
    plugins = run([*ctr, "--address", socket, "--timeout=5s", "plugins", "ls"], timeout=10)
    if not plugins.ok:
        return CriStatus(False, message=plugins.last_output())
    return read_plugins(plugins.stdout)


def read_info(text: str) -> CriStatus:
    """Parse the JSON output of ``crictl info``."""
    try:
        data = json.loads(text)
        conditions = data["status"]["conditions"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return CriStatus(False, message=f"crictl info: {error}")
    # NetworkReady is ignored: the node may not have joined its cluster yet.
    ready = any(item.get("type") == "RuntimeReady" and item.get("status") for item in conditions)
    names: set[str] = set()
    config = data.get("config")
    if isinstance(config, Mapping):
        runtimes: Any = config.get("containerd", {}).get("runtimes", {})
        names |= set(runtimes)
    names |= {item.get("name", "") for item in data.get("runtimeHandlers") or ()}
    message = "" if ready else "RuntimeReady is false"
    return CriStatus(ready, frozenset(names - {""}) or None, message)


def read_plugins(text: str) -> CriStatus:
    """Parse ``ctr plugins ls`` (TYPE, ID, PLATFORMS, STATUS).

    CRI is one plugin or several, by release; all of them must run.
    """
    states = _cri_plugins(text)
    if not states:
        return CriStatus(False, message="ctr plugins ls names no CRI plugin")
    wrong = {name: state for name, state in states.items() if state != "ok"}
    message = ", ".join(f"{name}: {state}" for name, state in wrong.items())
    return CriStatus(not wrong, message=message)


def _cri_plugins(text: str) -> dict[str, str]:
    states = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 4 and (
            (fields[0] == "io.containerd.grpc.v1" and fields[1] == "cri")
            or fields[0] == "io.containerd.cri.v1"
        ):
            states[f"{fields[0]}.{fields[1]}"] = fields[-1]
    return states


def read_status_or_off(run: Runner, socket: str, crictl: str, ctr: tuple[str, ...]) -> CriStatus:
    """Return the status as :func:`read_status`; ready also if containerd serves without CRI."""
    status = read_status(run, socket, crictl, ctr)
    if status.ready:
        return status
    plugins = run([*ctr, "--address", socket, "--timeout=5s", "plugins", "ls"], timeout=10)
    off = plugins.ok and plugins.stdout.strip() and not _cri_plugins(plugins.stdout)
    return CriStatus(True) if off else status


def wait_until_ready(
    probe: Callable[[], CriStatus],
    handler: str | None,
    timeout: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until CRI is ready and, if it lists its handlers, has ``handler``.

    :param timeout: time limit in seconds.
    :raises KubegpuError: it is not ready in time.
    """
    deadline = clock() + timeout
    while True:
        status = probe()
        missing = (
            handler is not None and status.handlers is not None and handler not in status.handlers
        )
        if status.ready and not missing:
            return
        if clock() >= deadline:
            message = status.message
            if status.ready and missing:
                message = f"it knows the handlers {', '.join(sorted(status.handlers or ()))}"
            raise KubegpuError(
                f"CRI did not come back with the handler {handler} within {timeout:.0f} seconds."
                if handler
                else f"CRI did not come back within {timeout:.0f} seconds.",
                evidence=message,
            )
        sleep(0.25)
