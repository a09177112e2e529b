# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The form of answers: good ones are accepted, and others are named with what is wrong."""

from __future__ import annotations

import copy
import importlib
import re
from datetime import datetime, timezone

import pytest
import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.gather import gather
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.runtimes import RuntimePaths
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _forms_facts_data
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._forms import (
    answer_fault,
    checked,
    facts_fault,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._forms_data import FORMS
from tests.tools.environments import REPOSITORY
from tests.unit.fixtures import fleet
from tests.unit.fixtures.kernel_gpus import amd_node, intel_node
from tests.unit.fixtures.machines import MACHINES
from tests.unit.fixtures.make_tree import make_machine
from tests.unit.fixtures.mig_node import MigNode, card
from tests.unit.fixtures.node_facts import installed, node

MODULES = "ansible_collections.kubegpu.nodes.plugins.modules"
TYPES = {
    "str": "text", "int": "whole", "float": "number", "bool": "flag", "dict": "mapping",
    "list": "list",
}  # fmt: skip
# Returned by actions on the controller, or not by a module of a node.
OF_THE_CONTROLLER = (
    "fleet_bundle",
    "fleet_explain",
    "fleet_fail",
    "fleet_report",
    "fleet_plan",
    "fleet_result",
    "fleet_table",
    "fleet_variables",
)
# Ansible's own, and those of each failure.
COMMON = ("diff", "code", "cause", "evidence", "next_step")


def without_form(form, value, path=""):
    """Return the paths of keys that a value has and its form does not."""
    form = form[0] if isinstance(form, tuple) else form
    if isinstance(form, list) and isinstance(value, list):
        return {found for one in value for found in without_form(form[0], one, f"{path}[]")}
    if not isinstance(form, dict) or not isinstance(value, dict):
        return set()
    if "*" in form:
        each = value.values()
        return {found for one in each for found in without_form(form["*"], one, f"{path}.*")}
    known = {name.rstrip("?"): one for name, one in form.items()}
    found = {f"{path}.{name}" for name in value if name not in known}
    for name in value.keys() & known.keys():
        found |= without_form(known[name], value[name], f"{path}.{name}")
    return found


def check_keys(facts):
    new = sorted(without_form(dict(_forms_facts_data.GPU_NODE), facts))
    assert not new, (
        f"gpu_node{new[0]} has no form. Next step: its form in plugins/plugin_utils/"
        "_forms_facts_data.py, and its description in RETURN of plugins/modules/gpu_node_facts.py"
    )


@pytest.mark.parametrize("name", MACHINES)
def test_the_facts_of_every_machine_have_the_form(tmp_path, name):
    reader = NodeReader(str(make_machine(tmp_path, MACHINES[name])))
    facts = gather(reader, RuntimePaths())
    assert facts_fault(facts) == ""
    check_keys(facts)


def keys_of(form):
    """Return the names of the keys that a form has at any depth."""
    if isinstance(form, (tuple, list)):
        return keys_of(form[0])
    if not isinstance(form, dict):
        return set()
    names = {name.rstrip("?") for name in form} - {"*"}
    return names.union(*(keys_of(one) for one in form.values()))


def test_each_key_of_a_fact_is_documented():
    """In its description, or in its sample."""
    returned = yaml.safe_load(importlib.import_module(f"{MODULES}.gpu_node_facts").RETURN)
    contains = returned["ansible_facts"]["contains"]["gpu_node"]["contains"]
    missing = {
        f"{name}: {key}"
        for name, form in _forms_facts_data.GPU_NODE.items()
        for key in keys_of(form) - set(re.findall(r"\w+", str(contains[name])))
    }
    assert missing == set(), (
        f"RETURN of plugins/modules/gpu_node_facts.py does not name {sorted(missing)}. Next step: "
        "describe each, or show it in the sample"
    )


def test_a_new_fact_without_a_form_is_found():
    facts = {**node(), "new": 1}
    facts["gpus"] = [{**facts["gpus"][0], "colour": "green"}]
    found = without_form(dict(_forms_facts_data.GPU_NODE), facts)
    assert found == {".new", ".gpus[].colour"}


def test_other_good_facts_have_the_form(tmp_path):
    partitioned = MigNode(tmp_path, card(0, "20b2"), card(1, "20b2")).facts()
    for device in partitioned["nvml"]["devices"]:
        # with_licences moves it to the GPU.
        del device["licence"]
    hung = node(driver_hang={"program": "nvidia-smi", "pid": 1, "seconds": 60.0, "state": "D",
                             "wchan": None, "left": True})  # fmt: skip
    streams = node(driver__streams={"nvidia-driver": "580-open"}, os__archive=None)
    for facts in (
        partitioned, hung, streams, node(), installed(), amd_node(), intel_node("xe", "i915"),
        fleet.facts(1),
    ):  # fmt: skip
        assert facts_fault(facts) == ""
        check_keys(facts)
    more = {**node(), "of a later release": {"deep": [1, {"x": None}]}}
    assert facts_fault(more) == ""


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("gpus", "abc", ".gpus is a text, not a list"),
        ("gpus", 5, ".gpus is a whole number, not a list"),
        ("gpus", None, ".gpus is null, not a list"),
        ("gpus", [1], ".gpus[0] is a whole number, not a mapping"),
        ("gpus.0.vendor", [], ".gpus[0].vendor is a list, not a text"),
        ("gpus.0.vendor", "n\x1bvidia", ".gpus[0].vendor is 'n\\x1bvidia'"),
        ("gpus.0.device_id", "zz", ".gpus[0].device_id is 'zz'"),
        ("cuda", ["x"], ".cuda is a list, not a mapping"),
        ("mig", 1.5, ".mig is a number, not a mapping"),
        ("exporter", 5, ".exporter is a whole number, not a mapping"),
        ("amd_driver", "x", ".amd_driver is a text, not a mapping"),
        ("secure_boot", 1, ".secure_boot is a whole number, not true or false"),
        ("nvswitches", True, ".nvswitches is true or false, not a whole number"),
        ("driver.packages", {"x": 1}, ".driver.packages.x is a whole number, not a text"),
        ("os.kernel", float("nan"), " has a number that is too large or none: nan"),
        ("os.kernel", "\ud800", " has a text that is not Unicode: '\\ud800'"),
        ("nvswitches", 1 << 70, " has a number that is too large or none: 71 bits"),
        ("os.kernel", "9" * 5000, ".os.kernel has more than 4000 characters"),
        ("os.kernel", "long", " has more than 67108864 characters"),
        ("more", "many", " has more than 200000 values"),
        ("more", "deep", " has more than 64 levels"),
        ("more", b"x", " has a value of the type bytes"),
    ],
)
def test_what_is_wrong_with_facts(path, value, told):
    facts = node()
    if value == "deep":
        value = []
        for _level in range(500):
            value = [value]
    value = {"long": "x" * (65 << 20), "many": [0] * 200_001}.get(str(value)[:9], value)
    *way, last = path.split(".")
    target = facts
    for key in way:
        target = target[int(key) if key.isdigit() else key]
    target[last] = value
    assert facts_fault(facts) == told
    answer = {"ansible_facts": {"gpu_node": facts}}
    fault = answer_fault("gpu_node_facts", answer)
    assert fault.endswith(told) or told.startswith(" has ")


def test_each_key_of_the_facts_has_to_be_there():
    for name in node():
        facts = node()
        del facts[name]
        assert facts_fault(facts) == f" has no {name}"
    assert facts_fault([]) == " is a list, not a mapping"


class Action:
    """An action plugin, whose file has the name of its module."""


def answered(result, module="gpu_node_verify"):
    Action.__module__ = f"ansible_collections.kubegpu.nodes.plugins.action.{module}"
    return checked(Action(), result)


LAYERS = {"ok": True, "failed_layers": [], "layers": fleet.layers("gpu1")}


def test_a_good_answer_is_returned_as_it_is():
    for result in (
        {**LAYERS, "changed": False, "warnings": [object()], "_ansible_parsed": True},
        {"unreachable": True, "layers": 5},
        {"ansible_job_id": "1", "started": 1},
        {"failed": True, "msg": "nothing"},
        # As Ansible's own reboot, and an action.
        {"failed": True, "msg": "it did not reboot", "start": datetime.now(timezone.utc)},
        {**LAYERS, "diff": [({"before": "", "after": ""},)]},
    ):
        assert answered(result) is result


def test_the_first_failure_of_a_node_is_not_hidden():
    """With the interpreter that Ansible found for it."""
    found = {"discovered_interpreter_python": "/opt/python3"}
    result = {"failed": True, "msg": "no start of JSON", "rc": 127, "ansible_facts": found}

    assert answered(result, "gpu_node_facts") is result
    whole = answered({**result, "failed": False}, "gpu_node_facts")
    assert whole["code"] == "other_form" and "has no gpu_node" in whole["evidence"]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"layers": ["x"]}, "the answer.layers[0] is a text, not a mapping"),
        ({"layers": [{"layer": "pci"}]}, "the answer.layers[0] has no node"),
        ({"layers": None, "failed": True}, "the answer.layers is null, not a list"),
        ({"changed": "yes", "x": float("inf")}, "the answer has a number that is too large"),
    ],
)
def test_an_answer_of_another_form_fails_its_host(changed, told):
    result = answered({**LAYERS, **changed})
    assert (result["failed"], result["changed"], result["code"]) == (True, False, "other_form")
    assert result["evidence"].startswith(told) and "gpu_node_verify" in result["cause"]
    assert "\nSeen: " in result["msg"] and "\nNext step: " in result["msg"]
    assert answered({"changed": True, "texts": 5}, "gpu_node_texts")["changed"] is True


def test_what_later_steps_read_has_to_be_there():
    for module, missing in (
        ("gpu_node_facts", "ansible_facts"), ("gpu_node_verify", "layers"),
        ("gpu_node_health", "gpus"), ("gpu_node_texts", "texts"),
    ):  # fmt: skip
        assert answered({"changed": False}, module)["evidence"] == f"the answer has no {missing}"


@pytest.mark.parametrize(
    "module",
    sorted(
        path.stem
        for path in (REPOSITORY / "plugins" / "modules").glob("*.py")
        if path.stem not in OF_THE_CONTROLLER
    ),
)
def test_the_form_is_the_documented_one(module):
    documented = yaml.safe_load(importlib.import_module(f"{MODULES}.{module}").RETURN)
    form = {name.rstrip("?"): one for name, one in FORMS[module].items()}
    assert set(form) == {name for name in documented if name not in COMMON}
    for name, one in form.items():
        assert kind(one) in (TYPES[documented[name]["type"]], "any"), name
    if module == "gpu_node_facts":
        contains = documented["ansible_facts"]["contains"]["gpu_node"]["contains"]
        assert set(contains) == set(_forms_facts_data.GPU_NODE)
        for name, one in _forms_facts_data.GPU_NODE.items():
            assert kind(one) == TYPES[contains[name]["type"]], name
            sample = {**node(), name: contains[name]["sample"]}
            assert facts_fault(copy.deepcopy(sample)) == "", name


def kind(form):
    """Return the type of a form, without whether it may be null."""
    if isinstance(form, tuple):
        return kind(form[0])
    if isinstance(form, re.Pattern):
        return "text"
    if isinstance(form, str):
        return {"word": "text", "small": "whole"}.get(form.rstrip("?"), form.rstrip("?"))
    return type(form).__name__.replace("dict", "mapping")
