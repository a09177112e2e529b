# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation of the modules has the options of their argument specs; examples are valid."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import yaml
from ansible.module_utils import basic
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster import options as cluster
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels import options as labels
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance import (
    options as maintenance,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia import driver_branches
from tests.unit.fixtures.documented import documented_options

PREFIX = "kubegpu.nodes."
NAMES = sorted(path.stem for path in (Path(__file__).parents[4] / "plugins/modules").glob("*.py"))
# Tasks in the examples of the main modules, at least.
MAIN = ("gpu_node_facts", "nvidia_driver", "containerd_runtime", "docker_runtime", "node_gpu_label",
        "nvidia_mig")  # fmt: skip
LEAST = 6
# They run on the controller only: there is no argument spec.
ACTIONS = {
    "cluster_objects",
    "fleet_bundle",
    "fleet_explain",
    "fleet_fail",
    "fleet_report",
    "fleet_plan",
    "fleet_result",
    "fleet_table",
    "fleet_variables",
    "node_builtin",
    "node_reboot",
}
BLOCKS = ("block", "rescue", "always")
KEYWORDS = {
    "become", "check_mode", "delegate_to", "diff", "failed_when", "loop", "name", "notify",
    "register", "run_once", "until", "vars", "when",
}  # fmt: skip
# The keys of these mappings are chosen by the user. What a value may have is documented below one
# key that stands for all, and read by these specs.
ROWS = {
    ("gpu_cluster_info", "expected"): cluster._ARGUMENTS,
    ("gpu_node_maintenance", "nodes"): maintenance._NODE_ARGUMENTS,
    ("node_gpu_label", "nodes"): labels._NODE_ARGUMENTS,
    **{("nvidia_driver", table): driver_branches._TABLES[table] for table in
       ("branches", "gpus", "repositories")},
    ("cuda_toolkit", "repositories"): driver_branches._TABLES["repositories"],
}  # fmt: skip


class Made(BaseException):
    """A module has described itself."""


def load(name):
    return importlib.import_module(f"ansible_collections.kubegpu.nodes.plugins.modules.{name}")


@pytest.fixture
def settings(monkeypatch):
    """Return what a module passes to Ansible: argument spec and rules."""

    def init(_self, argument_spec, **more):
        raise Made({"argument_spec": argument_spec, **more})

    monkeypatch.setattr(basic.AnsibleModule, "__init__", init)

    def read(name):
        if name in ACTIONS:
            return {"argument_spec": documented_spec(documented_options(load(name)))}
        with pytest.raises(Made) as made:
            load(name).main()
        return made.value.args[0]

    return read


def documented_spec(options):
    """Return the argument spec that a documentation describes."""
    spec = {}
    for name, text in options.items():
        rule = {
            key: text[key] for key in ("type", "required", "choices", "elements") if key in text
        }
        inner = text.get("suboptions")
        spec[name] = {**rule, **({"options": documented_spec(inner)} if inner else {})}
    return spec


def differences(where, spec, documented):
    """Return where an argument spec and its documentation differ, one line each."""
    if spec.keys() != documented.keys():
        return [f"{where}: {sorted(spec.keys() ^ documented.keys())}"]
    lines = []
    for name, rule in spec.items():
        text, place = documented[name], f"{where}.{name}"
        pairs = {
            "type": (rule.get("type", "str"), text.get("type", "str")),
            "required": (rule.get("required", False), text.get("required", False)),
            **{key: (rule.get(key), text.get(key)) for key in
               ("default", "choices", "elements", "aliases")},
        }  # fmt: skip
        lines += [f"{place}: {key} {one}" for key, one in pairs.items() if one[0] != one[1]]
        if "options" in rule:
            lines += differences(place, rule["options"], text.get("suboptions", {}))
    return lines


@pytest.mark.parametrize("name", sorted({*NAMES} - ACTIONS))
def test_the_documented_options_are_those_of_the_argument_spec(settings, name):
    documented = documented_options(load(name))
    assert differences(name, settings(name)["argument_spec"], documented) == []
    internal = [key for key in documented if key.startswith("_")]
    assert internal == [] and "Internal." not in load(name).DOCUMENTATION


@pytest.mark.parametrize(("name", "option"), ROWS)
def test_the_rows_of_a_mapping_are_documented_below_one_key(name, option):
    (row,) = documented_options(load(name))[option]["suboptions"].items()
    assert row[0].isupper() and row[1]["type"] == "dict"
    spec = ROWS[name, option]
    if isinstance(next(iter(spec.values())), dict):
        assert differences(f"{name}.{option}", spec, row[1]["suboptions"]) == []
    else:
        assert spec.keys() == row[1]["suboptions"].keys()


@pytest.mark.parametrize("name", NAMES)
def test_no_module_returns_a_key_that_ansible_renames(name):
    """Of 'results', which a loop registers, Ansible warns, and renames it."""
    assert "results" not in (yaml.safe_load(load(name).RETURN) or {})


def tasks_of(tasks):
    for task in tasks:
        yield {key: value for key, value in task.items() if key not in BLOCKS}
        for block in BLOCKS:
            yield from tasks_of(task.get(block, []))


def examples(name):
    """Return the calls of the examples: the module and its arguments."""
    calls = []
    for task in tasks_of(yaml.safe_load(load(name).EXAMPLES)):
        assert task.get("name"), task
        called = [key for key in task if key not in KEYWORDS]
        assert all(key.count(".") == 2 for key in called) and len(called) <= 1, called
        calls += [(key, task[key] or {}) for key in called]
    return calls


def known(spec, given):
    """Return spec and values; a template fits every rule, since its value is not known."""
    rules, values = {}, {}
    for name, rule in spec.items():
        rules[name] = rule
        for key in (name, *rule.get("aliases", ())):
            value = given.get(key)
            if "{{" in str(value) and isinstance(value, str):
                rules[name] = {"type": "raw", "aliases": rule.get("aliases", [])}
            elif "{{" in str(value) and isinstance(value, dict) and "options" in rule:
                inner, value = known(rule["options"], value)
                rules[name] = {**rule, "options": inner}
            if key in given:
                values[key] = value
    return rules, {**given, **values}


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_are_valid(settings, name):
    calls = examples(name)
    assert f"{PREFIX}{name}" in dict(calls) and len(calls) >= (LEAST if name in MAIN else 1)
    for module, arguments in calls:
        if not module.startswith(PREFIX):
            continue
        made = settings(module.removeprefix(PREFIX))
        rules = {
            key: made[key] for key in ("mutually_exclusive", "required_if", "required_one_of",
                                       "required_together", "required_by") if key in made
        }  # fmt: skip
        spec, values = known(made["argument_spec"], arguments)
        answer = ArgumentSpecValidator(spec, **rules).validate(values)
        assert answer.error_messages == [], (module, arguments)


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_option_in_an_example_would_be_seen(settings, name):
    spec, values = known(settings(name)["argument_spec"], {"colour": "{{ green }}"})
    assert ArgumentSpecValidator(spec).validate(values).error_messages
