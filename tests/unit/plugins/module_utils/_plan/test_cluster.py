# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host says of the parts of its cluster, and the plan that is made of it."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.cluster import (
    CLUSTER,
    host_row,
    plan_cluster,
    plan_teardown,
    removed_row,
    variables_of_cluster,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.types import (
    CLUSTER_PARTS,
    LABELS,
    Node,
    Run,
)
from tests.unit.fixtures.node_facts import P4, node

PLUGIN, DRA, MONITORING = "nvidia_device_plugin", "nvidia_dra_driver", "gpu_monitoring"
NODE = node(gpus=[P4])
POD = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "kubegpu"},
    "spec": {"nodeName": "n1"}, "status": {"startTime": "2026-01-01T00:00:00Z"},
}  # fmt: skip


def row(part, host="gpu1", plans=None, facts=NODE, **variables):
    return host_row(part, host, Node(facts, variables, Run(), plans or {}, ()))


def planned(part, cluster, **hosts):
    rows = {host: {**row(part, host, **given), "gpu_node": NODE} for host, given in hosts.items()}
    return plan_cluster(part, next(iter(rows.values()), {}), rows, cluster)


def test_the_table_has_the_parts_that_the_action_takes():
    assert tuple(CLUSTER) == (LABELS, *CLUSTER_PARTS)


@pytest.mark.parametrize("part", CLUSTER_PARTS)
@pytest.mark.parametrize("option", ["beside_others", "force_conflicts"])
def test_booleans_are_equal_however_they_are_written(part, option):
    for given, expected in ((True, True), ("yes", True), ("true", True), ("no", False)):
        assert row(part, **{f"{part}_{option}": given})["options"][option] is expected
    with pytest.raises(InputError, match=f"{part}_{option} has to be true or false"):
        row(part, **{f"{part}_{option}": "perhaps"})


@pytest.mark.parametrize("part", CLUSTER_PARTS)
def test_hosts_that_differ_are_refused_with_the_names_of_their_variables(part):
    kube = {"kubegpu_kube": {"host": "https://b", "token": "hunter2"}}
    made = planned(part, {}, a={}, b={"kubegpu_apply": {"field_manager": "other"}, **kube})
    assert made["action"] == "refuse"
    causes = [one["cause"].partition(" differs")[0] for one in made["refusals"]]
    assert {"kubegpu_apply.field_manager", "kubegpu_kube.host"} <= set(causes)
    assert "hunter2" not in json.dumps([made, row(part, **kube)])


@pytest.mark.parametrize("part", CLUSTER_PARTS)
def test_pods_run_on_nodes_that_are_tested_where_the_vendor_has_tests(part):
    options = row(part, gpu_acceptance_required="yes")["options"]
    keys = [one["key"] for one in options.get("tolerations", ())]
    accepted = part not in ("amd_device_plugin", "intel_device_plugin")
    # In addition to those of the role.
    usual = ["nvidia.com/gpu", "CriticalAddonsOnly"]
    assert keys == ([*usual, "kubegpu.nodes/acceptance"] if accepted else [])
    assert "tolerations" not in row(part)["options"]


@pytest.mark.parametrize("part", CLUSTER_PARTS)
def test_a_host_that_said_nothing_is_no_reason_to_fail(part):
    assert planned(part, {"kubernetes": "v1.34.2"})["action"] in ("apply", "refuse")


@pytest.mark.parametrize("part", CLUSTER_PARTS)
def test_a_teardown_of_nothing_removes_no_object_that_it_did_not_see_managed(part):
    made = plan_teardown(part, "kubegpu", {})
    assert made["action"] == "apply" and made["objects"] == []
    assert "Namespace" not in {one["kind"] for one in made["absent"]}


def test_every_variable_that_a_row_reads_is_named():
    names = variables_of_cluster(PLUGIN)
    assert {"nvidia_device_plugin_configs", "nvidia_device_plugin_method", "kubegpu_kube",
            "nvidia_mig_result", "gpu_node_labels_match"} <= names  # fmt: skip
    assert not {name for name in names if name.startswith("__")}


def test_what_roles_of_this_run_did_is_newer_than_the_facts():
    said = row(
        PLUGIN,
        nvidia_container_toolkit_result={
            "runtimes": {"containerd": {"default_runtime": "nvidia", "restarted": True}}
        },
        nvidia_driver_result={"changed": True},
        nvidia_mig_result={"changed": True, "next_devices": [{"address": None}]},
        gpu_node_labels_result={"nodes": {"gpu1": {"added": ["kubegpu.nodes/gpu"]}}},
    )
    assert said["changed"] == "driver, MIG, containerd" and said["new"] and said["planned"]
    assert said["mig"] == [{"address": None}]
    assert said["default_runtime"] == {"containerd": "nvidia", "docker": "", "crio": ""}
    # MIG restarted the plugin's pod itself.
    mig = {"changed": True, "restarted": ["p"]}
    assert row(PLUGIN, nvidia_mig_result=mig)["changed"] == ""


def test_the_values_of_a_login_are_no_part_of_a_row():
    login = {"registry": "r", "username": "u", "password": "hunter2", "other": ""}
    said = row(PLUGIN, nvidia_device_plugin_pull_secret_login=login)
    assert said["login"] == ["registry", "username", "password"]
    assert "hunter2" not in json.dumps(said)


def test_the_driver_of_the_run_counts_for_the_dra_driver():
    plans = {"nvidia_driver": {"next_driver": "580.126.09"}}
    said = row(DRA, plans=plans, nvidia_container_toolkit_runtime_cdi="yes")
    assert (said["driver"], said["cdi"], said["node"]) == ("580.126.09", True, "gpu1")
    assert row(DRA, gpu_node_labels_node_name="n1")["node"] == "n1"
    made = planned(DRA, {}, gpu1={})
    assert made["nodes"]["gpu1"]["resources"] is None


def test_a_pod_of_a_runtime_that_this_run_restarted_is_replaced():
    cluster = {"plugin_objects": [POD], "node_of": {"gpu1": "n1"}}
    result = {"runtimes": {"containerd": {"restarted": True}}}
    made = planned(PLUGIN, cluster, gpu1={"nvidia_container_toolkit_result": result})
    assert [one["node"] for one in made["restarts"]] == ["n1"]
    assert planned(PLUGIN, cluster, gpu1={})["restarts"] == []


@pytest.mark.parametrize(
    ("part", "cluster", "words"),
    [
        (PLUGIN, {"foreign": [{"vendor": "nvidia", "text": "a GPU operator"}]}, "device plugin"),
        ("amd_device_plugin", {"foreign": [{"vendor": "amd", "text": "a GPU operator"}]},
         "device plugin"),
        (MONITORING,
         {"parts": [{"kind": "exporter", "vendor": "nvidia", "managed": False,
                     "text": "a GPU operator"}]},
         "exporter"),
    ],
)  # fmt: skip
def test_beside_what_somebody_else_manages_nothing_is_deployed(part, cluster, words):
    made = planned(part, cluster, gpu1={})
    assert made["action"] == "leave"
    assert made["messages"][-1].startswith(
        f"The cluster has a GPU operator. It is left alone, and this collection deploys no {words}."
    )
    assert f"set {part}_beside_others: true." in made["messages"][-1]
    beside = planned(part, cluster, gpu1={f"{part}_beside_others": "yes"})
    assert beside["action"] == "apply" and beside["objects"]


def test_a_release_of_the_chart_is_seen_in_the_namespace_of_the_plugin():
    chart = {"kind": "device_plugin", "managed": True, "namespace": "kubegpu",
             "name": "kubegpu-nvidia-device-plugin-chart"}  # fmt: skip
    for namespace, there in (("kubegpu", True), ("other", False)):
        given = {"nvidia_device_plugin_namespace": namespace}
        assert planned(PLUGIN, {"parts": [chart]}, gpu1=given)["chart_there"] is there


def test_the_labels_of_all_nodes_are_one_call():
    named = {"gpu_node_labels_match": "name", "gpu_node_labels_node_name": "n2"}
    both = {"gpu_node_labels_extra": {"team": "ml"}, "gpu_node_labels_accelerator_key": ""}
    nodes = planned(LABELS, {}, gpu1=both, gpu2={**named, **both})["nodes"]
    assert list(nodes) == ["gpu1", "gpu2"]
    first, second = nodes.values()
    assert (first["name"], first["machine_id"]) == ("gpu1", NODE["os"]["machine_id"])
    assert (second["name"], second["machine_id"]) == ("n2", "")
    assert first["labels"]["team"] == "ml" and "accelerator" not in first["labels"]
    assert set(first) == {"name", "machine_id", "labels", "annotations", "taints", "drop_taints"}


def test_a_node_without_gpus_has_no_labels_annotations_and_taints():
    given = {
        "gpu_node_labels_annotations": {"a": "b"},
        "gpu_node_labels_taints": [{"key": "gpu", "effect": "NoSchedule"}],
    }
    said = row(LABELS, facts=node(gpus=[]), **given)
    assert (said["labels"], said["annotations"], said["taints"]) == ({}, {}, [])
    said = row(LABELS, **given)
    assert said["annotations"] == {"a": "b"} and said["taints"] == given["gpu_node_labels_taints"]


def test_a_teardown_of_labels_names_the_nodes():
    said = removed_row(LABELS, "gpu1", Node(NODE, {}, Run(), {}, ()))
    assert said == {"name": "gpu1", "machine_id": NODE["os"]["machine_id"]}
    assert removed_row(PLUGIN, "gpu1", Node(NODE, {}, Run(), {}, ())) is None


def test_a_wrong_option_of_the_labels_is_named():
    with pytest.raises(InputError, match="gpu_node_labels_details has to be true or false"):
        row(LABELS, gpu_node_labels_details="perhaps")


@pytest.mark.parametrize("part", CLUSTER_PARTS)
def test_options_of_pods_are_those_of_the_role_and_else_those_of_all_roles(part):
    every = {"priority_class": "all", "annotations": {"by": "all"}}
    own = {"priority_class": "own", "tolerations": []}
    options = row(part, kubegpu_pods=every, **{f"{part}_pods": own})["options"]
    assert options["priority_class"] == "own" and options["tolerations"] == []
    assert options["annotations"] == {"by": "all"}
    made = planned(part, {}, a={}, b={"kubegpu_pods": every})
    causes = {one["cause"].partition(" differs")[0] for one in made["refusals"]}
    assert {f"{part}_pods.priority_class", f"{part}_pods.annotations"} <= causes
