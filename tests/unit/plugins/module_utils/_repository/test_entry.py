# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A mirror of the other kind of packages is refused before anything is written."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import Refusal
from ansible_collections.kubegpu.nodes.plugins.module_utils._repository.entry import check_kind

TOOLKIT = "https://mirror.example/libnvidia-container/stable"
CUDA = "https://mirror.example/cuda/repos"


@pytest.mark.parametrize(
    ("url", "manager", "right"),
    [
        (f"{TOOLKIT}/deb", "dnf", f"{TOOLKIT}/rpm"),
        (f"{TOOLKIT}/deb/", "dnf5", f"{TOOLKIT}/rpm"),
        (f"{TOOLKIT}/deb/$(ARCH)", "zypper", f"{TOOLKIT}/rpm"),
        (f"{TOOLKIT}/deb?token=x", "dnf", f"{TOOLKIT}/rpm"),
        (f"{TOOLKIT}/rpm", "apt", f"{TOOLKIT}/deb"),
        (f"{TOOLKIT}/rpm/x86_64", "apt", f"{TOOLKIT}/deb"),
        ("https://mirror.example/rpm/nvidia/stable/deb", "dnf", ""),
        (f"{CUDA}/ubuntu2404/x86_64", "dnf", "the folder of their distribution"),
        (f"{CUDA}/debian12/x86_64/", "zypper", "the folder of their distribution"),
        (f"{CUDA}/rhel9/x86_64", "apt", "the folder of their distribution"),
    ],
)
def test_an_address_of_other_packages_is_refused_with_the_right_end(url, manager, right):
    with pytest.raises(Refusal) as caught:
        check_kind(url, manager, "x_repository")
    assert right in caught.value.next_step and manager in caught.value.next_step
    assert "x_repository.url is a repository of " in caught.value.cause
    assert "token=x" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "manager"),
    [
        ("", "dnf"),
        (f"{TOOLKIT}/deb", "apt"),
        (f"{TOOLKIT}/rpm", "dnf"),
        (TOOLKIT, "dnf"),
        ("https://mirror.example/rpm/nvidia/stable/deb", "apt"),
        ("https://mirror.example/debs/nvidia", "dnf"),
        ("https://deb/nvidia", "dnf"),
        ("https://rpm.example/nvidia/deb-mirror", "dnf"),
        (f"{CUDA}/rhel9/x86_64", "zypper"),
        (f"{CUDA}/ubuntu2204/x86_64", "apt"),
        ("https://mirror.example/{distribution}/{architecture}", "dnf"),
        (f"{TOOLKIT}/deb", None),
    ],
)
def test_other_addresses_are_the_users_own_choice(url, manager):
    check_kind(url, manager, "x_repository")
