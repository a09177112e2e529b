# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.parsing.convert_bool import BOOLEANS_FALSE, BOOLEANS_TRUE

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.options import truth


@pytest.mark.parametrize("value", sorted(BOOLEANS_TRUE | BOOLEANS_FALSE, key=repr))
def test_words_are_those_of_ansible(value: Any) -> None:
    assert truth(value) is (value in BOOLEANS_TRUE)


def test_capitals_and_spaces() -> None:
    assert truth(" Yes") is True and truth("FALSE ") is False


@pytest.mark.parametrize("value", ["perhaps", "", 2, None, []])
def test_neither(value: Any) -> None:
    assert truth(value) is None
