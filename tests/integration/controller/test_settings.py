# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of a user's ansible.cfg, and hosts that fail, are down or come first in an inventory.

The playbooks and roles are the real ones; what runs on nodes is a stand-in (standin_nodes.py).
"""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from tests.integration.controller.standin_nodes import Nodes

CLUSTER = {"kubegpu_kube": {"kubeconfig": "/dev/null"}}
PARTS = ("--tags", "driver,labels,verify")
DRIVER = ("--tags", "driver")
# Each changed what a playbook did: kubespray#13407 and #10993, ansible#15876, #72747 and #80737.
FOREIGN = {
    "ANSIBLE_ANY_ERRORS_FATAL": "True",
    "ANSIBLE_STRATEGY": "free",
    "ANSIBLE_TASK_TIMEOUT": "60",
    "ANSIBLE_FORKS": "1",
    "ANSIBLE_GATHERING": "implicit",
    "ANSIBLE_HASH_BEHAVIOUR": "merge",
    "ANSIBLE_FORCE_HANDLERS": "True",
    "ANSIBLE_PRIVATE_ROLE_VARS": "True",
    "ANSIBLE_DUPLICATE_YAML_DICT_KEY": "error",
    "ANSIBLE_HOST_PATTERN_MISMATCH": "error",
    "ANSIBLE_ERROR_ON_MISSING_HANDLER": "True",
}


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    return Nodes(tmp_path_factory.mktemp("nodes"))


def recap(run):
    """Return the numbers of the recap, by host."""
    lines = re.findall(r"^(\S+) +: (ok=.*)$", run.screen, re.M)
    return {host: dict(re.findall(r"(\w+)=(\d+)", numbers)) for host, numbers in lines}


def ended(run):
    """Return the hosts that failed, and those that were not reached."""
    numbers = recap(run)
    return (
        [host for host, one in numbers.items() if one["failed"] != "0"],
        [host for host, one in numbers.items() if one["unreachable"] != "0"],
    )


def test_one_host_is_down_and_one_fails_and_the_others_get_their_work(nodes):
    """All hosts were dropped for the one that was down; the healthy one failed with the other."""
    own = {
        "gone1": {"standin_lost": "gpu_node_facts"},
        "gpu1": {},
        "gpu2": {"standin_fails": "nvidia_driver"},
        "gpu3": {},
    }
    run = nodes.play("site", own, *PARTS, everywhere=CLUSTER, settings=FOREIGN)
    assert run.status == 4, run.screen
    assert sorted(run.hosts("nvidia_driver")) == ["gpu1", "gpu2", "gpu3"]
    assert sorted(run.hosts("gpu_node_verify")) == ["gpu1", "gpu3"]
    assert ended(run) == (["gpu2"], ["gone1"]), run.screen
    words = run.words()
    assert "ansible_failed_task" not in words
    assert "gpu2 failed in the task Install, configure and load the driver" in words
    _before, _title, result = run.screen.partition("Result")
    rows = [line.split()[0] for line in result.splitlines() if line.startswith("gpu")]
    assert rows[:3] == ["gpu1", "gpu2", "gpu3"]


def test_a_cluster_that_refuses_is_found_before_a_node_is_changed(nodes):
    """The driver was installed, and the runtime restarted, before the token was tried."""
    expired = {**CLUSTER, "standin_fails": "node_gpu_label"}
    own = {"gpu1": expired, "gpu2": expired, "alone": {}}
    run = nodes.play("site", own, *PARTS)
    assert run.hosts("nvidia_driver") == ["alone"], run.screen
    # Ansible counts the failure of a task that runs once for its host only.
    assert run.status == 2 and ended(run) == (["gpu1"], []), run.screen
    without = nodes.play("site", own, *DRIVER)
    assert sorted(without.hosts("nvidia_driver")) == sorted(own), without.screen


@pytest.mark.full("verify", "teardown", "plan", "diagnose", why="the same plays' keys are a test")
@pytest.mark.parametrize("name", ["plan", "verify", "diagnose", "teardown"])
def test_other_playbooks_with_the_settings_of_others(nodes, name):
    own = {"gone1": {"standin_lost": "gpu_node_facts"}, "gpu1": {}, "gpu2": {}}
    run = nodes.play(name, own, everywhere={"gpu_diagnose_fail_on": "never"}, settings=FOREIGN)
    assert ended(run) == ([], ["gone1"]), run.screen


@pytest.mark.parametrize("callback", ["ansible.posix.json", "ansible.posix.jsonl"])
def test_standard_output_is_json_alone(nodes, callback):
    """A program reads it; the tables were in front of it and between its lines."""
    run = nodes.play("site", {"gpu1": {}}, *DRIVER, settings={"ANSIBLE_STDOUT_CALLBACK": callback})
    assert run.status == 0, run.screen
    documents = run.out.splitlines() if callback.endswith("l") else [run.out]
    assert [json.loads(one) for one in documents if one]
    assert "Planned changes" in run.screen
    assert "\nPlanned changes" not in run.out


def test_tables_are_on_standard_error_where_the_callback_prints_nothing(nodes):
    run = nodes.play(
        "site",
        {"gpu1": {}},
        *DRIVER,
        settings={"ANSIBLE_STDOUT_CALLBACK": "community.general.null"},
    )
    assert run.status == 0 and run.hosts("nvidia_driver") == ["gpu1"], run.screen
    assert run.out.strip() == ""
    for title in ("Planned changes", "Result"):
        assert f"\n{title}" in run.screen, run.screen


def test_the_callback_of_the_collection_prints_tables_changes_and_failures(nodes, tmp_path):
    """JUnit, which Ansible writes by another callback, has all tasks."""
    own = {
        "gone1": {"standin_lost": "gpu_node_facts"},
        "gpu1": {},
        "gpu2": {"standin_fails": "nvidia_driver"},
    }
    settings = {
        "ANSIBLE_STDOUT_CALLBACK": "kubegpu.nodes.tables",
        "ANSIBLE_CALLBACKS_ENABLED": "ansible.builtin.junit",
        "JUNIT_OUTPUT_DIR": str(tmp_path),
    }
    run = nodes.play("site", own, *DRIVER, settings=settings)
    lines = run.out.splitlines()
    assert run.status == 4 and not re.search(r"^(PLAY|TASK|ok:|skipping:)", run.out, re.M), run.out
    assert "changed: [gpu1] Install, configure and load the driver" in lines
    place = lines.index("failed: [gpu2] Install, configure and load the driver")
    assert lines[place + 1 : place + 3] == ["  It did not build.", "  Seen: gcc"]
    # A row of the plan, and no table of its own.
    assert len([line for line in lines if line.startswith("gone1: No route to host")]) == 1
    last = "Hosts: 3, changed: 2 (gpu1, gpu2), failed: 1 (gpu2), unreachable: 1 (gone1)"
    assert lines[-1] == last
    (report,) = tmp_path.glob("*.xml")
    cases = ElementTree.parse(report).iter("testcase")
    assert {one.get("name").split("]")[0] for one in cases if one.find("error") is not None} == {
        "[gpu2"
    }


@pytest.mark.parametrize(
    ("tag", "runs", "left_out"),
    [("toolkit", "package_set", "docker_runtime"), ("runtime", "docker_runtime", "package_set")],
)
def test_the_toolkit_and_the_runtimes_have_tags_of_their_own(nodes, tag, runs, left_out):
    """A runtime is restarted: not by a run for the packages, and not the other way round."""
    own = {"gpu1": {"nvidia_driver_enabled": False}}
    run = nodes.play("site", own, "--tags", tag, "--check")
    changing = run.screen.partition("Mark that the batch was started")[2]
    names = {"package_set": "Install the packages as one set", "docker_runtime": "Configure Docker"}
    assert names[runs] in changing and names[left_out] not in changing, run.screen


def test_one_host_that_is_down_and_no_other(nodes):
    run = nodes.play("site", {"gone1": {"standin_lost": "gpu_node_facts"}}, *DRIVER)
    assert run.status == 4 and ended(run) == ([], ["gone1"]), run.screen
    words = run.words()
    assert "Hosts that could not be read" in words
    assert "gone1 the node cannot be reached, see below" in words
    assert "gone1: No route to host Next step: See that the machine is up" in words
    assert "and try: ansible gone1 -i inventory -b -m ansible.builtin.ping" in words


def test_hosts_that_are_down_are_rows_of_the_plan(nodes):
    own = {"gpu1": {}, "gone1": {"standin_lost": "gpu_node_facts"}}
    own["odd1"] = {"standin_fails": "gpu_node_facts"}
    run = nodes.play("plan", own)
    assert ended(run) == (["odd1"], ["gone1"]), run.screen
    plan = run.screen.partition("Planned changes")[2]
    assert "gone1" in plan and "odd1" in plan
    words = " ".join(plan.split())
    assert "odd1: It did not build. Seen: gcc Next step: Correct that, and try: ansible" in words


@pytest.mark.parametrize("condition", ["inventory_hostname is match('gpu')"])
def test_a_condition_that_leaves_out_the_first_host_is_told(nodes, condition):
    """Nothing was done, with exit status 0 (ansible#83216 and others)."""
    own = nodes.own("site.yml", [{"import_playbook": "kubegpu.nodes.site", "when": condition}])
    run = nodes.play(own, {"cpu1": {}, "gpu3": {}}, *DRIVER)
    assert run.status == 2 and ended(run)[0] == ["gpu3"], run.screen
    assert not run.hosts("nvidia_driver")
    words = run.words()
    assert "does not apply to cpu1, the first host of the play" in words
    assert "kubegpu_hosts" in words
    # And where it applies to the first one, it works as people want it.
    run = nodes.play(own, {"gpu3": {}, "later1": {}}, *DRIVER)
    assert run.status == 0 and run.hosts("nvidia_driver") == ["gpu3"], run.screen


ROLES = (
    "gpu_node_labels", "nvidia_device_plugin", "amd_device_plugin", "gpu_verify",
    "nvidia_dra_driver", "gpu_diagnose", "gpu_report",
    "gpu_upgrade plan", "gpu_upgrade main", "gpu_acceptance plan", "gpu_acceptance report",
)  # fmt: skip


@pytest.mark.full(ROLES[2], *ROLES[4:], why="other roles")
@pytest.mark.parametrize("role", ROLES)
def test_a_condition_at_a_role_that_leaves_out_the_first_host_is_told(nodes, role):
    """The labels were applied to no node at all, with exit status 0."""
    run = without_the_first(nodes, role, CLUSTER)
    assert run.status == 2 and ended(run)[0] == ["gpu3"], run.screen
    words = run.words()
    told = "The condition (when) of the role does not apply to cpu1, the first host"
    assert told in words, run.screen
    assert "ansible.builtin.include_role" in words


@pytest.mark.full(why="the same roles")
@pytest.mark.parametrize("role", [*ROLES[-6:-3], "gpu_acceptance plan"])
def test_a_condition_that_leaves_out_the_first_host_is_told_without_a_cluster(nodes, role):
    run = without_the_first(nodes, role, {})
    assert run.status == 2 and ended(run)[0] == ["gpu3"], run.screen
    assert "The condition (when) of the role does not apply to cpu1" in run.words(), run.screen


@pytest.mark.full(why="another role")
def test_what_a_role_includes_runs_once_on_the_first_host_that_the_condition_leaves(nodes):
    run = without_the_first(nodes, "gpu_monitoring", CLUSTER)
    assert run.hosts("gpu_cluster_info") == ["gpu3"], run.screen


def without_the_first(nodes, role, cluster):
    """Run a role, or an entry point of it, with a condition that leaves out the first host."""
    name, _blank, entry = role.partition(" ")
    imported = {"name": f"kubegpu.nodes.{name}", **({"tasks_from": entry} if entry else {})}
    condition = "inventory_hostname is match('gpu')"
    play = {
        "hosts": "all",
        "gather_facts": False,
        "vars": {"gpu_upgrade_plan": {"hosts": {}}} if entry == "main" else {},
        "tasks": [
            {"kubegpu.nodes.gpu_node_facts": {}},
            {"ansible.builtin.import_role": imported, "when": condition},
        ],
    }
    enabled = {"nvidia_dra_driver_enabled": True, "gpu_monitoring_enabled": True}
    return nodes.play(
        nodes.own("role.yml", [play]), {"cpu1": {}, "gpu3": {}}, everywhere={**enabled, **cluster}
    )


def test_two_names_of_one_machine_are_refused_and_the_others_get_their_work(nodes):
    same = {"standin_os": {"machine_id": "a" * 32, "boot_id": "b", "hostname": "gpu3"}}
    cloned = {"standin_os": {"machine_id": "a" * 32, "boot_id": "c", "hostname": "gpu3"}}
    own = {"gpu3": same, "gpu3.example.com": same, "gpu4": cloned}
    run = nodes.play("site", own, *DRIVER)
    assert run.status == 2 and ended(run)[0] == ["gpu3", "gpu3.example.com"], run.screen
    assert run.hosts("nvidia_driver") == ["gpu4"]
    assert "gpu3 and gpu3.example.com are one machine" in run.words()


def test_a_node_that_was_not_read_as_root_is_refused(nodes):
    own = {
        "gpu1": {"ansible_become_user": "ops", "standin_facts": {"as_root": False}},
        "gpu2": {},
        "gpu3": {"kubegpu_become": False, "standin_facts": {"as_root": False}},
    }
    for one in ("gpu1", "gpu2"):
        own[one]["kubegpu_become"] = True
    for name in ("plan", "site"):
        run = nodes.play(name, own, *(DRIVER if name == "site" else ()))
        words = run.words()
        assert "gpu1 was not read as root" in words, run.screen
        assert "Seen: ansible_become_user is ops" in words
        assert "gpu3 was not" not in words
    assert run.status == 2 and ended(run)[0] == ["gpu1"], run.screen
    assert sorted(run.hosts("nvidia_driver")) == ["gpu2", "gpu3"]
