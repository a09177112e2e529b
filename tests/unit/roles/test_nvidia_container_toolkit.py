# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role nvidia_container_toolkit decides in its variables, by Ansible's own templates."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from tests.unit.fixtures.node_facts import node

ROLE = Path(__file__).parents[3] / "roles" / "nvidia_container_toolkit"
RESULT = "{{ __nvidia_container_toolkit_result }}"
AT_ONCE = "{{ __nvidia_container_toolkit_containerd_at_once }}"


@pytest.mark.parametrize(
    ("facts", "at_once"),
    [
        ({"gpu_node": node(runtimes__containerd__control_plane=True)}, 1),
        ({"gpu_node": node()}, 0),
        # Ansible asks before it looks at when, and one host without an answer would end the run.
        ({"gpu_node": node(runtimes__containerd=None)}, 0),
        ({}, 0),
    ],
)
def test_servers_of_kubernetes_go_one_by_one(facts, at_once):
    loader = DataLoader()
    known = loader.load_from_file(str(ROLE / "vars" / "main.yml"), trusted_as_template=True)
    known["ansible_facts"] = facts
    assert Templar(loader, variables=known).template(trust_as_template(AT_ONCE)) == at_once


PLANNED, NOTHING = {"install": True}, {"install": False}


@pytest.mark.parametrize(
    ("plan", "reported", "changed"),
    [
        (PLANNED, {"packages": {"changed": False}, "cdi": {"changed": False}}, False),
        (PLANNED, {"packages": {"changed": True}, "cdi": {"changed": False}}, True),
        (PLANNED, {"packages": {"failed": True}}, False),
        (PLANNED, {"added": {"changed": True}}, True),
        (NOTHING, {"containerd": {"changed": True}, "docker": {"skipped": True}}, True),
        (NOTHING, {"containerd": {"changed": False}, "docker": {"failed": True}}, False),
        # What an earlier use of the role in the same run reported is not of this one.
        (NOTHING, {"packages": {"changed": True}}, False),
    ],
)
def test_changed_is_what_the_tasks_reported_and_not_what_was_planned(plan, reported, changed):
    loader = DataLoader()
    known = loader.load_from_file(str(ROLE / "vars" / "main.yml"), trusted_as_template=True)
    known["__nvidia_container_toolkit_plan"] = plan
    known.update({f"__nvidia_container_toolkit_{name}": one for name, one in reported.items()})
    result = Templar(loader, variables=known).template(trust_as_template(RESULT))
    assert result["changed"] is changed
    # The runtimes have a column of their own.
    own = any(reported.get(name, {}).get("changed") for name in ("added", "packages", "cdi"))
    assert result["toolkit_changed"] is (own and changed)


@pytest.mark.parametrize("name", ["runtimes", "teardown"])
def test_whatever_restarts_containerd_is_held_back(name):
    tasks = yaml.safe_load((ROLE / "tasks" / f"{name}.yml").read_text(encoding="utf-8"))
    held = [task.get("throttle") for task in tasks if "kubegpu.nodes.containerd_runtime" in task]
    assert held == [AT_ONCE]


@pytest.mark.parametrize("own", [None, {}])
def test_the_playbook_plan_queries_runtimes_by_the_plan_of_the_run(own):
    """It imports the tasks of the runtimes without the role's own plan."""
    loader = DataLoader()
    known = loader.load_from_file(str(ROLE / "vars" / "main.yml"), trusted_as_template=True)
    known["inventory_hostname"] = "gpu1"
    known["kubegpu_plans"] = {"plans": {"gpu1": {"nvidia_container_toolkit": {"docker": True}}}}
    if own is not None:
        known["nvidia_container_toolkit_plan"] = own
    text = trust_as_template("{{ __nvidia_container_toolkit_plan.docker }}")
    assert Templar(loader, variables=known).template(text) is True
