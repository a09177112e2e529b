# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stand-in packages of AMD's repositories for Ubuntu 24.04: the driver for DKMS and its firmware.

Names and versions are those of public reports (``_driver/amd_data.py`` names them), as far as they
are known; what they install says that it is a stand-in. Each release has a folder of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from tests.testbed import elf
from tests.testbed.standins import KERNELS, Deb

#: Version of the module, number of the release and build.
RELEASES = {
    "30.20": ("6.16.6", "30200000-2238411.24.04"),
    "30.30": ("6.16.13", "30300000-2278356.24.04"),
}
_PLACE = "usr/share/kubegpu-standin/amdgpu-dkms"


def repository(release: str) -> Iterator[Deb]:
    """Yield the packages of a release."""
    version, build = RELEASES[release]
    firmware = f"{release}.0.0.{build}"
    yield Deb(
        "amdgpu-dkms-firmware",
        firmware,
        files={"lib/firmware/updates/amdgpu/gc_9_4_3_rlc.bin": b"stand-in\n"},
    )
    ours = f"{version}-{build.partition('-')[2]}"
    sources = hashlib.sha256(build.encode()).hexdigest()[:8].upper()
    modules = {
        f"{_PLACE}/{kernel}/amdgpu.ko": elf.module(
            "amdgpu", version, kernel, "GPL and additional rights", srcversion=sources
        )
        for kernel in KERNELS
    }
    configuration = f'PACKAGE_NAME="amdgpu"\nPACKAGE_VERSION="{ours}"\n'.encode()
    dkms = "STANDIN_DKMS=amdgpu /usr/sbin/dkms"
    yield Deb(
        "amdgpu-dkms",
        f"1:{version}.{build}",
        ("dkms", f"amdgpu-dkms-firmware (= {firmware})"),
        files={f"usr/src/amdgpu-{ours}/dkms.conf": configuration, **modules},
        scripts={
            "postinst": f"{dkms} standin-add {ours} /{_PLACE}\n{dkms} standin-build {ours}\n"
            "update-initramfs -u\n",
            "prerm": f"test ! -x /usr/sbin/dkms || {dkms} standin-remove {ours}\n",
        },
    )
