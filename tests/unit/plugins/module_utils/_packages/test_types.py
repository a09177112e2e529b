# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which packages and versions are meant."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.types import (
    Lock,
    fits,
)


@pytest.mark.parametrize(
    ("wanted", "version", "expected"),
    [
        ("595.58.03*", "595.58.03-1", True),
        ("595.58.03*", "595.58.03", True),
        ("595.58.0*", "595.58.03-1", False),
        ("595.*", "595.71.05-1", True),
        ("595*", "595.71.05-1", True),
        ("59*", "595.71.05-1", False),
        ("580.*", "595.58.03-1", False),
        # An epoch is told apart only where it is asked for.
        ("595.*", "3:595.58.03-1.el9", True),
        ("3:595.*", "3:595.58.03-1.el9", True),
        # The build of a library for one CUDA.
        ("*+cuda12.9", "2.27.7-1+cuda12.9", True),
        ("2.27*+cuda12.9", "2.27.7-1+cuda12.9", True),
        ("2.27.7*+cuda12.9", "2.27.7-1+cuda13.0", False),
        ("2.2*+cuda12.9", "2.27.7-1+cuda12.9", False),
        ("1.0*0-1", "1.0-1", False),
        ("*.30300000-*", "1:6.16.13.30300000-2278356.24.04", True),
        ("*.30300000-*", "1:6.16.13.30300100-2303411.24.04", False),
        ("6*.30300000-*", "1:6.16.13.30300000-2278356.24.04", True),
        ("1.0-1", "1.0-1", True),
        ("1.0-1", "1.0-1ubuntu1", False),
        (None, "1", True),
        (None, None, False),
        ("1*", None, False),
    ],
)
def test_fits(wanted, version, expected):
    assert fits(wanted, version) is expected


LOCK = Lock(("nvidia-*", "libnvidia-*", "!libnvidia-container*"), "595.58.03")


def test_a_lock_covers_what_its_patterns_leave_in():
    assert LOCK.covers("libnvidia-compute")
    assert not LOCK.covers("libnvidia-container1")
    assert not LOCK.covers("linux-headers")
