# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of single values of options."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.checks import (
    check_at_least,
    check_expression,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError


def test_checks_of_more_than_a_type() -> None:
    check_expression("expect", "a+")
    with pytest.raises(InputError, match=r"expect is not a regular expression: '\('"):
        check_expression("expect", "(")
    check_at_least("timeout", 1)
    with pytest.raises(InputError, match="timeout is 0"):
        check_at_least("timeout", 0)
