# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose GPUs they are: what the role nvidia_device_plugin makes of what the cluster has."""

from __future__ import annotations

from pathlib import Path

import kubernetes_validate
import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.read import Reader
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.result import build_result
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.snapshot import take_snapshot
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.cluster import (
    host_row,
    plan_cluster,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.types import Node, Run
from tests.unit.fixtures.cluster_objects import daemonset, node
from tests.unit.fixtures.dra import (
    CLASSES,
    claim,
    device,
    device_class,
    driver_daemonset,
    group,
    resource_slice,
)
from tests.unit.fixtures.node_facts import node as facts
from tests.unit.fixtures.plans import nvidia_dra_driver_plan
from tests.unit.fixtures.rights import rights_of
from tests.unit.fixtures.standin_cluster import StandinCluster

ROLES = Path(__file__).parents[3] / "roles"
OPERATOR = daemonset("gpu-operator", "gpu-operator", labels={},
                     image="nvcr.io/nvidia/gpu-operator:v26.7.0")  # fmt: skip


def planned(cluster, **variables):
    """Return the plan of the role for a host with these variables."""
    part = "nvidia_device_plugin"
    row = host_row(part, "gpu1", Node(facts(), variables, Run(), {}, ()))
    return plan_cluster(part, row, {"gpu1": {**row, "gpu_node": facts()}}, cluster)


def others(cluster, **variables):
    return planned(cluster, **variables)["others"]


def seen(**objects):
    cluster = StandinCluster(nodes=[node("n1")], **objects)
    cluster.groups["/apis/resource.k8s.io"] = group("v1", "v1beta2", "v1beta1")
    return build_result(take_snapshot(Reader(cluster), []), [])


def of_kind(made, kind):
    return [one for one in made["objects"] if one["kind"] == kind]


def test_our_own_dra_driver_keeps_the_device_plugin_away_whatever_is_set():
    made = nvidia_dra_driver_plan({}, {}, {"kubernetes": "v1.34.2", "dra": {"served": ["v1"]}})
    cluster = seen(
        daemonsets=of_kind(made, "DaemonSet"), deviceclasses=of_kind(made, "DeviceClass")
    )
    assert cluster["foreign"] == []
    for beside in (False, True):
        assert others(cluster, nvidia_device_plugin_beside_others=beside) == [
            "NVIDIA's DRA driver (DaemonSet kubegpu/kubegpu-nvidia-dra-driver-kubelet-plugin)"
        ]
    # Compute domains alone give out no GPU.
    alone = nvidia_dra_driver_plan(
        {"gpus": False, "compute_domains": True}, {}, {"dra": {"served": ["v1"]}}
    )
    cluster = seen(daemonsets=of_kind(alone, "DaemonSet"))
    assert others(cluster) == []


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ({"daemonsets": [driver_daemonset()], "deviceclasses": CLASSES},
         "NVIDIA's DRA driver "
         "(DaemonSet dra-driver-nvidia-gpu/dra-driver-nvidia-gpu-kubelet-plugin)"),
        ({"deviceclasses": CLASSES[:1]}, "NVIDIA's DRA driver (DeviceClass gpu.nvidia.com)"),
        ({"deployments": [OPERATOR]}, "NVIDIA GPU operator (Deployment gpu-operator/gpu-operator)"),
    ],
)  # fmt: skip
def test_beside_what_gives_out_gpus_nothing_is_deployed(objects, words):
    cluster = seen(**objects)
    made = planned(cluster)
    assert made["others"] == [words]
    assert (made["action"], made["objects"], made["absent"]) == ("leave", [], [])
    (said,) = made["messages"]
    assert said.startswith(f"The cluster has {words}. It is left alone")
    assert "resources.gpus.enabled=false" in said
    assert others(cluster, nvidia_device_plugin_beside_others=True) == []


def test_compute_domains_alone_do_not_keep_the_plugin_away():
    cluster = seen(daemonsets=[driver_daemonset(gpus=False)], deviceclasses=CLASSES[3:])
    assert others(cluster) == []


V1 = [
    *(("DeviceClass", one) for one in CLASSES),
    ("ResourceSlice", resource_slice(devices=[device(0, taint="gpu.nvidia.com/xid"), device(1)])),
    ("ResourceClaim", claim()),
]
BETA = [
    ("DeviceClass", device_class(resource=None)),
    ("ResourceSlice", resource_slice(beta=True)),
    ("ResourceClaim", claim()),
]


@pytest.mark.parametrize(
    ("version", "kubernetes", "objects"),
    [("v1", "1.34", V1), ("v1", "1.37", V1), ("v1beta1", "1.32", BETA)],
    ids=["1.34", "1.37", "1.32"],
)
def test_the_objects_of_the_tests_are_as_kubernetes_has_them(version, kubernetes, objects):
    """The cluster of our tests is older; these are what its API would give from 1.32 on."""
    for kind, item in objects:
        whole = {"apiVersion": f"resource.k8s.io/{version}", "kind": kind, **item}
        kubernetes_validate.validate(whole, kubernetes, strict=True)
    daemonset_ = {"apiVersion": "apps/v1", "kind": "DaemonSet", **driver_daemonset()}
    del daemonset_["status"]
    kubernetes_validate.validate(daemonset_, kubernetes, strict=True)


def test_the_shipped_rights_let_a_dra_driver_be_seen():
    given = {
        right.resource
        for right in rights_of("read")
        if (right.group, right.verb, right.name) == ("resource.k8s.io", "list", "")
    }
    assert given == {"deviceclasses", "resourceslices", "resourceclaims"}
