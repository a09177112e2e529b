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
from tests.testbed.mirror import debian_mirror, mmdebstrap_options
from tests.testbed.paths import cache, locked
from tests.testbed.shell import run, say
from tests.testbed.tools import need

_REPOSITORY = "kubegpu-testbed"
# Raise it when something below changes what an image holds.
_RECIPE = 2
_UNWANTED = ("doc/*", "man/*", "locale/*", "info/*", "bash-completion/*")


def tag(release: Release) -> str:
    """The name of a release's node image in the engine."""
    return release.ready_made or f"{_REPOSITORY}/{release.suite}:{_key(release)}"


def images(releases: Iterable[Release]) -> None:
    """Make sure that the engine has the node images; two are made at a time."""
    wanted = [release for release in dict.fromkeys(releases) if not release.ready_made]
    unmade = [release for release in wanted if not _in_engine(release)]
    if any(not _tarball(release).is_file() for release in unmade):
        need(["mmdebstrap"])
    with locked("images"), ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(_make, unmade))


def remove() -> None:
    """Remove the testbed's images from the engine; the tarballs stay in the cache."""
    names = docker("images", "--quiet", "--filter", f"reference={_REPOSITORY}/*").stdout.split()
    if names:
        docker("rmi", "--force", *dict.fromkeys(names), check=False)


def _key(release: Release) -> str:
    recipe = f"{_RECIPE} {release.suite} {' '.join(release.packages)} {_UNWANTED}"
    return hashlib.sha256(recipe.encode()).hexdigest()[:12]


def _tarball(release: Release) -> Path:
    return cache() / "images" / f"{release.suite}-{_key(release)}.tar"


def _in_engine(release: Release) -> bool:
    return docker("image", "inspect", tag(release), check=False).returncode == 0


def _make(release: Release) -> None:
    if _in_engine(release):
        return
    tarball = _tarball(release)
    if not tarball.is_file():
        _bootstrap(release, tarball)
    say(f"images: importing Debian {release.suite}")
    docker("import", str(tarball), tag(release))


def _bootstrap(release: Release, tarball: Path) -> None:
    say(f"images: making a node image of Debian {release.suite}")
    tarball.parent.mkdir(parents=True, exist_ok=True)
    for old in tarball.parent.glob(f"{release.suite}-*.tar"):
        old.unlink()
    half = tarball.with_suffix(".half.tar")
    half.unlink(missing_ok=True)
    mirror = debian_mirror()
    run(
        [
            "mmdebstrap",
            "--variant=minbase",
            f"--include={','.join(release.packages)}",
            *mmdebstrap_options(),
            *(f"--dpkgopt=path-exclude=/usr/share/{pattern}" for pattern in _UNWANTED),
            release.suite,
            str(half),
            *([mirror] if mirror else []),
        ],
        root=True,
        timeout=1800,
    )
    run(["chown", f"{os.getuid()}:{os.getgid()}", str(half)], root=True)
    half.rename(tarball)
    say(f"images: Debian {release.suite} is ready, {tarball.stat().st_size >> 20} MiB")
