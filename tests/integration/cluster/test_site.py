# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From bare nodes to a verified cluster in one run, nothing in the next, and back again.

The tests of this file are one story, in their order.
"""

from __future__ import annotations

import json

import pytest

from tests.integration.fleet.playbooks import play
from tests.testbed import calls
from tests.testbed.fleet import chosen
from tests.testbed.paths import BUILD

A10, L4, CPU = (
    "a10-0.pool.testbed.example",
    "l4-0.pool.testbed.example",
    "cpu-0.pool.testbed.example",
)
GPU = "nvidia.com/gpu"
MARKER = "kubegpu.nodes/gpu"


@pytest.fixture(scope="module")
def bare(cluster):
    """The cluster as if we had never been there."""
    run = play("teardown")
    assert run.status == 0, run.output
    return cluster


@pytest.fixture(scope="module")
def first(bare):
    run = play("site")
    assert run.status == 0, run.output
    return run


def node(kube, name):
    return json.loads(kube.kubectl("get", "node", name, "-o", "json"))


def ours(kube):
    """What a cluster has of us: labels and taints by node, namespaces, classes, workloads."""
    labels = {
        name: sorted(
            label
            for label in node(kube, name)["metadata"]["labels"]
            if label.startswith(("kubegpu.nodes/", "nvidia.com/", "accelerator"))
        )
        for name in (A10, L4, CPU)
    }
    objects = kube.kubectl(
        "get", "namespaces,runtimeclasses,daemonsets,configmaps,serviceaccounts,clusterroles", "-A",
        "-l", "app.kubernetes.io/managed-by=kubegpu.nodes", "-o", "name",
    ).split()  # fmt: skip
    return {name: found for name, found in labels.items() if found}, objects


def test_nothing_of_us_is_there(bare):
    assert ours(bare) == ({}, [])


def test_the_plan_says_what_would_be_done_in_the_cluster(bare):
    run = play("plan", "-e", f"kubegpu_plan_file={BUILD}/plan.json")
    assert run.status == 0, run.output
    table = run.output.partition("What site would do in Kubernetes, and why")[2]
    assert "labels: set" in table and "apply" in table and "DaemonSet" in table
    assert ours(bare) == ({}, [])


def test_one_run_ends_with_a_verified_cluster(bare, first):
    allocatable = {name: node(bare, name)["status"]["allocatable"] for name in (A10, L4, CPU)}
    assert {name: found.get(GPU) for name, found in allocatable.items()} == {
        A10: "2", L4: "4", CPU: None,
    }  # fmt: skip
    assert node(bare, L4)["metadata"]["labels"][MARKER] == "nvidia"
    assert MARKER not in node(bare, CPU)["metadata"]["labels"]
    table = first.output.partition("What was verified")[2]
    for host in ("kube-a10", "kube-l4"):
        (line,) = [one for one in table.splitlines() if one.startswith(host)]
        assert line.split() == [host, *["ok"] * 7]


def test_the_second_run_changes_nothing_within_the_budget(bare, first):
    calls.reset(chosen())
    run = play("site")
    counted = calls.count(chosen())
    assert run.status == 0, run.output
    assert {host: stat["changed"] for host, stat in run.stats.items()} == {
        "kube-a10": 0, "kube-l4": 0, "kube-cpu": 0,
    }  # fmt: skip
    assert counted["kube-cpu"] == 1
    assert 1 <= counted["kube-a10"] <= 3 and 1 <= counted["kube-l4"] <= 3
    assert "What was verified" not in run.output


def test_hosts_of_two_clusters_stop_the_run(bare, first, tmp_path):
    other = tmp_path / "more.yml"
    other.write_text("all:\n  hosts:\n    kube-l4:\n      kubegpu_kubeconfig: /elsewhere\n")
    run = play("site", "-i", str(other), "--tags", "labels")
    assert run.status != 0
    assert "are not of one cluster: kubegpu_kubeconfig is" in run.output
    assert "kube-l4" in run.messages()


def test_teardown_of_one_node_leaves_the_plugin_to_the_others(bare, first):
    run = play("teardown", "--limit", "kube-a10")
    assert run.status == 0, run.output
    assert f"serves nodes outside of this run: {L4}" in run.output
    labels, objects = ours(bare)
    assert list(labels) == [L4]
    assert "daemonset.apps/kubegpu-nvidia-device-plugin" in objects
    assert node(bare, L4)["status"]["allocatable"][GPU] == "4"


def test_teardown_gives_the_cluster_back(bare, first):
    run = play("teardown")
    assert run.status == 0, run.output
    assert ours(bare) == ({}, [])
    again = play("teardown")
    assert again.status == 0
    assert not any(stat["changed"] for stat in again.stats.values())
