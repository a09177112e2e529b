# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Times of the API server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.timestamp import (
    timestamp,
    unix_time,
)


def test_a_time_of_the_api_server():
    assert unix_time("2026-11-22T12:00:00Z") == 1795348800.0
    assert timestamp(1795348800.9) == "2026-11-22T12:00:00Z"
    assert unix_time("2026-11-22T12:00:00.987654321Z") == 1795348800.0


@given(st.integers(0, 4_000_000_000))
def test_a_time_is_read_as_it_was_written(seconds):
    assert unix_time(timestamp(seconds)) == seconds


@pytest.mark.parametrize(
    "text", [None, "", "2026-11-22", "2026-11-22T12:00:00+01:00", "2026-11-22T12:00:00.Z", 5]
)
def test_anything_else_is_no_time(text):
    assert unix_time(text) is None
