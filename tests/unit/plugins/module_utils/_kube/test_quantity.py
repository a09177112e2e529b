# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubernetes quantities."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.quantity import (
    parse_count,
    parse_quantity,
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("4", 4), (4, 4), ("0", 0), ("1k", 1000), ("2Ki", 2048), ("1e3", 1000), ("1E3", 1000),
        ("500m", Fraction(1, 2)), ("1.5", Fraction(3, 2)), ("3E", 3 * 10**18), ("1Gi", 2**30),
        (2, 2), ("+3", 3), ("1Ki", 1024), (0.5, Fraction(1, 2)),
    ],
)  # fmt: skip
def test_quantities(text, number):
    assert parse_quantity(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        "four",
        "1x",
        "1 2",
        "--1",
        "1kk",
        "e3",
        "1 GPU",
        None,
        True,
        "1" * 5000,
        "1e" + "9" * 5000,
    ],
)
def test_what_is_no_quantity_is_named(text):
    with pytest.raises(KubegpuError, match="is not a Kubernetes quantity"):
        parse_quantity(text)


@given(st.integers(0, 10**12))
def test_a_whole_number_is_itself(number):
    assert parse_count(str(number)) == number


def test_an_enormous_exponent_takes_no_time():
    assert parse_quantity("1e999999999") > 2**63
    assert 0 < parse_quantity("1e-999999999") < 1
