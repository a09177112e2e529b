# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Debian's Prometheus and node_exporter for nodes, which reach no archive.

This machine's apt downloads what a node's image lacks; dpkg installs it in the node.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from tests.testbed import images
from tests.testbed.debian import private_apt
from tests.testbed.engine import docker_argv
from tests.testbed.fleet import Node, Release
from tests.testbed.nodes import execute
from tests.testbed.paths import cache, locked
from tests.testbed.shell import run, say

PROMETHEUS = "prometheus"
NODE_EXPORTER = "prometheus-node-exporter"
_SECONDS = 900


def install(node: Node, name: str) -> None:
    """Install one of the two with what it depends on: node_exporter needs nothing more."""
    folder = _downloaded(node.release)
    debs = [deb.name for deb in sorted(folder.glob("*.deb")) if _belongs(deb, name)]
    execute(node, "mkdir", "-p", "/opt/testbed/debs")
    archive = subprocess.run(
        ["tar", "--create", "--directory", str(folder), *debs], capture_output=True, check=True
    ).stdout
    subprocess.run(
        docker_argv("cp", "-", f"{node.container}:/opt/testbed/debs"), input=archive, check=True
    )
    script = "DEBIAN_FRONTEND=noninteractive dpkg --install /opt/testbed/debs/*.deb"
    execute(node, "sh", "-c", script)


def purge(node: Node, name: str) -> None:
    """Remove it with all that it wrote, and what came with it."""
    names = [
        deb.name.split("_")[0]
        for deb in sorted(_downloaded(node.release).glob("*.deb"))
        if _belongs(deb, name)
    ]
    script = f"dpkg --purge {' '.join(names)}; rm -rf /opt/testbed/debs"
    execute(node, "sh", "-c", script, check=False)


def _belongs(deb: Path, name: str) -> bool:
    return deb.name.startswith(f"{NODE_EXPORTER}_") == (name == NODE_EXPORTER)


def _downloaded(release: Release) -> Path:
    stamp = hashlib.sha256(f"1 {images.key(release)}".encode()).hexdigest()[:12]
    home = cache() / "monitoring"
    tree = home / f"{release.name}-{stamp}"
    with locked("monitoring"):
        if not tree.is_dir():
            say(f"monitoring: downloading Prometheus of Debian {release.suite}")
            half = home / f"{release.name}.half"
            shutil.rmtree(half, ignore_errors=True)
            apt = private_apt(release, half)
            run([*apt, "update", "-q"], timeout=_SECONDS)
            options = ["--yes", "-q", "--download-only", "--no-install-recommends"]
            run([*apt, "install", *options, PROMETHEUS, NODE_EXPORTER], timeout=_SECONDS)
            shutil.rmtree(half / "archives" / "partial")
            (half / "archives" / "lock").unlink(missing_ok=True)
            (half / "archives").rename(tree)
            shutil.rmtree(half)
    return tree
