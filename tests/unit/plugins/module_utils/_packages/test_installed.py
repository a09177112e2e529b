# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.installed import (
    Package,
    held,
    read_dpkg_status,
    read_rpm_query,
    read_versionlock,
)

DPKG_STATUS = """\
Package: adduser
Status: install ok installed
Version: 3.134
Maintainer: Debian Adduser Developers <adduser@packages.debian.org>

Package: nvidia-container-toolkit
Status: hold ok installed
Priority: optional
Maintainer: NVIDIA CORPORATION <cudatools@nvidia.com>
Architecture: amd64
Version: 1.20.0-1
Depends: nvidia-container-toolkit-base (= 1.20.0-1)
Description: NVIDIA Container toolkit
 Package: not-a-package

Package: nvidia-docker2
Status: deinstall ok config-files
Architecture: all
Version: 2.13.0-1

Package: libnvidia-compute-580
Status: install ok installed
Architecture: amd64
Version: 580.95.05-0ubuntu0.24.04.2
Maintainer: Ubuntu Core Developers <ubuntu-devel-discuss@lists.ubuntu.com>

Package: libnvidia-compute-580
Status: install ok installed
Architecture: i386
Version: 580.95.05-0ubuntu0.24.04.2

Package: linux-modules-nvidia-580-open-generic
Status: install ok half-configured
Version: 6.8.0-60.63
"""


def test_dpkg_status() -> None:
    assert read_dpkg_status(DPKG_STATUS) == (
        Package(
            "nvidia-container-toolkit",
            "1.20.0-1",
            "amd64",
            "NVIDIA CORPORATION <cudatools@nvidia.com>",
            True,
        ),
        Package(
            "libnvidia-compute-580",
            "580.95.05-0ubuntu0.24.04.2",
            "amd64",
            "Ubuntu Core Developers <ubuntu-devel-discuss@lists.ubuntu.com>",
        ),
        Package("libnvidia-compute-580:i386", "580.95.05-0ubuntu0.24.04.2", "i386"),
    )


def test_rpm_query() -> None:
    text = (
        "nvidia-container-toolkit\t0:1.20.0-1\tx86_64\tNVIDIA\n"
        "kmod-nvidia-open-dkms\t3:580.95.05-1.el9\tnoarch\t(none)\n"
        "python3-nvidia-ml\t0:1-1\tnoarch\t\n"
        "broken line\n"
    )
    assert read_rpm_query(text, ("nvidia-container-toolkit-0:1.20.0-1.*",)) == (
        Package("nvidia-container-toolkit", "1.20.0-1", "x86_64", "NVIDIA", True),
        Package("kmod-nvidia-open-dkms", "3:580.95.05-1.el9", "noarch", "(none)"),
    )


def test_versionlock() -> None:
    text = "# comment\n\nnvidia-*\n!kernel-0:5.14-1.*\n"
    assert read_versionlock(text) == ("nvidia-*",)


@pytest.mark.parametrize(
    ("holds", "expected"), [((), None), ((True, True), True), ((True, False), False)]
)
def test_held(holds: tuple[bool, ...], expected: bool | None) -> None:
    assert held([Package(f"p{n}", "1", held=value) for n, value in enumerate(holds)]) is expected


def test_what_a_killed_transaction_left_is_no_other_package():
    text = "".join(
        f"nvidia-persistenced\t3:{version}-1\tnoarch\tNVIDIA\n"
        for version in ("580.95.05", "580.178.04")
    )
    assert [package.name for package in read_rpm_query(text)] == ["nvidia-persistenced"]
    second = read_rpm_query(text.replace("noarch", "i686", 1))
    assert [package.name for package in second][1] == "nvidia-persistenced.noarch"
