# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which kind of image a system is, and why nothing is installed in it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._core.errors import Refusal
from .data import RHEL, family_of, managers
from .image_data import BY_KEY, IMAGE_SYSTEMS, ImageSystem

# Made by ostree at boot, and by bootc with its ostree backend.
OSTREE = "/run/ostree-booted"
BOOTC = "/usr/bin/bootc"
TRANSACTIONAL = "/usr/sbin/transactional-update"
SIGNS = (OSTREE, BOOTC, TRANSACTIONAL)
MOUNTS = "/proc/self/mounts"

DRIVER = "the driver"
TOOLKIT = "the container toolkit"
CUDA = "CUDA"
MONITORING = "DCGM and its exporter"
PACKAGES = "packages"
RUNTIMES = "the configuration of a container runtime"
REPOSITORIES = "a repository of packages"
_OFF = {
    DRIVER: "Then run again: a driver that works is kept. nvidia_driver_enabled: false leaves the "
    "driver alone.",
    TOOLKIT: "Then run again: a toolkit that is installed is used.",
    CUDA: "Containers bring their own CUDA: leave cuda_toolkit_versions empty.",
    MONITORING: "In Kubernetes the exporter runs as a DaemonSet; on a host with Docker set "
    "gpu_monitoring_method: container. gpu_monitoring_enabled: false leaves it out.",
    PACKAGES: "",
}


@dataclass(frozen=True)
class Signs:
    """What a node shows in addition to its os-release.

    :param files: those of ``SIGNS`` that exist.
    :param read_only: whether /usr is mounted read-only; None: not known.
    :param manager: the package manager that was found.
    """

    files: tuple[str, ...] = ()
    read_only: bool | None = None
    manager: str | None = None


def find_image(release: Mapping[str, str], signs: Signs) -> tuple[ImageSystem, str] | None:
    """Return what kind of image a system is, and what shows it; None for any other system.

    :param release: the fields of os-release.
    """
    ostree = OSTREE in signs.files
    found = _by_release(release)
    # A container that builds the image has the same os-release, and installs packages.
    if found and not (found[0].by_packages and signs.read_only is False and not ostree):
        return (found[0], OSTREE) if ostree and found[0].by_packages else found
    booted = OSTREE if ostree else f"{BOOTC} and a read-only /usr"
    if BOOTC in signs.files and (ostree or signs.read_only):
        return BY_KEY["bootc"], booted
    if ostree:
        # Endless OS is an ostree of Debian, which rpm-ostree does not change.
        like = release.get("ID_LIKE", "").lower().split()
        rpm = family_of((release.get("ID", "").lower(), *like)) == RHEL
        return BY_KEY["rpm-ostree" if rpm else "read-only"], OSTREE
    if not signs.read_only:
        return None
    if TRANSACTIONAL in signs.files:
        return BY_KEY["transactional-update"], f"{TRANSACTIONAL} and a read-only /usr"
    # Debian's apt can be set up to make /usr writable while it works.
    return None if signs.manager in managers() else (BY_KEY["read-only"], "a read-only /usr")


def _by_release(release: Mapping[str, str]) -> tuple[ImageSystem, str] | None:
    identity = release.get("ID", "").lower()
    variant = release.get("VARIANT_ID", "").lower()
    for row in IMAGE_SYSTEMS:
        if identity in row.systems:
            return row, f"ID={identity} in os-release"
        if variant and f"{identity}/{variant}" in row.systems:
            return row, f"ID={identity} and VARIANT_ID={variant} in os-release"
        if release.get("NAME") in row.names:
            return row, f"NAME={release['NAME']} in os-release"
    return None


def usr_is_read_only(mounts: str) -> bool | None:
    """Return whether /usr cannot be written, by the text of ``/proc/self/mounts``."""
    options: dict[str, str] = {}
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) > 3:
            # What is mounted last is on top.
            options[fields[1]] = fields[3]
    found = options.get("/usr") or options.get("/")
    return None if found is None else "ro" in found.split(",")


def image_system(system: Mapping[str, Any]) -> ImageSystem | None:
    """Return the row of a system that is an image.

    :param system: the fact ``os``.
    """
    if not system.get("image"):
        return None
    return BY_KEY.get(str(system.get("image_system") or ""), BY_KEY["read-only"])


def immutable(system: Mapping[str, Any], what: str = DRIVER) -> Refusal | None:
    """Return why nothing can be installed in the running system: it is an image; or None.

    :param system: the fact ``os``.
    :param what: what would be installed.
    """
    row = image_system(system)
    if row is None:
        return None
    way = {DRIVER: row.driver, TOOLKIT: row.toolkit or row.software}.get(what, row.software)
    return Refusal(
        f"{system_title(system)} is an image that is not changed while it runs: {what} cannot be "
        "installed in it by a package manager or an installer.",
        f"{way}. {_OFF[what]}".strip(),
        system["image"],
    )


def loses_settings(system: Mapping[str, Any], what: str) -> Refusal | None:
    """Return why a file below /etc is not changed on a system that is an image; or None.

    :param system: the fact ``os``.
    :param what: what the file is.
    """
    row = image_system(system)
    if row is None or row.keeps_etc or row.keeps_settings:
        return None
    return Refusal(
        f"{system_title(system)} is an image of which nothing shows that files below /etc are kept "
        f"over a boot, or are those that its programs read: {what} is not changed.",
        f"{(what == RUNTIMES and row.toolkit) or row.software}.",
        system["image"],
    )


def amd_image(system: Mapping[str, Any]) -> Refusal | None:
    """Return why AMD's software cannot be installed in a system that is an image; or None.

    The ways of the table are those of NVIDIA's software; amdgpu is in the kernels of many images.

    :param system: the fact ``os``.
    """
    row = image_system(system)
    if row is None:
        return None
    return Refusal(
        f"{system_title(system)} is an image that is not changed while it runs: AMD's packages "
        "cannot be installed in it.",
        f"load the kernel's own driver (modprobe amdgpu), and set amd_driver_enabled: false and "
        f"amd_container_toolkit_enabled: false, as Kubernetes needs neither; otherwise "
        f"{row.software}.",
        system["image"],
    )


def system_title(system: Mapping[str, Any]) -> str:
    """Return the name of a system for messages, such as flatcar 3760.1.0 (Flatcar ...)."""
    row = image_system(system)
    version = system.get("version") or ""
    if not system.get("id"):
        return f"{row.name} {version}".strip() if row and row.name else "The system"
    plain = f"{system['id']} {version}".strip()
    return f"{plain} ({row.name})" if row and row.name else plain


def keeps_etc(system: Mapping[str, Any]) -> bool:
    """Return whether what is written below /etc and /usr/local survives a boot.

    :param system: the fact ``os``.
    """
    row = image_system(system)
    return row is None or row.keeps_etc
