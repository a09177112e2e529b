# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters as a playbook calls them."""

from __future__ import annotations

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.kubegpu.nodes.plugins.filter import (
    gpu_hosts,
    gpu_plan,
    rollout,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._hosts import _SELECT
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.hosts import (
    plan_rows,
    result_rows,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._rollout import BATCHES
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._stages import STAGES
from tests.unit.fixtures.node_facts import installed, node
from tests.unit.fixtures.plans import container_toolkit_plan, registered


def call(module, *arguments, **options):
    name = module.__name__.rpartition(".")[2]
    return module.FilterModule().filters()[name](*arguments, **options)


def test_plan_takes_the_role_variables_as_they_come_from_yaml():
    plan = container_toolkit_plan(node(), version="1.19.0", key_fingerprints=[], docker=False)
    assert plan["version"] == "1.19.0-1" and plan["docker"] is False


def test_plan_without_facts_names_the_module_to_run():
    with pytest.raises(AnsibleFilterError, match="gpu_node_facts"):
        call(gpu_plan, {})


def test_plan_refuses_parts_that_it_does_not_know():
    with pytest.raises(AnsibleFilterError, match="colour"):
        call(gpu_plan, node(), {}, ["colour"])
    with pytest.raises(AnsibleFilterError, match="a mapping of variables"):
        call(gpu_plan, node(), "colour")


def test_rows_from_plan_to_table():
    plan = container_toolkit_plan(installed())
    hostvars = {
        "a": {
            "ansible_facts": {"gpu_node": installed()},
            "nvidia_driver_plan": {},
            "nvidia_mig_plan": {},
            "cuda_toolkit_plan": {},
            "nvidia_container_toolkit_plan": plan,
            "nvidia_container_toolkit_result": {
                "changed": False,
                "runtimes": {"docker": {"changed": False, "runtimes": ["runc"]}},
            },
        }
    }
    hostvars = registered(hostvars)
    (row,) = plan_rows(["a"], hostvars)
    assert (row["node"], row["action"], row["toolkit"]) == ("a", "none", plan)
    (row,) = result_rows(["a"], hostvars, batch=["a"])
    assert row["containerd"] == [] and row["docker"] == ["runc", "unchanged"]


def test_words_that_the_filters_do_not_know_are_named():
    with pytest.raises(AnsibleFilterError, match="'colour' is none of any, unread, facts, nvidia"):
        call(gpu_hosts, ["a"], {}, "colour")
    with pytest.raises(AnsibleFilterError, match="'colour' is none of serial, stop"):
        call(rollout, ["a"], "colour", {})


@pytest.mark.parametrize(
    ("module", "option", "table"),
    [(gpu_hosts, "select", _SELECT), (rollout, "what", {**BATCHES, **STAGES})],
)
def test_every_choice_is_documented(module, option, table):
    choices = yaml.safe_load(module.DOCUMENTATION)["options"][option]["choices"]
    elsewhere = (
        {"groups", "changed", "unverified", "endings", "refusals", "wrong", "plan_failures"}
        if module is gpu_hosts
        else set()
    )
    assert set(choices) == {*table, *elsewhere}


@pytest.mark.parametrize("word", ["false", "no", "0", False])
def test_words_for_false_are_false(word):
    requests = {"hold": word, "manage_repository": word, "containerd_set_default": word}
    plan = container_toolkit_plan(installed(), **requests)
    assert plan["hold"] is False and plan["repository"] is None
    assert [step["action"] for step in plan["steps"]] == ["unhold"]


def test_word_that_is_neither_true_nor_false_is_refused():
    plan = container_toolkit_plan(installed(), hold="perhaps")
    assert plan["action"] == "refuse" and plan["change_packages"] is False
    assert "nvidia_container_toolkit_hold has to be true or false" in plan["reasons"][0]


def test_version_may_come_from_yaml_as_a_number():
    assert container_toolkit_plan(node(), version=1.19)["version"] == "1.19-1"
