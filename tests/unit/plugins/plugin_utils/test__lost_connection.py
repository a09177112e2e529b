# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A lost connection is a failure where a play says so, and what Ansible makes of it elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._lost_connection import (
    QUERY,
    VARIABLE,
    lost_connection_fails,
)

ROOT = Path(__file__).parents[4]


class _Action:
    @lost_connection_fails
    def run(self, tmp=None, task_vars=None):
        if task_vars.get("raises"):
            raise AnsibleError(task_vars["raises"])
        if task_vars.get("lost"):
            raise AnsibleConnectionFailure(task_vars.get("text", "No route to host"))
        return {"changed": True}


def test_where_the_play_says_so_it_is_a_failure():
    variables = {VARIABLE: True, "inventory_hostname": "gpu1", "lost": True}
    answer = _Action().run(task_vars=variables)
    assert answer["failed"] and answer["lost_connection"] and not answer["changed"]
    assert answer["msg"].startswith("gpu1 became unreachable: No route to host\nNext step: ")


@pytest.mark.parametrize("said", [{}, {VARIABLE: False}])
def test_elsewhere_the_host_is_unreachable(said):
    with pytest.raises(AnsibleConnectionFailure):
        _Action().run(task_vars={**said, "lost": True})
    assert _Action().run(task_vars=said) == {"changed": True}


def test_what_a_query_would_change_is_no_change():
    answer = _Action().run(task_vars={QUERY: True})
    assert answer == {"changed": False, "would_change": True}


def test_the_text_of_a_server_has_no_control_codes():
    said = {"inventory_hostname": "gpu1", "lost": True, "text": "\x1b]0;x\x07 banner"}
    with pytest.raises(AnsibleConnectionFailure) as lost:
        _Action().run(task_vars=said)
    assert str(lost.value) == "\\x1b]0;x\\x07 banner"
    assert "\\x1b]0;x" in _Action().run(task_vars={**said, VARIABLE: True})["msg"]


@pytest.mark.parametrize("text", ["rc: 1, stdout: \x1b]0;x\x07\nnext", "rc: 1\nnext"])
def test_what_an_action_of_ansible_quotes_has_no_control_codes(text):
    """As the reboot quotes the command that reads the time of boot."""
    with pytest.raises(AnsibleError) as failed:
        _Action().run(task_vars={"raises": text})
    assert str(failed.value) == text.replace("\x1b", "\\x1b").replace("\x07", "\\x07")


def modules(tasks):
    """Return the names of the collection's modules that tasks call."""
    for task in tasks:
        for part in ("block", "rescue", "always"):
            yield from modules(task.get(part, []))
        yield from (name.rpartition(".")[2] for name in task if name.startswith("kubegpu.nodes."))


def test_every_module_that_changes_a_node_has_it():
    """A task without it would go on with the next one where a connection flickers."""
    called = set()
    for role in (
        "nvidia_driver", "cuda_toolkit", "nvidia_container_toolkit", "gpu_verify", "gpu_upgrade",
        "gpu_acceptance",
    ):  # fmt: skip
        for path in (ROOT / "roles" / role / "tasks").glob("*.yml"):
            called |= set(modules(yaml.safe_load(path.read_text(encoding="utf-8"))))
    # Delegated to where the cluster is spoken to, in plays of their own; no connection.
    called -= {"gpu_cluster_info", "gpu_test_pods"}
    called -= {"fleet_fail", "fleet_plan", "fleet_result", "fleet_table"}
    assert {"nvidia_driver", "gpu_node_verify", "gpu_node_facts"} <= called
    utils = ROOT / "plugins" / "plugin_utils"
    bases = {
        name: "@lost_connection_fails" in (utils / f"{name}.py").read_text(encoding="utf-8")
        for name in ("_lost_connection", "_phases", "_slices", "_toml_action")
    }
    assert all(bases.values())
    for name in called:
        text = (ROOT / "plugins" / "action" / f"{name}.py").read_text(encoding="utf-8")
        assert "@lost_connection_fails" in text or any(
            f"plugin_utils.{base} import" in text for base in bases
        ), name


def test_every_play_that_works_in_batches_says_so():
    seen = 0
    for path in [*(ROOT / "playbooks").glob("*.yml"), *(ROOT / "playbooks").glob("parts/*.yml")]:
        for play in yaml.safe_load(path.read_text(encoding="utf-8")):
            if "serial" in play:
                seen += 1
                assert play["vars"][VARIABLE] is True, path
                if path.stem == "upgrade":
                    assert "rollout('upgrade_serial'" in play["serial"]
                    continue
                assert "rollout('serial'" in play["serial"]
                # The role of accept rescues what it does on a node by itself.
                assert path.stem == "accept" or any("rescue" in task for task in play["tasks"])
    assert seen == 6


def test_what_an_acceptance_does_on_a_node_is_rescued():
    path = ROOT / "roles" / "gpu_acceptance" / "tasks" / "test.yml"
    (task,) = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert task["ignore_unreachable"] is True and task["rescue"] and task["block"]


@pytest.mark.parametrize("name", ["record", "change", "restore", "gate"])
def test_what_an_upgrade_does_on_a_node_is_rescued(name):
    path = ROOT / "roles" / "gpu_upgrade" / "tasks" / f"{name}.yml"
    (task,) = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert task["rescue"] and task["block"]


def test_no_module_of_ansible_runs_on_a_node_without_the_door():
    """With inject_facts_as_vars the facts that a node returns would be variables."""
    controller = {
        "add_host", "assert", "debug", "fail", "group_by", "include_role", "include_tasks",
        "import_role", "import_tasks", "import_playbook", "meta", "pause", "set_fact",
    }  # fmt: skip
    found = {}
    for path in [*(ROOT / "roles").glob("*/tasks/*.yml"), *(ROOT / "playbooks").rglob("*.yml")]:
        if not {"examples", "files"} & {*path.parts}:
            for task in every_task(yaml.safe_load(path.read_text(encoding="utf-8"))):
                names = {name.partition("ansible.builtin.")[2] for name in task} - controller - {""}
                if names and task.get("delegate_to") != "localhost":
                    found[str(path.relative_to(ROOT))] = names
    assert not found


def every_task(tree):
    """Return the tasks of a file, of tasks or of plays."""
    for one in tree or ():
        if isinstance(one, dict):
            yield one
            for part in ("tasks", "pre_tasks", "post_tasks", "block", "rescue", "always"):
                yield from every_task(one.get(part))


def test_what_fails_by_the_module_fail_is_a_refusal():
    """By that a refusal is told from a failure (plugin_utils/_rollout.py)."""
    names = set()
    for role in ("nvidia_driver", "cuda_toolkit", "nvidia_container_toolkit"):
        for path in (ROOT / "roles" / role / "tasks").glob("*.yml"):
            for task in yaml.safe_load(path.read_text(encoding="utf-8")):
                if {"ansible.builtin.fail", "ansible.builtin.assert"} & {*task}:
                    names.add("a failure without parts")
                if "kubegpu.nodes.fleet_fail" in task:
                    names.add(task["name"])
    assert names == {"Stop where the plan is a refusal"}


def test_every_module_that_can_run_on_a_node_has_the_door():
    """Without an action, Ansible takes over the facts that a node returns."""
    utils = ROOT / "plugins" / "plugin_utils"
    bases = ("_lost_connection", "_phases", "_slices", "_toml_action")
    for path in (ROOT / "plugins" / "modules").glob("*.py"):
        # These run on the controller alone, and return no facts.
        if path.stem.startswith("fleet_"):
            continue
        text = (ROOT / "plugins" / "action" / path.name).read_text(encoding="utf-8")
        assert "@lost_connection_fails" in text or any(
            f"plugin_utils.{base} import" in text for base in bases
        ), path.stem
    assert "taken_over(" in (utils / "_lost_connection.py").read_text(encoding="utf-8")
