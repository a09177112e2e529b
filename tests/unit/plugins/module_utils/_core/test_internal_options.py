# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of an action are no options of its module: neither for users nor in the invocation."""

from __future__ import annotations

import contextlib
import io
import json

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.internal_options import (
    InternalOptionsModule,
    with_internal,
)

INTERNAL = {
    "_phase": {"type": "str", "choices": ["plan", "record"], "default": "plan"},
    "_token": {"type": "str", "no_log": True},
}


def run(arguments):
    output = io.StringIO()
    with (
        patch_module_args({**arguments, "_ansible_inject_invocation": True}),
        contextlib.redirect_stdout(output),
        contextlib.suppress(SystemExit),
    ):
        module = InternalOptionsModule(
            argument_spec={"name": {"type": "str"}}, internal=INTERNAL, supports_check_mode=True
        )
        module.exit_json(
            phase=module.params["_phase"], said=f"the token is {module.params['_token']}"
        )
    return json.loads(output.getvalue())


def test_an_option_that_is_not_sent_has_its_default():
    assert run({"name": "a"})["phase"] == "plan"
    assert run(with_internal({"name": "a"}))["phase"] == "plan"


def test_what_the_action_sends_is_read_and_a_secret_is_not_shown():
    answer = run(with_internal({"name": "a"}, _phase="record", _token="hunter2"))
    assert answer["phase"] == "record"
    assert "hunter2" not in json.dumps(answer)


@pytest.mark.parametrize(
    ("internal", "words"),
    [({"_phase": "remove"}, "one of: plan, record"), ({"_colour": "green"}, "_colour")],
)
def test_a_wrong_value_fails(internal, words):
    answer = run(with_internal({"name": "a"}, **internal))
    assert answer["failed"] and words in answer["msg"]


def test_a_user_cannot_set_them():
    answer = run({"name": "a", "_phase": "record"})
    assert answer["failed"] and "Unsupported parameters" in answer["msg"]
    assert with_internal({"_internal": {"_phase": "record"}}, _phase="plan") == {
        "_internal": {"_phase": "plan"}
    }
