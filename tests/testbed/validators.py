# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Debian's containerd and dockerd of three releases, unpacked side by side, as judges only.

Each binary runs with the C library of its own release, so that the newest works on an old machine.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.mirror import debian_mirror, mmdebstrap_options
from tests.testbed.paths import cache, locked
from tests.testbed.shell import TestbedError, run, say
from tests.testbed.tools import need

INCLUDE = "containerd,docker.io,runc,libc6"


@dataclass(frozen=True)
class Judges:
    """One release of Debian and the two daemons found in it."""

    suite: str
    containerd: str
    docker: str


JUDGES = (
    Judges("bookworm", "containerd-1.6", "docker-20.10"),
    Judges("trixie", "containerd-1.7", "docker-26.1"),
    Judges("sid", "containerd-2.1", "docker-28.5"),
)


def home() -> Path:
    """The folder that holds them."""
    return cache() / "validators"


def validators() -> Path:
    """Unpack what is missing and give the folder."""
    with locked("validators"):
        if missing():
            need(["mmdebstrap"])
        for judges in JUDGES:
            _unpack(judges)
    return home()


def missing() -> list[str]:
    """Names of judges that are not unpacked yet."""
    return [
        name
        for judges in JUDGES
        for name in (judges.containerd, judges.docker)
        if not (home() / name / "bin").is_dir()
    ]


def _unpack(judges: Judges) -> None:
    tree = unpacked(judges.suite, INCLUDE, home(), judges.suite, "containerd and dockerd")
    wrap(tree, home() / judges.containerd, "containerd")
    wrap(tree, home() / judges.docker, "dockerd")


def unpacked(suite: str, include: str, folder: Path, name: str, what: str) -> Path:
    """The tree below a folder into which packages of a release of Debian are unpacked."""
    key = hashlib.sha256(f"2 {suite} {include}".encode()).hexdigest()[:12]
    tree = folder / f"{name}-{key}"
    if not tree.is_dir():
        say(f"{folder.name}: unpacking {what} of Debian {suite}")
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{name}-*"):
            run(["rm", "-rf", str(old)], root=True)
        half = folder / f".{name}.half"
        run(["rm", "-rf", str(half)], root=True)
        mirror = debian_mirror()
        run(
            [
                "mmdebstrap",
                "--variant=extract",
                f"--include={include}",
                *mmdebstrap_options(),
                "--dpkgopt=path-exclude=/usr/share/*",
                suite,
                str(half),
                *([mirror] if mirror else []),
            ],
            root=True,
        )
        # mmdebstrap leaves the top folder as root's own.
        run(["chmod", "755", str(half)], root=True)
        for unwanted in ("usr/share", "usr/lib/systemd", "usr/lib/python3", "var", "dev", "tmp"):
            run(["rm", "-rf", str(half / unwanted)], root=True)
        run(["mv", str(half), str(tree)], root=True)
    return tree


def wrap(tree: Path, target: Path, binary: str) -> None:
    """A script below ``bin`` of the target.

    It starts a binary of the tree with the tree's own loader and libraries.
    """
    programs = [tree / where / binary for where in ("usr/bin", "usr/sbin")]
    program = next((path for path in programs if path.is_file()), None)
    loader = next(iter(sorted(tree.glob("**/ld-linux*.so.*"))), None)
    if program is None or loader is None:
        raise TestbedError(f"{binary} or its loader is not in {tree}")
    libraries = [
        str(tree / where / triplet.name)
        for where in ("lib", "usr/lib")
        for triplet in sorted((tree / where).glob("*-linux-gnu"))
    ]
    script = target / "bin" / binary
    text = f'#!/bin/sh\nexec "{loader}" --library-path "{":".join(libraries)}" "{program}" "$@"\n'
    if script.is_file() and script.read_text() == text:
        return
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(text)
    script.chmod(0o755)
