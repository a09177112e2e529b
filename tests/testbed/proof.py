# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proof on a node: containers started through the ``nvidia`` runtime, and the mark they carry.

The stand-in runtime of the test bed marks the environment of what it starts; a container without
the mark was started by runc alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.testbed.cri import run_pod
from tests.testbed.engine import docker_argv
from tests.testbed.fleet import Node
from tests.testbed.shell import TestbedError, run

# Every node has it from its first start (files/common/opt/testbed/load-image).
IMAGE = "localhost/testbed/busybox:1"
MARK = "KUBEGPU_STANDIN_RUNTIME"
_SHOW = f'echo "runtime=${MARK} devices=$NVIDIA_VISIBLE_DEVICES"'


@dataclass(frozen=True)
class Proof:
    """What a container said of itself; empty where it did not start, with the reason."""

    how: str
    words: str
    error: str = ""

    @property
    def marked(self) -> bool:
        return "runtime=nvidia" in self.words


def on_node(node: Node, *argv: str) -> list[str]:
    """The command line that runs ``argv`` as root on the node, with stdin."""
    return docker_argv("exec", "--interactive", node.container, *argv)


def through_cri(node: Node, handler: str = "nvidia") -> Proof:
    """A pod with the handler, started by the node's own containerd as a kubelet would do it."""
    how = f"CRI, handler {handler}"
    try:
        result = run_pod(on_node(node), handler, IMAGE, ["/bin/sh", "-c", _SHOW])
    except TestbedError as error:
        return Proof(how, "", str(error))
    return Proof(how, result.log, "" if result.exit_code == 0 else f"exit {result.exit_code}")


def through_docker(node: Node, *options: str) -> Proof:
    """``docker run`` with these options on the node."""
    how = f"docker run {' '.join(options)}"
    command = ["docker", "run", "--rm", "--network", "none", *options, IMAGE, "sh", "-c", _SHOW]
    done = run(on_node(node, *command), check=False, timeout=120)
    error = "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]
    return Proof(how, done.stdout.strip(), error)


def prove(node: Node) -> list[Proof]:
    """All the ways to a GPU on a node."""
    return [
        through_cri(node),
        through_docker(node, "--runtime", "nvidia"),
        through_docker(node, "--gpus", "all"),
    ]
