# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packages of Debian for nodes, which reach no archive.

This machine's apt downloads what a node's image lacks; dpkg installs it in the node.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.testbed import images
from tests.testbed.debian import private_apt
from tests.testbed.engine import docker_argv
from tests.testbed.fleet import Node, Release
from tests.testbed.nodes import execute
from tests.testbed.paths import cache, locked
from tests.testbed.shell import run, say

_SECONDS = 900
_PLACE = "/opt/testbed/debs"


def install(node: Node, debs: Sequence[Path]) -> None:
    """Install these packages, which are in one folder."""
    execute(node, "mkdir", "-p", _PLACE)
    names = [deb.name for deb in debs]
    archive = subprocess.run(
        ["tar", "--create", "--directory", str(debs[0].parent), *names],
        capture_output=True, check=True,
    ).stdout  # fmt: skip
    subprocess.run(docker_argv("cp", "-", f"{node.container}:{_PLACE}"), input=archive, check=True)
    execute(node, "sh", "-c", f"DEBIAN_FRONTEND=noninteractive dpkg --install {_PLACE}/*.deb")


def purge(node: Node, debs: Sequence[Path]) -> None:
    """Remove these packages with all that they wrote."""
    names = " ".join(deb.name.split("_")[0] for deb in debs)
    execute(node, "sh", "-c", f"dpkg --purge {names}; rm -rf {_PLACE}", check=False)


def downloaded(subject: str, release: Release, *names: str) -> list[Path]:
    """Return these packages with what they depend on and the node's image lacks.

    :param subject: names the folder in the cache.
    """
    stamp = hashlib.sha256(f"1 {images.key(release)}".encode()).hexdigest()[:12]
    home = cache() / subject
    tree = home / f"{release.name}-{stamp}"
    with locked(subject):
        if not tree.is_dir():
            say(f"{subject}: downloading packages of Debian {release.suite}")
            half = home / f"{release.name}.half"
            shutil.rmtree(half, ignore_errors=True)
            apt = private_apt(release, half)
            run([*apt, "update", "-q"], timeout=_SECONDS)
            options = ["--yes", "-q", "--download-only", "--no-install-recommends"]
            run([*apt, "install", *options, *names], timeout=_SECONDS)
            shutil.rmtree(half / "archives" / "partial")
            (half / "archives" / "lock").unlink(missing_ok=True)
            (half / "archives").rename(tree)
            shutil.rmtree(half)
    return sorted(tree.glob("*.deb"))
