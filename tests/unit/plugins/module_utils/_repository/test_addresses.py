# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which addresses mean the same repository."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._repository.addresses import (
    same_repository,
)

URL = "https://nvidia.example/stable/deb/$(ARCH)"


@pytest.mark.parametrize(
    ("address", "same"),
    [
        ("https://nvidia.example/stable/deb/$(ARCH)", True),
        ("https://nvidia.example/stable/deb/amd64/", True),
        ("http://NVIDIA.example//stable/./deb/amd64", True),
        ("https://user:word@nvidia.example/stable/deb/amd64/", True),
        ("https://nvidia.example/stable/deb/arm64/", False),
        ("https://nvidia.example/stable/debian/amd64", False),
        ("https://nvidia.example/stable", False),
        ("https://other.example/stable/deb/amd64", False),
    ],
)
def test_same_repository(address, same):
    assert same_repository(address, [URL], "amd64") is same


def test_a_replaced_address_stands_for_all_below_it():
    addresses = ["https://nvidia.example/stable/"]
    assert same_repository("https://nvidia.example/stable/ubuntu18.04/amd64", addresses)
    assert not same_repository("https://nvidia.example/stable2/ubuntu18.04", addresses)
