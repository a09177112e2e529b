# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubegpu.nodes.plugins.module_utils._command import (
    TIMED_OUT,
    Result,
    module_runner,
)


@pytest.fixture
def run():
    with patch_module_args({}):
        return module_runner(AnsibleModule(argument_spec={}))


def test_program_that_does_not_exist_is_an_answer(run):
    answer = run(["no-such-program-at-all"])
    assert (answer.rc, answer.ok) == (127, False)
    assert "no-such-program-at-all" in answer.words()


def test_output_is_in_the_c_locale_whatever_the_user_has(run, monkeypatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert run(["sh", "-c", "echo $LC_ALL $LANG $LANGUAGE"]).stdout == "C C C\n"


def test_environment_is_passed_on(run):
    assert run(["sh", "-c", "echo $X"], environment={"X": "y"}).stdout == "y\n"


def test_arguments_are_not_for_a_shell(run):
    assert run(["echo", "$HOME; true"]).stdout == "$HOME; true\n"


def test_command_that_hangs_is_ended(run):
    assert run(["sleep", "20"], timeout=1).rc == TIMED_OUT


def test_bytes_that_are_not_utf_8_do_not_fail(run):
    assert run(["printf", "\\377"]).stdout == "\udcff"


def test_words_are_the_last_lines_of_what_was_said():
    text = "\n".join(str(number) for number in range(30))
    assert Result(1, "out", text).words().splitlines() == [str(n) for n in range(15, 30)]
    assert Result(1, "out\n", " \n").words() == "out"
