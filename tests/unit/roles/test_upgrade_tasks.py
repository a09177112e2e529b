# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tasks of the upgrade do in which order, and with which records and hooks."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.task_include import TaskInclude
from ansible.template import Templar

from ansible_collections.kubegpu.nodes.plugins.module_utils._packages import saved
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.gate import calls_for_rollback
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.stages import SAVE_LIMIT

ROLES = Path(__file__).parents[3] / "roles"
HOOKS = ("before_drain", "before_change", "before_gate", "before_release")


def read(name, role="gpu_upgrade"):
    return yaml.safe_load((ROLES / role / name).read_text(encoding="utf-8"))


def position(tasks, module):
    """Return where the first task with a module is."""
    parts = [[task, *task.get("block", [])] for task in tasks]
    return next(number for number, part in enumerate(parts) if any(module in one for one in part))


def test_the_record_goes_before_what_belongs_to_it():
    tasks = read("tasks/release.yml")
    order = [
        position(tasks, module)
        for module in (
            "kubegpu.nodes.node_builtin",
            "kubegpu.nodes.runtime_configuration",
            "kubegpu.nodes.package_set",
            "kubegpu.nodes.gpu_node_maintenance",
        )
    ]
    assert order == sorted(order)


@pytest.mark.parametrize(
    ("name", "task"), [("record", "Write the record"), ("release", "Remove the record")]
)
def test_a_connection_that_is_lost_at_the_record_fails_the_node(name, task):
    """The next task may have a connection again, and the node no record, or an old one."""
    (block,) = (one for one in read(f"tasks/{name}.yml") if "block" in one)
    (found,) = (one for one in block["block"] if one["name"] == task)
    # It has the door, which makes a failure of it.
    assert "kubegpu.nodes.node_builtin" in found and block["rescue"]
    assert "ignore_unreachable" not in found


def test_the_lease_outlasts_the_saving_of_packages():
    assert SAVE_LIMIT > saved._LONGEST + saved._COPY


def lease_duration(**variables):
    """Return the seconds, by the role's own expressions."""
    loader, known = DataLoader(), {}
    for folder in ("defaults", "vars"):
        path = str(ROLES / "gpu_upgrade" / folder / "main.yml")
        known.update(loader.load_from_file(path, trusted_as_template=True))
    known.update(variables)
    return Templar(loader, variables=known).template(known["__gpu_upgrade_lease_duration"])


@pytest.mark.parametrize(
    ("sizes", "forks", "rounds"),
    [((), 5, 1), ((1, 4), 5, 1), ((1, 5), 5, 1), ((1, 6, 2), 5, 2), ((3,), 1, 3), ((20, 1), 6, 4)],
)
def test_the_lease_outlasts_hosts_that_are_changed_after_each_other(sizes, forks, rounds):
    """With fewer forks than hosts of a batch, each task takes its time again for each round."""
    plan = {"batches": [[f"gpu{number}" for number in range(size)] for size in sizes]}
    given = {"gpu_upgrade_soak": 60, "gpu_upgrade_gate": ["dcgm"], "nvidia_mig_reboot": True}
    limits = 3600 + 900 + 900 + 3600
    duration = lease_duration(gpu_upgrade_plan=plan, ansible_forks=forks, **given)
    # The soak is one task for all hosts of the batch.
    assert duration == limits * rounds + 60


def test_the_lease_is_tried_before_there_is_a_plan():
    assert lease_duration(ansible_forks=1) == 3600 + 900 + 60


def test_a_record_is_used_on_a_node_that_a_run_holds_only():
    (block,) = read("tasks/record.yml")
    assert "action == 'resume'" in block["vars"]["__gpu_upgrade_resumed"]
    tasks = block["block"]
    slurp, copy = (
        next(
            one for one in tasks if one.get("kubegpu.nodes.node_builtin", {}).get("module") == name
        )
        for name in ("slurp", "copy")
    )
    assert slurp["when"].startswith("__gpu_upgrade_resumed and ")
    options = copy["kubegpu.nodes.node_builtin"]["arguments"]
    assert options["force"] == "{{ not __gpu_upgrade_resumed }}"


def test_servers_of_kubernetes_are_restarted_one_by_one():
    (block,) = read("tasks/restore.yml")
    tasks = block["block"]
    task = tasks[position(tasks, "kubegpu.nodes.runtime_configuration")]
    assert task["throttle"] == "{{ __gpu_upgrade_containerd_at_once }}"
    own, other = (
        read("vars/main.yml", role)[f"__{role}_containerd_at_once"]
        for role in ("gpu_upgrade", "nvidia_container_toolkit")
    )
    assert own == other
    # They are restarted, or not, as the role may restart them.
    options = task["kubegpu.nodes.runtime_configuration"]
    for engine in ("containerd", "docker", "crio"):
        name = f"nvidia_container_toolkit_{engine}_restart"
        default = read("defaults/main.yml", "nvidia_container_toolkit")[name]
        assert name in options[f"{engine}_restart"]
        assert (
            f"default({str(default).lower() if default is True else repr(default)})"
            in (options[f"{engine}_restart"])
        )


def test_hooks_are_loaded_before_anything_is_touched():
    tasks = read("tasks/plan.yml")
    find, load = tasks[:2]
    assert "ansible.builtin.set_fact" in find and "run_once" not in find
    include = load["ansible.builtin.include_tasks"]
    assert include["apply"] == {"when": False}
    # A fact that a node returns later chooses no file: a fact that was set is stronger.
    assert "__gpu_upgrade_hook_files" in load["loop"]
    hook, _leave = read("tasks/hook.yml")
    assert "__gpu_upgrade_hook_files" in hook["block"][0]["ansible.builtin.include_tasks"]
    # Ansible's own check of the keywords.
    assert TaskInclude.load(dict(load)).args["apply"] == {"when": False}
    # A node can be released whatever the hooks are.
    assert "not gpu_upgrade_release | bool" in load["when"]
    assert "if not gpu_upgrade_release | bool else" in find["vars"]["__gpu_upgrade_paths"]
    assert find["any_errors_fatal"] is True


def test_a_hook_before_the_change_has_a_code_of_its_own():
    block, leave = read("tasks/hook.yml")
    # What runs once for the batch has no variables of a host whose facts are refused.
    assert leave["ansible.builtin.meta"] == "end_host" and "'unread'" in leave["when"]
    code = block["vars"]["__gpu_upgrade_code"]
    early = code.split(" if ")[0].split("'")[1]
    assert not calls_for_rollback([{"code": early}]) and calls_for_rollback(
        [{"code": code.split(" else ")[1].split("'")[1]}]
    )
    assert [hook for hook in HOOKS if repr(hook) in code] == ["before_drain", "before_change"]
    # A connection that was lost in a task of the user shows in a module of the collection.
    assert "kubegpu.nodes.runtime_configuration" in block["block"][-1]


def test_a_blocked_node_runs_the_hook_before_its_release():
    hooks = [task for task in read("tasks/main.yml") if "hook.yml" in str(task)]
    assert {task["vars"]["__gpu_upgrade_hook"] for task in hooks} == {*HOOKS}
    assert hooks[-1]["vars"]["__gpu_upgrade_hook"] == "before_release"
    assert "gpu_upgrade_result.outcome in ['done', 'rolled_back', 'blocked']" in hooks[-1]["when"]
