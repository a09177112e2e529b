# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Debian's real packages of the driver, and what they need, for nodes that reach no archive.

This machine's apt downloads them with folders of its own, for the package status of the node image:
just what apt would fetch there. The nodes get them from an archive that is laid out as Debian's is,
with every component in its place, signed by a key of the testbed.
"""

from __future__ import annotations

import hashlib
import shutil
import tarfile
from pathlib import Path

from tests.testbed import images
from tests.testbed.fleet import DRIVER_RELEASES, Release
from tests.testbed.mirror import suites
from tests.testbed.paths import cache
from tests.testbed.shell import run, say

COMPONENTS = ("main", "contrib", "non-free", "non-free-firmware")
_COMMON = (
    "linux-headers-amd64",
    "nvidia-smi",
    "libcuda1",
    "libnvidia-ml1",
    "nvidia-persistenced",
    "nvidia-modprobe",
    "libnvidia-cfg1",
    "libnvidia-encode1",
    "unattended-upgrades",
)
_OLDER = (
    *("nvidia-kernel-dkms", "nvidia-kernel-support", "nvidia-alternative", "nvidia-legacy-check"),
    *("firmware-nvidia-gsp", "nvidia-smi", "libcuda1", "libnvidia-ml1", "libnvidia-cfg1"),
    *("libnvidia-ptxjitcompiler1", "libnvidia-pkcs11-openssl3"),
    *("libnvidia-encode1", "libnvcuvid1"),
)
# What nodes may wish, by suite: each line is solved by apt as one installation.
WISHES: dict[str, tuple[tuple[str, ...], ...]] = {
    "bookworm": (
        (*_COMMON, "nvidia-kernel-dkms"),
        tuple(f"{name}=535.261.03-1" for name in _OLDER),
    ),
    "trixie": (
        (*_COMMON, "nvidia-kernel-dkms"),
        (*_COMMON, "nvidia-open-kernel-dkms"),
    ),
}
_RECIPE = 1


def archives() -> dict[str, Path]:
    """The folder of packages of each suite, downloaded where it is not there yet."""
    return {release.suite: _archive(release) for release in DRIVER_RELEASES.values()}


def _archive(release: Release) -> Path:
    wishes = WISHES[release.suite]
    recipe = f"{_RECIPE} {images.key(release)} {wishes}"
    stamp = hashlib.sha256(recipe.encode()).hexdigest()[:12]
    home = cache() / "drivers"
    tree = home / f"{release.suite}-{stamp}"
    if tree.is_dir():
        return tree
    say(f"debian: downloading the driver's packages for {release.suite}")
    half = home / f"{release.suite}.half"
    shutil.rmtree(half, ignore_errors=True)
    # What was downloaded once is not downloaded again.
    for old in sorted(home.glob(f"{release.suite}-*")):
        if not half.exists():
            old.rename(half)
        else:
            shutil.rmtree(old)
    apt = private_apt(release, half)
    run([*apt, "update", "-q"], timeout=600)
    pool = half / "archives"
    for wish in wishes:
        run(
            [*apt, "install", "--yes", "-q", "--download-only", "--no-install-recommends", *wish],
            timeout=1800,
        )
    _sort(pool, half / "pool")
    shutil.rmtree(half / "apt")
    shutil.rmtree(pool)
    half.rename(tree)
    size = sum(path.stat().st_size for path in tree.rglob("*.deb")) >> 20
    say(f"debian: {release.suite}: {len(list(tree.rglob('*.deb')))} packages, {size} MiB")
    return tree


def private_apt(release: Release, half: Path) -> list[str]:
    """apt-get with its own folders, and the image's packages as what is installed."""
    home = half / "apt"
    shutil.rmtree(home, ignore_errors=True)
    for name in ("lists/partial", "etc", "cache"):
        (home / name).mkdir(parents=True)
    (half / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    for deb in (half / "pool").rglob("*.deb"):
        deb.rename(half / "archives" / deb.name)
    with tarfile.open(images.file_system(release)) as image:
        member = image.extractfile("./var/lib/dpkg/status")
        (home / "status").write_bytes(member.read() if member else b"")
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (home / "etc" / "sources.list").write_text(
        "".join(
            f"deb [signed-by={keyring}] {address} {suite} {' '.join(COMPONENTS)}\n"
            for address, suite in suites(release.suite)
        )
    )
    settings = {
        "Dir::Etc": f"{home}/etc",
        "Dir::Etc::sourceparts": "-",
        "Dir::Etc::preferencesparts": "-",
        "Dir::State": str(home),
        "Dir::State::lists": f"{home}/lists",
        "Dir::State::status": f"{home}/status",
        "Dir::Cache": f"{home}/cache",
        "Dir::Cache::archives": f"{half}/archives",
        "APT::Architecture": "amd64",
        "APT::Architectures": "amd64",
        "APT::Sandbox::User": "",
        "APT::Get::Allow-Downgrades": "true",
        "Acquire::Check-Valid-Until": "false",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
        # This machine's settings may throw the packages away.
        "APT::Keep-Downloaded-Packages": "true",
    }
    # Hooks of this machine's packages have no business here.
    clear = home / "clear.conf"
    clear.write_text(
        "#clear DPkg::Post-Invoke;\n#clear DPkg::Pre-Install-Pkgs;\n#clear DPkg::Pre-Invoke;\n"
        "#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n"
    )
    options = [f"-o={name}={value}" for name, value in settings.items()]
    return ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", f"-c={clear}", *options]


def _sort(archives: Path, pool: Path) -> None:
    """Put each package below the component that Debian has it in."""
    for deb in sorted(archives.glob("*.deb")):
        section = run(["dpkg-deb", "--field", str(deb), "Section"]).stdout.strip()
        component = section.partition("/")[0] if "/" in section else "main"
        target = pool / component
        target.mkdir(parents=True, exist_ok=True)
        deb.rename(target / deb.name)
