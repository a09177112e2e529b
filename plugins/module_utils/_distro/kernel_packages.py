# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of packages by kernel and distribution, and the tools for the initial RAM disk. Pure.

Packages are those of headers, of kernel flavours, and DKMS.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .data import ARCHIVE, DEBIAN, DISTRIBUTIONS, EPEL, FAMILIES, NVIDIA, RHEL, SUSE, family_of
from .upstream import package_base

# Other programs that build initial RAM disks, where the family's own is not installed.
OTHER_INITRAMFS = (("mkinitrd",), ("mkinitcpio", "-P"))
# The kernel's package by a part of the kernel's name; the first match counts.
KERNEL_FLAVOURS: Mapping[str, tuple[tuple[str, str], ...]] = {
    RHEL: (
        ("uek", "kernel-uek"),  # (u)
        ("+64k", "kernel-64k"),
        ("+rt", "kernel-rt"),
        ("", "kernel"),
    ),
    SUSE: (
        ("-azure", "kernel-azure"),
        ("-64kb", "kernel-64kb"),
        ("", "kernel-default"),
    ),
}
# Amazon Linux 2023 names the packages of all kernels but the first after their series: kernel6.12,
# kernel6.12-devel.
_AMAZON = re.compile(r"(?P<series>\d+\.\d+)\.\S*\.amzn2023\b")
_AMAZON_FIRST = "6.1"
# Proxmox's kernels on Debian: their packages were called pve-* until 6.2, in which both names occur
# (github.com/anomixer/proxmox-vgpu-installer, github.com/KyleGospo/gasket-dkms/pull/20; samples of
# names: github.com/awesometic/realtek-r8125-dkms/issues/24, github.com/strongtz/i915-sriov-dkms
# issues 86 and 403).
_PROXMOX = re.compile(r"(?P<major>\d+)\.(?P<minor>\d+)\.\S*-pve\Z")
_PROXMOX_FROM, _PVE_UNTIL = (6, 2), (6, 2)
_DEBIAN_KERNEL = re.compile(
    r"-(?:amd64|arm64(?:-16k)?|686(?:-pae)?|armmp(?:-lpae)?|ppc64el|s390x|riscv64)\Z"
)
# Ubuntu, and what is made of it: Mint takes Ubuntu's kernels, Pop!_OS has its own of the same form.
_UBUNTU_KERNEL = re.compile(r"\d+\.\d+\.\d+-\d+-[a-z]+(?:-[a-z]+)*(?:-64k)?\Z")
# Ubuntu's builds of kernels for tests: 6.9.0-060900-generic.
_MAINLINE = re.compile(r"-0\d{5}(?:rc\d+)?-")
_SUSE_KERNEL = re.compile(r"-(?:default|azure|64kb|rt|preempt|longterm|vanilla)\Z")
PROXMOX = "Proxmox"
ELSEWHERE = "another source"
_WITHOUT_DKMS = {
    EPEL: "DKMS, which builds the kernel modules, is in EPEL where NVIDIA's repository has none; "
    "no repository is added for it. Next step: enable EPEL (the package epel-release brings the "
    "entry; Oracle's is oracle-epel-release-el<N>) or a mirror that has dkms, then run again.",
    NVIDIA: "DKMS, which builds the kernel modules from driver branch 575 on, is in NVIDIA's "
    "repository for SUSE. Next step: enable that repository, or a mirror that has all of it, then "
    "run again.",
    ARCHIVE: "DKMS, which builds the kernel modules, is in the distribution's own archive. Next "
    "step: enable the part of it, or the mirror, that has dkms, then run again.",
}


def without_dkms(identity: str) -> str:
    """Return the message for a node without a repository that has DKMS."""
    row = DISTRIBUTIONS.get(identity)
    return _WITHOUT_DKMS.get(row.dkms if row else ARCHIVE, "")


def kernel_flavour(family: str, kernel: str) -> str:
    """Return the name of a kernel's package: kernel, kernel-default, kernel6.12."""
    amazon = _AMAZON.match(kernel)
    if amazon and amazon["series"] != _AMAZON_FIRST:
        return f"kernel{amazon['series']}"
    rows = KERNEL_FLAVOURS.get(family, ())
    return next((name for part, name in rows if part in kernel), "")


@dataclass(frozen=True)
class KernelHeaders:
    """The packages with the headers of one kernel.

    :param packages: version pattern by name; None is any version.
    :param foreign: where the kernel is from, if the archive of the distribution does not have it;
        empty if it has.
    """

    packages: Mapping[str, str | None]
    foreign: str = ""

    def __str__(self) -> str:
        name, version = next(iter(self.packages.items()), ("", None))
        return f"{name} ({version})" if version else name


def kernel_headers(system: Mapping[str, Any], kernel: str) -> KernelHeaders:
    """Return the packages with the headers of a kernel, for the plan and for a finding.

    :param system: the fact ``os``, or a part of it.
    """
    identity = str(package_base(system).get("id") or "")
    family = system.get("family") or family_of((identity,)) or _family_by_kernel(kernel)
    if not kernel:
        return KernelHeaders({})
    if family == DEBIAN:
        return _deb_headers(identity, kernel)
    rows = FAMILIES[family].headers if family in FAMILIES else {}
    flavour = kernel_flavour(family, kernel)
    release = _release(family, kernel.partition("+")[0])
    words = {
        "flavour": flavour,
        "release": release,
        "full": f"{release}.{system.get('arch') or 'x86_64'}",
    }
    packages = {
        name.format(**words): version.format(**words) if version else None
        for name, version in rows.items()
    }
    return KernelHeaders(packages, _foreign(family, kernel))


def following_headers(kernel: str) -> str | None:
    """Return Proxmox's package of the headers that follows its kernel; None for other kernels."""
    match = _PROXMOX.match(kernel)
    if match is None:
        return None
    series = (int(match["major"]), int(match["minor"]))
    return "proxmox-default-headers" if series >= _PROXMOX_FROM else "pve-headers"


def _family_by_kernel(kernel: str) -> str:
    """Return the family of a kernel by its name, where nothing else is known of the system."""
    if re.search(r"\.(?:el|fc|amzn)\d", kernel):
        return RHEL
    return SUSE if kernel.endswith("-default") else DEBIAN


def _deb_headers(identity: str, kernel: str) -> KernelHeaders:
    proxmox = _PROXMOX.match(kernel)
    if proxmox:
        series = (int(proxmox["major"]), int(proxmox["minor"]))
        names = [
            name
            for name, of_series in (
                ("proxmox-headers", series >= _PROXMOX_FROM),
                ("pve-headers", series <= _PVE_UNTIL),
            )
            if of_series
        ]
        return KernelHeaders({f"{name}-{kernel}": None for name in names}, PROXMOX)
    foreign = "" if _of_archive(identity, kernel) else ELSEWHERE
    return KernelHeaders({f"linux-headers-{kernel}": None}, foreign)


def _of_archive(identity: str, kernel: str) -> bool:
    """Return whether a kernel has a name that the archive of a Debian family uses."""
    if identity in ("debian", "devuan", "raspbian"):
        return bool(_DEBIAN_KERNEL.search(kernel))
    return bool(_UBUNTU_KERNEL.match(kernel)) and not _MAINLINE.search(kernel)


def _foreign(family: str, kernel: str) -> str:
    if family == RHEL and "elrepo" in kernel:
        return "ELRepo"
    if family == SUSE and not _SUSE_KERNEL.search(kernel):
        return ELSEWHERE
    return ""


def _release(family: str, kernel: str) -> str:
    """Return version and release of a kernel's package, such as 5.14.0-570.el9."""
    if family == SUSE:
        return kernel.rpartition("-")[0]
    plain, _dot, last = kernel.rpartition(".")
    return plain if last in ("x86_64", "aarch64") else kernel


def initramfs_tools(family: str | None) -> tuple[tuple[str, ...], ...]:
    """Return the programs that build initial RAM disks, the one of the family first."""
    row = FAMILIES.get(family or "")
    own = (row.initramfs,) if row else ()
    others = (*(one.initramfs for one in FAMILIES.values()), *OTHER_INITRAMFS)
    return tuple(dict.fromkeys((*own, *others)))
