# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters as a playbook calls them."""

from __future__ import annotations

import sys

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.kubegpu.nodes.plugins.filter import (
    container_toolkit_plan,
    fleet_rows,
    gpu_vendor,
    hosts_with,
    node_plan,
    node_result,
)
from tests.unit.fixtures.node_facts import installed, node


def call(module, *arguments, **options):
    name = module.__name__.rpartition(".")[2]
    return module.FilterModule().filters()[name](*arguments, **options)


def test_plan_takes_the_role_variables_as_they_come_from_yaml():
    plan = call(container_toolkit_plan, node(), version="1.19.0", key_fingerprints=[], docker=False)
    assert plan["version"] == "1.19.0-1" and plan["docker"] is False


def test_plan_without_facts_names_the_module_to_run():
    with pytest.raises(AnsibleFilterError, match="gpu_node_facts"):
        call(container_toolkit_plan, {})


def test_plan_refuses_options_that_it_does_not_know():
    with pytest.raises(AnsibleFilterError, match="colour"):
        call(container_toolkit_plan, node(), colour="blue")


def test_rows_from_plan_to_table():
    facts = installed()
    plan = call(container_toolkit_plan, facts)
    skipped = {"skipped": True, "changed": False}
    row = call(node_plan, facts, name="a", toolkit=plan, containerd=skipped)
    assert row["action"] == "none"
    result = call(node_result, plan, name="a", docker={"changed": False, "runtimes": ["runc"]})
    assert result["containerd"] == [] and result["docker"] == ["runc", "unchanged"]
    assert call(fleet_rows, ["a"], {"a": {"row": row}}, "row") == [row]
    assert call(gpu_vendor, facts["gpus"]) == "nvidia"


@pytest.mark.parametrize("word", ["false", "no", "0", False])
def test_words_for_false_are_false(word):
    wishes = {"hold": word, "manage_repository": word, "containerd_set_default": word}
    plan = call(container_toolkit_plan, installed(), **wishes)
    assert plan["hold"] is False and plan["repository"] is None
    assert [step["action"] for step in plan["steps"]] == ["unhold"]


def test_word_that_is_neither_true_nor_false_is_refused():
    plan = call(container_toolkit_plan, installed(), hold="perhaps")
    assert plan["action"] == "refuse" and plan["change_packages"] is False
    assert "nvidia_container_toolkit_hold has to be true or false" in plan["reasons"][0]


def test_version_may_come_from_yaml_as_a_number():
    assert call(container_toolkit_plan, node(), version=1.19)["version"] == "1.19-1"


def test_what_plans_need_is_imported_where_hosts_are_worked_out(monkeypatch):
    name = "ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.plan"
    monkeypatch.delitem(sys.modules, name, raising=False)
    hostvars = {"gpu1": {"ansible_facts": {"gpu_node": {}}}}
    assert call(hosts_with, ["cpu1"], hostvars) == [] and name not in sys.modules
    assert call(hosts_with, ["gpu1"], hostvars) == ["gpu1"] and name in sys.modules
