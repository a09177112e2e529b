# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""docs/upgrade.md and docs/maintenance.md explain each code and outcome of an upgrade."""

from __future__ import annotations

import re

import pytest

from plugins.module_utils._upgrade import gate, types
from tests.tools import reference
from tests.tools.environments import REPOSITORY

DOCS = REPOSITORY / "docs"
TASKS = sorted((REPOSITORY / "roles/gpu_upgrade/tasks").glob("*.yml"))
# A row of a table that begins with codes.
_ROW = re.compile(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*)", re.MULTILINE)


def page(name):
    return (DOCS / name).read_text(encoding="utf-8")


def section(text, title):
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(text):
    """Return the codes at the begin of the rows of tables."""
    return {code for row in _ROW.findall(text) for code in re.findall(r"[a-z_]+", row)}


def in_code(package=None):
    """Return the codes that a package gives to findings and to errors; of all without a name."""
    found = {entry.code for entry in reference._entries() if package in (None, entry.package)}
    for path in (REPOSITORY / "plugins/module_utils" / (package or "")).rglob("*.py"):
        found |= set(re.findall(r'\bcode="([a-z_]+)"', path.read_text(encoding="utf-8")))
    return found


def of_tasks():
    """Return the codes that tasks of the role give."""
    found = set()
    for path in TASKS:
        text = path.read_text(encoding="utf-8")
        found |= set(re.findall(r"default\('([a-z]+_failed)'\)", text))
        for value in re.findall(r"__gpu_upgrade_code: (?:>-\n\s*)?(.*)", text):
            found |= set(re.findall(r"\b[a-z]+(?:_[a-z]+)*_failed\b", value))
    return found


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("_upgrade", "upgrade.md"),
        ("_host_maintenance", "upgrade.md"),
        ("_maintenance", "maintenance.md"),
    ],
)
def test_each_code_is_explained(package, name):
    codes = in_code(package)
    assert len(codes) > 3
    assert sorted(code for code in codes if f"`{code}`" not in page(name)) == []


def test_codes_of_tasks_and_of_the_gate_are_explained():
    assert of_tasks() == {"task_failed", "gate_failed", "hook_failed", "early_hook_failed"}
    text = page("upgrade.md") + page("maintenance.md")
    assert sorted(code for code in of_tasks() | gate._UNPROVEN if f"`{code}`" not in text) == []


def test_each_code_of_the_page_exists():
    known = in_code() | of_tasks() | gate._UNPROVEN
    text = page("upgrade.md")
    gates, refusals, hosts = (
        section(text, title) for title in ("The gate", "Refusals", "Hosts without Kubernetes")
    )
    found = rows(gates.split("| code |")[1]) | rows(refusals) | rows(hosts.split("| code |")[1])
    assert len(found) > 20
    assert sorted(found - known) == []


def test_each_outcome_is_explained():
    found = {
        row.replace(" ", "_")
        for row in re.findall(r"^\| `([a-z ]+)` \|", section(page("upgrade.md"), "Outcomes"), re.M)
    }
    outcomes = {types.DONE, types.UNCHANGED, types.PLANNED, types.RELEASED, *types.BAD}
    assert found == outcomes


def test_the_commands_are_there_in_their_order():
    block = page("upgrade.md").split("```")[1]
    commands = [line.partition("#")[0].split() for line in block.strip().splitlines()]
    upgrade = ["ansible-playbook", "kubegpu.nodes.upgrade", "-i", "inventory"]
    upgrade += ["-e", "nvidia_driver_branch=580"]
    assert commands[0] == [*upgrade, "--check"] and commands[1] == commands[-1] == upgrade
    assert [line[0] for line in commands[2:-1]] == ["kubectl", "kubectl", "jq"]
