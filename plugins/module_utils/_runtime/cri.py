# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask a running CRI service whether it answers and which runtime handlers it knows."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

from .._core.errors import KubegpuError
from .._host.command import Runner


@dataclass(frozen=True)
class Answer:
    """What CRI said. ``handlers`` is None where the tool at hand cannot name them."""

    ready: bool
    handlers: frozenset[str] | None = None
    words: str = ""


CRIO_SOCKET = "/var/run/crio/crio.sock"


def ask(
    run: Runner, socket: str, crictl: str = "crictl", ctr: tuple[str, ...] | None = ("ctr",)
) -> Answer:
    """Return CRI's answer: by ``crictl`` where it is installed, else by containerd's own ``ctr``.

    ``ctr`` says whether the CRI plugin runs, but not which handlers it has. Without it (CRI-O) a
    service that nobody can ask counts as ready.
    """
    info = run([crictl, f"--runtime-endpoint=unix://{socket}", "--timeout=5s", "info"])
    if info.rc != 127:
        return read_info(info.stdout) if info.ok else Answer(False, words=info.words())
    if ctr is None:
        return Answer(True)
    plugins = run([*ctr, "--address", socket, "--timeout=5s", "plugins", "ls"], timeout=10)
    if not plugins.ok:
        return Answer(False, words=plugins.words())
    return read_plugins(plugins.stdout)


def read_info(text: str) -> Answer:
    """Read the JSON of ``crictl info``."""
    try:
        data = json.loads(text)
        conditions = data["status"]["conditions"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return Answer(False, words=f"crictl info: {error}")
    # The network may well be missing on a node that has not joined its cluster yet.
    ready = any(item.get("type") == "RuntimeReady" and item.get("status") for item in conditions)
    names: set[str] = set()
    config = data.get("config")
    if isinstance(config, Mapping):
        runtimes: Any = config.get("containerd", {}).get("runtimes", {})
        names |= set(runtimes)
    names |= {item.get("name", "") for item in data.get("runtimeHandlers") or ()}
    return Answer(ready, frozenset(names - {""}) or None, "" if ready else "RuntimeReady is false")


def read_plugins(text: str) -> Answer:
    """Read ``ctr plugins ls``: TYPE, ID, PLATFORMS, STATUS. Where CRI is one plugin or several,
    every one of them has to run."""
    states = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 4 and (
            (fields[0] == "io.containerd.grpc.v1" and fields[1] == "cri")
            or fields[0] == "io.containerd.cri.v1"
        ):
            states[f"{fields[0]}.{fields[1]}"] = fields[-1]
    if not states:
        return Answer(False, words="ctr plugins ls names no CRI plugin")
    wrong = {name: state for name, state in states.items() if state != "ok"}
    return Answer(not wrong, words=", ".join(f"{name}: {state}" for name, state in wrong.items()))


def wait_until_ready(
    question: Callable[[], Answer],
    handler: str | None,
    timeout: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Return when CRI answers and, where it can name its handlers, has ``handler``."""
    deadline = clock() + timeout
    while True:
        answer = question()
        missing = (
            handler is not None and answer.handlers is not None and handler not in answer.handlers
        )
        if answer.ready and not missing:
            return
        if clock() >= deadline:
            words = answer.words
            if answer.ready and missing:
                words = f"it knows the handlers {', '.join(sorted(answer.handlers or ()))}"
            raise KubegpuError(
                f"CRI did not come back with the handler {handler} within {timeout:.0f} seconds."
                if handler
                else f"CRI did not come back within {timeout:.0f} seconds.",
                evidence=words,
            )
        sleep(0.25)
