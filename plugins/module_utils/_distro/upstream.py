# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The release of another distribution that a derived system takes its packages from. Pure.

It is what the system's own os-release says (UBUNTU_CODENAME, DEBIAN_CODENAME, VERSION_CODENAME,
PLATFORM_ID), and is never guessed. Recorded os-release files: tests/unit/fixtures/os_release.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._core.errors import Refusal
from .data import DEBIAN, DISTRIBUTIONS, RHEL, family_of, own_folder

# Sources: the archives of Ubuntu and Debian. Read 2026-11-28.
UBUNTU = {
    "focal": "20.04",
    "jammy": "22.04",
    "noble": "24.04",
    "plucky": "25.04",
    "questing": "25.10",
    "resolute": "26.04",
}
DEBIAN_RELEASES = {"bullseye": "11", "bookworm": "12", "trixie": "13", "forky": "14"}
_PLATFORM = re.compile(r"platform:(?P<kind>el|f)(?P<version>\d+)\Z")
_PLATFORMS = {"el": "rhel", "f": "fedora"}


@dataclass(frozen=True)
class OwnDriver:
    """A derived system whose own repository has the driver, before the others.

    :param packages: its driver.
    :param why: what makes packages of other repositories fail.
    """

    packages: str
    why: str
    source: str


OWN_DRIVERS: Mapping[str, OwnDriver] = {
    "pop": OwnDriver(
        "system76-driver-nvidia",
        "apt gives System76's repository priority 1001 "
        "(/etc/apt/preferences.d/pop-default-settings), and it has packages of NVIDIA with the "
        "same names",
        "github.com/pop-os/upgrade (preferences); support.system76.com (Pop!_OS, NVIDIA); "
        "github.com/NVIDIA/nvidia-docker/issues/1388; read 2026-11-28",
    ),
}


def find_upstream(release: Mapping[str, str]) -> dict[str, str] | None:
    """Return id, version and codename of the release that the packages are of; None: its own.

    :param release: the fields of os-release.
    """
    identity = release.get("ID", "").lower()
    like = release.get("ID_LIKE", "").lower().split()
    if identity in ("", "ubuntu", "debian") or _has_folders(identity):
        return None
    codename = release.get("VERSION_CODENAME", "")
    by_field = (
        ("ubuntu", release.get("UBUNTU_CODENAME", ""), UBUNTU),
        ("debian", release.get("DEBIAN_CODENAME", ""), DEBIAN_RELEASES),
        ("ubuntu", codename if "ubuntu" in like else "", UBUNTU),
        ("debian", codename if family_of((identity, *like)) == DEBIAN else "", DEBIAN_RELEASES),
    )
    for name, word, releases in by_field:
        if word in releases:
            return {"id": name, "version": releases[word], "codename": word}
    match = _PLATFORM.match(release.get("PLATFORM_ID", ""))
    if match and family_of((identity, *like)) == RHEL:
        version = match["version"]
        return {"id": _PLATFORMS[match["kind"]], "version": version, "codename": ""}
    return None


def _has_folders(identity: str) -> bool:
    row = DISTRIBUTIONS.get(identity)
    return bool(row and (row.folder or row.folders))


def package_base(system: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fact ``os`` with id, version and codename of the release of its packages.

    :param system: the fact ``os``, or a part of it.
    """
    upstream = system.get("upstream")
    if not upstream:
        return system
    return {**system, **upstream, "codename": upstream.get("codename") or None}


def unknown_base(system: Mapping[str, Any], otherwise: str) -> Refusal | None:
    """Return why no repository can be chosen for a derived system that names no release; or None.

    :param system: the fact ``os``.
    :param otherwise: what can be given instead.
    """
    identity, version = system.get("id") or "", system.get("version") or ""
    if not identity or _has_folders(identity):
        return None
    if system.get("upstream") or system.get("family") != DEBIAN:
        return None
    key = own_folder(identity, version) or f"{identity}<N>"
    return Refusal(
        f"{identity} {version} is derived from Debian or Ubuntu, and its os-release does not say "
        "from which release: no repository is chosen for it.",
        f"say whose packages fit: nvidia_driver_repositories: {{{key}: {{folder: debian12}}}}, "
        f"with a folder of NVIDIA's repository; or give {otherwise}.",
        f"VERSION_CODENAME={system['codename']}"
        if system.get("codename")
        else "no UBUNTU_CODENAME, DEBIAN_CODENAME or VERSION_CODENAME",
    )


def pinned_before(system: Mapping[str, Any]) -> str:
    """Return the warning that a system's own repository comes before NVIDIA's; empty if not.

    :param system: the fact ``os``.
    """
    row = OWN_DRIVERS.get(str(system.get("id") or ""))
    if row is None:
        return ""
    return (
        f"On {system['id']} {row.why}: apt may take an older toolkit of that repository. Next "
        "step, if the run is refused for that: give NVIDIA's repository a higher priority (a file "
        "in /etc/apt/preferences.d with Package: *nvidia-container*, Pin: origin nvidia.github.io "
        "and Pin-Priority: 1002)."
    )


def own_driver(system: Mapping[str, Any], source: str) -> Refusal | None:
    """Return why a driver from another repository is not installed next to that of the system.

    :param system: the fact ``os``.
    :param source: which repository the packages would be of, for the message.
    """
    row = OWN_DRIVERS.get(str(system.get("id") or ""))
    if row is None:
        return None
    return Refusal(
        f"{system['id']} {system['version']} has NVIDIA's driver in its own repository, and the "
        f"packages of {source} conflict with it: {row.why}.",
        f"apt-get install {row.packages}, and reboot; then run again: a driver that works is kept. "
        "Or give a runfile as nvidia_driver_runfile, with its checksum.",
    )
