# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Versions of drivers, packages and kernels as numbers."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.versions import (
    find_version,
    package_numbers,
    upstream_numbers,
    upstream_version,
    version_numbers,
)


@pytest.mark.parametrize(
    ("text", "upstream", "package"),
    [
        ("1.20.0-1", (1, 20, 0), (1, 20, 0, 1)),
        ("1:9.8.0.87-1", (9, 8, 0, 87), (9, 8, 0, 87, 1)),
        ("1.20.0~rc.1-1", (1, 20, 0), (1, 20, 0)),
        ("24.0.7+dfsg1", (24, 0, 7), (24, 0, 7)),
        ("2.28.3-1+cuda12.9", (2, 28, 3), (2, 28, 3, 1)),
        ("", (), ()),
        ("unknown", (), ()),
    ],
)
def test_numbers_of_packages(
    text: str, upstream: tuple[int, ...], package: tuple[int, ...]
) -> None:
    assert upstream_numbers(text) == upstream
    assert (upstream_version(text) is None) == (not upstream)
    assert package_numbers(text) == package


def test_all_numbers() -> None:
    assert version_numbers("580.126.09") == (580, 126, 9)
    assert version_numbers("6.12.107+deb13-amd64") == (6, 12, 107, 13, 64)
    assert version_numbers(None) == version_numbers("") == ()


def test_zeros_of_a_package_version_stay() -> None:
    assert upstream_version("3:580.95.05-0ubuntu1") == "580.95.05"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3", "1.6.20"),
        ("containerd github.com/containerd/containerd/v2 2.1.9+unknown ", "2.1.9"),
        ("containerd containerd.io 1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da", "1.7.27"),
        ("containerd github.com/k3s-io/containerd v1.7.23-k3s2 ", "1.7.23"),
        ("containerd github.com/containerd/containerd/v2 v2.0.0-rc.3 x", "2.0.0-rc.3"),
        ("Docker version 20.10.24+dfsg1, build 5d6db84", "20.10.24"),
        ("Docker version 18.09.9, build 039a7df", "18.09.9"),
        ("crio version 1.30.4\nGitCommit: x", "1.30.4"),
        ("k3s version v1.31.5-rc1+k3s1 (56ec5dd4)\ngo version go1.22.10", "1.31.5-rc1"),
        ("28.5", "28.5"),
        ("nonsense", None),
        (None, None),
    ],
)
def test_find_version(text: str | None, expected: str | None) -> None:
    assert find_version(text) == expected
