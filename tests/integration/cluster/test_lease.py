# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Lease of a run that changes nodes, and kured's lock, on a real API server.

The nodes are made, and a DaemonSet with kured's annotation stands in for kured.
"""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.timestamp import timestamp
from ansible_collections.kubegpu.nodes.plugins.modules import gpu_node_maintenance
from tests.integration.cluster import rights
from tests.integration.cluster.workloads import BASE, NODES, admin, make_nodes, template
from tests.testbed import cluster_made
from tests.unit.module_process import predicted, run_module

A, B = "lease-a", "lease-b"
PATH = "/apis/coordination.k8s.io/v1/namespaces/kubegpu/leases/kubegpu-upgrade"
PARTS = ("base", "read", "nodes", "maintenance", "upgrade")
pytestmark = pytest.mark.full(why="decisions and conflicts of the Lease are in unit tests")


@pytest.fixture
def kube(api):
    cluster = admin(api)
    make_nodes(api, cluster, [A, B])
    yield cluster
    cluster_made.delete(api, [A, B])
    cluster.delete(PATH)


@pytest.fixture
def arguments(api):
    def make(state="cordoned", process="here 1 a", nodes=(A, B), **options):
        lease = {"name": "kubegpu-upgrade", **options.pop("lease", {})}
        return {
            "kubeconfig": str(api.kubeconfig), "nodes": {name: {} for name in nodes},
            "state": state, "run": "r1", "lease": lease, "_process": process,
            **options,
        }  # fmt: skip

    return make


def cordoned(kube):
    found = {item["metadata"]["name"]: item["spec"] for item in kube.list(NODES)}
    return [name for name in (A, B) if found[name].get("unschedulable")]


def codes(answer):
    return {name: [one["code"] for one in row["findings"]] for name, row in answer["nodes"].items()}


def test_one_run_at_a_time_changes_nodes(kube, arguments):
    """Also where the namespace is not there yet."""
    answer = predicted(gpu_node_maintenance.main, arguments())
    assert answer["ok"] and answer["lease_process"] == "" and cordoned(kube) == [A, B]
    first = kube.get(PATH)["spec"]
    assert first["holderIdentity"] == "r1: here 1 a" and first["leaseDurationSeconds"] == 3600
    time.sleep(1.1)
    again = run_module(gpu_node_maintenance.main, arguments())
    assert not again["changed"] and kube.get(PATH)["spec"]["renewTime"] > first["renewTime"]
    # The same run, started twice, changes nothing.
    other = predicted(gpu_node_maintenance.main, arguments("released", process="here 2 b"))
    assert other["failed"] and other["lease_process"] == "here 1 a"
    assert codes(other) == {A: ["lease_held"], B: ["lease_held"]} and cordoned(kube) == [A, B]
    # Its process has ended: the action plugin says so.
    given = arguments("released", process="here 2 b", _ended="here 1 a", lease={"done": True})
    answer = run_module(gpu_node_maintenance.main, given)
    assert answer["ok"] and cordoned(kube) == [] and kube.get(PATH) is None
    assert "taken over: its process has ended" in json.dumps(answer["warnings"])


def test_a_lease_that_was_not_renewed_is_free(kube, arguments):
    run_module(gpu_node_maintenance.main, arguments("released", process="there 9 z"))
    old = f"{timestamp(time.time() - 7200).rstrip('Z')}.000000Z"
    kube.patch(PATH, {"spec": {"renewTime": old}})
    answer = predicted(gpu_node_maintenance.main, arguments())
    assert answer["ok"] and cordoned(kube) == [A, B]
    assert "it was not renewed since" in json.dumps(answer["warnings"])


def test_a_node_that_kured_reboots_is_left_alone(kube, arguments):
    meta = {"metadata": {"unschedulable": False}, "created": "2026-11-01T08:00:00.123456789Z"}
    # The lock of A has no end, that of B had an hour.
    locks = [{"nodeID": A, "TTL": 0, **meta}, {"nodeID": B, "TTL": 3600 * 10**9, **meta}]
    lock = json.dumps({"maxOwners": 2, "locks": locks})
    pods = template("kured", 0)
    kube.create("/apis/apps/v1/namespaces/default/daemonsets", {
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "kured", "annotations": {"weave.works/kured-node-lock": lock}},
        "spec": {"selector": {"matchLabels": {"app": "kured"}}, "template": pods},
    })  # fmt: skip
    try:
        answer = predicted(gpu_node_maintenance.main, arguments("drained"))
    finally:
        kube.delete("/apis/apps/v1/namespaces/default/daemonsets/kured")
        for item in kube.list(f"{BASE}/pods"):
            kube.delete(f"{BASE}/pods/{item['metadata']['name']}", grace=0)
    assert codes(answer) == {A: ["held_by_kured"], B: []} and cordoned(kube) == [B]
    assert "DaemonSet default/kured" in answer["nodes"][A]["findings"][0]["evidence"]


def test_the_shipped_rights_are_enough_and_each_is_needed(api, kube, arguments, tmp_path):
    rights.apply(api, *PARTS)
    given = {"kubeconfig": rights.kubeconfig(api, tmp_path / "account")}
    try:
        for lease in ({}, {"done": True}):
            answer = run_module(gpu_node_maintenance.main, {**arguments(lease=lease), **given})
            assert answer["ok"], answer
        assert kube.get(PATH) is None
        # Each call needs one more right than the one before.
        for verb in ("get", "create", "patch", "delete"):
            less = rights.less("upgrade", "Role", "leases", verb)
            api.kubectl("apply", "-f", "-", stdin=json.dumps(less))
            deadline = time.monotonic() + 60
            lease = {"done": verb == "delete"}
            while not (
                answer := run_module(gpu_node_maintenance.main, {**arguments(lease=lease), **given})
            ).get("failed"):
                # The API server learns of a new role a bit later.
                if verb == "create":
                    kube.delete(PATH)
                assert time.monotonic() < deadline
            assert f"The right '{verb}' on 'leases'" in answer["msg"], answer
            rights.apply(api, "upgrade")
    finally:
        rights.delete(api)
