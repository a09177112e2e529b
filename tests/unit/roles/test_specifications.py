# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A role's specification, its defaults and its documentation say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.parts import PARTS
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.plan import variables_of
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._variables_data import (
    PLAYBOOK_VARIABLES,
)

# The tasks that remove the repository, where it is not teardown.yml.
TEARDOWNS = {"gpu_monitoring": "host_packages_absent.yml"}
ROLES = sorted((Path(__file__).parents[3] / "roles").iterdir())
TYPES = {
    "str": str,
    "bool": bool,
    "int": int,
    "list": list,
    "dict": dict,
    "path": str,
    "raw": object,
}


def load(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture(params=ROLES, ids=lambda role: role.name)
def role(request):
    return request.param


def options(role, entry="main"):
    return load(role / "meta" / "argument_specs.yml")["argument_specs"][entry]["options"]


def test_every_default_is_specified_with_its_value(role):
    defaults = load(role / "defaults" / "main.yml")
    assert {name: option.get("default") for name, option in options(role).items()} == defaults


def test_types_fit_the_defaults(role):
    for name, option in options(role).items():
        assert isinstance(option["default"], TYPES[option["type"]]), name


def test_entry_points_agree_and_have_their_tasks(role):
    specs = load(role / "meta" / "argument_specs.yml")["argument_specs"]
    for entry, spec in specs.items():
        assert (role / "tasks" / f"{entry}.yml").is_file()
        for name, option in spec["options"].items():
            assert option == specs["main"]["options"][name], f"{entry}: {name}"


def test_variables_carry_the_role_as_prefix(role):
    assert all(name.startswith(f"{role.name}_") for name in load(role / "defaults" / "main.yml"))
    path = role / "vars" / "main.yml"
    internal = load(path) if path.is_file() else {}
    assert all(name.startswith(f"__{role.name}_") for name in internal)


def test_the_page_of_variables_has_each_and_the_readme_names_its_place(role):
    text = (role / "README.md").read_text(encoding="utf-8")
    assert f"docs/variables.md#role-{role.name})" in text
    page = (role.parents[1] / "docs" / "variables.md").read_text(encoding="utf-8")
    section = page.partition(f"## Role [{role.name}]")[2].partition("\n## ")[0]
    listed = {line.split("`")[1] for line in section.splitlines() if line.startswith("| `")}
    known = options(role)
    keys = {
        f"{name}.{key}"
        for name in set(known).difference((f"{role.name}_proxy",))
        for key in known[name].get("options", ())
    }
    assert listed == {*known, *keys}, "Next step: python -m tests.tools.reference"


def test_what_a_mapping_is_merged_with_is_what_its_keys_say(role):
    """The role's own variable has the default of each key, and takes that of the mapping."""
    loader = DataLoader()
    paths = [role / folder / "main.yml" for folder in ("defaults", "vars")]
    loaded = [
        loader.load_from_file(str(path), trusted_as_template=True) if path.is_file() else {}
        for path in paths
    ]
    for name, option in options(role).items():
        # A mapping of which keys have no default is not merged.
        if not all("default" in one for one in option.get("options", {"": {}}).values()):
            continue
        defaults = {key: one["default"] for key, one in option["options"].items()}
        fleets = f"kubegpu_{name.removeprefix(f'{role.name}_')}"
        if name.endswith("_proxy"):
            # The actions merge them (test__settings.py).
            assert option["options"].keys() == PLAYBOOK_VARIABLES[fleets]["options"].keys()
            assert not any(defaults.values())
            continue
        if name.endswith("_repository"):
            # So do they, and the plans; a teardown needs the name alone.
            text = (role / "tasks" / TEARDOWNS.get(role.name, "teardown.yml")).read_text()
            wanted = f"{name}.name | default('{defaults['name']}', true)"
            place = text if role.name != "nvidia_driver" else (role / "vars/main.yml").read_text()
            assert wanted in place
            continue

        def merged(variables, name=name):
            templar = Templar(loader, variables={**loaded[0], **loaded[1], **variables})
            return templar.template(trust_as_template("{{ __" + name + " }}"))

        assert merged({}) == merged({name: None}) == defaults
        first, second = list(defaults)[:2]
        assert merged({name: {second: "own"}}) == {**defaults, second: "own"}
        assert merged({name: {second: "own", first: None}}) == {**defaults, second: "own"}


def tasks_of(value):
    if isinstance(value, list):
        for one in value:
            yield from tasks_of(one)
    elif isinstance(value, dict):
        yield value
        for key in ("block", "rescue", "always"):
            yield from tasks_of(value.get(key, []))


def test_nothing_of_the_node_is_in_the_message_of_a_reboot():
    """It becomes a part of a root shell's command line, and names of processes are anybody's."""
    seen = 0
    for role in ROLES:
        for path in sorted((role / "tasks").glob("*.yml")):
            for task in tasks_of(load(path)):
                message = (task.get("kubegpu.nodes.node_reboot") or {}).get("msg")
                if message is not None:
                    name = message.strip("{} ")
                    assert "{{" not in load(role / "vars" / "main.yml")[name], path
                    seen += 1
    assert seen == 5


def words_of(value):
    """Return the words of all texts in a value of YAML, of which comments are no part."""
    if isinstance(value, dict):
        return {word for pair in value.items() for one in pair for word in words_of(one)}
    if isinstance(value, list):
        return {word for one in value for word in words_of(one)}
    return set(re.findall(r"\w+", value)) if isinstance(value, str) else set()


def read_by_tasks(role):
    """Return the words of a role's tasks and handlers, and of its variables that these name."""
    paths = [path for folder in ("tasks", "handlers") for path in (role / folder).glob("*.yml")]
    path = role / "vars" / "main.yml"
    own = load(path) if path.is_file() else {}
    found, new = set(), set().union(*(words_of(load(path)) for path in paths))
    while new:
        found |= new
        new = {word for name in new & own.keys() for word in words_of(own[name])} - found
    return found


@pytest.mark.parametrize("name", PARTS)
def test_each_option_of_a_part_is_read_and_each_argument_can_be_set(name):
    part, role = PARTS[name], ROLES[0].parent / (PARTS[name].role or name)
    arguments = variables_of((name,)) - set(part.others)
    known = set(options(role))
    nothing_reads = known - arguments - set(part.others) - read_by_tasks(role)
    # A role with another name has options of more parts.
    assert part.role or not nothing_reads, (
        f"{sorted(nothing_reads)}: neither the plan nor a task of the role reads it. Next step: a "
        f"field of the request in the package of {name} (types.py, options.py), or a task"
    )
    assert not arguments - known, (
        f"{sorted(arguments - known)}: no variable of the role. Next step: {role.name}/meta/"
        "argument_specs.yml and defaults/main.yml, or internal in _plan/parts.py"
    )
