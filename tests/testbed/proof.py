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

IMAGE = "kubegpu.test/busybox:1"
MARK = "KUBEGPU_STANDIN_RUNTIME"
_SHOW = f'echo "runtime=${MARK} devices=$NVIDIA_VISIBLE_DEVICES"'

# The image is made of the node's own busybox; CRI's sandbox image is the same one under the name
# that this containerd asks for, so that nothing is pulled.
_LOAD = f"""
set -e
if ! docker image inspect {IMAGE} >/dev/null 2>&1; then
  root=$(mktemp -d)
  mkdir -p "$root/bin" "$root/etc" "$root/tmp"
  cp "$(command -v busybox)" "$root/bin/busybox"
  for name in sh sleep env cat true; do ln -s busybox "$root/bin/$name"; done
  tar -C "$root" -c . |
    docker import --change 'CMD ["/bin/sleep", "1000000"]' - {IMAGE} >/dev/null
  rm -rf "$root"
fi
sandbox=$(containerd config dump |
  sed -n "s/^ *sandbox\\(_image\\)\\{{0,1\\}} = ['\\"]\\(.*\\)['\\"]$/\\2/p" | head -n 1)
names=$(ctr --namespace k8s.io images list --quiet)
case "$names" in
  *"$sandbox"*) ;;
  *) docker save {IMAGE} | ctr --namespace k8s.io images import - >/dev/null
     ctr --namespace k8s.io images tag --force {IMAGE} "$sandbox" >/dev/null ;;
esac
"""


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


def load_image(node: Node) -> None:
    """Give the node's Docker and its containerd the image, if they do not have it."""
    run(on_node(node, "sh", "-c", _LOAD), timeout=120)


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
    load_image(node)
    return [
        through_cri(node),
        through_docker(node, "--runtime", "nvidia"),
        through_docker(node, "--gpus", "all"),
    ]
