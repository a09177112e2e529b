# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Installed packages, from the package manager's own records: pure text."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

TOOLKIT_PACKAGES = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)
# Replaced by the toolkit; side by side with it they fight over daemon.json and the runtime.
OBSOLETE_TOOLKIT_PACKAGES = ("nvidia-docker2", "nvidia-container-runtime")

# The packages that bring containerd and dockerd, of the distributions, Docker and Microsoft.
CONTAINERD_PACKAGES = ("containerd", "containerd.io", "moby-containerd")
DOCKER_PACKAGES = ("docker.io", "docker-ce", "moby-engine")

_DRIVER_PREFIXES = (
    "nvidia-",
    "libnvidia-",
    "linux-modules-nvidia-",
    "linux-objects-nvidia-",
    "linux-signatures-nvidia-",
    "xserver-xorg-video-nvidia",
    "xorg-x11-drv-nvidia",
    "kmod-nvidia",
    "akmod-nvidia",
    "dkms-nvidia",
    "cuda-drivers",
    "libnvsdm-",
)
_DRIVER_NAMES = ("libcuda1", "libnvsdm", "nvlsm")
_NO_DRIVER_PREFIXES = (
    "nvidia-container",
    "libnvidia-container",
    "nvidia-docker",
    "nvidia-cuda-",
    "nvidia-cudnn",
    "nvidia-visual-profiler",
    "nvidia-nsight",
    "nvidia-profiler",
    "nvidia-detect",
    "nvidia-installer-cleanup",
)
_CUDA_PREFIXES = (
    "cuda-toolkit",
    "cudnn",
    "libcudnn",
    "libnccl",
    "nvidia-cuda-toolkit",
    "nvidia-cudnn",
)
_WANTED = re.compile(
    r"(?:lib)?nvidia-|(?:lib)?cud(?:a|nn)|libnv|libnccl|nvlsm|(?:linux-(?:modules|objects|signatures)|kmod|akmod"
    r"|dkms|xserver-xorg-video|xorg-x11-drv)-nvidia|docker|containerd|moby-"
)
# What rpm is asked for: the same names, as its patterns.
RPM_PATTERNS = (
    "nvidia-*",
    "libnvidia-*",
    "cuda-*",
    "libnv*",
    "nvlsm",
    "*-nvidia*",
    "*cudnn*",
    "libnccl*",
    *CONTAINERD_PACKAGES,
    *DOCKER_PACKAGES,
)
RPM_FORMAT = r"%{NAME}\t%{EPOCHNUM}:%{VERSION}-%{RELEASE}\t%{ARCH}\t%{VENDOR}\n"
# What dnf's versionlock writes behind a name.
_LOCK_VERSION = re.compile(r"-\d+:[^:-]+-[^:-]+\Z")
_DPKG_STANZA = re.compile(
    rf"^Package: (?P<name>(?:{_WANTED.pattern})\S*)\n(?P<rest>(?:.+\n)*)", re.M
)
_DPKG_FIELD = re.compile(r"^(?P<name>Status|Version|Architecture|Maintainer): (?P<value>.*)$", re.M)


@dataclass(frozen=True)
class Package:
    """An installed package. ``maintainer`` is who says to have made it."""

    name: str
    version: str
    architecture: str = ""
    maintainer: str = ""
    held: bool = False


def read_dpkg_status(text: str) -> tuple[Package, ...]:
    """Return the installed packages that matter here, from ``/var/lib/dpkg/status``."""
    found: dict[str, Package] = {}
    for match in _DPKG_STANZA.finditer(text):
        fields = dict(_DPKG_FIELD.findall(match["rest"]))
        status = fields.get("Status", "").split()
        if status[2:] != ["installed"]:
            continue
        architecture = fields.get("Architecture", "")
        # The second architecture of a library (i386) is told apart, as dpkg does.
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
    """Return the packages that ``rpm -qa`` printed in :data:`RPM_FORMAT`."""
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
            # Of the same architecture it is what a killed transaction has left: no other package.
            if found[name].architecture == architecture:
                continue
            name = f"{name}.{architecture}"
        found[name] = Package(name, short, architecture, vendor, held)
    return tuple(found.values())


def read_versionlock(text: str) -> tuple[str, ...]:
    """Return the patterns of dnf's ``versionlock.list``; what it excludes ('!') is none."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith(("#", "!")))


def read_versionlock_toml(text: str) -> tuple[str, ...]:
    """Return the names in dnf 5's ``versionlock.toml``, whatever their conditions are."""
    return tuple(re.findall(r"^name\s*=\s*[\"']([^\"'\n]+)[\"']", text, re.MULTILINE))


def read_zypp_locks(text: str) -> tuple[str, ...]:
    """Return the patterns of zypper's locks for packages of a name, whatever their version is."""
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
    """Return whether a lock is on the package.

    One on another version than the installed one holds, too: dnf offers that version alone.
    """
    full = f"{name}-{version if ':' in version else f'0:{version}'}"
    return any(
        fnmatch.fnmatchcase(text, pattern)
        for lock in locks
        for pattern in (lock, _LOCK_VERSION.sub("", lock))
        for text in (name, full, f"{full}.x")
    )


def is_driver(name: str) -> bool:
    """Return whether the package is one of the NVIDIA driver's, and not of what builds on it."""
    if name.startswith(_NO_DRIVER_PREFIXES):
        return False
    plain = name.partition(":")[0]
    return name.startswith(_DRIVER_PREFIXES) or plain in _DRIVER_NAMES


def is_cuda(name: str) -> bool:
    """Return whether the package is a CUDA toolkit or one of the libraries that go with it."""
    # The files that all versions share follow the newest of them.
    return name.startswith(_CUDA_PREFIXES) and not name.endswith("config-common")


def versions(packages: Iterable[Package]) -> dict[str, str]:
    return {package.name: package.version for package in packages}


def held(packages: Sequence[Package]) -> bool | None:
    """Return whether all of them are held; None where there is none."""
    return all(package.held for package in packages) if packages else None


def unheld(packages: Iterable[Package]) -> list[str]:
    """Return the names of those that are not held."""
    return [package.name for package in packages if not package.held]


def select(packages: Iterable[Package], names: Iterable[str]) -> tuple[Package, ...]:
    wanted = tuple(names)
    return tuple(package for package in packages if package.name in wanted)


def driver_source(packages: Sequence[Package]) -> str | None:
    """Return 'nvidia' or 'distro' by who made the driver's packages, None where there is none."""
    core = [package for package in packages if _is_core(package.name)]
    if not core:
        return None
    makers = [package.maintainer.lower() for package in core]
    # The distributions name their own teams ("Debian NVIDIA Maintainers", "Ubuntu Core
    # Developers"); NVIDIA's repository says nvidia.com, or NVIDIA alone.
    by_nvidia = any("nvidia.com" in maker or maker.startswith("nvidia") for maker in makers)
    return "nvidia" if by_nvidia else "distro"


def flavour(packages: Mapping[str, str]) -> str | None:
    """Return 'open' or 'proprietary' by the packages of the kernel modules, else None."""
    kernel = [name for name in packages if _is_kernel(name)]
    if not kernel:
        return None
    return "open" if any("open" in name for name in kernel) else "proprietary"


def _is_kernel(name: str) -> bool:
    return (
        name.startswith(("linux-modules-nvidia-", "linux-objects-nvidia-", "kmod-nvidia", "akmod-"))
        or "dkms" in name
        or name.startswith(("nvidia-kernel-open", "nvidia-open-kernel", "nvidia-open"))
        or name.startswith("nvidia-kernel-source")
    )


def _is_core(name: str) -> bool:
    if "-signed-" in name:
        # SUSE signs kernel modules for NVIDIA's own packages.
        return False
    return _is_kernel(name) or name.startswith(
        (
            *("nvidia-driver", "nvidia-headless", "nvidia-utils", "libnvidia-compute"),
            *("cuda-drivers", "nvidia-compute"),
        )
    )
