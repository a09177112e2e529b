# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A variable that a task reads or a text names is in an argument spec: a rename is complete."""

from __future__ import annotations

import ast
import importlib
import re

import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.parts import PARTS
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._foreign_names import FOREIGN
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._variables_data import (
    KEPT_FACTS,
    PLAYBOOK_VARIABLES,
)
from tests.tools.environments import REPOSITORY

ROLES = sorted(path.name for path in (REPOSITORY / "roles").iterdir())
PREFIXES = tuple(f"{role}_" for role in ROLES)
# Not a part of a path, a label, a metric or a longer name.
NAME = re.compile(rf"(?<![\w/.-])(?:{'|'.join(PREFIXES)})\w*\w\b(?![/(*-])")
# Wrong on purpose, where a text shows what is found.
EXAMPLES = {"nvidia_driver_kernel_modules", "nvidia_driver_key_url"}
COLLECTION = "ansible_collections.kubegpu.nodes"


def specified():
    """Return the options of all roles and playbooks, the public facts, and names of plugins."""
    found = {*PLAYBOOK_VARIABLES, *KEPT_FACTS, *FOREIGN, *ROLES, *EXAMPLES}
    for name, one in PARTS.items():
        # What the plan passes on, as in "nvidia_mig_driver_version".
        found.update(f"{one.role or name}_{option}" for option in one.internal)
    for role in ROLES:
        path = REPOSITORY / "roles" / role / "meta" / "argument_specs.yml"
        specs = yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]
        found.update(name for spec in specs.values() for name in spec["options"])
    return found | {path.stem for path in (REPOSITORY / "plugins").glob("*/*.*")}


def of_yaml():
    """Return the lines, without comments, of what Ansible runs."""
    for folder in ("roles", "playbooks"):
        for path in sorted((REPOSITORY / folder).rglob("*.yml")):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                yield path, number, re.sub(r"(^|\s)#.*", "", line)


def of_python():
    """Return the texts of plugins; ``f"{PREFIX}name"`` is read as the name that it makes."""
    for path in sorted((REPOSITORY / "plugins").rglob("*.py")):
        inner = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                inner.update(map(id, node.values))
                yield path, node.lineno, "".join(part(path, one) for one in node.values)
            elif isinstance(getattr(node, "value", None), str) and id(node) not in inner:
                yield path, node.lineno, node.value


def part(path, node):
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node.value, ast.Name) and "PREFIX" in node.value.id:
        name = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
        return getattr(importlib.import_module(f"{COLLECTION}.{name}"), node.value.id, "/")
    # Something that ends a name.
    return "/"


def unknown(texts, known):
    return sorted(
        f"{path.relative_to(REPOSITORY)}:{number} reads {name}, which is in no argument_specs"
        for path, number, text in texts
        for name in NAME.findall(text)
        if name not in known
    )


def registered():
    """Return the results of tasks, which are read by their names."""
    return {
        name for _path, _number, line in of_yaml() for name in re.findall(r"register: (\w+)", line)
    }


def test_what_tasks_and_texts_name_is_in_an_argument_spec():
    """After a rename too: CONTRIBUTING.md has its steps."""
    known = specified() | registered()
    wrong = unknown((*of_yaml(), *of_python()), known)
    assert wrong == [], "\n".join(wrong)


def test_an_old_name_is_found():
    path = REPOSITORY / "roles" / "nvidia_mig" / "tasks" / "main.yml"
    texts = [
        (path, 7, "when: nvidia_mig_old | bool"),
        (path, 8, "nvidia_mig_layout: 1, nvidia_mig_config.x, /etc/nvidia_mig_file"),
    ]
    assert unknown(texts, specified() | {"nvidia_mig_layout"}) == [
        "roles/nvidia_mig/tasks/main.yml:7 reads nvidia_mig_old, which is in no argument_specs"
    ]
    made = list(of_python())
    assert any("nvidia_mig_config" in text for _path, _number, text in made)
