# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters of the verification as a playbook calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.kubegpu.nodes.plugins.filter import (
    gpu_resources_check,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError, Refusal
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._hosts import one_cluster
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.hosts import verification_rows
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._results import RESULTS

PLAYBOOKS = Path(__file__).parents[4] / "playbooks"


def load(name):
    return yaml.safe_load((PLAYBOOKS / f"{name}.yml").read_text(encoding="utf-8"))


def call(module, *arguments, **options):
    name = module.__name__.rpartition(".")[2]
    return module.FilterModule().filters()[name](*arguments, **options)


def report(hostvars, **options):
    return verification_rows([*hostvars], hostvars, "verified", **options)


def agreed(hosts, hostvars, **given):
    return RESULTS["cluster"](hosts, hostvars, **given)


def entry(layer, ok, **more):
    return {"node": "as-it-calls-itself", "layer": layer, "ok": ok, "cause": "", **more}


def test_rows_of_hosts_and_of_the_cluster():
    hostvars = {"gpu1": {"verified": [entry("pci", True)]}, "gpu2": {}, "gpu3": {"verified": []}}
    more = [
        entry("allocatable", False, node="gpu1", cause="Too few.", next_step="Look."),
        entry("allocatable", True, node="worker-9"),
    ]
    rows = report(hostvars, more=more, missing="not read")
    assert [(row["node"], row["pci"], row["allocatable"], row["result"]) for row in rows] == [
        ("gpu1", "ok", "failed", "failed"),
        ("gpu2", None, None, "failed"),
        ("gpu3", None, None, "failed"),
        ("worker-9", None, "ok", "ok"),
    ]
    assert rows[0]["causes"] == ["allocatable: Too few.\nNext step: Look."]
    assert rows[1]["causes"] == ["not read"]
    # The inventory's name counts, not the one that the node calls itself.
    assert rows[0]["layers"][0]["node"] == "gpu1"


def test_only_some_layers_are_columns():
    hostvars = {"gpu1": {"verified": [entry("pci", True), entry("nvml", None, cause="Waits.")]}}
    (row,) = report(hostvars, layers=["nvml"])
    assert row["nvml"] == "not tried" and "pci" not in row
    assert row["not_tried"] == ["nvml: Waits."]


def test_all_hosts_are_of_one_cluster():
    kube = {"kubegpu_kube": {"kubeconfig": "/k", "token": "of one host"}}
    hostvars = {"a": kube, "b": {"kubegpu_kube": {"kubeconfig": "/k"}}, "c": {}}
    said = one_cluster(["a", "b"], hostvars)
    assert said["kubegpu_kube.kubeconfig"] == "/k" and "of one host" not in str(said)
    assert one_cluster([], hostvars) == {}
    with pytest.raises(InputError, match="b and c are not of one cluster"):
        one_cluster(["b", "c"], hostvars)


@pytest.mark.parametrize("name", ["gpu_monitoring_enabled", "nvidia_dra_driver_enabled"])
def test_hosts_of_one_cluster_agree_on_what_is_deployed(name):
    hostvars = {"a": {}, "b": {name: True}, "c": {name: "yes"}, "d": {name: False}}
    for hosts in ("b", "bc", "ad"):
        agreed(list(hosts), hostvars, deployed=True)
    for hosts in ("ab", "ba", "bad"):
        one_cluster(list(hosts), hostvars)
        with pytest.raises(Refusal) as caught:
            agreed(list(hosts), hostvars, deployed=True)
        said = str(caught.value)
        assert f"{name} differs between a and b" in said
        assert "a: False; b: True" in said and "Set it for all hosts of the cluster alike" in said


@pytest.mark.parametrize(
    ("name", "vendors"),
    [
        ("gpu_monitoring_enabled", ["nvidia", "amd", "intel"]),
        ("nvidia_dra_driver_enabled", ["nvidia"]),
    ],
)
def test_hosts_without_gpus_have_no_say_in_what_is_deployed(name, vendors):
    def host(vendor, **variables):
        gpus = [{"vendor": vendor}] if vendor else []
        return {"ansible_facts": {"gpu_node": {"gpus": gpus}}, **variables}

    hostvars = {
        "cpu": host(""), "g1": host("nvidia", **{name: True}), "g2": host("nvidia", **{name: "on"}),
        **{vendor: host(vendor) for vendor in ("nvidia", "amd", "intel")},
    }  # fmt: skip
    agreed(["cpu", "g1", "g2"], hostvars, deployed=True)
    for vendor in ("nvidia", "amd", "intel"):
        if vendor in vendors:
            with pytest.raises(Refusal, match=f"{name} differs"):
                agreed(["cpu", "g1", vendor], hostvars, deployed=True)
        else:
            agreed(["cpu", "g1", vendor], hostvars, deployed=True)


def test_what_is_deployed_follows_the_hosts_with_gpus():
    """A task that runs once follows the first host that is in its role, not of the play."""
    hosts = ["h0", "h1", "h2"]
    for name in ("gpu", "nvidia"):
        for given, expected in (
            ({name: ["other", "h1", "h2"]}, ["h1", "h2"]), ({name: ["other"]}, hosts), ({}, hosts),
        ):  # fmt: skip
            found = agreed(hosts, {host: {} for host in hosts}, **given)
            assert found[f"{name}_hosts"] == expected
    (step,) = load("tasks/cluster_parts")
    assert "ansible.builtin.include_role" in step
    given = step["vars"]
    assert (
        given["__kubegpu_nvidia"]
        == "{{ inventory_hostname in __kubegpu_cluster.result.nvidia_hosts }}"
    )
    wanted = {one["role"]: str(one["wanted"]) for one in given["__kubegpu_parts"]}
    # The device plugin allocates no GPU that the DRA driver still allocates.
    assert [*wanted][1:4] == ["gpu_node_labels", "nvidia_device_plugin", "amd_device_plugin"]
    roles = [one["role"] for one in given["__kubegpu_parts"]]
    assert roles[2:4] == ["nvidia_dra_driver", "nvidia_device_plugin"]
    assert "__kubegpu_dra" in wanted["nvidia_dra_driver"]
    assert "__kubegpu_nvidia" in given["__kubegpu_dra"]
    assert "__kubegpu_nvidia" in wanted["nvidia_device_plugin"]
    assert "inventory_hostname in __kubegpu_cluster.result.gpu_hosts" in wanted["gpu_monitoring"]


@pytest.mark.parametrize("vendor", ["amd", "intel"])
@pytest.mark.parametrize("driver", ["", "vfio-pci"])
def test_vendors_whose_device_plugin_a_cluster_gets(vendor, driver):
    gpu = {"vendor": vendor, "kernel_driver": driver}
    hostvars = {
        name: {"ansible_facts": {"gpu_node": {"gpus": [] if name == "h0" else [gpu]}}}
        for name in ("h0", "h1")
    }
    assert agreed(["h0", "h1"], hostvars)["vendors"] == ([] if driver else [vendor])


def test_who_speaks_to_the_cluster_is_in_the_inventory():
    def hostvars(delegate):
        return {"a": {"kubegpu_kube": {"delegate": delegate}}, "cp1": {}}

    for delegate in ("", "localhost", "cp1"):
        said = one_cluster(["a"], hostvars(delegate))
        assert said["kubegpu_kube.delegate"] == delegate
    with pytest.raises(InputError, match="'cp2', and the inventory of this run has no"):
        one_cluster(["a"], hostvars("cp2"))


def test_s18_a_pod_is_checked():
    container = {"name": "main", "resources": {"requests": {"nvidia.com/gpu": 1}}}
    (problem,) = call(gpu_resources_check, {"kind": "Pod", "spec": {"containers": [container]}})
    assert (problem["severity"], problem["code"]) == ("error", "requests_alone")
    spec = {"containers": [{"name": "main"}]}
    assert call(gpu_resources_check, spec) == []
    assert call(gpu_resources_check, spec, required=True)[0]["code"] == "no_gpu"
    with pytest.raises(AnsibleFilterError, match="gpu_resources_check: There is no pod"):
        call(gpu_resources_check, {"kind": "Service", "spec": {}})


@pytest.mark.parametrize("name", ["parts/cluster_nodes", "tasks/plan_kubernetes", "verify"])
def test_playbooks_that_follow_one_host_ask_whether_all_agree(name):
    assert '"__kubegpu_deployed": true' in json.dumps(load(name))
    (task,) = load("tasks/one_cluster")
    given = task["kubegpu.nodes.fleet_result"]["given"]
    assert given["deployed"] == "{{ __kubegpu_deployed | default(false) }}"
