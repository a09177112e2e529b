# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A role is used by its variables and by two facts; what begins with two underscores is its own."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._variables_data import KEPT_FACTS

ROOT = Path(__file__).parents[3]
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir())
FILES = [
    *ROOT.glob("playbooks/**/*.yml"),
    *ROOT.glob("roles/*/*/*.yml"),
    *ROOT.glob("plugins/**/*.py"),
]


@functools.cache
def private_names():
    """Return the names with two underscores in front, by file."""
    name = re.compile(r"\b__[a-z]\w+")
    return {path: set(name.findall(path.read_text(encoding="utf-8"))) for path in FILES}


@pytest.mark.parametrize("role", ROLES)
def test_nobody_else_reads_what_is_private(role):
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path, names in private_names().items()
        if ROOT / "roles" / role not in path.parents
        for name in names
        if name.startswith(f"__{role}_")
    }
    assert found == set()


@pytest.mark.parametrize("role", ROLES)
def test_a_role_publishes_its_plan_and_its_result_and_says_so(role):
    folder = ROOT / "roles" / role
    tasks = "".join(path.read_text(encoding="utf-8") for path in folder.glob("tasks/*.yml"))
    texts = [folder / "README.md", folder / "meta" / "argument_specs.yml"]
    for name in (f"{role}_plan", f"{role}_result"):
        assert re.search(rf"^\s+(register: {name}$|{name}:)", tasks, re.M), name
        assert name in KEPT_FACTS
        for path in texts:
            assert re.search(rf"\b{name}\b", path.read_text(encoding="utf-8")), (path, name)


@pytest.mark.parametrize("role", ROLES)
def test_no_result_of_a_task_replaces_a_variable_of_the_role(role):
    """A registered result is stronger, also that of a task which was skipped."""
    folder = ROOT / "roles" / role
    tasks = "".join(path.read_text(encoding="utf-8") for path in folder.glob("tasks/*.yml"))
    registered = set(re.findall(r"^\s+register: (\w+)$", tasks, re.M))
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("[vd]*/main.yml")]
    assert registered & set(re.findall(r"^(\w+):", "\n".join(texts), re.M)) == set()
