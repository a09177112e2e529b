# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A local, signed apt repository with the stand-in packages, laid out as NVIDIA's is.

``<base>/stable/deb/amd64 /`` is a flat repository, ``<base>/gpgkey`` its key; ``<base>/other`` is
the same signed by another key, for the tests of a wrong key.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
from pathlib import Path

from tests.testbed.packages import build, packages
from tests.testbed.paths import HERE, cache
from tests.testbed.shell import run, say
from tests.testbed.tools import need

SIGNER = "container-toolkit"
OTHER_SIGNER = "somebody-else"
_FLAT = Path("stable") / "deb" / "amd64"


def repository() -> Path:
    """Make the repository if the cache does not have it; give its folder."""
    need(["dpkg-deb", "apt-ftparchive", "gpg"])
    base = cache() / "repository" / _recipe()
    if not (base / "complete").is_file():
        say("repository: building stand-in packages and signing")
        shutil.rmtree(base.parent, ignore_errors=True)
        build(base / _FLAT, packages())
        shutil.copytree(base / _FLAT, base / "other" / _FLAT)
        _sign(base, SIGNER)
        _sign(base / "other", OTHER_SIGNER)
        (base / "complete").touch()
    return base


@functools.cache
def fingerprint(signer: str = SIGNER) -> str:
    """The full fingerprint of a signer's key."""
    listing = _gpg(signer, "--with-colons", "--list-keys").splitlines()
    return next(line.split(":")[9] for line in listing if line.startswith("fpr:"))


def _sign(base: Path, signer: str) -> None:
    folder = base / _FLAT
    index = run(["apt-ftparchive", "packages", "."], cwd=folder).stdout
    (folder / "Packages").write_text(index)
    release = run(
        ["apt-ftparchive", "-o", "APT::FTPArchive::Release::Origin=kubegpu test bed",
         "-o", "APT::FTPArchive::Release::Label=stand-in packages", "release", "."],
        cwd=folder,
    ).stdout  # fmt: skip
    (folder / "Release").write_text(release)
    _gpg(signer, "--clearsign", "--output", str(folder / "InRelease"), str(folder / "Release"))
    (base / "gpgkey").write_text(_gpg(signer, "--armor", "--export"))


def _gpg(signer: str, *arguments: str) -> str:
    """Run gpg with the signer's own key ring, made on first use."""
    # gpg-agent's socket needs a short path; the ring is small and stays with the cache.
    home = cache() / "gpg" / signer
    options = ["gpg", "--batch", "--yes", "--quiet", "--homedir", str(home)]
    if not home.is_dir():
        home.mkdir(parents=True, mode=0o700)
        name = f"kubegpu.nodes test bed ({signer}) <{signer}@kubegpu.test>"
        run(
            [*options, "--passphrase", "", "--quick-generate-key", name, "rsa3072", "sign", "never"]
        )
    return run([*options, "--pinentry-mode", "loopback", "--passphrase", "", *arguments]).stdout


def _recipe() -> str:
    """A name for what the packages are made of."""
    digest = hashlib.sha256()
    for path in [
        *sorted((HERE / "standin").iterdir()), HERE / "packages.py", HERE / "repository.py"
    ]:  # fmt: skip
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
