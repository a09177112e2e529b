# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Node images, made by mmdebstrap and kept as tarballs named by the hash of their recipe."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.testbed.engine import docker
from tests.testbed.fleet import Release
from tests.testbed.mirror import debian_mirror, mmdebstrap_options, suites
from tests.testbed.paths import cache, locked
from tests.testbed.shell import run, say
from tests.testbed.tools import need

_REPOSITORY = "kubegpu-testbed"
# Raise it when something below changes what an image holds.
_RECIPE = 2
_UNWANTED = ("doc/*", "man/*", "locale/*", "info/*", "bash-completion/*")


def tag(release: Release) -> str:
    """The name of a release's node image in the engine."""
    return release.ready_made or f"{_REPOSITORY}/{release.suite}:{key(release)}"


def images(releases: Iterable[Release]) -> None:
    """Make sure that the engine has the node images; two are made at a time."""
    wanted = [release for release in dict.fromkeys(releases) if not release.ready_made]
    unmade = [release for release in wanted if not _in_engine(release)]
    if any(not tarball(release).is_file() for release in unmade):
        need(["mmdebstrap"])
    with locked("images"), ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(_make, unmade))


def remove() -> None:
    """Remove the testbed's images from the engine; the tarballs stay in the cache."""
    names = docker("images", "--quiet", "--filter", f"reference={_REPOSITORY}/*").stdout.split()
    if names:
        docker("rmi", "--force", *dict.fromkeys(names), check=False)


def key(release: Release) -> str:
    """What the image is made of, in twelve letters."""
    recipe = f"{_RECIPE} {release.name} {' '.join(release.packages)} {_UNWANTED}"
    return hashlib.sha256(recipe.encode()).hexdigest()[:12]


def tarball(release: Release) -> Path:
    """Where the image's file system is kept."""
    return cache() / "images" / f"{release.name}-{key(release)}.tar"


def file_system(release: Release) -> Path:
    """The same, made if it is not there."""
    with locked("images"):
        path = tarball(release)
        if not path.is_file():
            need(["mmdebstrap"])
            _bootstrap(release, path)
    return path


def _in_engine(release: Release) -> bool:
    return docker("image", "inspect", tag(release), check=False).returncode == 0


def _make(release: Release) -> None:
    if _in_engine(release):
        return
    path = tarball(release)
    if not path.is_file():
        _bootstrap(release, path)
    say(f"images: importing Debian {release.name}")
    docker("import", str(path), tag(release))


def _bootstrap(release: Release, path: Path) -> None:
    say(f"images: making a node image of Debian {release.name}")
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in path.parent.glob(f"{release.name}-*.tar"):
        old.unlink()
    half = path.with_suffix(".half.tar")
    half.unlink(missing_ok=True)
    run(
        [
            "mmdebstrap",
            "--variant=minbase",
            f"--include={','.join(release.packages)}",
            *mmdebstrap_options(),
            *(f"--dpkgopt=path-exclude=/usr/share/{pattern}" for pattern in _UNWANTED),
            release.suite,
            str(half),
            *_archives(release),
        ],
        root=True,
        timeout=1800,
    )
    run(["chown", f"{os.getuid()}:{os.getgid()}", str(half)], root=True)
    half.rename(path)
    say(f"images: Debian {release.name} is ready, {path.stat().st_size >> 20} MiB")


def _archives(release: Release) -> list[str]:
    """The archives that the image is made from, as mmdebstrap takes them."""
    mirror = debian_mirror()
    if not release.security:
        return [mirror] if mirror else []
    return [f"deb {address} {suite} main" for address, suite in suites(release.suite) if suite]
