# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The supported distributions: one row for each ``os.id``. A new distribution is a new row.

Read 2026-11-21. Sources: the driver installation guides 580 to 620 and NVIDIA's container toolkit
guide for what NVIDIA lists; public build scripts of Amazon Linux images for the names of its later
kernels. Rows marked (u) are not documented: they take the packages of the release with the nearest
C library. A row in ``nvidia_driver_repositories`` chooses another folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

DEBIAN = "debian"
RHEL = "rhel"
SUSE = "suse"
DEB = "deb"
RPM = "rpm"


@dataclass(frozen=True)
class Family:
    """The properties that the distributions of a package family share.

    ``packages``: their kind, deb or rpm. ``managers``: the package managers with their paths, the
    preferred one first. ``headers``: the packages with the headers of one kernel, version by name,
    where {full} is its version with release and architecture, {release} without the architecture,
    and {flavour} the kernel's own package. ``initramfs``: the program that builds the initial RAM
    disks of all kernels, with its arguments. ``build``: what a runfile needs besides headers to
    build modules.
    """

    packages: str
    managers: tuple[tuple[str, str], ...]
    initramfs: tuple[str, ...]
    headers: Mapping[str, str | None] = field(default_factory=dict)
    build: tuple[str, ...] = ("gcc", "make")


FAMILIES: Mapping[str, Family] = {
    # The names of headers depend on the kernel flavour: see _driver/plan/packages.py.
    DEBIAN: Family(
        packages=DEB,
        managers=(("apt", "/usr/bin/apt-get"),),
        initramfs=("update-initramfs", "-u", "-k", "all"),
    ),
    RHEL: Family(
        packages=RPM,
        managers=(
            ("dnf5", "/usr/bin/dnf5"),
            ("dnf", "/usr/bin/dnf"),
            ("yum", "/usr/bin/yum"),
        ),
        initramfs=("dracut", "--force", "--regenerate-all"),
        headers={
            "{flavour}-devel-{full}": None,
            # From EL9 on and in Fedora. It keeps headers and kernel in the same version.
            "{flavour}-devel-matched": "{release}*",
        },
        build=("gcc", "make", "elfutils-libelf-devel"),
    ),
    SUSE: Family(
        packages=RPM,
        managers=(("zypper", "/usr/bin/zypper"),),
        initramfs=("dracut", "--force", "--regenerate-all"),
        # The package's release has one more number than the kernel's name. Several versions can be
        # installed side by side.
        headers={"{flavour}-devel": "{release}*"},
        build=("gcc", "make", "libelf-devel"),
    ),
}
# Package managers of unsupported families; only their names are reported.
OTHER_MANAGERS = (("apk", "/sbin/apk"), ("pacman", "/usr/bin/pacman"))


# The repository with DKMS. None is added for it: see docs/driver.md.
ARCHIVE = "archive"
EPEL = "epel"
NVIDIA = "nvidia"


@dataclass(frozen=True)
class Distribution:
    """The properties of a distribution.

    ``folder``: NVIDIA's folder, where {major} is the first number of the version and {joined} the
    version without dots; empty if NVIDIA has none. ``folders``: exceptions by the first number.
    ``best_effort``: NVIDIA does not list it, or it could not be tested. ``dkms``: the repository
    with DKMS. ``dkms_from``: the first driver branch whose packages need DKMS; earlier ones build
    their modules when they are installed.
    """

    family: str
    folder: str = ""
    folders: Mapping[str, str] = field(default_factory=dict)
    best_effort: bool = False
    dkms: str = ARCHIVE
    dkms_from: int = 0


# NVIDIA's packages for SUSE, by SUSE's own BCI-dockerfile-generator: from 575 on they need dkms,
# which is in NVIDIA's folder; before, they are called kmp.
_SUSE_DKMS = 575
# NVIDIA's repository has carried dkms for some releases, EPEL has it for all of them (u).
_RHEL = Distribution(RHEL, "rhel{major}", dkms=EPEL)
_SLES = Distribution(SUSE, "sles{major}", {"16": "suse16"}, dkms=NVIDIA, dkms_from=_SUSE_DKMS)
_OPENSUSE = replace(_SLES, folder="opensuse{major}")


def _alike(**folders: str) -> Distribution:
    """Return a distribution that NVIDIA does not list, with the folder to use for each release."""
    return Distribution(
        RHEL,
        folders={number.lstrip("v"): folder for number, folder in folders.items()},
        best_effort=True,
        dkms=EPEL,
    )


DISTRIBUTIONS: Mapping[str, Distribution] = {
    "ubuntu": Distribution(DEBIAN, "ubuntu{joined}"),
    "debian": Distribution(DEBIAN, "debian{major}"),
    "linuxmint": Distribution(DEBIAN, best_effort=True),
    "raspbian": Distribution(DEBIAN, best_effort=True),
    "devuan": Distribution(DEBIAN, best_effort=True),
    "rhel": _RHEL,
    "rocky": _RHEL,
    "almalinux": _RHEL,
    "ol": _RHEL,
    "centos": _RHEL,
    "fedora": Distribution(RHEL, "fedora{major}"),
    "amzn": Distribution(RHEL, "amzn{major}"),
    # NVIDIA has folders of their own for these two; nothing of them could be tried.
    "azurelinux": Distribution(RHEL, "azl{major}", best_effort=True),
    "kylin": Distribution(RHEL, "kylin{major}", best_effort=True),
    "mariner": Distribution(RHEL, best_effort=True),
    # All of these (u).
    "openeuler": _alike(v20="rhel8", v22="rhel9", v24="rhel9"),
    "anolis": _alike(v8="rhel8", v23="rhel9"),
    "alinux": _alike(v3="rhel8", v4="rhel9"),
    "opencloudos": _alike(v8="rhel8", v9="rhel9"),
    "tencentos": _alike(v3="rhel8", v4="rhel9"),
    "ctyunos": _alike(v2="rhel8", v3="rhel8", v4="rhel9"),
    "uos": _alike(v20="rhel8"),
    "sles": _SLES,
    "sles_sap": _SLES,
    "sled": replace(_SLES, best_effort=True),
    "opensuse-leap": _OPENSUSE,
    "opensuse": _OPENSUSE,
    "opensuse-tumbleweed": replace(_SLES, folder="", folders={}, best_effort=True),
}
# Words of ID_LIKE that are no ``os.id``.
_LIKE = {"suse": SUSE}


def managers() -> tuple[str, ...]:
    """Return the names of the package managers of the known families."""
    return tuple(name for row in FAMILIES.values() for name, _path in row.managers)


def major(version: str) -> str:
    """Return the first number of a version: 9 of 9.6, 10 of V10."""
    return version.partition(".")[0].lstrip("vV")


def family_of(
    words: tuple[str, ...], distributions: Mapping[str, Distribution] | None = None
) -> str | None:
    """Return the family of the first known word (the ID, or a word of ID_LIKE)."""
    known = DISTRIBUTIONS if distributions is None else distributions
    for word in words:
        if word in known:
            return known[word].family
        if word in _LIKE:
            return _LIKE[word]
    return None


def folder_of(
    identity: str, version: str, distributions: Mapping[str, Distribution] | None = None
) -> str | None:
    """Return the name of NVIDIA's folder for a release; None if NVIDIA has none."""
    known = DISTRIBUTIONS if distributions is None else distributions
    row, number = known.get(identity), major(version)
    if row is None or not number:
        return None
    return row.folders.get(number) or (
        row.folder.format(major=number, joined=version.replace(".", "")) or None
    )


def own_folder(identity: str, version: str) -> str | None:
    """Return the key by which users can configure a repository for an unknown system."""
    number = major(version)
    return f"{identity}{number}" if identity and number else None


def best_effort(
    system: Mapping[str, Any],
    folder: str | None = None,
    distributions: Mapping[str, Distribution] | None = None,
) -> str:
    """Return a warning for a system that NVIDIA does not list, or an empty string.

    :param system: the fact ``os``.
    :param folder: the folder of NVIDIA's repository that is used.
    """
    identity, version = system["id"] or "", system["version"] or ""
    upstream = system.get("upstream")
    if upstream:
        return (
            f"{identity} {version} is best effort: nothing was tried on it. By its os-release its "
            f"packages are those of {upstream['id']} {upstream['version']}"
            + (f", and NVIDIA's folder {folder} is used." if folder else ".")
        )
    known = DISTRIBUTIONS if distributions is None else distributions
    row = known.get(identity)
    if row is None or not row.best_effort:
        return ""
    text = f"{identity} {version} is best effort: nothing was tried on it"
    if not folder:
        return f"{text}, and NVIDIA does not list it."
    if row.folder:
        return f"{text}. NVIDIA's folder {folder} is used."
    return (
        f"{text}, and NVIDIA does not list it. Its folder {folder} is used; another one by "
        f"nvidia_driver_repositories: {{{own_folder(identity, version)}: {{folder: ...}}}}."
    )
