# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node itself spends: CPU of its control group, bytes that it was sent."""

from __future__ import annotations

from pathlib import Path

from tests.testbed.engine import docker
from tests.testbed.fleet import Node
from tests.testbed.nodes import execute

_CGROUPS = Path("/sys/fs/cgroup")


def cpu(node: Node) -> float:
    """Return the CPU seconds that all processes of the node have used."""
    identity = docker("inspect", "--format", "{{.Id}}", node.container).stdout.strip()
    for controller in ("cpuacct", "cpu,cpuacct"):
        path = _CGROUPS / controller / "docker" / identity / "cpuacct.usage"
        if path.exists():
            return int(path.read_text()) / 1e9
    for path in (
        _CGROUPS / "docker" / identity / "cpu.stat",
        _CGROUPS / "system.slice" / f"docker-{identity}.scope" / "cpu.stat",
    ):
        if path.exists():
            return int(path.read_text().split()[1]) / 1e6
    raise SystemExit(f"No control group of {node.container} below {_CGROUPS} counts CPU time.")


def received(node: Node) -> int:
    """Return the bytes that the node has received over its network."""
    return int(execute(node, "cat", "/sys/class/net/eth0/statistics/rx_bytes"))
