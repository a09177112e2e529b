# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Installed packages, parsed from the databases and lock files of package managers."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# The packages that bring containerd and dockerd, of the distributions, Docker and Microsoft.
CONTAINERD_PACKAGES = ("containerd", "containerd.io", "moby-containerd")
DOCKER_PACKAGES = ("docker.io", "docker-ce", "moby-engine")
PODMAN_PACKAGE = "podman"
# Of Debian and Ubuntu; of the others.
LIBC_PACKAGES = ("libc6", "glibc")

_WANTED = re.compile(
    r"(?:lib)?nvidia-|(?:lib)?cud(?:a|nn)|libnv|libnccl|nvlsm|datacenter-gpu-manager|(?:linux-(?:modules|objects|signatures)|kmod|akmod"
    r"|dkms|xserver-xorg-video|xorg-x11-drv)-nvidia|docker|containerd|moby-|amd-container-toolkit|amdgpu-dkms"
    r"|(?:podman|libc6|glibc)(?![\w.+-])"
)
# The same names as patterns of rpm.
RPM_PATTERNS = (
    "nvidia-*",
    "libnvidia-*",
    "cuda-*",
    "libnv*",
    "nvlsm",
    "*-nvidia*",
    "*cudnn*",
    "libnccl*",
    "datacenter-gpu-manager*",
    "amd-container-toolkit",
    *CONTAINERD_PACKAGES,
    *DOCKER_PACKAGES,
    PODMAN_PACKAGE,
    "glibc",
)
RPM_FORMAT = r"%{NAME}\t%{EPOCHNUM}:%{VERSION}-%{RELEASE}\t%{ARCH}\t%{VENDOR}\n"
# The version that dnf's versionlock adds to a name.
_LOCK_VERSION = re.compile(r"-\d+:[^:-]+-[^:-]+\Z")
_DPKG_STANZA = re.compile(
    rf"^Package: (?P<name>(?:{_WANTED.pattern})\S*)\n(?P<rest>(?:.+\n)*)", re.M
)
_DPKG_FIELD = re.compile(r"^(?P<name>Status|Version|Architecture|Maintainer): (?P<value>.*)$", re.M)


@dataclass(frozen=True)
class Package:
    """An installed package. ``maintainer``: the maintainer or vendor that the package names."""

    name: str
    version: str
    architecture: str = ""
    maintainer: str = ""
    held: bool = False


def read_dpkg_status(text: str) -> tuple[Package, ...]:
    """Return the relevant installed packages from the text of ``/var/lib/dpkg/status``."""
    found: dict[str, Package] = {}
    for match in _DPKG_STANZA.finditer(text):
        fields = dict(_DPKG_FIELD.findall(match["rest"]))
        status = fields.get("Status", "").split()
        if status[2:] != ["installed"]:
            continue
        architecture = fields.get("Architecture", "")
        # The second architecture of a library (i386) gets a suffix, as with dpkg.
        name = match["name"] if match["name"] not in found else f"{match['name']}:{architecture}"
        found[name] = Package(
            name,
            fields.get("Version", ""),
            architecture,
            fields.get("Maintainer", ""),
            status[0] == "hold",
        )
    return tuple(found.values())


def read_rpm_query(text: str, locks: Iterable[str] = ()) -> tuple[Package, ...]:
    """Return the packages from the output of ``rpm -qa`` in :data:`RPM_FORMAT`."""
    locks = tuple(locks)
    found: dict[str, Package] = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) != 4 or not _WANTED.match(fields[0]):
            continue
        name, version, architecture, vendor = fields
        epoch, _colon, rest = version.partition(":")
        short = rest if epoch in ("0", "(none)") else version
        held = is_locked(name, short, locks)
        if name in found:
            # In the same architecture, a killed transaction left it: it is the same package.
            if found[name].architecture == architecture:
                continue
            name = f"{name}.{architecture}"
        found[name] = Package(name, short, architecture, vendor, held)
    return tuple(found.values())


def read_versionlock(text: str) -> tuple[str, ...]:
    """Return the patterns of dnf's ``versionlock.list``, without the excluded ones (``!``)."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith(("#", "!")))


def read_versionlock_toml(text: str) -> tuple[str, ...]:
    """Return the names in dnf 5's ``versionlock.toml``, whatever their conditions."""
    return tuple(re.findall(r"^name\s*=\s*[\"']([^\"'\n]+)[\"']", text, re.MULTILINE))


def read_zypp_locks(text: str) -> tuple[str, ...]:
    """Return the patterns of zypper's locks that hold packages by name, in any version."""
    found = []
    for stanza in re.split(r"\n\s*\n", text):
        fields = {
            name.strip(): value.strip()
            for name, colon, value in (line.partition(":") for line in stanza.splitlines())
            if colon
        }
        name = fields.get("solvable_name", "")
        conditions = {"version", "solvable_arch", "repo", "repository", "install_status"}
        if name and fields.get("type", "package") == "package" and not conditions & set(fields):
            found.append(name)
    return tuple(found)


def is_locked(name: str, version: str, locks: Iterable[str]) -> bool:
    """Return whether a lock holds the package.

    A lock on another version than the installed one counts, too: dnf then offers only that version.
    """
    full = f"{name}-{version if ':' in version else f'0:{version}'}"
    return any(
        fnmatch.fnmatchcase(text, pattern)
        for lock in locks
        for pattern in (lock, _LOCK_VERSION.sub("", lock))
        for text in (name, full, f"{full}.x")
    )


def versions(packages: Iterable[Package]) -> dict[str, str]:
    return {package.name: package.version for package in packages}


def held(packages: Sequence[Package]) -> bool | None:
    """Return whether all packages are held; None if there is no package."""
    return all(package.held for package in packages) if packages else None


def unheld(packages: Iterable[Package]) -> list[str]:
    """Return the names of the packages that are not held."""
    return [package.name for package in packages if not package.held]


def select(packages: Iterable[Package], names: Iterable[str]) -> tuple[Package, ...]:
    wanted = tuple(names)
    return tuple(package for package in packages if package.name in wanted)
