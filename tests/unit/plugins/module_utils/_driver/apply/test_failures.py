# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.failures import (
    is_transient,
    lacks_dkms,
)


@pytest.mark.parametrize(
    ("words", "passes"),
    [
        ("E: Could not get lock /var/lib/dpkg/lock-frontend", True),
        ("Another run of the package manager holds its lock.", True),
        ("The disk of this node is full.", True),
        ("cannot copy: No space left on device", True),
        ("A package repository cannot be reached.", True),
        ("subprocess returned an error code (10)", False),
        ("The packages' dependencies cannot be met.", False),
        ("The file system /boot of this node has too little free space.", True),
        ("The file system /usr is mounted read-only.", True),
        ("A repository refuses access.", True),
        ("cannot be changed without removing x; nothing was changed", False),
    ],
)
def test_failures_that_pass(words, passes):
    assert is_transient(words) == passes


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("No package list of this node has dkms.\nSeen: available are: dkms: no version", True),
        ("No package list of this node has dkms, nvidia-open 580.*.", True),
        ("nothing provides dkms needed by kmod-nvidia-open-dkms-3:580.95.05-1.el9.noarch", True),
        ("No package list of this node has kmod-nvidia-latest-dkms 580.*.", False),
        ("No package list of this node has dkms-nvidia 580.*.", False),
        ("dkms: build of nvidia failed", False),
    ],
)
def test_dkms_that_no_repository_has(words, expected):
    assert lacks_dkms(words) == expected
