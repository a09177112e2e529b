# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Test pods come and go whatever happens. The API server is a stand-in here.

The real one, with kubelets, is in tests/integration/cluster.
"""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.options import read_expected
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.read import Reader
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.errors import KubeError
from ansible_collections.kubegpu.nodes.plugins.module_utils._test_pods.apply import PodTests
from ansible_collections.kubegpu.nodes.plugins.module_utils._test_pods.plan import SELECTOR
from ansible_collections.kubegpu.nodes.plugins.module_utils._test_pods.types import Request
from tests.unit.fixtures.cluster_objects import GPU, daemonset, node, pod
from tests.unit.fixtures.dra import (
    CLASSES,
    claim,
    device,
    device_class,
    driver_daemonset,
    group,
    resource_slice,
)
from tests.unit.fixtures.standin_cluster import StandinCluster, Time

OURS = dict(one.split("=") for one in SELECTOR.split(","))
NOON = 1795348800.0  # 2026-11-22T12:00:00Z
PASSED = "[Vector addition of 50000 elements]\nTest PASSED\nDone\n"


class Interrupted(BaseException):
    """As raised on a signal."""


def two_nodes(**more):
    return StandinCluster(nodes=[node("n1", gpus=1), node("n2", gpus=1)], log=PASSED, **more)


def ends(phase, **more):
    def end(made):
        where = made["spec"]["nodeSelector"]["kubernetes.io/hostname"]
        made["spec"]["nodeName"] = where
        made["status"] = {"phase": phase, **more}

    return end


def begun(cluster, time=None, **more):
    time = time or Time()
    request = more.pop("request", {})
    return PodTests(
        **{
            "reader": Reader(cluster),
            "request": Request("image", "Test PASSED", **request),
            "run_id": "run1",
            "owner": "here 1 1",
            "alive": lambda owner: None,
            "sleep": time.sleep,
            "clock": time.monotonic,
            **more,
        }
    )


def run(one, *names, count=1):
    given = {name: {"resources": {GPU: 1}} for name in names or ("n1", "n2")}
    return one.test(read_expected(given), count)


def left(cluster):
    return [item["metadata"]["name"] for item in cluster.objects["pods"]]


def test_a_pod_on_each_node_and_none_afterwards():
    cluster = two_nodes()
    cluster.made = ends("Succeeded")
    one = begun(cluster)
    results = run(one)["nodes"]
    assert [results[name]["ok"] for name in ("n1", "n2")] == [True, True]
    assert results["n1"]["proof"] == f"a pod with 1 {GPU} said 'Test PASSED'"
    assert results["n1"]["log"][-2] == "Test PASSED"
    # What is expected may stand far from the end.
    assert cluster.tails == {1000}
    assert left(cluster) == [] and one.changes == []


def test_an_interrupt_leaves_no_pod():
    cluster, order = two_nodes(), []

    def stop(_now):
        order.append(len(left(cluster)))
        raise Interrupted

    one = begun(cluster, Time(stop), before_cleanup=lambda: order.append("cleanup"))
    with pytest.raises(Interrupted):
        run(one)
    # Nothing may interrupt the removal, so that is said first.
    assert order == [2, "cleanup"] and left(cluster) == []


def test_an_api_server_that_goes_away_leaves_no_pod():
    cluster = two_nodes()

    def goes(_now):
        cluster.fails["list", "pods"] = KubeError("It is down.")

    with pytest.raises(KubeError, match="It is down"):
        run(begun(cluster, Time(goes)))
    assert left(cluster) == []


def test_a_pod_that_does_not_end_is_given_up_in_time():
    cluster, time = two_nodes(), Time()
    cluster.made = ends("Running")
    cluster.log = "counting"
    results = run(begun(cluster, time, request={"timeout": 60}))["nodes"]
    assert {one["code"] for one in results.values()} == {"timed_out"}
    assert 60 <= time.now < 90 and left(cluster) == []


def test_a_pod_that_cannot_be_removed_is_named():
    cluster = two_nodes()
    cluster.made = ends("Succeeded")
    cluster.fails["delete", "pods"] = KubeError("It is not allowed.")
    one = begun(cluster)
    assert run(one, "n1")["nodes"]["n1"]["ok"]
    (note,) = one.reader.notes
    assert left(cluster)[0] in note and "It is not allowed. The next run removes it." in note


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2", "namespace"),
        ("failed quota: q: must specify limits.cpu for: test", "namespace"),
        ('violates PodSecurity "restricted:latest": runAsNonRoot != true', "run_as_user"),
    ],
)
def test_a_pod_that_is_not_admitted_says_which_option_helps(words, option):
    cluster = two_nodes()
    cluster.fails["create", "pods"] = KubeError(
        "The API server does not allow POST", evidence=f'pods "x" is forbidden: {words}', status=403
    )
    result = run(begun(cluster), "n1")["nodes"]["n1"]
    assert (result["ok"], result["code"]) == (False, "pod_refused")
    assert words in result["evidence"] and option in result["next_step"]


def test_what_a_run_that_is_over_left_goes_and_that_of_one_that_goes_on_stays():
    def made(name, owner):
        one = pod(name, "n1", namespace="kubegpu", labels=OURS)
        one["metadata"].update(uid=name, annotations={"kubegpu.nodes/owner": owner})
        return one

    cluster = two_nodes(pods=[made("dead", "here 1 1"), made("alive", "here 2 2")])
    cluster.made = ends("Succeeded")
    one = begun(cluster, alive=lambda owner: owner == "here 2 2")
    run(one, "n2")
    assert left(cluster) == ["alive"]
    assert one.changes == ["left-over test pod kubegpu/dead removed"]


@pytest.mark.parametrize("controller", [-3600, 0, 3600])
def test_another_controller_s_clock_decides_nothing(controller, monkeypatch):
    """Its pod was made a minute ago, by the API server's clock (L12)."""
    monkeypatch.setattr("time.time", lambda: NOON + controller)
    one = pod("theirs", "n1", namespace="kubegpu", labels=OURS, activeDeadlineSeconds=180)
    one["metadata"].update(uid="theirs", creationTimestamp="2026-11-22T12:00:00Z")
    for now, there in ((NOON + 60, ["theirs"]), (NOON + 3600, [])):
        cluster = two_nodes(pods=[one])
        cluster.server_time = now
        cluster.made = ends("Succeeded")
        run(begun(cluster), "n2")
        assert left(cluster) == there


def test_a_run_at_the_same_time_may_make_the_namespace():
    cluster = two_nodes(namespaces=())
    cluster.made = ends("Succeeded")
    cluster.fails["create", "namespaces"] = KubeError("it is there", reason="AlreadyExists")
    one = begun(cluster)
    assert run(one)["nodes"]["n1"]["ok"] and one.changes == []
    cluster.fails["create", "namespaces"] = KubeError("not allowed", status=403)
    with pytest.raises(KubeError, match="not allowed"):
        run(begun(cluster))


def test_a_run_at_the_same_time_may_remove_the_namespace():
    class Going(StandinCluster):
        def get(self, path, **params):
            return {"metadata": {"labels": OURS}}

    cluster = Going()
    cluster.fails["delete", "pods"] = KubeError("it is going", status=409)
    one = begun(cluster)
    one.absent(with_namespace=True)
    assert one.changes == ["namespace kubegpu removed"]
    cluster.fails["delete", "pods"] = KubeError("not allowed", status=403)
    with pytest.raises(KubeError, match="not allowed"):
        begun(cluster).absent(with_namespace=True)


def test_check_mode_predicts_and_makes_nothing():
    cluster = two_nodes(namespaces=())
    cluster.create = lambda path, body, *, dry_run, **more: body if dry_run else pytest.fail(path)
    one = begun(cluster, check_mode=True)
    results = run(one)["nodes"]
    assert {result["code"] for result in results.values()} == {"check_mode"}
    assert one.changes == ["namespace kubegpu made"] and left(cluster) == []


# -- a node whose GPUs a DRA driver gives out --------------------------------------------------


def dra_node(**objects):
    made = {
        "nodes": [node("n1")], "deviceclasses": CLASSES, "resourceslices": [resource_slice()],
        "daemonsets": [driver_daemonset(), daemonset(runtimeClassName="nvidia")], "log": PASSED,
        **objects,
    }  # fmt: skip
    cluster = StandinCluster(**made)
    cluster.groups["/apis/resource.k8s.io"] = group("v1", "v1beta1")
    cluster.made = ends("Succeeded")
    return cluster


def test_a_dra_driver_gives_the_test_pod_its_gpu_by_the_resources_name():
    cluster, made = dra_node(), []
    end = cluster.made

    def keep(item):
        made.append(item)
        end(item)

    cluster.made = keep
    one = begun(cluster, request={"runtime_class": "auto"})
    assert run(one, "n1")["nodes"]["n1"]["ok"]
    (item,) = made
    assert item["spec"]["containers"][0]["resources"] == {"limits": {GPU: "1"}}
    # CDI does it; the nvidia runtime would add what the image's environment asks for.
    assert "runtimeClassName" not in item["spec"]
    assert left(cluster) == []
    # A class that was asked for is taken.
    made.clear()
    run(begun(cluster, request={"runtime_class": "nvidia"}), "n1")
    assert made[0]["spec"]["runtimeClassName"] == "nvidia"


def test_where_claims_hold_all_devices_no_pod_is_made():
    cluster = dra_node(resourceclaims=[claim(devices=("gpu-0", "gpu-1"))])
    result = run(begun(cluster), "n1")["nodes"]["n1"]
    assert (result["ok"], result["code"]) == (None, "all_taken")
    assert result["cause"] == "All 2 nvidia.com/gpu of n1 are taken, by the pod default/train (2)."


# The versions that the server has. Its schemas judge the claim in
# tests/unit/plugins/filter/test_nvidia_dra_driver_schemas.py.
@pytest.mark.parametrize(
    "served", [("v1beta1",), ("v1beta2", "v1beta1"), ("v1", "v1beta2", "v1beta1")]
)
def test_a_device_without_a_resources_name_is_asked_for_by_a_claim(served):
    cluster, made = dra_node(deviceclasses=[device_class(resource=None)]), []
    cluster.groups["/apis/resource.k8s.io"] = group(*served)
    end = cluster.made

    def keep(item):
        made.append(item)
        end(item)

    cluster.made = keep
    one = begun(cluster, request={"runtime_class": "auto"})
    result = run(one, "n1", count=2)["nodes"]["n1"]
    assert result["ok"] and "a pod with 2 gpu.nvidia.com said" in result["proof"]
    (pod,), (asked,) = made, cluster.objects["resourceclaims"]
    assert pod["spec"]["containers"][0]["resources"] == {"claims": [{"name": "gpu"}]}
    assert "runtimeClassName" not in pod["spec"]
    name = pod["metadata"]["name"]
    assert pod["spec"]["resourceClaims"] == [{"name": "gpu", "resourceClaimName": name}]
    assert asked["apiVersion"] == f"resource.k8s.io/{served[0]}"
    # It goes with its pod, also if this run is killed.
    assert asked["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"]}
    ]
    (wanted,) = asked["spec"]["devices"]["requests"]
    fields = wanted if served[0] == "v1beta1" else wanted["exactly"]
    assert (fields["deviceClassName"], fields["count"]) == ("gpu.nvidia.com", 2)


def test_no_pod_waits_for_devices_that_claims_hold():
    held = [claim(devices=("gpu-0", "gpu-1"))]
    cluster = dra_node(deviceclasses=[device_class(resource=None)], resourceclaims=held)
    result = run(begun(cluster), "n1")["nodes"]["n1"]
    assert (result["ok"], result["code"]) == (None, "all_taken")
    assert result["cause"] == "All 2 gpu.nvidia.com of n1 are taken, by the pod default/train (2)."


def test_a_claim_that_may_not_be_made_is_told_and_its_pod_is_deleted():
    cluster = dra_node(deviceclasses=[device_class(resource=None)])
    cluster.fails["create", "resourceclaims"] = KubeError(
        "The right 'create' on 'resourceclaims' is missing", status=403, next_step="Give it."
    )
    result = run(begun(cluster), "n1")["nodes"]["n1"]
    assert (result["ok"], result["code"]) == (False, "pod_refused")
    assert "resourceclaims" in result["cause"] and left(cluster) == []


@pytest.mark.parametrize(
    ("objects", "evidence"),
    [
        ({"deviceclasses": []}, "ResourceSlices: 2 gpu"),
        (
            {"resourceslices": [resource_slice(devices=[device(0, taint="gpu.nvidia.com/xid")])]},
            "taints: gpu.nvidia.com/xid:NoSchedule",
        ),
    ],
)
def test_devices_that_no_class_can_give_out_are_not_tried_and_no_failure(objects, evidence):
    result = run(begun(dra_node(**objects)), "n1")["nodes"]["n1"]
    assert (result["ok"], result["code"]) == (None, "dra_no_class")
    assert "The DRA driver gpu.nvidia.com serves n1" in result["cause"]
    assert evidence in result["evidence"] and "kubectl get deviceclasses" in result["next_step"]


def test_a_pod_that_lost_the_race_for_the_last_device_is_told_who_has_it():
    cluster, time = dra_node(), Time()
    words = "0/1 nodes are available: 1 cannot allocate all claims."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                 "message": words}  # fmt: skip

    def wait(item):
        item["status"] = {"phase": "Pending", "conditions": [condition]}
        cluster.objects["resourceclaims"] = [claim(devices=("gpu-0", "gpu-1"))]

    cluster.made = wait
    result = run(begun(cluster, time), "n1")["nodes"]["n1"]
    assert (result["ok"], result["code"]) == (None, "all_taken")
    assert "default/train" in result["cause"] and time.now < 60


def test_what_the_scheduler_said_before_it_found_room_is_no_failure():
    """The image takes its time: the pod has its node, and the event of before is still there."""
    cluster, time = two_nodes(), Time()
    event = {"type": "Warning", "reason": "FailedScheduling",
             "message": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}  # fmt: skip
    cluster.objects["events"] = [{"metadata": {"name": "e"}, **event}]
    cluster.made = ends("Pending")

    def later(now):
        if now >= 40:
            for item in cluster.objects["pods"]:
                item["status"]["phase"] = "Succeeded"

    time.at = later
    result = run(begun(cluster, time), "n1")["nodes"]["n1"]
    assert result["ok"] is True and time.now >= 40


def test_no_pod_is_made_for_a_host_that_may_be_another_node():
    cluster = StandinCluster(
        nodes=[node("cp1", gpus=1, machine_id="a" * 32), node("gpu7", machine_id="b" * 32)]
    )
    given = {"gpu7": {"resources": {GPU: 1}, "machine_id": "a" * 32}}
    result = begun(cluster).test(read_expected(given), 1)["nodes"]["gpu7"]
    assert (result["ok"], result["node"], result["code"]) == (False, None, "node_uncertain")
    assert "has the machine id of the node cp1" in result["cause"] and left(cluster) == []
