# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the rollback of an upgrade passes to roles reaches them, whatever the extra variables."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.parts import PARTS
from tests.unit.plugins.module_utils._cuda.test_plan import RUN, SHA, gpu_node, plan, toolkit

ROLES = Path(__file__).parents[3] / "roles"
TASKS = yaml.safe_load((ROLES / "gpu_upgrade/tasks/restore.yml").read_text(encoding="utf-8"))
INCLUDES = [task for task in TASKS[0]["block"] if task.get("ansible.builtin.include_role")]


@pytest.mark.parametrize("task", INCLUDES, ids=lambda task: task["name"])
def test_versions_of_the_rollback_have_names_of_their_own(task):
    role = task["ansible.builtin.include_role"]["name"].rpartition(".")[2]
    (back,) = (name for name in task["vars"] if name.startswith("__kubegpu_"))
    # Extra variables replace variables of an include by their name.
    assert set(task["vars"]) - {back} <= {"nvidia_driver_reboot"}
    assert back in PARTS[role].others
    if role == "nvidia_container_toolkit":
        # Only its plan reads the version.
        return
    variables = yaml.safe_load((ROLES / role / "vars/main.yml").read_text(encoding="utf-8"))
    asked = f"__{role}_asked"
    assert back in variables[asked]
    texts = [path.read_text(encoding="utf-8") for path in (ROLES / role / "tasks").glob("*.yml")]
    assert any(asked in text for text in texts)
    # What was asked for is read through it alone.
    for name in ("version", "versions", "branch"):
        assert not any(f"{{{{ {role}_{name} }}}}" in text for text in texts)
        assert not any(f"={role}_{name}," in text for text in texts)


def value(role, name, **variables):
    """Return a variable of a role, by Ansible's own templates."""
    loader, known = DataLoader(), {}
    for folder in ("defaults", "vars"):
        path = str(ROLES / role / folder / "main.yml")
        known.update(loader.load_from_file(path, trusted_as_template=True))
    known.update(variables)
    return Templar(loader, variables=known).template(trust_as_template("{{ " + name + " }}"))


@pytest.mark.parametrize("earlier", ["package", "runfile"])
@pytest.mark.parametrize("source", ["auto", "runfile", "distro"])
def test_source_and_runfile_of_the_new_cuda_toolkit_are_not_asked_for_in_the_rollback(
    source, earlier
):
    packages = {"cuda-toolkit-11-8": "11.8.0-1"} if earlier == "package" else {}
    kits = [toolkit("11.8.0", earlier), toolkit("12.2.2", "runfile", default=True)]
    facts = gpu_node(cuda__toolkits=kits, cuda__packages=packages)
    runfiles = {"12.2.2": {"url": f"https://x.example/{RUN}", "checksum": SHA}}
    asked = value(
        "cuda_toolkit",
        "__cuda_toolkit_asked",
        cuda_toolkit_versions=["12.2.2"],
        cuda_toolkit_source=source,
        cuda_toolkit_runfiles=runfiles,
        __kubegpu_cuda_back=["11.8.0"],
    )
    found = plan(facts, **{"source": source, "runfiles": runfiles, **asked})
    assert (found["action"], found["default"]) == ("none", "11.8.0"), found["reasons"]
    assert found["link"]["target"] == "/usr/local/cuda-11.8" and found["change"]


def test_the_toolkit_of_the_distribution_is_not_asked_of_nvidia_in_the_rollback():
    kits = [toolkit("12.4.1"), toolkit("12.6.3", default=True), toolkit("11.8.0", "distro")]
    back = value(
        "gpu_upgrade",
        "__gpu_upgrade_cuda_back",
        ansible_facts={"gpu_node": gpu_node(cuda__toolkits=kits)},
        __gpu_upgrade_record={"cuda": ["12.4.1", "11.8.0"]},
    )
    assert back == ["12.4.1"]
