# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is left of a module's answer, and which hosts no module works for."""

from __future__ import annotations

import dataclasses

import pytest
from ansible.errors import AnsibleActionFail

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._answers import (
    READS_REFUSED,
    refuse_facts,
    taken_over,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fact_names import (
    refused_facts,
    variable_names,
)

FACTS = "kubegpu.nodes.gpu_node_facts"
HOSTILE = {
    "gpu_node": {"gpus": []},
    "gpu_upgrade_file": "/home/me/precious",
    "nvidia_driver_licence": {"token_path": "/home/me/.ssh/id_rsa"},
    "anything": 1,
}


@dataclasses.dataclass(frozen=True)
class Event:
    msg: str
    chain: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Summary:
    event: Event


@pytest.mark.parametrize(
    ("name", "left"),
    [
        (FACTS, {"gpu_node": {"gpus": []}}),
        ("gpu_node_facts", {"gpu_node": {"gpus": []}}),
        # It reads the node again, for what follows it.
        ("kubegpu.nodes.gpu_node_verify", {"gpu_node": {"gpus": []}}),
        ("kubegpu.nodes.gpu_node_health", None),
        ("kubegpu.nodes.package_set", None),
        ("other.collection.gpu_facts", None),
    ],
)
def test_only_the_fact_of_this_collection_is_left(name, left):
    answer = taken_over(name, {"changed": True, "ansible_facts": dict(HOSTILE)}, {})
    assert answer.get("ansible_facts") == left and answer["changed"]


@pytest.mark.parametrize("facts", [None, [], "x", {"gpu_upgrade_file": "x"}, {"gpu_nodes": 1}])
def test_facts_of_another_form_are_dropped(facts):
    assert "ansible_facts" not in taken_over(FACTS, {"ansible_facts": facts}, {})


def test_the_interpreter_that_ansible_found_is_kept_and_the_node_does_not_choose_it():
    own = {"discovered_interpreter_python": "/usr/bin/python3"}
    forged = {"discovered_interpreter_python": "/tmp/evil", **HOSTILE}
    assert taken_over("kubegpu.nodes.package_set", {"ansible_facts": forged}, own) == {
        "ansible_facts": own
    }
    assert "ansible_facts" not in taken_over("x", {"ansible_facts": forged}, {})


def test_ansible_is_not_told_to_do_something():
    told = {
        "add_host": {"host_name": "localhost", "host_vars": {"a": 1}},
        "add_group": "all",
        "ansible_stats": {"data": {"a": 1}},
        "_ansible_delegated_vars": {"ansible_host": "x"},
        "_ansible_facts_cacheable": True,
        "rows": [1],
    }
    assert taken_over(FACTS, told, {}) == {"rows": [1]}


def test_what_ansible_prints_has_no_control_codes():
    esc = "\x1b]0;pwn\x07\x1b[2J"
    shown = "\\x1b]0;pwn\\x07\\x1b[2J"
    names = ("msg", "exception", "module_stdout", "module_stderr", "stdout", "stderr", "cause")
    given = {
        **dict.fromkeys(names, esc),
        "warnings": [esc, Summary(Event(esc, (esc,)))],
        "deprecations": [{"msg": esc, "version": None}],
        "data": esc,
    }
    answer = taken_over(FACTS, given, {})
    assert {answer[name] for name in names} == {shown}
    assert answer["warnings"] == [shown, Summary(Event(shown, (shown,)))]
    assert answer["deprecations"] == [{"msg": shown, "version": None}]
    # Data is not printed by itself, and what prints it makes it printable.
    assert answer["data"] == esc


@pytest.mark.parametrize(
    "name",
    [
        "kubegpu_kube", "nvidia_driver_licence", "gpu_upgrade_file", "cuda_toolkit_runfiles",
        "__kubegpu_variables", "__gpu_upgrade_hooks", "kubegpu_", "inventory_dir",
        # Each hides a function of all templates.
        "now", "dict", "lookup", "query", "undef",
    ],
)  # fmt: skip
def test_a_host_with_such_a_fact_is_refused(name):
    variables = {"inventory_hostname": "gpu7", "ansible_facts": {"distribution": "Debian", name: 1}}
    with pytest.raises(AnsibleActionFail) as refused:
        refuse_facts("kubegpu.nodes.nvidia_driver", variables)
    for word in ("gpu7 has facts", name, "Next step: ", "--flush-cache", "cacheable"):
        assert word in str(refused.value)
    (row,) = refused_facts("gpu7", variables)
    assert row["variable"] == name and row["message"] == str(refused.value)
    # The playbook that shows such a host reads it, so that it has a row. A fact does not say so.
    refuse_facts(FACTS, {**variables, READS_REFUSED: True})
    forged = {**variables["ansible_facts"], READS_REFUSED: True}
    for more in ({}, {READS_REFUSED: True, "ansible_facts": forged}):
        with pytest.raises(AnsibleActionFail):
            refuse_facts(FACTS, {**variables, **more})


@pytest.mark.parametrize(
    "facts",
    [None, "x", [], {}, {"gpu_node": {}, "nodename": "x", "kernel": "6", 5: 6, "gpu_nodes": 1}],
)
def test_other_facts_are_no_reason(facts):
    refuse_facts("kubegpu.nodes.nvidia_driver", {"ansible_facts": facts})
    assert variable_names(facts) == [] and refused_facts("a", {"ansible_facts": facts}) == []


def test_many_names_and_unprintable_ones_are_one_short_message():
    facts = {f"kubegpu_{number}\x1b{'x' * 500}": 1 for number in range(9)}
    text = refused_facts("a", {"ansible_facts": facts})[0]["message"]
    assert "and 4 more" in text and "\x1b" not in text and len(text) < 1500
