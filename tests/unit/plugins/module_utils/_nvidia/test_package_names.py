# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVIDIA's packages are known by their names and makers."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.package_names import (
    driver_source,
    is_driver,
    kernel_module_type,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.installed import Package


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvidia-driver-580-server-open", True),
        ("nvidia-fabricmanager-580", True),
        ("libnvidia-compute-580:i386", True),
        ("linux-modules-nvidia-580-open-generic", True),
        ("kmod-nvidia-open-dkms", True),
        ("cuda-drivers-580", True),
        ("libcuda1", True),
        ("libcuda1:i386", True),
        ("nvidia-container-toolkit", False),
        ("libnvidia-container1", False),
        ("nvidia-docker2", False),
        ("nvidia-cuda-toolkit", False),
        ("cuda-toolkit-13-0", False),
    ],
)
def test_is_driver(name: str, expected: bool) -> None:
    assert is_driver(name) is expected


@pytest.mark.parametrize(
    ("name", "maintainer", "expected"),
    [
        ("nvidia-open-580", "NVIDIA <cudatools@nvidia.com>", "nvidia"),
        ("kmod-nvidia-open-dkms", "NVIDIA Corporation", "nvidia"),
        ("nvidia-driver", "Debian NVIDIA Maintainers <pkg-nvidia@lists.alioth>", "distro"),
        ("nvidia-driver-580", "Ubuntu Core Developers <ubuntu-devel>", "distro"),
        ("nvidia-settings", "Debian NVIDIA Maintainers", None),
    ],
)
def test_driver_source(name: str, maintainer: str, expected: str | None) -> None:
    assert driver_source([Package(name, "580.95.05", maintainer=maintainer)]) == expected


def test_signed_modules_do_not_decide_on_the_source() -> None:
    signed = Package("nvidia-open-driver-G06-signed-cuda-kmp-default", "580.95.05", "", "SUSE LLC")
    other = Package("nvidia-compute-utils-G06", "580.95.05", "", "NVIDIA CORPORATION")
    assert driver_source([signed, other]) == "nvidia"
    assert driver_source([signed]) is None


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("nvidia-dkms-580-open", "libnvidia-compute-580"), "open"),
        (("nvidia-dkms-535",), "proprietary"),
        (("linux-modules-nvidia-580-server-open-generic",), "open"),
        (("nvidia-open-kernel-dkms",), "open"),
        (("nvidia-kernel-dkms",), "proprietary"),
        (("kmod-nvidia-latest-dkms",), "proprietary"),
        (("libnvidia-compute-580",), None),
    ],
)
def test_kernel_module_type(names: tuple[str, ...], expected: str | None) -> None:
    assert kernel_module_type(dict.fromkeys(names, "1")) == expected
