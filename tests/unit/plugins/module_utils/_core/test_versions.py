# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Versions of drivers, packages and kernels as numbers."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.versions import (
    package_numbers,
    upstream_numbers,
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
    assert package_numbers(text) == package


def test_all_numbers() -> None:
    assert version_numbers("580.126.09") == (580, 126, 9)
    assert version_numbers("6.12.107+deb13-amd64") == (6, 12, 107, 13, 64)
    assert version_numbers(None) == version_numbers("") == ()
