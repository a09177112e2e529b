# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role nvidia_driver decides in its variables, by Ansible's own templates."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.plan import plan_node
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.types import Run
from tests.unit.fixtures.driver_cases import facts

ROLE = Path(__file__).parents[3] / "roles" / "nvidia_driver"
SOURCE = {
    "uri": "https://mirror.example/x",
    "key_fingerprint": None,
    "signed_by": None,
    "enabled": True,
}


def value(name, node, *, check=False, **variables):
    """Return a variable of the role on a node with these facts."""
    loader = DataLoader()
    known = {}
    for folder in ("defaults", "vars"):
        path = str(ROLE / folder / "main.yml")
        known.update(loader.load_from_file(path, trusted_as_template=True))
    known.update(
        {"ansible_facts": {"gpu_node": node}, "ansible_check_mode": check, **variables},
    )
    plans = plan_node(node, known, ["nvidia_driver"], Run())
    known.update(inventory_hostname="gpu1", nvidia_driver_plan={"plans": {"gpu1": plans}})
    return Templar(loader, variables=known).template(trust_as_template("{{ " + name + " }}"))


PENDING = "distro 580.126.09 open held loaded=570.86.15 services"


def test_a_node_on_which_all_is_as_wished_has_no_work():
    node = facts("T4", "u24", PENDING)
    assert value("__nvidia_driver_plan.work", node) is False
    assert value("__nvidia_driver_plan.work", node, nvidia_driver_reboot=True) is True


def test_a_driver_that_is_not_managed_has_an_empty_plan():
    node = facts("T4", "u24", PENDING)
    assert value("__nvidia_driver_plan", node, nvidia_driver_enabled=False) == {}


def test_a_driver_that_is_not_managed_remains_as_it_is():
    node = facts("T4", "u24", PENDING)
    loaded = node["driver"]["loaded"]
    known = {"nvidia_driver_enabled": False, "nvidia_driver_reboot": True}
    assert value("__nvidia_driver_next", node, **known) == loaded


def test_repositories_that_a_run_left_behind_go_with_the_next():
    node = facts("T4", "u24")
    path = "/etc/apt/sources.list.d/{}.sources"
    node["repositories"] = [{**SOURCE, "file": path.format("kubegpu-nvidia-cuda")}]
    assert value("__nvidia_driver_plan.work", node, nvidia_driver_state="absent") is False
    node["repositories"].append({**SOURCE, "file": path.format("kubegpu-nvidia-driver")})
    assert value("__nvidia_driver_plan.work", node, nvidia_driver_state="absent") is True


@pytest.mark.parametrize(
    ("variables", "loaded"),
    [
        ({}, "570.86.15"),
        ({"nvidia_driver_reboot": True}, "580.126.09"),
        # It was made and did not help: what is loaded is what is loaded.
        ({"nvidia_driver_reboot": True, "__nvidia_driver_rebooted": True}, "570.86.15"),
        # In check mode it is only said to have been made.
        ({"nvidia_driver_reboot": True, "__nvidia_driver_rebooted": True, "check": True},
         "580.126.09"),
    ],
)  # fmt: skip
def test_the_driver_that_will_be_loaded(variables, loaded):
    if "__nvidia_driver_rebooted" not in variables:
        # Before the role changes anything, its plan has it.
        name = "__nvidia_driver_plan.next_driver"
        assert value(name, facts("T4", "u24", PENDING), **variables) == loaded
    assert value("__nvidia_driver_next", facts("T4", "u24", PENDING), **variables) == loaded
