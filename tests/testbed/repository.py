# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The local, signed package repository, laid out like NVIDIA's, and its server.

Below the base address lie ``gpgkey`` and ``stable/deb/ARCHITECTURE``; below ``wrong-key`` lies the
same repository signed by another key.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from tests.testbed import driver_repository, network, packages
from tests.testbed.fleet import DRIVERS, NAME
from tests.testbed.paths import HERE, cache, locked
from tests.testbed.processes import Background
from tests.testbed.shell import TestbedError, run, say
from tests.testbed.signing import sign
from tests.testbed.tools import need

_PORT = int(os.environ.get("KUBEGPU_TESTBED_PORT", "18377"))
_KEYS = {".": "kubegpu-testbed stand-in", "wrong-key": "somebody else"}


@dataclass(frozen=True)
class Served:
    """Where the repository is and who signed it."""

    url: str
    fingerprint: str
    wrong_key_url: str
    wrong_key_fingerprint: str
    # The folder that is served.
    tree: Path


def up() -> Served:
    """Build and serve what is not there yet, on the bridge's own address only."""
    with locked("repository"):
        tree = _build()
    if DRIVERS:
        # The other fleet does not wait for these downloads.
        with locked("drivers"):
            tree = driver_repository.beside(tree)
    base = address()
    key = (tree / "gpgkey").read_bytes()
    if _fetch(f"{base}/gpgkey") != key:
        down()
        _serve(tree, base, key)
    return Served(
        base,
        _fingerprint(tree, "."),
        f"{base}/wrong-key",
        _fingerprint(tree, "wrong-key"),
        tree,
    )


def address() -> str:
    """Where the nodes find what is served."""
    return f"http://{network.up().gateway}:{_PORT}"


def down() -> None:
    """Stop the server."""
    _server().stop()


def _server() -> Background:
    return Background(f"serve-{NAME}", _home())


def _home() -> Path:
    return cache() / "repository"


def _fingerprint(tree: Path, where: str) -> str:
    return (tree / where / "fingerprint").read_text().strip()


def _content_key() -> str:
    digest = hashlib.sha256()
    sources = [Path(__file__), HERE / "packages.py"]
    for path in (*sources, *sorted(packages.TREES.rglob("*"))):
        if path.is_file():
            digest.update(str(path.relative_to(HERE)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _build() -> Path:
    tree = _home() / _content_key()
    if tree.is_dir():
        return tree
    need(["dpkg-deb", "apt-ftparchive", "gpg"])
    say("repository: building and signing the stand-in packages")
    shutil.rmtree(_home() / "half", ignore_errors=True)
    half, work = _home() / "half" / "tree", _home() / "half" / "work"
    architecture = run(["dpkg", "--print-architecture"]).stdout.strip()
    pool = half / "stable" / "deb" / architecture
    pool.mkdir(parents=True)
    for package in packages.packages():
        packages.build(package, architecture, work, pool)
    index = run(["apt-ftparchive", "packages", "."], cwd=pool).stdout
    (pool / "Packages").write_text(index)
    run(["gzip", "--keep", "--no-name", "Packages"], cwd=pool)
    release = run(
        [
            "apt-ftparchive",
            "-o=APT::FTPArchive::Release::Origin=kubegpu-testbed-standin",
            "-o=APT::FTPArchive::Release::Label=kubegpu-testbed-standin",
            f"-o=APT::FTPArchive::Release::Architectures={architecture}",
            "release",
            ".",
        ],
        cwd=pool,
    ).stdout
    (pool / "Release").write_text(release)
    shutil.copytree(half / "stable", half / "wrong-key" / "stable")
    for where, owner in _KEYS.items():
        sign(half / where, half / where / "stable" / "deb" / architecture, owner)
    for old in _home().iterdir():
        # Another checkout's fleet may be served from a young one.
        young = time.time() - old.stat().st_mtime < 24 * 3600
        if old.is_dir() and old.name not in ("half", "keys") and not young:
            shutil.rmtree(old)
    half.rename(tree)
    shutil.rmtree(_home() / "half")
    return tree


def _fetch(url: str) -> bytes | None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with contextlib.suppress(OSError), opener.open(url, timeout=5) as answer:
        return bytes(answer.read())
    return None


def _serve(tree: Path, base: str, key: bytes) -> None:
    address = base.removeprefix("http://").rsplit(":", 1)[0]
    server = _server()
    server.start([sys.executable, "-P", str(HERE / "serve.py"), str(tree), address, str(_PORT)])
    deadline = time.monotonic() + 45
    while _fetch(f"{base}/gpgkey") != key:
        if not server.runs() or time.monotonic() > deadline:
            raise TestbedError(f"the repository is not served at {base}; see {server.log}")
        time.sleep(0.1)
    say(f"repository: served to the nodes at {base}")
