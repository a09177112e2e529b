# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Show on a node that containers really get the handler: each one prints the stand-in's mark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.testbed.fleet import Node
from tests.testbed.nodes import execute
from tests.testbed.paths import HERE
from tests.testbed.shell import TestbedError

IMAGE = "localhost/testbed/busybox:1"
RUNTIME_MARK = "KUBEGPU_STANDIN_RUNTIME=nvidia"
HOOK_MARK = "KUBEGPU_STANDIN_HOOK=nvidia"


@dataclass(frozen=True)
class Way:
    """One way to start a container and the mark that it must show."""

    name: str
    mark: str
    start: Callable[[Node, str], str]


def _cri(node: Node, handler: str) -> str:
    script = (HERE / "cri.py").read_text()
    return execute(node, "python3", "-", handler, IMAGE, stdin=script)


def _docker_runtime(node: Node, handler: str) -> str:
    return execute(node, "docker", "run", "--rm", "--runtime", handler, IMAGE, "/bin/env")


def _docker_gpus(node: Node, _handler: str) -> str:
    command = "cat /kubegpu-standin-hook"
    return execute(node, "docker", "run", "--rm", "--gpus", "all", IMAGE, "/bin/sh", "-c", command)


WAYS = (
    Way("CRI", RUNTIME_MARK, _cri),
    Way("--runtime nvidia", RUNTIME_MARK, _docker_runtime),
    Way("--gpus all", HOOK_MARK, _docker_gpus),
)


@dataclass(frozen=True)
class Shown:
    """What came out: the mark, or why there is none."""

    way: str
    mark: str | None
    why: str = ""


def prove(node: Node, handler: str = "nvidia") -> list[Shown]:
    """Start a container in every way."""
    shown = []
    for way in WAYS:
        try:
            lines = way.start(node, handler).split()
        except TestbedError as error:
            shown.append(Shown(way.name, None, str(error).splitlines()[-1]))
            continue
        found = way.mark in lines
        shown.append(Shown(way.name, way.mark if found else None, "" if found else "no mark"))
    return shown
