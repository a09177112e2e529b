# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter as a playbook calls it."""

from __future__ import annotations

import datetime
import json

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.kubegpu.nodes.plugins.filter import nvidia_driver_plan
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.plan import Request
from tests.unit.fixtures.documented import documented_options
from tests.unit.fixtures.driver_cases import facts


def call(*arguments, **options):
    return nvidia_driver_plan.FilterModule().filters()["nvidia_driver_plan"](*arguments, **options)


def test_plan_is_json_with_every_key():
    plan = call(facts("T4", "u24"), today="2026-11-21")
    assert json.loads(json.dumps(plan)) == plan
    assert (plan["action"], plan["branch"], plan["kernel_module"]) == ("install", "580", "open")
    assert set(call(facts("-", "u24"))) == set(plan) == set(call(facts("K80", "u24")))


def test_values_as_they_come_from_yaml():
    plan = call(facts("T4", "u24"), branch=595, hold="no", load=False, runfile=None, dkms=False)
    assert (plan["branch"], plan["hold"], plan["load"]) == ("595", False, False)


def test_a_refusal_is_a_value():
    plan = call(facts("V100+B200", "u24"))
    assert plan["action"] == "refuse" and plan["change"] is False
    assert "V100" in plan["reasons"][0] and "B200" in plan["reasons"][0]


def test_today_is_the_controllers_date():
    today = datetime.datetime.now(datetime.timezone.utc).date()
    end = (today + datetime.timedelta(days=10)).isoformat()
    plan = call(facts("T4", "u24"), branch="580", branches={"580": {"end": end}})
    assert f"ends on {end}" in plan["warnings"][0]


def test_a_wrong_value_is_a_refusal_with_its_name():
    plan = call(facts("T4", "u24"), branch="newest")
    assert plan["action"] == "refuse" and plan["change"] is False
    assert plan["reasons"] == [
        "nvidia_driver_branch has to be auto or a number such as 580.",
        "Seen: nvidia_driver_branch: 'newest'",
    ]


def test_what_is_no_option_is_an_error():
    with pytest.raises(AnsibleFilterError, match="colour"):
        call(facts("T4", "u24"), colour="green")
    with pytest.raises(AnsibleFilterError, match="gpu_node_facts"):
        call({})


def test_every_option_is_documented_with_its_default():
    documented = documented_options(nvidia_driver_plan)
    fields = {**Request.__dataclass_fields__}
    assert set(documented) - {"_input"} == {*fields, "branches", "gpus", "repositories"}
    default = Request()
    for name in fields:
        value = getattr(default, name)
        assert documented[name].get("default") == (list(value) if value == () else value), name


def test_facts_of_an_earlier_release_are_told_from_a_wrong_wish():
    cached = facts("T4", "u24", "distro 580.126.09 open held ours")
    del cached["driver"]["configuration"]
    with pytest.raises(AnsibleFilterError, match=r"no 'configuration'.*gpu_node_facts"):
        call(cached)


def test_a_day_as_yaml_reads_it():
    branches = yaml.safe_load("580: {end: 2026-12-01}")
    plan = call(facts("T4", "u24"), branch="580", branches=branches, today="2026-11-21")
    assert "ends on 2026-12-01, in 10 days" in plan["warnings"][0]
