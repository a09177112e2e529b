# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.objects import identity
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.data import POLICY_KIND
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.installed import dra_objects
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.names import (
    CONTROLLER_NAME,
    PLUGIN_NAME,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.plan import plan, teardown
from tests.unit.fixtures.cluster_objects import daemonset, pod
from tests.unit.fixtures.cluster_objects import node as node_object
from tests.unit.fixtures.dra_cluster import MARKER, RELEASES, by_plural, release, seen, standin
from tests.unit.fixtures.node_facts import P4, node
from tests.unit.plugins.module_utils._dra.test_node_preconditions import GB200, READY

HOSTS = {"gpu1": {"gpu_node": node(**READY)}, "web": {"gpu_node": node(gpus=[])}}
CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"


def rack():
    imex = {"driver__packages": {"nvidia-imex": "580"},
            "driver__services": {"nvidia-imex": "masked"}}  # fmt: skip
    return {"gpu1": {"gpu_node": node(gpus=[GB200], **READY, **imex)}}


def kinds(objects):
    return {one["kind"] for one in objects}


def installed(made, *, domains=()):
    """A cluster that has what a plan applied."""
    objects = by_plural(made["objects"][made["objects"][0]["kind"] == "Namespace" :])
    cluster = standin(**{"computedomains": list(domains), **objects})
    for one in objects.get("customresourcedefinitions", ()):
        cluster.groups[CRD_PATH + one["metadata"]["name"]] = one
    return cluster


@pytest.mark.parametrize("name", [name for name in RELEASES if name != "1.20"])
def test_each_release_gets_objects_of_the_newest_version(name):
    made = plan({}, HOSTS, release(name))
    assert made["action"] == "apply" and made["refusals"] == []
    assert made["api"] == RELEASES[name][1][0] and not made["compute_domains"]
    versions = {one["apiVersion"] for one in made["objects"] if one["kind"] == "DeviceClass"}
    assert versions == {f"resource.k8s.io/{made['api']}"}
    assert made["expected"]["gpu1"]["resources"] == {"nvidia.com/gpu": 1}
    assert list(made["expected"]) == ["gpu1"]


def test_on_1_20_nothing_is_applied_and_it_is_said_what_is_needed():
    made = plan({}, HOSTS, release("1.20"))
    assert made["action"] == "refuse"
    assert (made["objects"], made["replaced"], made["absent"]) == ([], [], [])
    assert made["text"].startswith("DRA: not possible.\n\nKubernetes: v1.20.2\nSeen: /version of")
    assert "resource.k8s.io: not served" in made["text"]
    assert "Upgrade Kubernetes to 1.34.2 or later" in made["text"]
    # The nodes are reported all the same.
    assert {one["node"] for one in made["preconditions"]} == {None, "gpu1"}
    assert {one["verdict"] for one in made["preconditions"] if one["node"]} == {"met"}


def test_every_missing_precondition_is_a_refusal_and_every_advice_a_warning():
    facts = node(**{**READY, "driver__loaded": None, "kubelet": None})
    made = plan({}, {"gpu1": {"gpu_node": facts}}, release("1.33"))
    missing = [one for one in made["preconditions"] if one["verdict"] == "missing"]
    assert [one["host"] for one in made["refusals"]] == [one["node"] or "" for one in missing]
    assert sorted(one["name"] for one in missing) == ["driver", "kubelet's folder"]
    (warning,) = made["warnings"]
    assert warning.startswith("Kubernetes: v1.33.1") and "NVIDIA documents" in warning
    assert "gpu1: driver: none" in made["text"]


def test_options_that_are_wrong_or_differ():
    made = plan({"version": "latest"}, HOSTS, release("1.34"))
    assert made["action"] == "refuse" and "pins no version" in made["text"]
    hosts = {name: {**host, "options": {"version": name}} for name, host in HOSTS.items()}
    made = plan({}, hosts, release("1.34"))
    assert "nvidia_dra_driver_version differs between gpu1 and web" in made["text"]
    assert made["objects"] == []


def test_our_device_plugin_goes_first():
    cluster = release("1.34", daemonsets=[daemonset()])
    assert plan({}, HOSTS, cluster)["action"] == "refuse"
    made = plan({"device_plugin": "remove"}, HOSTS, cluster)
    assert made["action"] == "apply"
    names = [identity(one) for one in made["replaced"]]
    assert ("DaemonSet", "kubegpu", "kubegpu-nvidia-device-plugin") in names
    assert not kinds(made["replaced"]) & {"Namespace", "RuntimeClass"}
    assert plan({}, HOSTS, release("1.34"))["replaced"] == []


def test_the_device_plugin_is_not_removed_under_a_pod():
    nodes = [node_object("n1", gpus=1, labels=MARKER)]
    cluster = release("1.34", daemonsets=[daemonset()], nodes=nodes, pods=[pod("train", gpus=1)])
    made = plan({"device_plugin": "remove"}, HOSTS, cluster)
    assert made["action"] == "refuse" and "default/train" in made["text"]
    assert made["replaced"] == []


def test_compute_domains_alone_run_beside_any_device_plugin():
    hosts, options = rack(), {"gpus": False}
    foreign = daemonset("nvdp", "kube-system", labels={})
    for part in (daemonset(), foreign):
        made = plan(options, hosts, release("1.34", daemonsets=[part]))
        assert made["action"] == "apply" and made["compute_domains"]
        assert made["replaced"] == [] and made["expected"] == {}
        assert "Deployment" in kinds(made["objects"])


def test_domains_come_with_a_rack_and_stay_in_a_run_without_it():
    made = plan({}, rack(), release("1.34"))
    assert made["compute_domains"] and "compute domains: nodes of a GB200 NVL72" in made["reasons"]
    later = plan({}, HOSTS, seen(installed(made)))
    assert (
        later["compute_domains"] and "compute domains: they are there already" in later["reasons"]
    )
    gone = plan({"compute_domains": "false"}, HOSTS, seen(installed(made)))
    assert ("Deployment", "kubegpu", CONTROLLER_NAME) in [identity(one) for one in gone["absent"]]
    assert ("DaemonSet", "kubegpu", PLUGIN_NAME) not in [identity(one) for one in gone["absent"]]


def test_the_second_plan_applies_all_but_the_policy_and_removes_nothing():
    first = plan({}, HOSTS, release("1.34"))
    second = plan({}, HOSTS, seen(installed(first)))
    assert second["objects"] == [one for one in first["objects"] if one["kind"] != POLICY_KIND]
    assert second["absent"] == second["replaced"] == second["refusals"] == []


def test_a_policy_into_which_the_cluster_wrote_its_status_is_not_applied_again():
    first = plan({}, HOSTS, release("1.34"))
    later = copy.deepcopy(first)
    (policy,) = [one for one in later["objects"] if one["kind"] == POLICY_KIND]
    # What a server 1.36 adds.
    policy["spec"]["matchConstraints"]["matchPolicy"] = "Equivalent"
    policy["spec"]["matchConstraints"]["resourceRules"][0]["scope"] = "*"
    policy["status"] = {"observedGeneration": 1}
    assert POLICY_KIND not in kinds(plan({}, HOSTS, seen(installed(later)))["objects"])


@pytest.mark.parametrize(
    "change",
    [
        lambda policy: policy["spec"].update(failurePolicy="Ignore"),
        lambda policy: policy["spec"]["validations"].pop(),
        lambda policy: policy["metadata"]["labels"].update({"app.kubernetes.io/name": "other"}),
        lambda policy: policy.pop("spec"),
    ],
)
def test_a_policy_that_differs_is_applied(change):
    first = plan({}, HOSTS, release("1.34"))
    later = copy.deepcopy(first)
    change(*[one for one in later["objects"] if one["kind"] == POLICY_KIND])
    assert plan({}, HOSTS, seen(installed(later)))["objects"] == first["objects"]


def test_teardown_removes_all_but_the_namespace():
    made = plan({}, rack(), release("1.34", namespaces=()))
    result = teardown(dra_objects(installed(made), "kubegpu", "v1"))
    left = {identity(one) for one in made["objects"]} - {identity(one) for one in result["absent"]}
    assert left == {("Namespace", "", "kubegpu")}
    assert result["absent"][0]["kind"] == "Deployment"
    assert result["action"] == "apply" and result["warnings"] == []


def test_compute_domains_of_users_keep_their_definition():
    made = plan({}, rack(), release("1.34"))
    domain = {"metadata": {"name": "job", "namespace": "team"}}
    result = teardown(dra_objects(installed(made, domains=[domain]), "kubegpu", "v1"))
    assert not kinds(result["absent"]) & {"CustomResourceDefinition", "ComputeDomain"}
    assert "because the cluster has team/job" in result["warnings"][0]


def test_definitions_and_namespaces_of_others_are_left_as_they_are():
    made = plan({}, rack(), release("1.34"))
    cluster = installed(made)
    for path, one in cluster.groups.items():
        if path.startswith(CRD_PATH):
            one["metadata"]["labels"] = {}
    again = plan({}, rack(), seen(cluster))
    assert not kinds(again["objects"]) & {"CustomResourceDefinition", "Namespace"}
    assert sum("was there before" in reason for reason in again["reasons"]) == 3
    absent = teardown(dra_objects(cluster, "kubegpu", "v1"))["absent"]
    assert "CustomResourceDefinition" not in kinds(absent)


def foreign(kind, name, namespace=None):
    place = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": "v1", "kind": kind,
        "metadata": {"name": name, **place, "labels": {"app.kubernetes.io/managed-by": "Helm"}},
    }  # fmt: skip


def with_foreign(*others):
    """A cluster that has nothing of ours, and these objects of others."""
    cluster = release("1.34")
    return {**cluster, "dra_objects": [*cluster["dra_objects"], *others]}


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (foreign("DeviceClass", "gpu.nvidia.com"), "Remove it, or set {}beside_others: true."),
        (foreign("DaemonSet", PLUGIN_NAME, "kubegpu"),
         "Remove it, or set {}namespace to another namespace."),
        (foreign("ClusterRole", PLUGIN_NAME), "Remove it."),
    ],
)  # fmt: skip
def test_an_object_of_others_with_one_of_our_names_is_refused_by_name(other, said):
    made = plan({}, HOSTS, with_foreign(other))
    kind, namespace, name = identity(other)
    place = f"{namespace}/{name}" if namespace else name
    assert made["action"] == "refuse" and made["objects"] == []
    assert made["refusals"] == [
        {
            "host": "",
            "cause": f"the cluster has a {kind} {place} that this collection did not make",
            "evidence": "it has no label app.kubernetes.io/managed-by=kubegpu.nodes",
            "next_step": said.format("nvidia_dra_driver_"),
        }
    ]
    assert place in made["text"]


def test_a_device_class_of_others_is_left_as_it_is_beside_them():
    other = foreign("DeviceClass", "gpu.nvidia.com")
    made = plan({"beside_others": True}, HOSTS, with_foreign(other))
    assert made["action"] == "apply" and made["absent"] == []
    classes = [one["metadata"]["name"] for one in made["objects"] if one["kind"] == "DeviceClass"]
    assert classes == ["mig.nvidia.com"]
    assert "DeviceClass gpu.nvidia.com was there before and is left as it is" in made["reasons"]
    # Nothing but a class is shared.
    role = foreign("ClusterRole", PLUGIN_NAME)
    assert plan({"beside_others": True}, HOSTS, with_foreign(role))["action"] == "refuse"


def test_teardown_leaves_what_others_made_and_says_so():
    made = plan({}, HOSTS, release("1.34"))
    ours = dra_objects(installed(made), "kubegpu", "v1")
    others = [foreign("DeviceClass", "compute-domain-daemon.nvidia.com"),
              foreign("ClusterRole", CONTROLLER_NAME)]  # fmt: skip
    result = teardown([*ours, *others])
    assert result["absent"] == teardown(ours)["absent"] != []
    assert result["warnings"] == [
        "This collection did not make and does not remove: DeviceClass "
        f"compute-domain-daemon.nvidia.com, ClusterRole {CONTROLLER_NAME}"
    ]


def test_a_controller_of_others_brings_no_compute_domains():
    other = foreign("ClusterRole", CONTROLLER_NAME)
    made = plan({}, HOSTS, with_foreign(other))
    assert made["action"] == "apply" and not made["compute_domains"]


def test_a_passed_through_gpu_is_not_expected():
    gpus = [P4, {**P4, "kernel_driver": "vfio-pci"}]
    made = plan({}, {"gpu1": {"gpu_node": node(gpus=gpus, **READY)}}, release("1.34"))
    assert made["expected"]["gpu1"]["resources"] == {"nvidia.com/gpu": 1}
