# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the phase plan of a module returns for its action has a closed form.

tests/unit/module_process.py compares the form with what each run of a module returns.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.manager import Changes
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.registry import MANAGERS
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._forms import (
    tasks_failure,
    tasks_fault,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._forms_data import (
    PACKAGE_ARGUMENTS,
)
from tests.unit.fixtures.answers import broken

CALL: dict[str, Any] = {
    "module": "ansible.builtin.apt",
    "arguments": {"name": ["a=1"], "state": "present"},
}
GOOD: dict[str, Any] = {
    "package_set": {"calls": [CALL], "named": [], "streams": {}, "temporary": ""},
    "nvidia_driver": {"needed": True, "runfile": None},
    "cuda_toolkit": {"needed": True, "sets": [], "runfiles": [{"version": "12.8"}]},
}


@pytest.mark.parametrize("module", GOOD)
def test_a_good_one_is_accepted(module):
    assert tasks_fault(module, GOOD[module]) == "" and tasks_failure(module, GOOD[module]) == {}


@pytest.mark.parametrize("name", ["ansible.builtin.command", "ansible.builtin.apt\n", "apt", 5])
def test_a_node_names_no_other_module(name):
    tasks = {**GOOD["package_set"], "calls": [{**CALL, "module": name}]}
    answer = tasks_failure("package_set", tasks)
    assert answer["code"] == "other_form" and "_tasks.calls[0].module" in answer["msg"]
    assert "The answer of package_set has an unexpected format." in answer["msg"]


@pytest.mark.parametrize("argument", ["deb", "upgrade", "conf_file", "_uses_shell"])
def test_a_node_names_no_other_argument(argument):
    call = {**CALL, "arguments": {**CALL["arguments"], argument: "x"}}
    tasks = {**GOOD["package_set"], "calls": [call]}
    assert argument in tasks_fault("package_set", tasks)


@pytest.mark.parametrize("module", GOOD)
@pytest.mark.parametrize("tasks", [None, 5, "x", [], {}, {"calls": 5}, {"needed": "yes"}])
def test_another_form_is_a_fault(module, tasks):
    assert tasks_failure(module, tasks)["code"] == "other_form"


@pytest.mark.parametrize("module", GOOD)
def test_no_form_raises(module):
    for seed in range(200):
        tasks_fault(module, broken({module: GOOD[module]}, random.Random(seed)).get(module))


@pytest.mark.parametrize("tool", MANAGERS)
def test_the_form_has_every_call_of_a_package_manager(tool):
    """With each kind of change there is, alone and with the others; as JSON, as it arrives."""
    for changes in every_change():
        calls = json.loads(json.dumps(MANAGERS[tool](no_command).tasks(changes, 600)))
        assert tasks_fault("package_set", {**GOOD["package_set"], "calls": calls}) == ""


def test_the_form_has_nothing_that_no_package_manager_is_asked_for():
    calls = [
        call
        for made in MANAGERS.values()
        for changes in every_change()
        for call in made(no_command).tasks(changes, 600)
    ]
    assert {name for call in calls for name in call["arguments"]} == PACKAGE_ARGUMENTS


def every_change():
    """Yield changes that have one kind, and those that have every kind."""
    kinds: dict[str, Any] = {one.name: ("a",) for one in fields(Changes)}
    kinds.update(install={"a": "1", "b": None}, replacing=True)
    yield from (Changes(**{name: value}) for name, value in kinds.items())
    yield Changes(**kinds)
    yield Changes(**{**kinds, "replacing": False})


def no_command(argv: Sequence[str], **_options: Any) -> Result:
    raise AssertionError(f"{argv} was run")
