# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Teardown takes back what every module of the role has done, runtimes first."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.unit.fixtures.node_facts import node

TASKS = Path(__file__).parents[3] / "roles" / "nvidia_container_toolkit" / "tasks"
# Only look, or report.
LOOKING = {"gpu_node_facts", "fleet_fail", "fleet_plan"}


def modules(tasks):
    """Return name of the module, its arguments and the task, in blocks too."""
    for task in tasks:
        for part in ("block", "rescue", "always"):
            yield from modules(task.get(part, []))
        for name, arguments in task.items():
            if name.startswith("kubegpu.nodes."):
                yield name.rpartition(".")[2], arguments, task


def read(name):
    return list(modules(yaml.safe_load((TASKS / name).read_text(encoding="utf-8"))))


TEARDOWN = read("teardown.yml")


def test_every_module_of_the_role_is_taken_back():
    done = {
        module
        for path in TASKS.glob("*.yml")
        if path.name != "teardown.yml"
        for module, arguments, _task in read(path.name)
        if module not in LOOKING and (arguments or {}).get("state", "present") != "absent"
    }
    assert {"docker_runtime", "containerd_runtime", "crio_runtime", "package_set"} <= done
    assert done <= {module for module, _arguments, _task in TEARDOWN}
    # What an upgrade has saved of the runtimes is forgotten, and so are its packages.
    saved = [arguments for _module, arguments, _task in TEARDOWN if arguments["state"] == "saved"]
    assert [arguments["packages"] for arguments in saved] == [{}]
    assert {
        (module, arguments["state"])
        for module, arguments, _task in TEARDOWN
        if arguments not in saved
    } == {
        (module, "forgotten" if module == "runtime_configuration" else "absent")
        for module, _arguments, _task in TEARDOWN
    }
    assert "runtime_configuration" in {module for module, _arguments, _task in TEARDOWN}


@pytest.mark.parametrize("engine", ["docker", "containerd", "crio"])
def test_no_runtimes_entry_stays(engine):
    """The same name as it was given, wherever that engine is, before the packages go."""
    order = [module for module, _arguments, _task in TEARDOWN]
    ((arguments, task),) = [
        (arguments, task) for module, arguments, task in TEARDOWN if module == f"{engine}_runtime"
    ]
    (given,) = [
        arguments["name"]
        for module, arguments, _task in read("runtimes.yml")
        if module == f"{engine}_runtime"
    ]
    assert arguments["name"] == given
    assert task["when"] == f"ansible_facts['gpu_node']['runtimes']['{engine}'] is not none"
    assert engine in node()["runtimes"]
    assert order.index(f"{engine}_runtime") < order.index("package_set")
    if engine == "docker":
        assert arguments["reload"] is True
