# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters of CUDA as a playbook calls them."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.kubegpu.nodes.plugins.filter import (
    cuda_supported_by,
    driver_required_by,
)
from tests.unit.fixtures.node_facts import node
from tests.unit.fixtures.plans import cuda_toolkit_plan


def call(module, *arguments, **options):
    name = module.__name__.rpartition(".")[2]
    return module.FilterModule().filters()[name](*arguments, **options)


def test_a_driver_and_its_cuda():
    answer = call(cuda_supported_by, "535.104.05")
    assert (answer["native"], answer["minor"], answer["newest"]) == ("12.2", "12.x", "12.9")
    answer = call(driver_required_by, "12.3")
    assert (answer["paired"], answer["minimum"]) == ("545.23.06", "525.60.13")


def test_the_condition_of_an_image_does_not_know_minor_version_compatibility():
    answer = call(driver_required_by, "cuda>=12.3")
    assert (answer["paired"], answer["minimum"], answer["limit"]) == ("545.23.06", "545.23.06", "")
    assert answer["minimum_branch"] == "545"


def test_rows_of_the_user():
    data = {"releases": {"13.9.0": "640.10"}}
    assert call(driver_required_by, "13.9", data=data)["paired"] == "640.10"
    assert call(cuda_supported_by, "640.10", data=data)["native"] == "13.9"


@pytest.mark.parametrize(
    ("module", "value"), [(cuda_supported_by, "newest"), (driver_required_by, "twelve")]
)
def test_nonsense_names_filter_and_value(module, value):
    with pytest.raises(AnsibleFilterError, match=value) as caught:
        call(module, value)
    assert module.__name__.rpartition(".")[2] in str(caught.value)


def test_plan_takes_words_for_booleans():
    plan = cuda_toolkit_plan(node(), versions=["12.9"], hold="no")
    assert plan["hold"] is False and plan["action"] == "install"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hold": "perhaps"}, "hold: 'perhaps'"),
        ({"versions": [12.9]}, "Write '12.9', with the quotes"),
    ],
)
def test_wrong_values_are_refusals(options, words):
    plan = cuda_toolkit_plan(node(), **options)
    assert plan["action"] == "refuse" and plan["change"] is False
    assert words in " ".join(plan["reasons"]) and "cuda_toolkit" in plan["reasons"][0]
