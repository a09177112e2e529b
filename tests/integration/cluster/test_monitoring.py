# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""S19: the playbooks with the tag monitoring, and the exporter's pods on real kubelets.

The exporter in the image is a stand-in that asks the real kubelet which pod has which GPU. Debian's
Prometheus scrapes the pods from this machine. The tests of this file are one story, in their order.
"""

from __future__ import annotations

import json

import pytest

from tests.integration.fleet.playbooks import play
from tests.integration.prometheus import pod_monitor_config, prometheus, query, wait_for
from tests.testbed import calls, cluster_images
from tests.testbed.fleet import chosen
from tests.testbed.paths import BUILD
from tests.unit.fixtures.plans import gpu_monitoring_plan

pytestmark = pytest.mark.full(why="Prometheus, and the exporter on each kubelet")

MONITORING = {"gpu_monitoring_enabled": True}
ONLY = ("--tags", "monitoring")
NAMESPACE, NAME = "kubegpu", "kubegpu-dcgm-exporter"
ELSEWHERE = "gpu-metrics"
OURS = "app.kubernetes.io/managed-by=kubegpu.nodes"
EXPORTERS = "app.kubernetes.io/name=dcgm-exporter"
NODES = {node.kubernetes: len(node.gpus) for node in chosen() if node.gpus}
HOSTS = [node.name for node in chosen() if node.gpus]
GPUS = sum(NODES.values())
# What the role makes, where the API server has no kinds of the Prometheus operator.
OBJECTS = {
    f"daemonset.apps/{NAME}", f"configmap/{NAME}-counters", "configmap/kubegpu-gpus-dashboard",
    f"serviceaccount/{NAME}",
}  # fmt: skip
TRAIN = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "train-0", "namespace": "team-a"},
    "spec": {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [{
            "name": "main", "image": cluster_images.BUSYBOX, "command": ["sleep", "3600"],
            "resources": {"limits": {"nvidia.com/gpu": "1"}},
        }],
        "tolerations": [{"operator": "Exists"}],
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def ready(cluster):
    """The cluster with its device plugin, and nothing of the monitoring."""
    for name in ("teardown", "site"):
        run = play(name, timeout=2700)
        assert run.status == 0, run.output
    assert ours(cluster) & OBJECTS == set()
    yield cluster
    namespaces = ("team-a", ELSEWHERE)
    cluster.kubectl("delete", "namespace", *namespaces, "--ignore-not-found", "--wait=true")
    play("teardown", timeout=2700)


@pytest.fixture(scope="module")
def train(ready):
    """A pod that holds a GPU."""
    ready.kubectl("create", "namespace", "team-a")
    ready.kubectl("apply", "-f", "-", stdin=json.dumps(TRAIN))
    ready.kubectl("-n", "team-a", "wait", "--for=condition=Ready", "pod/train-0", "--timeout=300s")
    return read(ready, "pod/train-0", "team-a")["spec"]["nodeName"]


def read(cluster, what, namespace=NAMESPACE):
    return json.loads(cluster.kubectl("-n", namespace, "get", what, "-o", "json"))


def ours(cluster):
    """Return all objects with our label, but for those of the device plugin."""
    kinds = "ds,cm,svc,sa,roles,rolebindings,clusterroles,clusterrolebindings,namespaces"
    found = cluster.kubectl("get", kinds, "-A", "-l", OURS, "-o", "name").split()
    return {one for one in found if "device-plugin" not in one and "namespace/" not in one}


def within(cluster, namespace):
    """Return our objects of the monitoring in a namespace."""
    labels = f"{OURS},{EXPORTERS}"
    return set(
        cluster.kubectl("-n", namespace, "get", "ds,cm,svc,sa", "-l", labels, "-o", "name").split()
    )


def exporters(cluster):
    """Return the address of each exporter, by its pod, and the pods' nodes."""
    items = json.loads(
        cluster.kubectl("-n", NAMESPACE, "get", "pods", "-l", EXPORTERS, "-o", "json")
    )["items"]
    addresses = {one["metadata"]["name"]: f"{one['status']['podIP']}:9400" for one in items}
    return addresses, {one["metadata"]["name"]: one["spec"]["nodeName"] for one in items}


def changed(run):
    return {host: stat["changed"] for host, stat in run.stats.items() if stat["changed"]}


def test_s19_plan_and_check_say_what_site_does_and_site_does_it_once(ready):
    planned = play(
        "plan", "-e", f"kubegpu_plan_file={BUILD}/plan-monitoring.json", variables=MONITORING
    )
    assert planned.status == 0, planned.output
    table = planned.screen.partition("Planned changes in Kubernetes")[2]
    assert "monitoring" in table and "DaemonSet" in table
    checked = play("site", *ONLY, "--check", variables=MONITORING)
    assert checked.status == 0, checked.output
    assert ours(ready) & OBJECTS == set(), "neither changes anything"
    done = play("site", *ONLY, variables=MONITORING)
    assert done.status == 0, done.output
    assert changed(checked) == changed(done) != {}
    assert ours(ready) == OBJECTS
    # The run has waited for them.
    status = read(ready, f"daemonset/{NAME}")["status"]
    assert (status["desiredNumberScheduled"], status["numberAvailable"]) == (len(NODES),) * 2
    assert set(exporters(ready)[1].values()) == set(NODES)
    calls.reset(chosen())
    again = play("site", *ONLY, variables=MONITORING)
    assert (again.status, changed(again)) == (0, {}), again.output
    # The API server is asked from here.
    assert calls.count(chosen()) == {node.name: 1 for node in chosen()}


def test_s19_verify_scrapes_each_exporter_through_the_api_server(ready):
    dest = BUILD / "verify-monitoring.json"
    run = play("verify", "-e", f"kubegpu_verify_file={dest}", variables=MONITORING)
    assert run.status == 0, run.output
    rows = {row["node"]: row for row in json.loads(dest.read_text()) if row["result"] != "no GPU"}
    assert {row["metrics"] for row in rows.values()} == {"ok"} and set(rows) == set(HOSTS)
    proofs = [
        entry["proof"]
        for row in rows.values()
        for entry in row["layers"]
        if entry["layer"] == "metrics"
    ]
    assert sorted(proof.rpartition(" has ")[2] for proof in proofs) == sorted(
        f"samples of {count} GPUs" for count in NODES.values()
    )


def test_s19_the_kubelet_tells_which_pod_has_a_gpu_and_prometheus_keeps_it(ready, train, tmp_path):
    pods, nodes = exporters(ready)
    # The API server here ends with a fault at any object of a custom kind (docs/monitoring.md).
    plan = gpu_monitoring_plan({"scrape": "pod_monitor"}, kinds=["PodMonitor"])
    with prometheus(tmp_path, pod_monitor_config(plan, pods, tmp_path)) as address:
        wait_for(lambda: query(address, f"sum(kubegpu:gpus:count) == {GPUS}"))
        counted = {
            one["metric"]["hostname"]: int(one["value"][1])
            for one in query(address, "kubegpu:gpus:count")
        }
        assert counted == NODES
        used = wait_for(lambda: query(address, 'DCGM_FI_DEV_FB_USED{pod!=""}'))
        (labels,) = [one["metric"] for one in used]
        assert (labels["namespace"], labels["pod"], labels["container"]) == (
            "team-a", "train-0", "main",
        )  # fmt: skip
        assert (labels["hostname"], labels["job"]) == (train, "kubegpu-dcgm")
        assert not [name for name in labels if name.startswith("exported_")]
        # All others are idle, and no pod of the exporter's is said to use them.
        assert len(query(address, 'DCGM_FI_DEV_FB_USED{pod=""}')) == GPUS - 1
        targets = {one["metric"]["pod"] for one in query(address, "up == 1")}
        assert targets == set(nodes)


def test_s19_what_is_no_longer_requested_goes(ready):
    fewer = {**MONITORING, "gpu_monitoring_dashboard": False}
    checked = play("site", *ONLY, "--check", variables=fewer)
    done = play("site", *ONLY, variables=fewer)
    assert (checked.status, done.status) == (0, 0), done.output
    assert changed(checked) == changed(done) != {}
    assert ours(ready) == OBJECTS - {"configmap/kubegpu-gpus-dashboard"}


def test_s19_in_another_namespace_it_leaves_the_one_before(ready, monkeypatch):
    # No line of the table is wrapped.
    monkeypatch.setenv("COLUMNS", "1000")
    moved = {**MONITORING, "gpu_monitoring_namespace": ELSEWHERE}
    planned = play("plan", "-e", f"kubegpu_plan_file={BUILD}/plan-monitoring.json", variables=moved)
    assert planned.status == 0, planned.output
    table = planned.screen.partition("Planned changes in Kubernetes")[2]
    assert f"remove those of this collection from namespace {NAMESPACE}" in table
    checked = play("site", *ONLY, "--check", variables=moved)
    assert within(ready, ELSEWHERE) == set() != within(ready, NAMESPACE)
    done = play("site", *ONLY, variables=moved)
    assert (checked.status, done.status) == (0, 0), done.output
    assert changed(checked) == changed(done) != {}
    assert within(ready, NAMESPACE) == set() and within(ready, ELSEWHERE) == OBJECTS
    status = read(ready, f"daemonset/{NAME}", ELSEWHERE)["status"]
    assert status["numberAvailable"] == len(NODES)
    again = play("site", *ONLY, variables=moved)
    assert (again.status, changed(again)) == (0, {}), again.output


def test_s19_teardown_leaves_nothing(ready):
    # It also finds the namespace that the variable no longer has.
    run = play("teardown", variables=MONITORING, timeout=2700)
    assert run.status == 0, run.output
    assert ours(ready) == set()
    assert NAMESPACE not in ready.kubectl("get", "namespaces", "-o", "name")
    assert ready.kubectl("get", "pods", "-A", "-l", EXPORTERS, "-o", "name").split() == []
    again = play("teardown", variables=MONITORING, timeout=2700)
    assert (again.status, changed(again)) == (0, {}), again.output
