# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of packages by kernel and distribution, and the tools for the initial RAM disk. Pure.

Packages are those of headers, of kernel flavours, and DKMS.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .data import ARCHIVE, DISTRIBUTIONS, EPEL, FAMILIES, NVIDIA, RHEL, SUSE

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


def kernel_headers(family: str, kernel: str, architecture: str) -> dict[str, str | None]:
    """Return the packages with the headers of a kernel, as versions by name."""
    rows = FAMILIES[family].headers if family in FAMILIES else {}
    if not rows or not kernel:
        return {}
    flavour = kernel_flavour(family, kernel)
    release = _release(family, kernel.partition("+")[0])
    words = {"flavour": flavour, "release": release, "full": f"{release}.{architecture}"}
    return {
        name.format(**words): version.format(**words) if version else None
        for name, version in rows.items()
    }


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
