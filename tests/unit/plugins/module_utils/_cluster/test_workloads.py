# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.workloads import (
    foreign,
    place,
    plugins,
    recognize,
    tolerates,
)
from tests.unit.fixtures.cluster_objects import daemonset


def one(**made):
    return recognize([daemonset(**{"labels": {}, **made})], "DaemonSet")


@pytest.mark.parametrize(
    ("image", "kind", "vendor"),
    [
        ("nvcr.io/nvidia/k8s-device-plugin:v0.20.0", "device_plugin", "nvidia"),
        ("mirror:5000/nvidia/k8s-device-plugin@sha256:" + "a" * 64, "device_plugin", "nvidia"),
        ("rocm/k8s-device-plugin:1.31", "device_plugin", "amd"),
        ("intel/intel-gpu-plugin:0.32", "device_plugin", "intel"),
        ("nvcr.io/nvidia/gpu-operator:v26.7.0", "operator", "nvidia"),
        ("rocm/gpu-operator:v1.4", "operator", "amd"),
        ("nvcr.io/nvidia/gpu-feature-discovery:v0.8", "feature_discovery", "nvidia"),
        ("projecthami/hami:v2.6", None, None),
        ("nginx:1", None, None),
    ],
)
def test_what_is_told_by_its_image(image, kind, vendor):
    found = one(image=image, container_name="x")
    assert [(part.kind, part.vendor) for part in found] == ([(kind, vendor)] if kind else [])


def test_the_plugins_image_serves_feature_discovery_too():
    found = one(name="gfd", container_name="gpu-feature-discovery")
    assert [part.kind for part in found] == ["feature_discovery"]


def test_a_sidecar_of_feature_discovery_is_not_its_container():
    """The chart's comes first and has its name (templates/daemonset-gfd.yml of v0.20.0)."""
    item = daemonset("gfd", labels={})
    (plugin,) = item["spec"]["template"]["spec"]["containers"]
    item["spec"]["template"]["spec"]["containers"] = [
        {**plugin, "name": "gpu-feature-discovery-sidecar", "command": ["config-manager"]},
        {**plugin, "name": "gpu-feature-discovery-ctr", "command": ["gpu-feature-discovery"]},
    ]
    (part,) = recognize([item], "DaemonSet")
    assert (part.kind, part.container) == ("feature_discovery", "gpu-feature-discovery-ctr")


def test_a_mirror_may_rename_the_image():
    found = one(
        name="nvidia-device-plugin-daemonset", image="registry.example/team/plugin:1",
        labels={"name": "nvidia-device-plugin-ds"},
    )  # fmt: skip
    assert [part.kind for part in found] == ["device_plugin"]


def test_ours_is_not_foreign():
    operator = {"app": "nvidia-device-plugin-daemonset",
                "app.kubernetes.io/managed-by": "gpu-operator"}  # fmt: skip
    parts = recognize(
        [daemonset(), daemonset("nvidia-device-plugin-daemonset", "gpu-operator", labels=operator)],
        "DaemonSet",
    )
    assert len(plugins(parts)) == 2
    (other,) = foreign(parts)
    assert (other.namespace, other.managed_by, other.managed) == (
        "gpu-operator", "gpu-operator", False,
    )  # fmt: skip
    assert foreign(parts, "amd") == []


TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, True),
        ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "nvidia.com/gpu", "value": "present"}, True),
        ({"key": "nvidia.com/gpu", "value": "other"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_tolerations(toleration, covers):
    assert tolerates(toleration, TAINT) is covers


def test_what_keeps_a_daemonset_off_a_node():
    (part,) = recognize([daemonset(nodeSelector={"kubegpu.nodes/gpu": "nvidia"})], "DaemonSet")
    kept = place(part, {}, [TAINT])
    assert kept.missing_labels == ("kubegpu.nodes/gpu=nvidia",)
    assert kept.taints == ("nvidia.com/gpu=present:NoSchedule",)
    not_ready = {"key": "node.kubernetes.io/not-ready", "value": "", "effect": "NoExecute"}
    assert place(part, {"kubegpu.nodes/gpu": "nvidia"}, [not_ready]).allowed


@pytest.mark.parametrize(
    ("rule", "labels", "allowed"),
    [
        ({"key": "a", "operator": "In", "values": ["1"]}, {"a": "1"}, True),
        ({"key": "a", "operator": "In", "values": ["1"]}, {}, False),
        ({"key": "a", "operator": "NotIn", "values": ["1"]}, {}, True),
        ({"key": "a", "operator": "Exists"}, {"a": ""}, True),
        ({"key": "a", "operator": "DoesNotExist"}, {"a": ""}, False),
        ({"key": "a", "operator": "Gt", "values": ["2"]}, {"a": "3"}, True),
        ({"key": "a", "operator": "Lt", "values": ["2"]}, {"a": "x"}, False),
    ],
)
def test_node_affinity(rule, labels, allowed):
    terms = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    (part,) = recognize([daemonset(affinity=affinity)], "DaemonSet")
    assert place(part, labels, []).allowed is allowed


def test_a_mirrors_operator_is_told_by_its_label():
    label = {"app.kubernetes.io/name": "gpu-operator"}
    [found] = one(name="x", image="registry.example/team/x:1", container_name="x", labels=label)
    assert (found.kind, found.vendor) == ("operator", "nvidia")


def test_what_the_pods_tolerate_is_read():
    item = daemonset(name="nvidia-device-plugin", labels={})
    taint = {"key": "nvidia.com/gpu", "operator": "Exists"}
    item["spec"]["template"]["spec"]["tolerations"] = [taint]
    [found] = recognize([item], "DaemonSet")
    assert found.tolerations == (taint,)


def test_plugins_of_amd_and_intel_are_known_by_image_or_label_and_the_labeller_is_none():
    labeller = daemonset("labeller", labels={}, image="docker.io/rocm/k8s-device-plugin:labeller-1")
    labeller["spec"]["template"]["spec"]["containers"][0]["command"] = ["./k8s-node-labeller"]
    made = [
        daemonset("a", labels={}, image="docker.io/rocm/k8s-device-plugin:1.31.0.9"),
        daemonset("b", labels={"name": "amdgpu-dp-ds"}, image="mirror/x:1"),
        daemonset("c", labels={"app": "intel-gpu-plugin"}, image="mirror/y:1"),
        labeller,
    ]
    parts = recognize(made, "DaemonSet")
    assert [(one.name, one.kind, one.vendor) for one in parts] == [
        ("a", "device_plugin", "amd"),
        ("b", "device_plugin", "amd"),
        ("c", "device_plugin", "intel"),
    ]
