# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._phases import (
    DEFAULT_TIMEOUT,
    Failed,
    merge,
    or_fail,
    seconds,
    take_over,
)


@pytest.mark.parametrize(("given", "limit"), [(None, DEFAULT_TIMEOUT), (5, 5), ("600", 600)])
def test_a_time_limit(given, limit):
    assert seconds({"install_timeout": given}, "install_timeout") == limit


@pytest.mark.parametrize("given", [0, -1, True, False, "abc", "", [3]])
def test_no_time_limit(given):
    with pytest.raises(Failed) as error:
        seconds({"install_timeout": given}, "install_timeout")
    assert f"install_timeout is {given!r}" in str(error.value)
    assert "Next step" in str(error.value)


def test_a_failed_answer_keeps_what_was_said_and_nothing_else():
    with pytest.raises(Failed) as error:
        or_fail({"failed": True, "msg": "no", "rc": 3, "key": "secret"})
    assert error.value.answer == {"msg": "no", "rc": 3}


def test_warnings_come_once():
    result = {"warnings": ["a"]}
    answer = {"warnings": ["a", "b"], "deprecations": None}
    take_over(answer, result)
    assert (answer, result) == ({}, {"warnings": ["a", "b"]})


def test_what_another_action_changed_is_added():
    result = {"changed": False, "diff": [1]}
    merge({"changed": False}, result)
    assert result == {"changed": False, "diff": [1]}
    merge({"changed": True, "diff": [2], "warnings": ["w"]}, result)
    assert result == {"changed": True, "diff": [1, 2], "warnings": ["w"]}
    with pytest.raises(Failed):
        merge({"failed": True, "msg": "no", "changed": True}, {})
