# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The device plugins of AMD and Intel for a cluster: objects, refusals, what nodes offer."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.objects import identity
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.vendor_manifests import (
    absent,
    manifests,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.vendor_options import (
    read_request,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.vendor_plan import (
    expected,
    plan,
)
from tests.unit.fixtures.kernel_gpus import amd_node, device_node, intel_node
from tests.unit.fixtures.node_facts import node


def pod(vendor, name=None, **options):
    name = name or f"kubegpu-{vendor}-device-plugin"
    found = {identity(one)[2]: one for one in manifests(read_request(vendor, options))
             if one["kind"] == "DaemonSet"}  # fmt: skip
    return found[name]["spec"]["template"]["spec"]


@pytest.mark.parametrize("vendor", ["amd", "intel"])
def test_pods_go_to_the_nodes_of_the_vendor_and_leave_a_node_that_is_changed(vendor):
    spec = pod(vendor, node_selector={"rack": "7"})
    assert spec["nodeSelector"] == {f"kubegpu.nodes/gpu-{vendor}": "true", "rack": "7"}
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    rule = {"key": "kubegpu.nodes/pause", "operator": "DoesNotExist"}
    assert term == {"matchExpressions": [rule]}
    assert "runtimeClassName" not in spec
    assert not [one for one in spec["containers"] if one["securityContext"].get("privileged")]


@pytest.mark.parametrize("vendor", ["amd", "intel"])
def test_the_folder_of_device_plugins_is_the_constant_of_kubelet(vendor):
    paths = {volume["hostPath"]["path"] for volume in pod(vendor)["volumes"]}
    assert "/var/lib/kubelet/device-plugins" in paths


def test_options_of_amd():
    (plain,) = pod("amd")["containers"]
    assert plain["image"] == "docker.io/rocm/k8s-device-plugin:1.31.0.10"
    assert plain["args"][-2:] == ["-pulse=0", "-resource_naming_strategy=single"]
    spec = pod("amd", health=True, naming="mixed", digest=f"sha256:{'0' * 64}")
    (one,) = spec["containers"]
    assert one["args"][-2:] == ["-pulse=10", "-resource_naming_strategy=mixed"]
    assert one["securityContext"] == {"privileged": True}
    assert one["image"].endswith("@sha256:" + "0" * 64)
    paths = {volume["hostPath"]["path"] for volume in spec["volumes"]}
    assert {"/dev/kfd", "/dev/dri", "/sys"} < paths


def test_the_labeller_only_where_it_is_asked_for():
    kinds = [one["kind"] for one in manifests(read_request("amd", {}))]
    assert kinds == ["Namespace", "ServiceAccount", "DaemonSet"]
    made = manifests(read_request("amd", {"labeller": True}))
    assert [one["kind"] for one in made][3:] == [
        "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "DaemonSet",
    ]  # fmt: skip
    labeller = pod("amd", "kubegpu-amd-node-labeller", labeller=True)
    assert labeller["automountServiceAccountToken"] is True
    assert labeller["containers"][0]["image"].endswith(":labeller-1.31.0.10")
    request = read_request("amd", {})
    gone = {identity(one)[2] for one in absent("amd", request, manifests(request))}
    assert gone == {"kubegpu-amd-node-labeller"}
    assert absent("amd", request, made) == []


def test_options_of_intel():
    (plain,) = pod("intel")["containers"]
    assert plain["image"] == "docker.io/intel/intel-gpu-plugin:0.36.0"
    assert plain["args"][:3] == ["-v=2", "-shared-dev-num=1", "-allocation-policy=none"]
    ids = plain["args"][3].removeprefix("-allow-ids=").split(",")
    assert {"0x56c0", "0x0bd5", "0xe20b"} < set(ids) and "-enable-monitoring" not in plain["args"]
    (one,) = pod("intel", shared=4, allocation_policy="packed", monitoring=True, allow_ids=[])[
        "containers"
    ]
    assert one["args"] == [
        "-v=2", "-shared-dev-num=4", "-allocation-policy=packed", "-enable-monitoring",
    ]  # fmt: skip
    assert one["securityContext"]["readOnlyRootFilesystem"] is True
    # A card that is not in the table yet.
    assert read_request("intel", {"allow_ids": ["auto", "0xE2FF"]}).allow_ids[-1] == "0xe2ff"


def test_further_arguments_come_last():
    (intel,) = pod("intel", arguments=["-deny-ids=0x4905", "-health-management"])["containers"]
    assert intel["args"][-2:] == ["-deny-ids=0x4905", "-health-management"]
    (amd,) = pod("amd", arguments=["-alsologtostderr=false"])["containers"]
    assert amd["args"][-2:] == ["-resource_naming_strategy=single", "-alsologtostderr=false"]


@pytest.mark.parametrize(
    ("vendor", "options", "words"),
    [
        ("amd", {"version": "latest"}, "amd_device_plugin_version"),
        ("amd", {"image": "rocm/k8s-device-plugin:1.31"}, "amd_device_plugin_image"),
        ("amd", {"naming": "both"}, "amd_device_plugin_naming"),
        ("amd", {"labeller": True, "labeller_version": "latest"}, "labeller_version"),
        ("amd", {"shared": 2}, "no option shared"),
        ("amd", {"max_unavailable": "0"}, "amd_device_plugin_pods.max_unavailable"),
        ("intel", {"shared": 0}, "intel_device_plugin_shared"),
        ("intel", {"allow_ids": ["56c0"]}, "56c0"),
        ("intel", {"allow_ids": ["auto", "all"]}, "intel_device_plugin_allow_ids"),
        ("intel", {"allocation_policy": "spread"}, "intel_device_plugin_allocation_policy"),
        ("intel", {"arguments": ["deny-ids=0x4905"]}, "'deny-ids=0x4905', which is no argument"),
        ("intel", {"arguments": ["-bypath single"]}, "which is no argument"),
        ("intel", {"arguments": ["--shared-dev-num=2"]}, "--shared-dev-num=2, which this role"),
        ("amd", {"arguments": ["-pulse=1"]}, "amd_device_plugin_arguments has -pulse=1"),
        ("nvidia", {}, "nvidia"),
    ],
)
def test_what_is_refused(vendor, options, words):
    with pytest.raises(InputError, match=words):
        read_request(vendor, options)


def amd(facts, **options):
    return expected(facts, read_request("amd", options))


def intel(facts, **options):
    return expected(facts, read_request("intel", options))


def test_what_amd_offers():
    facts = amd_node()
    assert amd(facts) == ({"amd.com/gpu": 2}, "")
    # The plugin offers the graphics of a processor, too.
    facts["device_nodes"].append(device_node("/dev/dri/renderD130", "amdgpu", "0000:0a:00.0"))
    assert amd(facts) == ({"amd.com/gpu": 3}, "")
    # Without a driver: what should be there.
    bare = amd_node(device_nodes=[], kernel_drivers={})
    assert amd(bare) == ({"amd.com/gpu": 2}, "")
    bare["gpus"][0]["kernel_driver"] = "vfio-pci"
    assert amd(bare) == ({"amd.com/gpu": 1}, "")


@pytest.mark.parametrize(
    ("partition", "naming", "known"),
    [
        ("spx_nps1", "single", True),
        ("cpx_nps4", "single", False),
        ("spx_nps1", "mixed", False),
        (None, "mixed", True),
    ],
)
def test_cards_that_are_divided(partition, naming, known):
    facts = amd_node()
    for one in facts["device_nodes"][1:]:
        one["partition"] = partition
    resources, why = amd(facts, naming=naming)
    assert (resources is not None) is known
    assert known or partition in why
    made = plan("amd", {"naming": naming}, {"a": {"gpu_node": facts}})
    # None of an unknown number is waited for, too (ROCm/k8s-device-plugin#184).
    assert made["expected"]["a"]["some_of"] == ([] if known else ["amd"])
    assert ("a" in made["unknown"]) is not known


def test_what_intel_offers():
    assert intel(intel_node("i915", "xe", "xe"), shared=2) == (
        {"gpu.intel.com/i915": 2, "gpu.intel.com/xe": 4},
        "",
    )
    facts = intel_node("i915")
    facts["device_nodes"].append(
        device_node("/dev/dri/renderD129", "i915", "0000:00:02.0", device_id="4680")
    )
    # The processor's own graphics are offered only where all ids are.
    assert intel(facts) == ({"gpu.intel.com/i915": 1}, "")
    assert intel(facts, allow_ids=[]) == ({"gpu.intel.com/i915": 2}, "")
    resources, warning = intel(facts, allow_ids=["0x0bd5"])
    assert resources == {} and "intel_device_plugin_allow_ids" in warning and "56c0" in warning
    facts["gpus"].append({**facts["gpus"][0], "virtual_function": True})
    assert intel(facts)[0] is None


HOSTS = {
    "amd1": {"gpu_node": amd_node(), "options": {}},
    "intel1": {"gpu_node": intel_node("xe"), "options": {}},
    "gpu1": {"gpu_node": node(), "options": {}},
    "cpu1": {"gpu_node": node(gpus=[]), "options": {}},
}


def test_each_plugin_expects_of_its_own_nodes_alone():
    assert {
        vendor: {
            name: row["resources"] for name, row in plan(vendor, {}, HOSTS)["expected"].items()
        }
        for vendor in ("amd", "intel")
    } == {
        "amd": {"amd1": {"amd.com/gpu": 2}},
        "intel": {"intel1": {"gpu.intel.com/xe": 1}},
    }


def test_the_objects_do_not_depend_on_the_hosts_of_a_run():
    assert plan("intel", {}, HOSTS)["objects"] == plan("intel", {}, {})["objects"]


def test_beside_a_plugin_of_somebody_else_nothing_is_deployed():
    made = plan("amd", {}, HOSTS, others=["AMD GPU operator (Deployment a/b)"])
    assert (made["action"], made["objects"], made["absent"]) == ("leave", [], [])


def test_hosts_that_wish_something_else_are_refused():
    hosts = {
        name: {"gpu_node": amd_node(), "options": {"version": version}}
        for name, version in (("amd1", "1.31.0.10"), ("amd2", "1.30"))
    }
    made = plan("amd", {}, hosts)
    assert made["action"] == "refuse" and "amd_device_plugin_version" in made["text"]
    assert plan("amd", {"naming": "x"}, {})["action"] == "refuse"


NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "kubegpu", "labels": {"app.kubernetes.io/managed-by": "kubegpu.nodes"}},
}


def inside(name, **labels):
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "kubegpu", "labels": labels}}


@pytest.mark.parametrize(
    ("there", "goes"),
    [
        ([NAMESPACE], True),
        ([], False),
        ([{**NAMESPACE, "metadata": {"name": "kubegpu"}}], False),
        ([NAMESPACE, inside("mine")], False),
        ([NAMESPACE, inside("p", **{"app.kubernetes.io/managed-by": "kubegpu.nodes",
                                    "app.kubernetes.io/name": "amd-device-plugin"})], True),
        ([NAMESPACE, inside("p", **{"app.kubernetes.io/managed-by": "kubegpu.nodes",
                                    "app.kubernetes.io/name": "nvidia-device-plugin"})], False),
        # A plugin of another vendor without a pod.
        ([NAMESPACE, {**inside("p", **{"app.kubernetes.io/managed-by": "kubegpu.nodes",
                                       "app.kubernetes.io/name": "intel-device-plugin"}),
                      "kind": "DaemonSet"}], False),
    ],
)  # fmt: skip
def test_the_namespace_goes_with_the_last_plugin_in_it(there, goes):
    made = plan("amd", {}, {}, existing=there, teardown=True)
    assert made["objects"] == []
    assert [one["kind"] for one in made["absent"]][:2] == ["DaemonSet", "DaemonSet"]
    assert ("Namespace" in [one["kind"] for one in made["absent"]]) is goes


def test_a_namespace_of_somebody_else_is_left_as_it_is():
    theirs = {**NAMESPACE, "metadata": {"name": "kubegpu"}}
    made = plan("amd", {}, {}, existing=[theirs])
    assert "Namespace" not in [one["kind"] for one in made["objects"]]
    assert made["reasons"] == ["Namespace kubegpu was there before and is left as it is"]


def test_an_old_card_for_the_screen_beside_nvidias_is_not_waited_for():
    radeon = {**amd_node()["gpus"][0], "kernel_driver": "radeon"}
    facts = node(gpus=[*node()["gpus"], radeon])
    made = plan("amd", {}, {"a": {"gpu_node": facts}})
    assert (made["expected"], made["unknown"]) == ({}, {})
    served = node(
        gpus=[*node()["gpus"], {**radeon, "kernel_driver": "amdgpu"}],
        device_nodes=amd_node()["device_nodes"][:2],
    )
    made = plan("amd", {}, {"a": {"gpu_node": served}})
    assert made["expected"]["a"]["resources"] == {"amd.com/gpu": 1}
