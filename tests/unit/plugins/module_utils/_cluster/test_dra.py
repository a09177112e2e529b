# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A DRA driver that gives out NVIDIA's GPUs: what is seen of it, and what follows from that.

The objects are as API servers from 1.32 on give them (tests/unit/fixtures/dra.py has the sources).
A built-in group cannot be made by a CRD, and the server of the integration tests is older.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.allocation import node_states
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.dra import (
    Dra,
    add_dra_offers,
    drivers,
    newest_version,
    read_claims,
    read_classes,
    read_devices,
    served_versions,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.options import read_expected
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.read import Reader
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.result import build_result
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.wait import wait
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.workloads import (
    dra_drivers,
    foreign,
    recognize,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import (
    Cluster,
    Response,
    Server,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.errors import KubeError
from tests.unit.fixtures.cluster_objects import GPU, daemonset, node, pod
from tests.unit.fixtures.dra import (
    CLASSES,
    COMPONENT,
    GPU_DRIVER,
    IMAGE,
    OLD_IMAGE,
    claim,
    device,
    device_class,
    driver_daemonset,
    group,
    resource_slice,
)
from tests.unit.fixtures.standin_cluster import StandinCluster, Time

EXPECTED = {"gpu1": {"name": "n1", "resources": {GPU: 2}}}
FORBIDDEN = {
    "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403,
    "message": 'deviceclasses.resource.k8s.io is forbidden: User "verify" cannot list resource '
    '"deviceclasses" in API group "resource.k8s.io" at the cluster scope',
}  # fmt: skip


def with_dra(*versions, **objects):
    made = {
        "nodes": [node("n1")], "daemonsets": [driver_daemonset()], "deviceclasses": CLASSES,
        "resourceslices": [resource_slice()], **objects,
    }  # fmt: skip
    cluster = StandinCluster(**made)
    cluster.groups["/apis/resource.k8s.io"] = group(*(versions or ("v1", "v1beta2", "v1beta1")))
    return cluster


def told(cluster, expected=None, timeout=0):
    time, reader = Time(), Reader(cluster)
    requests = read_expected(EXPECTED if expected is None else expected)
    snapshot, _seconds = wait(reader, requests, timeout, sleep=time.sleep, clock=time.monotonic)
    return {**build_result(snapshot, requests), "notes": reader.notes}


# -- who gives out GPUs -----------------------------------------------------------------------


@pytest.mark.parametrize("image", [IMAGE, OLD_IMAGE, "mirror.example/team/dra@sha256:" + "a" * 64])
def test_the_driver_is_known_by_what_its_pod_runs(image):
    (part,) = recognize([driver_daemonset(image)], "DaemonSet")
    assert (part.kind, part.vendor, part.managed, part.container) == (
        "dra_driver", "nvidia", False, "gpus",
    )  # fmt: skip
    assert foreign([part]) == [part]
    assert str(part) == (
        "NVIDIA's DRA driver (DaemonSet dra-driver-nvidia-gpu/dra-driver-nvidia-gpu-kubelet-plugin)"
    )


def test_compute_domains_alone_give_out_no_gpu():
    """With resources.gpus.enabled=false the chart allows the device plugin beside it."""
    (part,) = recognize([driver_daemonset(gpus=False)], "DaemonSet")
    assert (part.kind, part.managed) == ("compute_domains", False)
    assert foreign([part]) == dra_drivers([part]) == []
    classes = [one for one in CLASSES if one["metadata"]["name"].startswith("compute")]
    assert read_classes(classes) == ()


@pytest.mark.parametrize(
    ("item", "seen"),
    [
        (device_class(), ("gpu", GPU, GPU_DRIVER)),
        # The charts up to v25.8 and all before resource.k8s.io/v1 lend no name.
        (device_class(resource=None), ("gpu", "", GPU_DRIVER)),
        (device_class("mig.nvidia.com", "mig", None), ("mig", "", GPU_DRIVER)),
        (device_class("site", rule="device.driver == \"gpu.nvidia.com\""), ("", GPU, GPU_DRIVER)),
        (device_class("other", driver="gpu.example.com"), ("gpu", GPU, "gpu.example.com")),
        (device_class("site", resource="example.com/gpu"), ("gpu", "", GPU_DRIVER)),
        (device_class("vfio.gpu.nvidia.com", "vfio", None), None),
        (device_class("nic", "nic", "nvidia.com/hostdev", "nic.example.com"), None),
        (device_class("amd", "gpu", "amd.com/gpu", "gpu.amd.com"), None),
        ({"metadata": {"name": "bare"}, "spec": {}}, None),
    ],
)  # fmt: skip
def test_which_classes_are_of_nvidias_gpus(item, seen):
    found = [(one.kind, one.resource, one.driver) for one in read_classes([item])]
    assert found == ([seen] if seen else [])


def test_of_two_classes_with_one_name_the_younger_counts():
    """As DeviceClassSpec.extendedResourceName says in k8s.io/api/resource/v1/types.go."""
    young = device_class("a100", driver="gpu.example.com", created="2026-10-01T10:00:00Z")
    classes = read_classes([device_class(), young])
    assert [one.name for one in classes] == ["a100", "gpu.nvidia.com"]
    assert drivers(classes) == ["gpu.example.com", GPU_DRIVER]
    slices = [resource_slice(), resource_slice(devices=[device(5)], driver="gpu.example.com")]
    dra = Dra("v1", classes, read_devices(slices))
    state = add_dra_offers(node_states([node("n1")], []), dra)["n1"]
    assert state.resource(GPU).allocatable == 1
    assert state.dra.capacity == {"gpu": 3}


def test_a_class_says_it_where_the_workload_does_not():
    cluster = with_dra(daemonsets=[], resourceslices=[])
    (other,) = [one for one in told(cluster)["foreign"] if one["name"] == "gpu.nvidia.com"]
    assert other["text"] == "NVIDIA's DRA driver (DeviceClass gpu.nvidia.com)"
    assert (other["kind"], other["vendor"], other["managed_by"]) == ("dra_driver", "nvidia", "Helm")
    # Where it is recognised it is said once.
    assert [one["workload"] for one in told(with_dra())["foreign"]] == ["DaemonSet"]


# -- what it offers ---------------------------------------------------------------------------


def test_the_newest_version_that_is_known_is_read():
    assert newest_version(served_versions(group("v2", "v1", "v1beta1"))) == "v1"
    assert newest_version(served_versions(group("v1beta1", "v1beta2"))) == "v1beta2"
    assert newest_version(served_versions(group("v1alpha3"))) == ""
    assert served_versions(group("v1alpha3")) == ("v1alpha3",)
    assert served_versions(None) == ()


@pytest.mark.parametrize("beta", [False, True])
def test_the_devices_of_a_node(beta):
    slices = [
        resource_slice(devices=[device(9)], generation=1, beta=beta),
        resource_slice(
            devices=[device(0), device(1, taint="gpu.nvidia.com/xid"), device(2, "vfio")],
            generation=2, beta=beta,
        ),
        resource_slice("n2", [device(3, "mig")], beta=beta),
        {"spec": {"driver": GPU_DRIVER, "pool": {"name": "all"}, "allNodes": True}},
    ]  # fmt: skip
    found = read_devices(slices)
    assert {name: [one.name for one in devices] for name, devices in found.items()} == {
        "n1": ["gpu-0", "gpu-1"], "n2": ["mig-3"],
    }  # fmt: skip
    assert [one.taints for one in found["n1"]] == [(), ("gpu.nvidia.com/xid:NoSchedule",)]


def test_a_taint_that_only_tells_of_something_keeps_nothing_off():
    one = device(0)
    one["taints"] = [{"key": "gpu.nvidia.com/unmonitored", "effect": "None"}]
    (found,) = read_devices([resource_slice(devices=[one])])["n1"]
    assert found.taints == ()


def test_who_holds_what_is_told_once_for_each_device():
    claims = [
        claim("a", ("train", "train-2"), ["gpu-0"]),
        # What the scheduler made for a pod that asks by the resource's name.
        claim("b", ("web",), ["gpu-1"]),
        claim("c", ("look",), ["gpu-2"], adminAccess=True),
        claim("d", (), ["gpu-2"]),
        claim("elsewhere", ("far",), ["gpu-3"], node="n2"),
        {"metadata": {"name": "waits"}, "status": {}},
    ]
    devices = [device(number) for number in range(4)]
    dra = Dra(
        "v1", read_classes(CLASSES), read_devices([resource_slice(devices=devices)]),
        read_claims(claims),
    )  # fmt: skip
    states = node_states([node("n1")], [pod("web", gpus=1)])
    resource = add_dra_offers(states, dra)["n1"].resource(GPU)
    assert [str(one) for one in resource.pods] == [
        "default/(claim d)", "default/train", "default/web",
    ]  # fmt: skip
    assert (resource.capacity, resource.allocated, resource.free) == (4, 3, 1)


# -- how a node stands ------------------------------------------------------------------------


def test_a_node_that_the_driver_serves_is_as_expected():
    result = told(with_dra())
    assert result["missing"] == [] and result["notes"] == []
    (layer,) = result["layers"]
    assert layer["ok"] is True
    assert layer["proof"] == (
        "the DRA driver gpu.nvidia.com serves the node n1: 2 gpu in its ResourceSlices, requested "
        "by a ResourceClaim or nvidia.com/gpu"
    )
    shown = result["nodes"]["n1"]
    assert shown["resources"][GPU]["allocatable"] == 2 and shown["resources"][GPU]["dra"] is True
    assert shown["dra"]["capacity"] == {"gpu": 2}
    assert result["dra"]["version"] == "v1"
    assert result["dra"]["served"] == ["v1", "v1beta2", "v1beta1"]
    assert result["dra"]["slices"] == {"n1": 1}
    assert {"name": "gpu.nvidia.com", "driver": GPU_DRIVER, "type": "gpu", "resource": GPU} in (
        result["dra"]["classes"]
    )


def test_it_serves_by_claims_alone_with_an_api_of_1_32():
    cluster = with_dra(
        "v1beta1", deviceclasses=[device_class(resource=None)],
        resourceslices=[resource_slice(beta=True)],
    )  # fmt: skip
    (layer,) = told(cluster)["layers"]
    assert layer["ok"] and layer["proof"].endswith("requested by a ResourceClaim")


def test_what_a_site_shares_by_it_is_not_judged():
    """The expectation is made of our plugin's options."""
    assert told(with_dra(), {"gpu1": {"name": "n1", "resources": {GPU: 8}}})["missing"] == []
    assert told(with_dra(), {"gpu1": {"name": "n1", "resources": None}})["missing"] == []


def test_a_device_that_the_driver_keeps_back_is_told():
    slices = [resource_slice(devices=[device(0), device(1, taint="gpu.nvidia.com/xid")])]
    (missing,) = told(with_dra(resourceslices=slices), timeout=30)["missing"]
    assert missing["code"] == "dra_device_tainted"
    assert missing["evidence"] == (
        "ResourceSlices of gpu.nvidia.com: 1 gpu; taints of its devices: "
        "gpu.nvidia.com/xid:NoSchedule"
    )


@pytest.mark.parametrize(
    ("drivers", "devices", "code"),
    [
        (["nvidia", "nvidia", "nvidia"], [device(0), device(1)], "dra_too_few"),
        (["nvidia", "nvidia"], [device(0), device(1)], None),
        (["nvidia", "vfio-pci"], [device(0)], None),
        # How many a GPU is divided into is the driver's.
        (["nvidia", "nvidia"], [device(0, "mig")], None),
        (["nvidia", "nvidia"], [device(0, taint="gpu.nvidia.com/xid")], "dra_device_tainted"),
    ],
)
def test_each_gpu_of_the_bus_is_published(drivers, devices, code):
    """One that fell off the bus of NVML is in no slice, and the others are offered on."""
    gpus = [{"vendor": "nvidia", "kernel_driver": one} for one in drivers]
    requests = {"gpu1": {"name": "n1", "resources": {GPU: len(gpus)}, "gpus": gpus}}
    build_result = told(
        with_dra(resourceslices=[resource_slice(devices=devices)]), requests, timeout=30
    )
    assert [one["code"] for one in build_result["missing"]] == ([code] if code else [])
    if code == "dra_too_few":
        assert build_result["missing"][0]["cause"] == (
            "The DRA driver has published 2 of the 3 GPUs of n1."
        )


def test_a_device_plugin_on_the_same_node_is_a_second_allocator():
    """The chart's templates/validation.yaml refuses it for the same reason."""
    cluster = with_dra(
        nodes=[node("n1", gpus=2)],
        daemonsets=[driver_daemonset(), daemonset("theirs", "kube-system", labels={})],
    )
    (missing,) = told(cluster)["missing"]
    assert missing["code"] == "two_allocators"
    assert missing["evidence"] == (
        "ResourceSlices of gpu.nvidia.com: 2 gpu; allocatable of the node: 2 nvidia.com/gpu"
    )
    assert "resources.gpus.enabled=false" in missing["next_step"]


def driver_pod(**more):
    made = pod("dra-1", "n1", namespace="dra-driver-nvidia-gpu", labels=COMPONENT)
    made["status"].update(more)
    return made


@pytest.mark.parametrize(
    ("objects", "log", "code", "words"),
    [
        ({"daemonsets": []}, "", "dra_not_published", "DeviceClass gpu.nvidia.com"),
        ({"pods": [driver_pod()]}, "starting\n", "dra_not_published", "dra-1 is Running"),
        ({"pods": [driver_pod()]}, "failed to initialize NVML: Driver/library version mismatch\n",
         "driver_library_mismatch", "different versions"),
        ({"daemonsets": [driver_daemonset(nodeSelector={"nvidia.com/gpu.present": "true"})]}, "",
         "plugin_selects_not", "The DRA driver dra-driver-nvidia-gpu/dra-driver-nvidia-gpu-"),
        ({}, "", "plugin_not_started", "The DRA driver"),
    ],
)  # fmt: skip
def test_why_the_driver_offers_nothing_on_a_node(objects, log, code, words):
    (missing,) = told(with_dra(resourceslices=[], log=log, **objects), timeout=4)["missing"]
    assert missing["code"] == code and words in missing["cause"]
    assert missing["next_step"]


def test_a_plugin_of_ours_on_other_nodes_goes_on_as_before():
    """nvidia_device_plugin_beside_others is for a cluster whose nodes are divided."""
    cluster = with_dra(
        nodes=[node("n1"), node("n2", gpus=2)],
        daemonsets=[driver_daemonset(), daemonset()],
    )
    both = {**EXPECTED, "gpu2": {"name": "n2", "resources": {GPU: 2}}}
    assert told(cluster, both)["missing"] == []
    three = {"gpu2": {"name": "n2", "resources": {GPU: 3}}}
    assert [one["code"] for one in told(cluster, three)["missing"]] == ["plugin_not_started"]


# -- a server without it, and a user without the right -----------------------------------------


def replies(**given):
    """A server by path: what is not given is not there, in the words of a real one."""
    asked = []

    def send(_method, target, _headers, _body):
        path = target.partition("?")[0]
        asked.append(target)
        status, body = given.get(path, (404, "404 page not found\n"))
        text = body if isinstance(body, str) else json.dumps(body)
        return Response(status, text.encode(), {})

    return Cluster(send, Server("https://kube"), sleep=lambda _seconds: None), asked


NODES = {
    "/api/v1/nodes": (200, {"items": [node("n1")]}),
    "/api/v1/pods": (200, {"items": []}),
}
CLASS_PATH = "/apis/resource.k8s.io/v1/deviceclasses"


def test_a_server_without_the_group_is_asked_for_it_once():
    cluster, asked = replies(**NODES)
    reader = Reader(cluster)
    reader.states()
    states, _nodes, _pods = reader.states()
    assert states["n1"].dra is None and reader.notes == []
    assert [one for one in asked if "resource.k8s.io" in one] == ["/apis/resource.k8s.io"]


def test_what_an_api_of_1_34_answers():
    cluster, asked = replies(**{
        **NODES,
        "/apis/resource.k8s.io": (200, group("v1", "v1beta2", "v1beta1")),
        CLASS_PATH: (200, {"kind": "DeviceClassList", "items": CLASSES}),
        "/apis/resource.k8s.io/v1/resourceslices": (200, {"items": [resource_slice()]}),
        "/apis/resource.k8s.io/v1/resourceclaims": (200, {"items": [claim()]}),
    })  # fmt: skip
    states, _nodes, _pods = Reader(cluster).states()
    resource = states["n1"].resource(GPU)
    assert (resource.capacity, resource.allocated, resource.dra) == (2, 1, True)
    assert (
        "/apis/resource.k8s.io/v1/resourceslices?limit=500&fieldSelector="
        + ("spec.driver%3Dgpu.nvidia.com")
        in asked
    )


@pytest.mark.parametrize("forbidden", ["classes", "group"])
def test_a_user_without_the_right_is_told_of_it_and_goes_on(forbidden):
    refused = (403, FORBIDDEN)
    cluster, _asked = replies(**{
        **NODES,
        "/apis/resource.k8s.io": refused if forbidden == "group" else (200, group("v1")),
        CLASS_PATH: refused,
        "/apis/resource.k8s.io/v1/resourceslices": (200, {"items": [resource_slice()]}),
        "/apis/resource.k8s.io/v1/resourceclaims": refused,
    })  # fmt: skip
    reader = Reader(cluster)
    states, _nodes, _pods = reader.states()
    reader.states()
    (note,) = reader.notes
    assert "The right 'list' on 'deviceclasses'" in note
    assert 'resources: ["deviceclasses"]' in note
    # The slices alone tell it too.
    assert (states["n1"].dra is None) == (forbidden == "group")


def test_a_server_that_fails_is_no_server_without_dra():
    cluster = with_dra()
    cluster.fails["list", "deviceclasses"] = KubeError("It is down.", status=500)
    with pytest.raises(KubeError, match="It is down"):
        Reader(cluster).states()
