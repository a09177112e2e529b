# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of a user's ansible.cfg, and hosts that fail, are down or come first in an inventory.

The playbooks and roles are the real ones; what runs on nodes is a stand-in (standin_nodes.py).
"""

from __future__ import annotations

import json
import re

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
    _before, _title, result = run.screen.partition("What is there now")
    rows = [line.split()[0] for line in result.splitlines() if line.startswith("gpu")]
    assert rows[:3] == ["gpu1", "gpu2", "gpu3"]


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
    assert "What will be done, and why" in run.screen
    assert "\nWhat will be done, and why" not in run.out
