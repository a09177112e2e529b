# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stand-in for k3s and RKE2 on a node: their files and unit, around the node's real containerd.

At each start it writes containerd's configuration as the fixtures show it, with the handler nvidia
where it finds its program, and becomes containerd. There is no Kubernetes in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.testbed.fleet import Node
from tests.testbed.nodes import copy_in, execute
from tests.testbed.paths import HERE
from tests.testbed.payload import tar
from tests.testbed.proof import IMAGE
from tests.unit.fixtures import flavour_node

SOCKET = "/run/k3s/containerd/containerd.sock"
# containerd's data must not lie on the image's own file system; nodes of the fleet have no kubelet.
_DATA = "/var/lib/kubelet/standin"

_PROGRAM = """\
#!/bin/sh
# Stand-in for {name}, see tests/integration/fleet/standin_rancher.py.
if [ "${{1-}}" = --version ]; then
    echo "{name} version v1.33.4+{name}1 (standin)"
    exit
fi
set -eu
cp /opt/standin-{name}/base.toml {folder}/{config}
if [ -x /usr/bin/nvidia-container-runtime ]; then
    cat /opt/standin-{name}/nvidia.toml >> {folder}/{config}
fi
exec {tools}/containerd --config {folder}/{config}
"""
_UNIT = """\
[Unit]
Description=Stand-in for {name}

[Service]
Type=notify
KillMode=process
ExecStart=/usr/local/bin/{name}
"""


@dataclass(frozen=True)
class Rancher:
    """Where one of the two keeps its things; ``version`` is that of containerd's configuration."""

    name: str
    unit: str
    tools: str
    version: int

    @property
    def folder(self) -> str:
        return f"/var/lib/rancher/{self.name}/agent/etc/containerd"

    def up(self, node: Node) -> None:
        """Install and start it."""
        words = {
            "name": self.name, "folder": self.folder, "tools": self.tools, "config": "config.toml"
        }  # fmt: skip
        files = {
            f"opt/standin-{self.name}/base.toml": (self._text("").encode(), 0o644),
            f"opt/standin-{self.name}/nvidia.toml": (self._text("-nvidia").encode(), 0o644),
            f"usr/local/bin/{self.name}": (_PROGRAM.format(**words).encode(), 0o755),
            f"etc/systemd/system/{self.unit}.service": (_UNIT.format(**words).encode(), 0o644),
        }
        links = {f"{self.tools[1:]}/{tool}": f"/usr/bin/{tool}" for tool in ("containerd", "ctr")}
        links[f"var/lib/rancher/{self.name}/agent/containerd"] = _DATA
        copy_in(node, tar(files, links, empty=[self.folder[1:], _DATA[1:]]))
        start = f"systemctl daemon-reload && systemctl start {self.unit}"
        image = f"docker save {IMAGE} | ctr --address {SOCKET} -n k8s.io images import -"
        execute(node, "sh", "-c", f"{start} && {image}")

    def down(self, node: Node) -> None:
        """Stop it and remove all of it."""
        paths = (
            f"/var/lib/rancher /usr/local/bin/{self.name} /opt/standin-{self.name} {_DATA} "
            f"/run/k3s /etc/systemd/system/{self.unit}.service"
        )
        stop = f"systemctl stop {self.unit}; rm -rf {paths}; systemctl daemon-reload"
        execute(node, "sh", "-c", stop)

    def pid(self, node: Node) -> str:
        """The process of the unit: another one after each start."""
        return execute(node, "systemctl", "show", self.unit, "--property=MainPID").strip()

    def environment(self, node: Node, handler: str) -> list[str]:
        """What a container sees that its CRI starts through the handler."""
        script = (HERE / "cri.py").read_text().replace("/run/containerd/containerd.sock", SOCKET)
        return execute(node, "python3", "-", handler, IMAGE, stdin=script).split()

    def _text(self, part: str) -> str:
        """As the fixture, but for what a node that is a container cannot have."""
        path = Path(flavour_node.FOLDER, f"k3s-v{self.version}{part}.toml")
        text = path.read_text().replace("/k3s/agent", f"/{self.name}/agent")
        text = text.replace("rancher/mirrored-pause:3.6", IMAGE)
        text = text.replace("SystemdCgroup = true", "SystemdCgroup = false")
        return text.replace("enable_selinux", "restrict_oom_score_adj = true\n  enable_selinux")


K3S = Rancher("k3s", "k3s", "/var/lib/rancher/k3s/data/current/bin", 3)
RKE2 = Rancher("rke2", "rke2-agent", "/var/lib/rancher/rke2/bin", 2)
