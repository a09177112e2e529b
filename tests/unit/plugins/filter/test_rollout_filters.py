# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter of batches as a playbook calls them, and batches as Ansible makes them."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible.executor.playbook_executor import PlaybookExecutor

from ansible_collections.kubegpu.nodes.plugins.filter.rollout import rollout
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._rollout import batch_sizes
from tests.unit.fixtures.plans import registered


class _Inventory:
    """What Ansible asks of an inventory to make batches."""

    def __init__(self, count):
        self.count = count

    def get_hosts(self, _pattern, order=None):
        return [f"gpu{number}" for number in range(self.count)]


class _Play:
    hosts, order = "all", None

    def __init__(self, serial_):
        self.serial = serial_ if isinstance(serial_, list) else [serial_]


@pytest.mark.parametrize("count", [1, 3, 12, 100])
@pytest.mark.parametrize(
    "value", [1, "2", 4, "25%", "100%", "33%", "1%", [1, 3], [1, "50%"], ["10%", 5, "100%"]]
)
def test_batches_are_those_that_ansible_makes(value, count):
    executor = PlaybookExecutor.__new__(PlaybookExecutor)
    executor._inventory = _Inventory(count)
    batches = executor._get_serialized_batches(_Play(value))
    assert batch_sizes(value, count) == [len(batch) for batch in batches]


def test_the_size_of_batches_is_what_was_found_for_the_hosts():
    found = {"__kubegpu_variables": {"serials": {"gpu1": [1, "50%"]}}}
    assert rollout(["lost", "gpu1"], "serial", {"lost": {}, "gpu1": found}) == [1, "50%"]
    # --syntax-check knows neither hosts nor hostvars.
    assert rollout([], "serial", {}) == rollout(["gpu1"], "serial", {}) == "100%"


def test_percentages_are_those_of_the_hosts_of_the_play():
    names = [f"gpu{number}" for number in range(1, 13)]
    found = {"__kubegpu_variables": {"serials": {"gpu1": "50%", "gpu2": 4}}}
    hostvars = dict.fromkeys(names, found)
    assert rollout(names, "serial", hostvars) == 4
    assert rollout(names[:6], "serial", hostvars) == "50%"
    # Who takes no part has no say.
    assert rollout(names[1:], "serial", hostvars) == 4
    assert rollout(names[2:], "serial", hostvars) == "100%"


def test_the_size_is_that_of_the_selected_hosts():
    found = {
        "__kubegpu_variables": {"serials": {"gpu1": 1}},
        "ansible_facts": {"gpu_node": {"gpus": []}},
    }
    hostvars = {
        "gpu1": {**found, "nvidia_driver_plan": {"work": False}},
        "gpu2": {**found, "nvidia_driver_plan": {"work": True}},
    }
    hostvars = registered(hostvars)
    assert rollout([*hostvars], "serial", hostvars) == 1
    assert rollout([*hostvars], "serial", hostvars, select="work") == "100%"


def test_a_refusal_counts_where_something_was_changed_before():
    task = {"name": "Stop", "action": "ansible.builtin.fail"}
    result = {"failed": True, "msg": "No CUDA toolkit fits."}
    for changed in (False, True):
        kept = rollout(task, "failure", result=result, changed=changed)
        hostvars = {"gpu1": {"kubegpu_failure": kept}, "gpu2": {}}
        assert bool(rollout(["gpu1"], "stop", hostvars, [*hostvars])) is changed


def test_from_a_failed_task_to_the_batches_that_wait():
    task = {"name": "Install", "action": "kubegpu.nodes.nvidia_driver"}
    kept = rollout(task, "failure", result={"failed": True, "msg": "It did not build."})
    checked = {"__kubegpu_variables": {"max_fail_percentage": 0.0}, "kubegpu_begun": True}
    hostvars = {"gpu1": {"kubegpu_failure": kept, **checked}, "gpu2": checked, "gpu3": {}}
    words = rollout(["gpu1", "gpu2"], "stop", hostvars, [*hostvars])
    assert words.startswith("not started: 1 of 2 nodes of a batch failed (gpu1)")
    # Nobody waits.
    assert rollout(["gpu1", "gpu2"], "stop", hostvars, ["gpu1", "gpu2"]) == ""
    # A Prometheus on a node is none of its GPUs.
    elsewhere = {"gpu1": {"kubegpu_prometheus_failure": kept, **checked}}
    assert rollout(["gpu1", "gpu2"], "stop", {**hostvars, **elsewhere}, [*hostvars]) == ""
    checked["__kubegpu_variables"]["max_fail_percentage"] = 50.0
    assert rollout(["gpu1", "gpu2"], "stop", hostvars, [*hostvars]) == ""


def test_what_it_does_not_know_is_named():
    known = "serial, stop, failure, finding, refusal, message, tags, roles, left_out"
    with pytest.raises(AnsibleFilterError, match=f"'batches' is none of {known}"):
        rollout([], "batches")
