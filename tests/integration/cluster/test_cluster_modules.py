# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""gpu_cluster_info and gpu_test_pods against a real API server; its nodes are made objects."""

from __future__ import annotations

import json

import pytest
import yaml

from ansible_collections.kubegpu.nodes.plugins.modules import gpu_cluster_info, gpu_test_pods
from tests.integration.cluster import rights
from tests.integration.cluster.workloads import Pods, admin, wait_until
from tests.testbed import cluster_made
from tests.unit.fixtures.cluster_objects import PLUGIN_LABELS, daemonset
from tests.unit.module_process import run_module

EMPTY, FULL, FREE = "verify-empty", "verify-full", "verify-free"
GPU = "nvidia.com/gpu"
PARTS = ("base", "read", "pods", "monitoring")
# This server has no group resource.k8s.io. That a right on it that is missing is named, is shown in
# tests/unit/plugins/module_utils/test__cluster_dra.py.
NEEDED = [
    ("base", "ClusterRole", "nodes", "list"),
    ("read", "ClusterRole", "pods", "list"),
    ("read", "ClusterRole", "events", "list"),
    ("read", "ClusterRole", "daemonsets", "list"),
    ("read", "ClusterRole", "deployments", "list"),
    ("read", "Role", "namespaces", "get"),
    ("read", "Role", "pods/log", "get"),
    ("pods", "Role", "pods", "create"),
    ("pods", "Role", "pods", "delete"),
    ("monitoring", "Role", "pods/proxy", "get"),
]


def node(name, gpus):
    made_node = cluster_made.node(name)
    counts = {GPU: str(gpus), "cpu": "4"}
    made_node["status"].update(capacity=counts, allocatable=counts)
    return made_node


def pod(name, where, **limits):
    container = {"name": "c", "image": "x", "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "kubegpu", "labels": {"app.kubernetes.io/name": "plugin"},
        },
        "spec": {"nodeName": where, "containers": [container]},
    }  # fmt: skip


def apply(plane, *objects):
    plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))


@pytest.fixture(scope="module")
def made(api):
    """Nodes without GPUs that should have some, with none free, and with two free."""
    cluster_made.create(api, [node(EMPTY, 0), node(FULL, 2), node(FREE, 2)])
    rights.apply(api, *PARTS)
    plugin = {"apiVersion": "apps/v1", "kind": "DaemonSet", **daemonset()}
    del plugin["status"]
    plugin["spec"]["template"]["metadata"]["labels"] = {"app.kubernetes.io/name": "plugin"}
    plugin["spec"]["template"]["spec"]["nodeSelector"] = {"nowhere": "yes"}
    apply(api, plugin, pod("plugin-1", EMPTY), pod("train", FULL, **{GPU: "2"}))
    yield api
    cluster_made.delete(api, [EMPTY, FULL, FREE])
    # No kubelet ends them, and the namespace would wait for ever for that.
    api.kubectl("-n", "kubegpu", "delete", "pods", "--all", "--force", "--grace-period=0")
    rights.delete(api)


@pytest.fixture(scope="module")
def kubeconfig(made, tmp_path_factory):
    """A kubeconfig with a token of the account, which has the rights to verify."""
    return rights.kubeconfig(made, tmp_path_factory.mktemp("user") / "verify-user")


def look(kubeconfig, **options):
    expected = {EMPTY: {"resources": {GPU: 4}}}
    return run_module(
        gpu_cluster_info.main, {"kubeconfig": kubeconfig, "expected": expected, **options}
    )


def run_pods(kubeconfig, *names, **options):
    nodes = {name: {"resources": {GPU: 2}} for name in names}
    given = {"kubeconfig": kubeconfig, "nodes": nodes, "timeout": 1, **options}
    return run_module(gpu_test_pods.main, given)


@pytest.fixture
def exporter(made):
    """An exporter of this collection; no kubelet runs it, so that it serves no page."""
    labels = {**PLUGIN_LABELS, "app.kubernetes.io/name": "dcgm-exporter"}
    where = {"nodeSelector": {"kubernetes.io/hostname": EMPTY}}
    one = {
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        **daemonset(
            "kubegpu-dcgm-exporter", image="nvcr.io/nvidia/k8s/dcgm-exporter:4.6.1-4.8.4",
            labels=labels, container_name="dcgm-exporter", selector=labels, **where,
        ),
    }  # fmt: skip
    del one["status"]
    Pods(admin(made)).make("exporter-1", EMPTY, namespace="kubegpu", labels=labels, gpus=0)
    apply(made, one)
    yield
    made.kubectl("-n", "kubegpu", "delete", "daemonset", "kubegpu-dcgm-exporter")
    made.kubectl("-n", "kubegpu", "delete", "pod", "-l", "app.kubernetes.io/name=dcgm-exporter",
                 "--force", "--grace-period=0")  # fmt: skip


def left(plane):
    return plane.kubectl("get", "pods", "-n", "kubegpu", "-l",
                         "app.kubernetes.io/name=gpu-verify", "-o", "name").split()  # fmt: skip


def test_who_has_the_gpus(made, kubeconfig):
    answer = look(kubeconfig, expected={})
    resource = answer["nodes"][FULL]["resources"][GPU]
    assert (resource["allocatable"], resource["allocated"], resource["free"]) == (2, 2, 0)
    assert [held["name"] for held in resource["pods"]] == ["train"]
    assert answer["changed"] is False and answer["requests"]["list"] <= 6
    assert [(part["name"], part["managed"]) for part in answer["parts"]] == [
        ("kubegpu-nvidia-device-plugin", True)
    ]


def test_a_node_that_offers_none_is_told_with_its_plugins_pod(made, kubeconfig):
    (missing,) = look(kubeconfig, wait_timeout=4)["missing"]
    assert (missing["node"], missing["pod"]) == (EMPTY, "kubegpu/plugin-1")
    assert missing["expected"] == {GPU: 4} and missing["allocatable"] == {GPU: 0}
    assert missing["cause"] and missing["next_step"]


def test_what_is_there_of_our_plugin_and_no_content_of_secrets(made):
    admin = str(made.kubeconfig)
    made.kubectl(
        "-n", "kubegpu", "create", "secret", "generic", "login", "--from-literal=a=hunter2"
    )
    whole = look(admin, plugin_namespace="kubegpu")["plugin_objects"]
    assert [(one["apiVersion"], one["kind"], one["metadata"]["name"]) for one in whole] == [
        ("v1", "Namespace", "kubegpu"),
        ("apps/v1", "DaemonSet", "kubegpu-nvidia-device-plugin"),
    ]
    assert whole[1]["spec"]["selector"]
    told = look(admin, plugin_namespace="kubegpu", plugin_content="all")["plugin_objects"]
    assert {("Pod", "train"), ("Secret", "login"), ("ConfigMap", "kube-root-ca.crt")} <= {
        (one["kind"], one["metadata"]["name"]) for one in told
    }
    secret = next(one for one in told if one["metadata"]["name"] == "login")
    assert secret["type"] == "Opaque" and "data" not in secret
    assert look(admin, plugin_namespace="nowhere")["plugin_objects"] == []


def test_s14_taken_is_told_from_missing(made, kubeconfig):
    results = run_pods(kubeconfig, FULL, EMPTY, "nowhere")["nodes"]
    assert (results[FULL]["ok"], results[FULL]["code"]) == (None, "all_taken")
    assert "kubegpu/train (2)" in results[FULL]["cause"]
    assert (results[EMPTY]["ok"], results[EMPTY]["code"]) == (False, "plugin_missing")
    assert (results["nowhere"]["ok"], results["nowhere"]["code"]) == (False, "node_unknown")


def test_a_pod_that_nobody_places_is_told_and_removed(made, kubeconfig):
    answer = run_pods(kubeconfig, FREE)
    assert answer["nodes"][FREE]["code"] == "not_scheduled"
    assert "kube-scheduler" in answer["nodes"][FREE]["evidence"]
    assert answer["changed"] is False and left(made) == []


def of_user(name, gpus=0, **spec):
    limits = {GPU: str(gpus)} if gpus else {}
    box = {"name": "c", "image": "x", "resources": {"limits": limits}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "research"},
            "spec": {"containers": [box], **spec}}  # fmt: skip


@pytest.fixture
def research(made):
    """Pods without a node, and a Deployment whose pods a quota refuses."""
    pods = [
        of_user("too-many", 8),
        of_user("labelled", 2, nodeSelector={"zone": "x"}),
        of_user("late", 2, nodeSelector={"kubernetes.io/hostname": FULL}),
        of_user("none"),
    ]
    apply(made, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "research"}})
    accounts = ("-n", "research", "get", "serviceaccounts", "-o", "name")
    wait_until(lambda: "serviceaccount/default" in made.kubectl(*accounts))
    apply(made, *pods)
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": "research"},
        "spec": {"hard": {f"requests.{GPU}": "4"}},
    }
    template = {"metadata": {"labels": {"app": "web"}}, "spec": of_user("x", 1)["spec"]}
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "research"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    apply(made, quota)
    read = ("-n", "research", "get", "resourcequota", "gpus", "-o", "jsonpath={.status.used}")
    wait_until(lambda: "12" in made.kubectl(*read))
    apply(made, web)
    wait_until(lambda: "exceeded quota" in made.kubectl("-n", "research", "get", "events"))
    yield
    made.kubectl("-n", "research", "delete", "pods", "--all", "--force", "--grace-period=0")
    made.kubectl("delete", "namespace", "research", "--timeout=600s")


@pytest.mark.full(why="pods that wait, each cause of which is a unit test")
def test_why_pods_have_no_gpu_with_the_rights_of_the_manifest(kubeconfig, research):
    names = ["too-many", "labelled", "late", "none", "web", "nobody"]
    answer = look(kubeconfig, pods=[f"research/{name}" for name in names])
    assert "pods" in answer, answer
    found = {one["name"]: [code["code"] for code in one["findings"]] for one in answer["pods"]}
    assert found == {
        "too-many": ["asks_too_many"],
        "labelled": ["no_node_matches"],
        "late": ["all_taken"],
        "none": ["asks_no_gpu"],
        "web": ["quota_exceeded"],
        "nobody": ["pod_unknown"],
    }, answer["pods"]
    late = next(one for one in answer["pods"] if one["name"] == "late")
    assert {one["name"] for one in late["nodes"]} >= {FULL, FREE} and late["asks"] == {GPU: 2}
    assert "kubegpu/train (2)" in late["findings"][0]["evidence"]
    assert not answer["changed"] and set(answer["requests"]) <= {"list", "get"}


def test_check_mode_makes_nothing(made, kubeconfig):
    given = {"kubeconfig": kubeconfig, "nodes": {FREE: {"resources": {GPU: 2}}}}
    answer = run_module(gpu_test_pods.main, given, check=True)
    assert (answer["nodes"][FREE]["ok"], answer["nodes"][FREE]["code"]) == (None, "check_mode")
    assert "create" not in answer["requests"] and left(made) == []


def test_a_namespace_is_made_and_goes_only_if_nobody_uses_it(made):
    admin, name = str(made.kubeconfig), "verify-of-its-own"
    given = {"kubeconfig": admin, "namespace": name}
    assert run_pods(admin, FREE, namespace=name)["changes"] == [f"namespace {name} made"]
    made.kubectl("-n", name, "create", "configmap", "somebodys")
    kept = run_module(gpu_test_pods.main, {**given, "state": "absent"})
    assert kept["changed"] is False and "configmap somebodys" in json.dumps(kept["warnings"])
    made.kubectl("-n", name, "delete", "configmap", "somebodys")
    gone = run_module(gpu_test_pods.main, {**given, "state": "absent"})
    assert gone["changes"] == [f"namespace {name} removed"]


@pytest.mark.full(*("-".join(one) for one in NEEDED[1:]), why="another right is left out")
@pytest.mark.parametrize("right", NEEDED, ids="-".join)
def test_no_right_can_be_left_out(made, kubeconfig, exporter, right):
    _part, _kind, resource, verb = right
    apply(made, rights.less(*right))
    try:
        card = {"vendor": "nvidia", "kernel_driver": "nvidia"}
        expected = {EMPTY: {"resources": {GPU: 1}, "gpus": [card]}}
        seen = look(kubeconfig, expected=expected, metrics=True)
        found = json.dumps([seen, run_pods(kubeconfig, FREE)])
    finally:
        rights.apply(made, *PARTS)
        for name in left(made):
            made.kubectl("-n", "kubegpu", "delete", name, "--wait=false")
    assert f"The right '{verb}' on '{resource}'" in found
