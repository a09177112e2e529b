# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The SELinux types of DaemonSets: where it is enforcing, and where a run covers other nodes."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin import plan as nvidia
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin import vendor_plan
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.selinux import (
    enforcing,
    selinux_part,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring import plan as monitoring
from tests.unit.fixtures.node_facts import P4, node

DEVICES, FEATURES = "container_device_plugin_t", "container_device_plugin_init_t"
OFF = ("disabled", "permissive", None)
# For an enabled profiling counter the exporter has a capability, and no privileges.
SLICES = {
    name: {"sharing": {"timeSlicing": {"resources": [{"name": "gpu", "replicas": count}]}}}
    for name, count in (("two", 2), ("four", 4))
}


def hosts(mode):
    return {"a": {"gpu_node": node(gpus=[P4], selinux__mode=mode)}, "b": {"gpu_node": {}}}


def types(made):
    """The types by DaemonSet; None: a container has none."""
    found = {}
    for item in made["objects"]:
        if item["kind"] != "DaemonSet":
            continue
        pod = item["spec"]["template"]["spec"]
        containers = [*pod.get("initContainers", ()), *pod["containers"]]
        found[item["metadata"]["name"].removeprefix("kubegpu-")] = {
            (one["securityContext"].get("seLinuxOptions") or {}).get("type") for one in containers
        }
    return found


def plan(part, mode, existing=(), **options):
    plans = {
        "nvidia": nvidia.plan,
        "amd": lambda *arguments, **more: vendor_plan.plan("amd", *arguments, **more),
        "monitoring": monitoring.plan,
    }
    made = plans[part](options, hosts(mode), existing=existing)
    assert made["action"] == "apply", made
    return made


@pytest.mark.parametrize(
    ("part", "options", "expected"),
    [
        ("nvidia", {}, {"nvidia-device-plugin": {DEVICES}}),
        ("nvidia", {"feature_discovery": True},
         {"nvidia-device-plugin": {DEVICES}, "gpu-feature-discovery": {FEATURES}}),
        ("nvidia", {"feature_discovery": True, "feature_discovery_api": True},
         {"nvidia-device-plugin": {DEVICES}, "gpu-feature-discovery": {"container_device_t"}}),
        # The containers that read the node's label, too.
        ("nvidia", {"configs": SLICES, "default_config": "two"},
         {"nvidia-device-plugin": {DEVICES}}),
        # A privileged container has spc_t.
        ("nvidia", {"feature_discovery": True, "feature_discovery_privileged": True},
         {"nvidia-device-plugin": {DEVICES}, "gpu-feature-discovery": {None}}),
        ("nvidia", {"pass_device_specs": True}, {"nvidia-device-plugin": {None}}),
        ("amd", {}, {"amd-device-plugin": {DEVICES}}),
        ("amd", {"health": True}, {"amd-device-plugin": {None}}),
        ("monitoring", {}, {"dcgm-exporter": {DEVICES}}),
    ],
)  # fmt: skip
def test_types_where_selinux_is_enforcing(part, options, expected):
    made = plan(part, "enforcing", **options)
    assert types(made) == expected
    for mode in OFF:
        assert {text for one in types(plan(part, mode, **options)).values() for text in one} == {
            None
        }
    # The rest is the same.
    plain = copy.deepcopy(made["objects"])
    for item in plain:
        pod = (item.get("spec") or {}).get("template", {}).get("spec", {})
        for one in [*pod.get("initContainers", ()), *pod.get("containers", ())]:
            one["securityContext"].pop("seLinuxOptions", None)
    assert plain == plan(part, "disabled", **options)["objects"]


@pytest.mark.parametrize("part", ["nvidia", "amd", "monitoring"])
def test_a_run_on_other_nodes_leaves_the_type(part):
    made = plan(part, "enforcing")
    (managed,) = (one for one in made["objects"] if one["kind"] == "DaemonSet")
    # Of the exporter only this part is read.
    seen = {"kind": "DaemonSet", "metadata": managed["metadata"], **selinux_part(managed)}
    assert types(plan(part, "disabled", existing=[seen])) == types(made)
    del seen["spec"]
    assert types(plan(part, "disabled", existing=[seen])) != types(made)


def test_all_daemonsets_of_the_plugin_keep_their_types():
    options = {"feature_discovery": True}
    made = plan("nvidia", "enforcing", **options)
    # The cluster shows the one of the plugin.
    existing = [
        one for one in made["objects"] if one["metadata"]["name"] == "kubegpu-nvidia-device-plugin"
    ]
    assert types(plan("nvidia", None, existing, **options)) == types(made)


def test_enforcing_is_a_fact_of_one_host():
    assert enforcing(hosts("enforcing"))
    assert not any(enforcing(hosts(mode)) for mode in OFF)
    assert not enforcing({"a": {}, "b": {"gpu_node": {"selinux": None}}})
