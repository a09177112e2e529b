# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The teardown table: what was restored on each host, and in its cluster."""

from __future__ import annotations

import re

import pytest

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.hosts import (
    cluster_teardown_rows,
    teardown_rows,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.teardown import (
    TASKS,
    teardown_row,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._variables_data import REMOVED_FACTS
from tests.tools.environments import REPOSITORY
from tests.unit.fixtures.node_facts import node

FAILED = {"task": "Restore the driver", "cause": "It did not go.", "changed": True,
          "refused": False}  # fmt: skip
STEP = {"step": "packages", "action": "remove", "detail": "580.126.09", "reason": "it is recorded"}
DRIVER = {
    "changed": True, "plan": {"steps": [STEP]},
    "reboot_required": True, "reboot_reason": "580.126.09 is still loaded",
}  # fmt: skip


def host(**variables):
    return {"ansible_facts": {"gpu_node": node()}, **variables}


def test_what_was_restored_is_named_in_the_words_of_the_plan():
    restored = host(
        nvidia_container_toolkit_removed_docker={
            "changed": True, "reloaded": True, "reasons": ["runtimes was not set before."],
            "restart_required": True, "restart_reason": "it is older than the file",
        },
        nvidia_container_toolkit_removed_packages={
            "changed": True, "reasons": ["a was not installed before."],
            "previous": {"a": "1", "b": "1"}, "packages": {"b": "1"},
        },
        nvidia_container_toolkit_removed_config={"changed": False},
        nvidia_container_toolkit_removed_repository={"changed": True},
        nvidia_driver_result=DRIVER,
    )  # fmt: skip
    row = teardown_row("gpu1", restored, node())
    assert row["changes"] == [
        "docker: remove runtime", "docker: reload", "docker: wait for a restart",
        "toolkit packages: restore a", "toolkit repository: remove",
        "driver packages: remove 580.126.09",
    ]  # fmt: skip
    assert row["why"] == [
        "runtimes was not set before", "the running daemon does not know the new configuration",
        "it is older than the file", "a was not installed before", "this collection set it up",
        "it is recorded",
    ]  # fmt: skip
    assert row["open"] == [
        "reboot: 580.126.09 is still loaded", "restart docker: it is older than the file",
    ]  # fmt: skip
    assert row["gpus"] == ["1x Tesla P4 (pascal)"] and row["action"] == "change"
    rebooted = {**restored, "nvidia_driver_removed_reboot": {"changed": True, "rebooted": True}}
    assert len(teardown_row("gpu1", rebooted, node())["open"]) == 1


def test_a_host_that_failed_keeps_what_was_restored_and_one_that_waits_says_so():
    hostvars = {
        "gpu1": host(kubegpu_failure=FAILED, cuda_toolkit_removed={"changed": True},
                     nvidia_driver_result={"failed": True, "changed": True}),
        "gpu2": host(),
        "gpu3": host(),
    }  # fmt: skip
    first, second, third = teardown_rows(
        [*hostvars], hostvars, batch=["gpu1", "gpu2"], stop="not started: gpu1 failed"
    )
    assert first["changes"] == ["cuda packages: restore"]
    assert first["open"] == [
        "the run stopped at this node, in the task 'Restore the driver': It did not go.",
    ]
    assert (second["node"], second["changes"]) == ("gpu2", [])
    assert second["why"] == ["nothing of this collection is on it"] and second["open"] == []
    assert (third["node"], third["why"]) == ("gpu3", ["not started, see below"])
    assert third["open"] == ["not started: gpu1 failed"]


def test_a_later_playbook_of_the_run_knows_what_a_teardown_registers():
    reads = {"nvidia_driver_removed_reboot", *(row[0] for row in TASKS)}
    assert set(REMOVED_FACTS) == reads - {"nvidia_driver_result"}


@pytest.mark.parametrize("variable", [row[0] for row in TASKS])
def test_a_task_registers_each_variable_of_the_table(variable):
    tasks = "".join(path.read_text() for path in REPOSITORY.glob("roles/*/tasks/*.yml"))
    assert re.search(rf"^  register: {variable}$", tasks, re.M)


def objects(*kinds):
    return [{"kind": kind, "metadata": {"name": "x", "namespace": "gpu"}} for kind in kinds]


def test_what_was_removed_from_the_cluster_and_for_whom_something_is_kept():
    labels = {"nodes": {"gpu1": {"node": "n1", "changed": True}, "gpu2": {"changed": False}}}
    common = {
        "gpu_node_labels_result": labels,
        "gpu_kubernetes_objects_result": {"removed": objects("DaemonSet", "ConfigMap")},
    }
    node_row, rest = cluster_teardown_rows(["gpu1"], {"gpu1": common})
    assert (node_row["node"], node_row["kubernetes"]) == ("gpu1", "n1")
    assert node_row["changes"] == ["labels: remove those of this collection"]
    assert rest["changes"] == ["remove ConfigMap, DaemonSet in gpu"]
    kept = {**common, "gpu_verify_result": {"foreign_nodes": ["n7"]}}
    (_node, rest) = cluster_teardown_rows(["gpu1"], {"gpu1": kept})
    assert rest["changes"] == ["none"] and rest["why"][0].endswith("outside of this run: n7")
    (rest,) = cluster_teardown_rows(["gpu1"], {"gpu1": {}})
    assert rest["why"] == ["the cluster has none of this collection"]
