# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The frame of the actions that work on the controller only."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.kubegpu.nodes.plugins.action import (
    fleet_bundle,
    fleet_explain,
    fleet_report,
    fleet_result,
    fleet_table,
    fleet_variables,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._controller_action import (
    ControllerAction,
)


class Greets(ControllerAction):
    spec: Mapping[str, Any] = {
        "name": {"type": "str"},
        "names": {"type": "list", "elements": "str"},
    }
    rules: Mapping[str, Any] = {"required_one_of": [("name", "names")]}

    def work(self, options, variables):
        if options["name"] == "nobody":
            raise InputError(
                "name: nobody has no name.",
                evidence="https://ops:hunter2@example.com",
                next_step="Name somebody.",
                code="no_name",
            )
        return {"text": f"{variables.get('word', 'Hello')} {options['name']}"}


def run(variables=None, **options):
    task = SimpleNamespace(args=options, async_val=0, check_mode=False, diff=False)
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None))
    return Greets(task, connection, None, None, None, None).run(task_vars=variables)


def test_the_values_of_the_work_are_the_result():
    assert run(name="gpu1") == {"changed": False, "text": "Hello gpu1"}
    assert run({"word": "Bye"}, name="gpu1")["text"] == "Bye gpu1"


def test_options_are_checked_before_the_work():
    with pytest.raises(AnsibleActionFail, match="one of the following is required: name, names"):
        run()
    with pytest.raises(AnsibleActionFail, match="Unsupported parameters"):
        run(name="gpu1", nmae="gpu1")


def test_an_error_fails_the_task_with_its_parts_and_without_secrets():
    with pytest.raises(AnsibleActionFail) as caught:
        run(name="nobody")
    result = caught.value.result
    assert str(caught.value).startswith("name: nobody has no name.\nSeen: https://")
    assert {name: result[name] for name in ("cause", "next_step", "code")} == {
        "cause": "name: nobody has no name.", "next_step": "Name somebody.", "code": "no_name",
    }  # fmt: skip
    assert "hunter2" not in f"{caught.value}{result}"


def test_each_action_of_a_fleet_has_the_frame_and_none_of_its_own():
    modules = (
        fleet_bundle,
        fleet_explain,
        fleet_report,
        fleet_result,
        fleet_table,
        fleet_variables,
    )
    for module in modules:
        action = module.ActionModule
        assert issubclass(action, ControllerAction) and action.run is ControllerAction.run
        assert not action._requires_connection and action._supports_check_mode
        assert action.spec and issubclass(action, ActionBase)
