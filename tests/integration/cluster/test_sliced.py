# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One job in slices: two runners at the same time, each with one half of the inventory.

The tests with the cluster are one story, in their order.
"""

from __future__ import annotations

import json
import re
import threading
import time

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.manifests import (
    manifests,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.options import (
    read_request,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import Cluster, Connection
from tests.integration.cluster import slices
from tests.integration.fleet.playbooks import play
from tests.testbed import cluster_made
from tests.testbed.paths import INVENTORY

HALVES = (("kube-a10", "kube-cpu"), ("kube-l4",))
GPUS = {"a10-0.pool.testbed.example": "2", "l4-0.pool.testbed.example": "4"}
PLUGIN = "daemonset/kubegpu-nvidia-device-plugin"
KINDS = (
    "namespaces,runtimeclasses,daemonsets,configmaps,serviceaccounts,"
    "clusterroles,clusterrolebindings,roles,rolebindings,secrets"
)
#: The tests of one job in two halves, on the three nodes of the cluster.
SLICED = pytest.mark.full(why="site and teardown of test_site.py, sliced over three nodes")
#: What the API server makes up for each object anew.
MADE_UP = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink")


def items(kube, *arguments):
    return json.loads(kube.kubectl("get", *arguments, "-o", "json"))["items"]


def fields_of_ours(item):
    """What the API server says that we applied, and how often it saw another apply of ours."""
    return [
        {name: entry.get(name) for name in ("operation", "apiVersion", "fieldsV1")}
        for entry in item["metadata"].get("managedFields", [])
        if entry["manager"] == "kubegpu.nodes"
    ]


def stays(item):
    """An object without what differs from one making to the next."""
    metadata = {key: value for key, value in item["metadata"].items() if key not in MADE_UP}
    rest = {
        key: value for key, value in item.items() if key not in ("metadata", "status", "secrets")
    }
    return {**rest, "metadata": metadata, "ours": fields_of_ours(item)}


def state(kube):
    """All that a cluster has of us; with the generation, which counts changes of a spec."""
    nodes, objects, pods = {}, {}, {}
    for item in items(kube, "nodes"):
        metadata = item["metadata"]
        nodes[metadata["name"]] = {
            "labels": metadata["labels"],
            "annotations": {
                name: value
                for name, value in metadata["annotations"].items()
                if name.startswith("kubegpu.nodes/")
            },
            "taints": item["spec"].get("taints", []),
            "ours": fields_of_ours(item),
            "gpus": item["status"]["allocatable"].get("nvidia.com/gpu"),
        }
    for item in items(kube, KINDS, "-A", "-l", "app.kubernetes.io/managed-by=kubegpu.nodes"):
        objects[f"{item['kind']} {item['metadata']['name']}"] = stays(item)
    for item in items(kube, "pods", "-n", "kubegpu"):
        spec = item["spec"]
        pods.setdefault(spec["nodeName"], []).append(
            (
                spec.get("runtimeClassName"),
                [one["image"] for one in spec["containers"]],
                [one["restartCount"] for one in item["status"]["containerStatuses"]],
            )
        )
    return {"nodes": nodes, "objects": objects, "pods": pods, "made": made_pods(kube)}


def made_pods(kube):
    """How often a pod of a DaemonSet was made, and how often one was taken away."""
    found = {"SuccessfulCreate": 0, "SuccessfulDelete": 0}
    for event in items(kube, "events", "-n", "kubegpu"):
        if event["involvedObject"]["kind"] == "DaemonSet" and event["reason"] in found:
            found[event["reason"]] += event.get("count") or 1
    return found


def settled(kube):
    """Return the state, when the node's offer has come through."""
    deadline = time.monotonic() + 300
    while True:
        found = state(kube)
        offered = {name: one["gpus"] for name, one in found["nodes"].items() if one["gpus"]}
        if offered == GPUS or time.monotonic() > deadline:
            return found
        time.sleep(1)


@pytest.fixture(scope="module")
def whole(cluster):
    """The state after one run over all hosts; the cluster is bare again then."""
    bare = play("teardown")
    assert bare.status == 0, bare.output
    run = play("site")
    assert run.status == 0, run.output
    found = settled(cluster)
    again = play("teardown")
    assert again.status == 0, again.output
    return found


@pytest.fixture(scope="module")
def halves(cluster, tmp_path_factory):
    """A folder for each runner, with an inventory that holds its half of the hosts only."""
    folder = tmp_path_factory.mktemp("slices")
    return [
        slices.prepare(folder / str(number), slices.part(INVENTORY, hosts))
        for number, hosts in enumerate(HALVES)
    ]


@pytest.fixture(scope="module")
def sliced(whole, halves):
    """Both halves of the same job, at the same time, on a bare cluster."""
    runs = slices.run(halves, "kubegpu.nodes.site", "first")
    assert [run.status for run in runs] == [0, 0], "\n".join(run.output for run in runs)
    return runs


@SLICED
def test_each_slice_sees_its_own_hosts_only(sliced):
    seen = [{host for host in run.stats["ok"] if host != "localhost"} for run in sliced]
    assert seen == [set(hosts) for hosts in HALVES]


@SLICED
def test_slices_end_as_one_run_over_all_hosts_does(cluster, whole, sliced):
    found = settled(cluster)
    assert found["nodes"] == whole["nodes"]
    assert found["objects"] == whole["objects"]
    assert found["pods"] == whole["pods"]
    assert {name: one["gpus"] for name, one in found["nodes"].items() if one["gpus"]} == GPUS


@SLICED
def test_nothing_was_applied_twice_with_other_content(cluster, whole, sliced):
    found = state(cluster)
    generations = {
        name: one["metadata"]["generation"]
        for name, one in found["objects"].items()
        if name.startswith("DaemonSet ")
    }
    assert generations == {"DaemonSet kubegpu-nvidia-device-plugin": 1}
    # Nor was a pod made that another slice's label had already brought.
    assert found["made"] == whole["made"] == {"SuccessfulCreate": 2, "SuccessfulDelete": 0}


@SLICED
def test_the_slices_once_more_change_nothing(cluster, sliced, halves):
    before = state(cluster)
    runs = slices.run(halves, "kubegpu.nodes.site", "again")
    assert [run.status for run in runs] == [0, 0], "\n".join(run.output for run in runs)
    assert [run.changed for run in runs] == [0, 0], "\n".join(run.output for run in runs)
    assert state(cluster) == before


@SLICED
def test_a_plugin_that_is_changed_meanwhile_is_told(cluster, sliced):
    """As by a slice whose hosts have other options; here it is kubectl, at the right moment."""
    path = "jsonpath={.metadata.generation}"
    begun, seen = cluster.kubectl("-n", "kubegpu", "get", PLUGIN, "-o", path), []

    def other():
        until = time.monotonic() + 900
        while time.monotonic() < until:
            if cluster.kubectl("-n", "kubegpu", "get", PLUGIN, "-o", path) != begun:
                patch = {"spec": {"template": {"metadata": {"annotations": {"by": "another"}}}}}
                cluster.kubectl("-n", "kubegpu", "patch", PLUGIN, "-p", json.dumps(patch))
                seen.append(True)
                return
            time.sleep(0.2)

    thread = threading.Thread(target=other)
    thread.start()
    run = play(
        "site", "--limit", "kube-l4", "--tags", "device_plugin",
        variables={
            "nvidia_device_plugin_pods": {"annotations": {"by": "this"}},
            # Long enough: the other one is there at once.
            "kubegpu_apply": {"wait_timeout": 20},
        },
    )  # fmt: skip
    thread.join()
    assert seen and run.status != 0
    assert "was changed while this run waited for it" in run.messages(), run.output
    assert "nvidia_device_plugin_* for all of its hosts alike" in run.messages()


@SLICED
def test_a_slice_that_comes_when_the_plugin_is_there_makes_each_pod_once(cluster, sliced, halves):
    """Its runtime is restarted, then its label brings the pod, which needs no other one."""
    (gone,) = slices.run(halves[1:], "kubegpu.nodes.teardown", "leave")
    assert gone.status == 0, gone.output
    before = made_pods(cluster)
    (run,) = slices.run(halves[1:], "kubegpu.nodes.site", "come")
    assert run.status == 0, run.output
    after = made_pods(cluster)
    assert after["SuccessfulCreate"] == before["SuccessfulCreate"] + 1
    assert after["SuccessfulDelete"] == before["SuccessfulDelete"]


@SLICED
def test_slices_of_teardown_give_the_cluster_back(cluster, sliced, halves):
    runs = slices.run(halves, "kubegpu.nodes.teardown", "teardown")
    assert [run.status for run in runs] == [0, 0], "\n".join(run.output for run in runs)
    found = state(cluster)
    assert found["objects"] == {} and found["pods"] == {}
    assert [one["ours"] for one in found["nodes"].values()] == [[]] * len(found["nodes"])
    left = {name for one in found["nodes"].values() for name in one["labels"]}
    assert not [name for name in left if name.startswith("kubegpu.nodes/")]


PATHS = {
    "Namespace": "/api/v1/namespaces/{name}",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses/{name}",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts/{name}",
    "ConfigMap": "/api/v1/namespaces/{namespace}/configmaps/{name}",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{name}",
    "DaemonSet": "/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}",
}


def test_eight_that_apply_the_same_objects_at_once_are_all_served(api):
    kube = Cluster.connect(Connection(kubeconfig=str(api.kubeconfig)))
    sharing = {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}
    requests = {"namespace": "at-once", "configs": {"shared": {"sharing": sharing}}}
    objects = manifests(read_request(requests))

    def where(item):
        return PATHS[item["kind"]].format(**{"namespace": "", **item["metadata"]})

    try:
        for item in objects:
            done = kube.each(lambda _number, one=item: kube.apply(where(one), one), range(8), 8)
            assert len({answer["metadata"]["uid"] for answer in done}) == 1
            assert {answer["metadata"].get("generation", 1) for answer in done} == {1}
    finally:
        for item in reversed(objects):
            kube.delete(where(item))
    assert {item["kind"] for item in objects} == set(PATHS)


COUNT = 200
LABEL = """
- hosts: all
  gather_facts: false
  tasks:
    - kubegpu.nodes.node_gpu_label:
        kubeconfig: "{{ kubeconfig }}"
        nodes: "{{ request }}"
      vars:
        ansible_python_interpreter: "{{ ansible_playbook_python }}"
"""


def patches(api):
    """How many changes of nodes the API server counted."""
    found = re.findall(
        r'^apiserver_request_total\{([^}]*resource="nodes"[^}]*)\} (\d+)',
        api.kubectl("get", "--raw", "/metrics"),
        re.MULTILINE,
    )
    return sum(
        int(count) for labels, count in found if re.search('verb="(PATCH|APPLY|PUT)"', labels)
    )


@pytest.mark.full(why="one node_gpu_label after another is test_labels.py's; here two at once")
def test_two_runs_label_many_nodes_and_each_node_is_patched_once(api, tmp_path):
    names = cluster_made.create_many(api, COUNT, "sliced")
    request = {
        name: {"labels": {"kubegpu.nodes/gpu": "nvidia", "kubegpu.nodes/gpu.count": str(number)}}
        for number, name in enumerate(names)
    }
    folders = []
    inventory = {"all": {"hosts": {"localhost": {"ansible_connection": "local"}}}}
    for number in range(2):
        mine = {name: request[name] for name in names[number::2]}
        variables = {"request": mine, "kubeconfig": str(api.kubeconfig)}
        folder = slices.prepare(tmp_path / str(number), inventory, variables)
        (folder / "project" / "label.yml").write_text(LABEL)
        folders.append(folder)
    try:
        before = patches(api)
        runs = slices.run(folders, "label.yml", "first")
        assert [run.status for run in runs] == [0, 0], "\n".join(run.output for run in runs)
        assert patches(api) - before == COUNT
        there = {one["metadata"]["name"]: one["metadata"]["labels"] for one in items(api, "nodes")}
        for name, wanted in request.items():
            assert wanted["labels"].items() <= there[name].items()
        again = slices.run(folders, "label.yml", "again")
        assert [(run.status, run.changed) for run in again] == [(0, 0), (0, 0)]
        assert patches(api) - before == COUNT
    finally:
        cluster_made.delete(api, names)
