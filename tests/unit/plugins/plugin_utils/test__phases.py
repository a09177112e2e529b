# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._phases import (
    DEFAULT_TIMEOUT,
    Failed,
    PhasedAction,
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


def test_what_a_node_says_is_text_on_the_controller_s_screen():
    """Root of a node can have its modules answer what he likes."""

    class Action(PhasedAction):
        TRANSFERS_FILES = False

        def __init__(self):
            self._task = SimpleNamespace(async_val=0, args={}, check_mode=False, diff=False)
            self._connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None))
            self._supports_check_mode = True

        def _remove_tmp_path(self, _path):
            pass

        def work(self, _options, _variables, result):
            take_over({"warnings": ["\x1b[2Jwarned"]}, result)
            or_fail(
                {"failed": True, "msg": "\x1bc\x1b[8mhidden", "module_stderr": "\x9b2J", "rc": 1}
            )

    answer = Action().run(task_vars={})
    assert answer["msg"] == "\\x1bc\\x1b[8mhidden" and answer["module_stderr"] == "\\x9b2J"
    assert answer["warnings"] == ["\\x1b[2Jwarned"] and answer["rc"] == 1
