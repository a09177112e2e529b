# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs that the testbed needs on this machine: installed by apt where they are missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence

from tests.testbed.paths import locked
from tests.testbed.shell import TestbedError, run, say

# program -> the Debian or Ubuntu package that has it
PACKAGES = {
    "mmdebstrap": "mmdebstrap",
    "dpkg-deb": "dpkg",
    "apt-ftparchive": "apt-utils",
    "gpg": "gnupg",
    "gpgv": "gpgv",
    "sqv": "sqv",
    "rpmkeys": "rpm",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "dockerd": "docker.io",
    "docker": "docker.io",
    "containerd": "containerd",
    "iptables": "iptables",
    "ip": "iproute2",
    "dpkg-source": "dpkg-dev",
    "chromium": "chromium",
    "npm": "npm",
    "pdftoppm": "poppler-utils",
    "pdftotext": "poppler-utils",
}
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"


def which(program: str) -> str | None:
    """Like the shell's, with root's folders too."""
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:{_SBIN}")


def need(programs: Iterable[str]) -> None:
    """Install what is missing of these programs."""
    packages = sorted({PACKAGES[name] for name in programs if which(name) is None})
    if "mmdebstrap" in packages and not os.path.exists(
        "/usr/share/keyrings/debian-archive-keyring.gpg"
    ):
        packages.append("debian-archive-keyring")
    if not packages:
        return
    _install(packages)
    # Newer releases have the client in a package of its own.
    if "docker.io" in packages and which("docker") is None:
        _install(["docker-cli"])


def _install(packages: Sequence[str]) -> None:
    if which("apt-get") is None:
        raise TestbedError(f"please install: {', '.join(packages)}")
    # Stages run side by side: one apt at a time.
    with locked("apt"):
        _apt_install(packages)


def _apt_install(packages: Sequence[str]) -> None:
    say(f"installing with apt: {' '.join(packages)}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]
    if run(install, root=True, check=False, environment=quiet, timeout=900).returncode != 0:
        run(["apt-get", "update", "-q"], root=True, check=False, environment=quiet)
        run(install, root=True, environment=quiet, timeout=900)
