# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a plan has of device plugins without a cluster, against Kubernetes' own schemas."""

from __future__ import annotations

import itertools

import kubernetes_validate
import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.kubegpu.nodes.plugins.filter.gpu_plan import gpu_plan
from tests.unit.fixtures.kernel_gpus import amd_node, intel_node
from tests.unit.fixtures.node_facts import P4, node
from tests.unit.fixtures.plans import nvidia_device_plugin_plan

#: The oldest and the newest Kubernetes that is supported.
KUBERNETES = ("1.28", "1.37")
SLICING = {"sharing": {"timeSlicing": {
    "renameByDefault": True, "failRequestsGreaterThanOne": True,
    "resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}}  # fmt: skip
MPS = {"sharing": {"mps": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}}
MIXED = {"flags": {"migStrategy": "mixed"}}
WISHES = {
    "plain": {},
    "default runtime": {"runtime_class": ""},
    "every flag": {
        "fail_on_init_error": False,
        "mig_strategy": "single",
        "pass_device_specs": True,
        "device_list_strategy": ["envvar", "volume-mounts", "cdi-annotations", "cdi-cri"],
        "device_id_strategy": "index",
        "driver_root": "/run/nvidia/driver",
        "container_driver_root": "/driver",
        "nvidia_ctk_path": "/usr/local/bin/nvidia-ctk",
        "gds_enabled": True,
        "mofed_enabled": True,
        "environment": {"NVIDIA_CDI_HOOK_PATH": "/usr/bin/nvidia-cdi-hook", "NUMBER": 1},
    },
    "pods": {
        "image": "mirror.example:5000/k8s-device-plugin",
        "digest": "sha256:" + "a" * 64,
        "image_pull_policy": "Always",
        "pull_secret": "mirror",
        "priority_class": "",
        "tolerations": [{"operator": "Exists"}],
        "node_selector": {"pool": "gpu"},
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "max_unavailable": "25%",
        "annotations": {"example.com/owner": "team"},
        "namespace": "gpus",
    },
    "no tolerations": {"tolerations": []},
    "one config": {"configs": {"default": SLICING}},
    "configs": {"configs": {"shared": SLICING, "mig": MIXED, "whole": {}}},
    "mps for some": {"configs": {"mps": MPS, "shared": SLICING}, "mps_root": "/srv/mps"},
    "mps for all": {"configs": {"mps": MPS}, "default_config": "mps"},
    "feature discovery": {"feature_discovery": True},
    "feature discovery by its api": {
        "feature_discovery": True,
        "feature_discovery_api": True,
        "feature_discovery_privileged": True,
        "configs": {"mig": MIXED, "mps": MPS},
    },
}  # fmt: skip


def planned(vendor, options):
    """Return the plan of a device plugin, with these variables of its role, for no node."""
    part = f"{vendor}_device_plugin"
    return gpu_plan({}, {f"{part}_{name}": one for name, one in options.items()}, [part])[part]


def objects_of(vendor, options):
    plan = planned(vendor, options)
    assert plan["action"] == "apply", plan["refusals"]
    return plan["objects"]


@pytest.mark.parametrize(("version", "wish"), list(itertools.product(KUBERNETES, WISHES)))
def test_kubernetes_own_schema_takes_every_object(version, wish):
    objects = objects_of("nvidia", WISHES[wish])
    assert len(objects) >= 4
    for one in objects:
        kubernetes_validate.validate(one, version, strict=True)


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize(
    ("vendor", "wish"),
    [
        ("amd", {}),
        ("amd", {"labeller": True, "health": True, "pull_secret": "own"}),
        ("intel", {"resources": {"requests": {"cpu": "40m"}}}),
        ("intel", {"allow_ids": [], "monitoring": True}),
    ],
)
def test_kubernetes_own_schema_takes_the_plugins_of_amd_and_intel(version, vendor, wish):
    for one in objects_of(vendor, wish):
        kubernetes_validate.validate(one, version, strict=True)


def test_a_wrong_option_of_amd_and_intel_is_named():
    plan = planned("amd", {"version": "latest"})
    assert plan["action"] == "refuse"
    assert "amd_device_plugin_version" in plan["refusals"][0]["cause"]


@pytest.mark.parametrize("version", KUBERNETES)
def test_the_schema_refuses_what_is_wrong(version):
    wrong = objects_of("nvidia", {})[-1]
    wrong["spec"]["template"]["spec"]["containers"][0]["securityContext"]["privilegd"] = True
    with pytest.raises(kubernetes_validate.ValidationError, match="privilegd"):
        kubernetes_validate.validate(wrong, version, strict=True)


@pytest.mark.parametrize("wish", WISHES)
def test_what_the_api_server_refuses_beyond_its_schema(wish):
    """Rules of the API server's own code that no schema has."""
    for one in objects_of("nvidia", WISHES[wish]):
        if one["kind"] != "DaemonSet":
            continue
        spec = one["spec"]["template"]["spec"]
        labels = one["spec"]["template"]["metadata"]["labels"]
        assert one["spec"]["selector"]["matchLabels"].items() <= labels.items()
        assert not (spec.get("hostPID") and spec.get("shareProcessNamespace"))
        volumes = {volume["name"] for volume in spec["volumes"]}
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            paths = [mount["mountPath"] for mount in container["volumeMounts"]]
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
            assert len(paths) == len(set(paths))
            names = [pair["name"] for pair in container["env"]] if "env" in container else []
            assert len(names) == len(set(names))
            context = container["securityContext"]
            if context.get("allowPrivilegeEscalation") is False:
                assert "privileged" not in context
                assert "add" not in context["capabilities"]


def offered(facts, **variables):
    return gpu_plan(facts, variables, ["gpu_verify"])["gpu_verify"]


def test_errors_of_the_filters_name_the_option():
    plan = planned("nvidia", {"configs": {"a": {"x": 1}}})
    assert "nvidia_device_plugin_configs[a]" in plan["refusals"][0]["cause"]
    with pytest.raises(AnsibleFilterError, match="needs the fact gpu_node"):
        offered({})
    with pytest.raises(AnsibleFilterError, match="unknown config 'b'"):
        offered(node(), nvidia_device_plugin_configs={"a": {}}, nvidia_device_plugin_config="b")
    with pytest.raises(AnsibleFilterError, match="has to be true or false"):
        offered(node(), nvidia_device_plugin_resource_renaming="maybe")


def test_truth_in_words_is_taken():
    (daemon_set,) = [
        one for one in objects_of("nvidia", {"gds_enabled": "yes"}) if one["kind"] == "DaemonSet"
    ]
    pairs = daemon_set["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "GDS_ENABLED", "value": "true"} in pairs


def test_expected_and_plan_agree():
    facts = node(gpus=[P4, P4])
    wishes = {"configs": {"shared": SLICING}}
    shown = offered(
        facts,
        nvidia_device_plugin_configs={"shared": SLICING},
        nvidia_device_plugin_config="shared",
    )["resources"]
    assert shown == {"nvidia.com/gpu.shared": 8}
    made = nvidia_device_plugin_plan(wishes, {"a": {"gpu_node": facts, "config": "shared"}})
    assert made["expected"]["a"]["resources"] == shown


def test_s17_what_a_node_of_each_vendor_should_offer():
    nvidia = node()
    assert offered(nvidia)["resources"] == {"nvidia.com/gpu": 1}
    assert offered(amd_node())["resources"] == {"amd.com/gpu": 2}
    assert offered(intel_node("i915", "xe"), intel_device_plugin_shared=2)["resources"] == {
        "gpu.intel.com/i915": 2,
        "gpu.intel.com/xe": 2,
    }
    assert offered(node(gpus=[]))["resources"] == {}
    both = amd_node()
    both["gpus"] = [*nvidia["gpus"], *both["gpus"]]
    assert offered(both)["resources"] == {"nvidia.com/gpu": 1, "amd.com/gpu": 2}
    for one in both["device_nodes"]:
        one["partition"] = "cpx_nps4"
    # Of what is unknown any number will do, but none.
    assert offered(both)["resources"] == {"nvidia.com/gpu": 1}
    assert offered(both)["some_of"] == ["amd"]
    both["gpus"] = both["gpus"][1:]
    assert offered(both)["resources"] is None
    assert offered(both)["some_of"] == ["amd"]
    assert offered(nvidia)["some_of"] == []
    virtual = intel_node("xe")
    virtual["gpus"][0]["virtual_function"] = True
    assert offered(virtual)["some_of"] == ["intel"]
    # Without its driver, the number of MIG devices is unknown.
    silent = node(nvml=None)
    assert offered(silent, nvidia_device_plugin_mig_strategy="mixed")["some_of"] == ["nvidia"]
    with pytest.raises(AnsibleFilterError, match="gpu_plan: unknown config"):
        offered(nvidia, nvidia_device_plugin_config="b")
    with pytest.raises(AnsibleFilterError, match="intel_device_plugin_shared"):
        offered(intel_node("xe"), intel_device_plugin_shared=0)
