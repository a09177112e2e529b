# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A role's specification, its defaults and its documentation say the same."""

from __future__ import annotations

import ast
import dataclasses
import re
import sys
from pathlib import Path

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.options import REPOSITORY_KEYS
from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda import types as cuda
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin import (
    types as device_plugin,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin import vendor_types
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra import types as dra
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver import types as driver
from ansible_collections.kubegpu.nodes.plugins.module_utils._exporter import types as exporter
from ansible_collections.kubegpu.nodes.plugins.module_utils._mig import types as mig
from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring import types as monitoring
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.cluster import (
    CLUSTER,
    OF_EACH_CLUSTER,
    variables_of_cluster,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.parts import PARTS
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.plan import variables_of
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._variables_data import (
    PLAYBOOK_VARIABLES,
)

REQUESTS = (
    cuda.Request,
    device_plugin.Request,
    vendor_types.AmdRequest,
    vendor_types.IntelRequest,
    dra.Request,
    driver.Request,
    exporter.Request,
    mig.Request,
    monitoring.Request,
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


# The parts that a role makes, of a node and of a cluster.
PARTS_OF = {role.name: [] for role in ROLES}
for _name, _part in PARTS.items():
    PARTS_OF[_part.role or _name].append((variables_of((_name,)), _part.others))
for _name, _one in CLUSTER.items():
    PARTS_OF[_name].append((variables_of_cluster(_name), (*_one.others, *OF_EACH_CLUSTER)))


def test_each_option_is_read_and_each_argument_can_be_set(role):
    planned = PARTS_OF[role.name]
    known = set(options(role))
    read = read_by_tasks(role).union(*(names for names, _others in planned))
    assert known <= read, (
        f"{sorted(known - read)}: neither the plan nor a task of the role reads it. Next step: a "
        f"field of the request in the package of {role.name} (types.py, options.py), or a task"
    )
    arguments = {name for names, others in planned for name in names - set(others)}
    assert arguments <= known, (
        f"{sorted(arguments - known)}: no variable of the role. Next step: {role.name}/meta/"
        "argument_specs.yml and defaults/main.yml, or internal in _plan/parts.py"
    )


def attributes_of(package):
    """Return what the code of a package reads of any object, by name."""
    return {
        node.attr
        for path in package.glob("**/*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    }


@pytest.mark.parametrize("request_of", REQUESTS, ids=lambda one: one.__module__.split(".")[-2])
def test_each_field_of_a_request_is_read(request_of):
    """An option that only the spec and a check know has no effect."""
    package = Path(sys.modules[request_of.__module__].__file__).parent
    # A task of gpu_monitoring passes hold to package_set.
    fields = {one.name for one in dataclasses.fields(request_of)} - {"hold"}
    read = attributes_of(package)
    assert fields <= read, (
        f"{sorted(fields - read)}: no code of {package.name} reads this field of "
        f"{request_of.__name__}. Next step: read it where the plan or the manifests are made, or "
        "remove it from types.py, meta/argument_specs.yml and defaults/main.yml"
    )


# The role's word for what the plan decides, or reads from a file of the role.
OTHER_DEFAULTS = ("nvidia_device_plugin_runtime_class", "gpu_monitoring_counters")


@pytest.mark.parametrize("name", [*PARTS, *CLUSTER])
def test_a_default_of_a_package_is_that_of_its_role(name):
    """Such as the image and version of a device plugin: a plan without a node has no defaults.

    ``test_every_default_is_specified_with_its_value`` compares the specs with defaults/main.yml.
    """
    role = (PARTS[name].role if name in PARTS else None) or name
    arguments = PARTS[name].arguments if name in PARTS else CLUSTER[name].options
    specified = options(ROLES[0].parent / role)
    for option in dict(arguments):
        variable, _dot, key = f"{role}_{REPOSITORY_KEYS.get(option, option)}".partition(".")
        row = specified.get(variable, {})
        row = row.get("options", {}).get(key, {}) if key else row
        default = row.get("default")
        if "default" not in row or variable in OTHER_DEFAULTS or "{{" in str(default):
            continue
        own = arguments[option].get("default")
        assert (own or None) == (default or None), (
            f"{variable}: {own!r} in types.py of the package, {default!r} in {role}/meta/"
            "argument_specs.yml. Next step: change both, and defaults/main.yml of the role"
        )
