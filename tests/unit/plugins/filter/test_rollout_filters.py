# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters of batches as a playbook calls them, and batches as Ansible makes them."""

from __future__ import annotations

import pytest
from ansible.executor.playbook_executor import PlaybookExecutor

from ansible_collections.kubegpu.nodes.plugins.filter import (
    rollout_failure,
    rollout_serial,
    rollout_stop,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._rollout import batch_sizes


def call(module, *arguments):
    name = module.__name__.rpartition(".")[2]
    return module.FilterModule().filters()[name](*arguments)


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
    assert call(rollout_serial, ["lost", "gpu1"], {"lost": {}, "gpu1": found}) == [1, "50%"]
    # --syntax-check knows neither hosts nor hostvars.
    assert call(rollout_serial, [], {}) == call(rollout_serial, ["gpu1"], {}) == "100%"


def test_percentages_are_those_of_the_hosts_of_the_play():
    names = [f"gpu{number}" for number in range(1, 13)]
    found = {"__kubegpu_variables": {"serials": {"gpu1": "50%", "gpu2": 4}}}
    hostvars = dict.fromkeys(names, found)
    assert call(rollout_serial, names, hostvars) == 4
    assert call(rollout_serial, names[:6], hostvars) == "50%"
    # Who takes no part has no say.
    assert call(rollout_serial, names[1:], hostvars) == 4
    assert call(rollout_serial, names[2:], hostvars) == "100%"


def test_a_refusal_counts_where_something_was_changed_before():
    task = {"name": "Stop", "action": "ansible.builtin.fail"}
    result = {"failed": True, "msg": "No CUDA toolkit fits."}
    for changed in (False, True):
        kept = call(rollout_failure, task, result, changed)
        words = call(rollout_stop, ["gpu1"], {"gpu1": {"kubegpu_failure": kept}})
        assert bool(words) is changed


def test_from_a_failed_task_to_the_batches_that_wait():
    task = {"name": "Install", "action": "kubegpu.nodes.nvidia_driver"}
    kept = call(rollout_failure, task, {"failed": True, "msg": "It did not build."})
    hostvars = {"gpu1": {"kubegpu_failure": kept}, "gpu2": {}}
    words = call(rollout_stop, ["gpu1", "gpu2"], hostvars)
    assert words.startswith("not begun: 1 of 2 nodes of a batch failed (gpu1)")
    assert call(rollout_stop, ["gpu1", "gpu2"], hostvars, "50") == ""
