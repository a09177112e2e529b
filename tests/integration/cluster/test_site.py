# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From bare nodes to a verified cluster in one run, nothing in the next, and back again.

The tests of this file are one story, in their order. The default tier tells it of one node with
GPUs, the full tier of three nodes, one of which has none.
"""

from __future__ import annotations

import json

import pytest

from tests.integration.cluster import rights
from tests.integration.fleet.playbooks import on_nodes, play
from tests.testbed import calls
from tests.testbed.fleet import chosen
from tests.testbed.paths import BUILD
from tests.tools.tiers import is_full
from tests.unit.fixtures.rights import lacking, rights_of

A10, L4 = "a10-0.pool.testbed.example", "l4-0.pool.testbed.example"
CPU = "cpu-0.pool.testbed.example"
NODES = chosen()
# Names in Kubernetes, and how many GPUs each has.
GPUS = {one.kubernetes: str(len(one.gpus)) for one in NODES if one.gpus}
HOSTS = [one.name for one in NODES if one.gpus]
GPU = "nvidia.com/gpu"
MARKER = "kubegpu.nodes/gpu"


@pytest.fixture(scope="module")
def bare(cluster):
    """The cluster as if we had never been there: in the default tier nobody has."""
    if is_full() or ours(cluster) != ({}, []):
        run = play("teardown")
        assert run.status == 0, run.output
    return cluster


@pytest.fixture(scope="module")
def token(bare):
    """The connection with a token of rbac.yml, which has no other rights."""
    rights.apply(bare)
    yield {"kubegpu_kube": {"kubeconfig": rights.kubeconfig(bare, BUILD / "token-kubeconfig")}}
    rights.delete(bare)


@pytest.fixture(scope="module")
def first(bare, token):
    run = play("site", variables=token)
    assert run.status == 0, run.output
    return run


def node(kube, name):
    return json.loads(kube.kubectl("get", "node", name, "-o", "json"))


def names():
    """The nodes' names in Kubernetes."""
    return [one.kubernetes for one in NODES]


def ours(kube):
    """What a cluster has of us: labels and taints by node, namespaces, classes, workloads."""
    labels = {
        name: sorted(
            label
            for label in node(kube, name)["metadata"]["labels"]
            if label.startswith(("kubegpu.nodes/", "nvidia.com/", "accelerator"))
        )
        for name in names()
    }
    objects = kube.kubectl(
        "get", "namespaces,runtimeclasses,daemonsets,configmaps,serviceaccounts,clusterroles", "-A",
        "-l", "app.kubernetes.io/managed-by=kubegpu.nodes", "-o", "name",
    ).split()  # fmt: skip
    return {name: found for name, found in labels.items() if found}, objects


def test_nothing_of_us_is_there(bare):
    assert ours(bare) == ({}, [])


@pytest.mark.full(why="what site does in the tests behind it; the stage controller has plans")
def test_the_plan_says_what_would_be_done_in_the_cluster(bare):
    run = play("plan", "-e", f"kubegpu_plan_file={BUILD}/plan.json")
    assert run.status == 0, run.output
    table = run.screen.partition("Planned changes in Kubernetes")[2]
    assert "labels: set" in table and "apply" in table and "DaemonSet" in table
    assert ours(bare) == ({}, [])


def test_one_run_ends_with_a_verified_cluster(bare, first):
    found = {name: node(bare, name) for name in names()}
    allocatable = {name: one["status"]["allocatable"].get(GPU) for name, one in found.items()}
    assert allocatable == {name: GPUS.get(name) for name in names()}
    labels = {name: one["metadata"]["labels"].get(MARKER) for name, one in found.items()}
    assert labels == {name: "nvidia" if name in GPUS else None for name in names()}
    table = first.screen.partition("Verification")[2]
    for host in HOSTS:
        (line,) = [one for one in table.splitlines() if one.startswith(host)]
        assert line.split() == [host, *["ok"] * 7]


def test_the_second_run_changes_nothing_within_the_budget(bare, first, token):
    calls.reset(chosen())
    run = play("site", variables=token)
    counted = calls.count(chosen())
    assert run.status == 0, run.output
    assert {host: stat["changed"] for host, stat in run.stats.items()} == {
        one.name: 0 for one in NODES
    }
    for one in NODES:
        assert 1 <= counted[one.name] <= (3 if one.gpus else 1)
    assert "Verification" not in run.output


def test_a_pod_on_each_node_computes_with_its_gpus(bare, first, token):
    """By the real scheduler, kubelet and containerd; the plugin and the sample are stand-ins."""
    dest = BUILD / "verify-all-is-well.json"
    dest.unlink(missing_ok=True)
    run = play("verify", "-e", f"kubegpu_verify_file={dest}", variables=token)
    assert run.status == 0, run.output
    rows = {row["node"]: row for row in json.loads(dest.read_text()) if row["result"] != "no GPU"}
    assert sorted(rows) == sorted(HOSTS)
    of_host = {one.name: one for one in NODES}
    for host, row in rows.items():
        columns = ("pci", "module", "nvml", "toolkit", "runtime", "allocatable", "pod")
        assert {row[name] for name in columns} == {"ok"}
        layers = {entry["layer"]: entry for entry in row["layers"]}
        pod, name = layers["pod"], of_host[host].kubernetes
        assert "Test PASSED" in pod["proof"] and any("Test PASSED" in line for line in pod["log"])
        assert layers["allocatable"]["proof"] == f"the node {name} offers {GPUS[name]} {GPU}"
    left = bare.kubectl(
        "get", "pods", "-A", "-l", "app.kubernetes.io/name=gpu-verify", "-o", "name"
    )
    assert left.split() == []
    assert all(stat["changed"] == 0 for stat in run.stats.values())


@pytest.mark.full(why="a refusal that needs a second node; test_labels.py has it for the role")
def test_hosts_of_two_clusters_stop_the_run(bare, first, tmp_path):
    other = tmp_path / "more.yml"
    kube = "kubegpu_kube: {kubeconfig: /elsewhere}"
    other.write_text(f"all:\n  hosts:\n    kube-l4:\n      {kube}\n")
    run = play("site", "-i", str(other), "--tags", "labels")
    assert run.status != 0
    assert "are not of one cluster: kubegpu_kube.kubeconfig is" in run.output
    assert "kube-l4" in run.messages()


@pytest.mark.full(why="teardown of one node of several")
def test_teardown_of_one_node_leaves_the_plugin_to_the_others(bare, first):
    # A label of somebody else's stays, with it the plugin, and with that what its container needs.
    bare.kubectl("label", "node", A10, f"{MARKER}-")
    bare.kubectl("label", "node", A10, f"{MARKER}=nvidia")
    brief = {"gpu_verify_wait_timeout": 10}
    run = play("teardown", "--limit", "kube-a10", variables=brief)
    assert run.status != 0 and f"kubectl label node {A10} {MARKER}-" in run.output, run.output
    assert on_nodes("command -v nvidia-container-runtime", "kube-a10")["kube-a10"]
    bare.kubectl("label", "node", A10, f"{MARKER}-")

    run = play("teardown", "--limit", "kube-a10")
    assert run.status == 0, run.output
    assert f"serves nodes outside of this run: {L4}" in run.output
    labels, objects = ours(bare)
    assert list(labels) == [L4]
    assert "daemonset.apps/kubegpu-nvidia-device-plugin" in objects
    assert node(bare, L4)["status"]["allocatable"][GPU] == "4"


def test_teardown_gives_the_cluster_back(bare, first, token):
    run = play("teardown", variables=token)
    assert run.status == 0, run.output
    assert ours(bare) == ({}, [])


def test_the_one_token_was_enough(bare, first, token):
    """Its rights were used by all runs above; test_rights.py shows that each of them is needed."""
    assert rights.refused(bare) == []
    used = rights.asked(bare)
    assert {("nodes", "patch"), ("pods", "create"), ("daemonsets", "create")} <= {
        (one.resource, one.verb) for one in used
    }
    assert lacking(used, rights_of()) == []


@pytest.mark.full(why="teardown where nothing is left; the fleet's teardown is repeated there")
def test_teardown_once_more_changes_nothing(bare, first):
    again = play("teardown")
    assert again.status == 0
    assert not any(stat["changed"] for stat in again.stats.values())
