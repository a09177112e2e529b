# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the phase plan of a module returns for its action has a closed form."""

from __future__ import annotations

import random

import pytest

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._forms import (
    tasks_failure,
    tasks_fault,
)
from tests.unit.fixtures.answers import broken

CALL = {"module": "ansible.builtin.apt", "arguments": {"name": ["a=1"], "state": "present"}}
GOOD = {
    "package_set": {"calls": [CALL], "named": [], "streams": {}},
    "nvidia_driver": {"needed": True, "sets": [], "dkms": "", "runfile": None},
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
