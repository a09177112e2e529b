# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _hosts
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._hosts import (
    gpu_vendor,
    host_groups,
    planned_parts,
    wrong_values,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.hosts import changed_hosts
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._variables_data import NODE_ROLES
from tests.unit.fixtures.kernel_gpus import gpu
from tests.unit.fixtures.node_facts import P4
from tests.unit.fixtures.node_facts import node as node_of
from tests.unit.fixtures.plans import registered


def select_hosts(hosts, hostvars, select):
    return _hosts.select_hosts(hosts, registered(hostvars), select)


@pytest.mark.parametrize(
    ("vendors", "group"),
    [([], "none"), (["amd"], "amd"), (["intel", "nvidia"], "nvidia"), (["intel"], "intel")],
)
def test_group_of_a_node(vendors, group):
    assert gpu_vendor([{"vendor": vendor} for vendor in vendors]) == group


def test_hosts_with_facts_work_and_failures():
    read = host()
    hostvars = {
        "a": {**read, "nvidia_driver_plan": {}, "cuda_toolkit_plan": {"work": True}},
        "b": {**read, "nvidia_driver_plan": {"work": False}, "kubegpu_begun": True},
        "failed while it was planned": read,
        "unreachable": {"ansible_facts": {}, "kubegpu_failure": {"task": "Install"}},
        "of another release": {"ansible_facts": {"gpu_node": {"driver": {}}}},
        "never asked": {},
    }

    def select(word):
        return select_hosts([*hostvars, "not in the inventory"], hostvars, word)

    assert select("facts") == ["a", "b", "failed while it was planned"]
    assert select("work") == ["a"]
    assert select("waiting") == [host for host in hostvars if host != "b"]
    assert select("failed") == ["unreachable"]
    assert select("not_failed") == [host for host in hostvars if host != "unreachable"]
    assert select_hosts(["a"], {}, "facts") == select_hosts(["a"], {}, "work") == []


def test_hosts_with_a_mig_layout_to_restore_and_those_that_a_teardown_leaves():
    failures = {"refused": {"refused": True}, "kept": {"refused": True, "kept": True}}
    hostvars = {
        "no record": {"ansible_facts": {"gpu_node": {"gpus": [], "mig": {"managed": False}}}},
        "other vendor": {"ansible_facts": {"gpu_node": {"gpus": []}}},
        "unreachable": {},
        **{
            name: {
                "ansible_facts": {"gpu_node": {"gpus": [], "mig": {"managed": True}}},
                "kubegpu_failure": failure,
            }
            for name, failure in failures.items()
        },
    }
    assert select_hosts([*hostvars], hostvars, "mig_teardown") == ["refused", "kept"]
    assert select_hosts([*hostvars], hostvars, "not_kept") == [
        host for host in hostvars if host != "kept"
    ]


def test_hosts_by_vendor_and_of_a_verification():
    hostvars = {
        "gpu1": host("intel", "nvidia"),
        "off": host("nvidia", gpu_verify_enabled="no"),
        "amd1": host("amd"),
        "cpu1": host(),
        "unreachable": {},
    }
    assert select_hosts([*hostvars], hostvars, "nvidia") == ["gpu1", "off"]
    assert select_hosts([*hostvars], hostvars, "none") == ["cpu1"]
    assert select_hosts([*hostvars], hostvars, "verified") == [
        "gpu1",
        "amd1",
        "cpu1",
        "unreachable",
    ]
    assert select_hosts([*hostvars], hostvars, "gpu") == ["gpu1", "off", "amd1"]
    assert select_hosts([*hostvars], hostvars, "amd") == ["amd1"]
    # No driver for containers serves its second vendor's card, and no label selects it.
    assert select_hosts([*hostvars], hostvars, "intel") == []
    gpus = hostvars["gpu1"]["ansible_facts"]["gpu_node"]["gpus"]
    gpus[0]["kernel_driver"] = "i915"
    assert select_hosts([*hostvars], hostvars, "intel") == ["gpu1"]


def test_hosts_that_get_an_exporter_of_their_own():
    monitored = {"gpu_monitoring_enabled": "yes"}
    cluster = {"kubegpu_kube": {"kubeconfig": "/kube"}}
    lost = host(**monitored)
    lost["ansible_facts"]["gpu_node"]["exporter"] = {"expected_gpus": ["0000:15:00.0"]}
    hostvars = {
        "gpu1": host("nvidia", **monitored, gpu_monitoring_host_plan={"work": True}),
        "amd1": host("amd", **monitored, gpu_monitoring_host_plan={"work": False}),
        "off": host("nvidia"),
        "in a cluster": host("nvidia", **monitored, **cluster),
        "in a cluster, by choice": host(
            "nvidia", **monitored, **cluster, gpu_monitoring_method="textfile"
        ),
        "kubernetes": host("nvidia", **monitored, gpu_monitoring_method="kubernetes"),
        "without a GPU": host(**monitored),
        "whose last GPU is lost": lost,
        "failed": host("nvidia", **monitored, kubegpu_failure={"task": "Install"}),
        "unreachable": monitored,
    }
    assert select_hosts([*hostvars], hostvars, "monitored") == [
        "gpu1", "amd1", "in a cluster, by choice", "whose last GPU is lost",
    ]  # fmt: skip
    assert select_hosts([*hostvars], hostvars, "monitoring_work") == ["gpu1"]


def test_a_host_that_is_refused_or_was_not_planned_keeps_its_target_in_prometheus():
    plans = {"change": "change", "same": "none", "refused": "refuse", "failed": "change"}
    hostvars = {
        name: host("nvidia", gpu_monitoring_enabled=True, gpu_monitoring_host_plan={"action": one})
        for name, one in plans.items()
    }
    hostvars["failed"]["kubegpu_failure"] = {"task": "Install"}
    hostvars["stopped"] = host("nvidia", gpu_monitoring_enabled=True)
    hostvars["off"] = host("nvidia", gpu_monitoring_host_plan={"action": "none"})
    assert select_hosts([*hostvars], hostvars, "scraped") == ["change", "same"]


@pytest.mark.parametrize(
    ("exporter", "there"),
    [
        (None, False),
        ({"method": "", "packages_managed": False}, False),
        ({"method": "textfile"}, True),
        ({"method": "", "packages_managed": True}, True),
    ],
)
def test_hosts_with_an_exporter_of_this_collection(exporter, there):
    found = host("nvidia")
    found["ansible_facts"]["gpu_node"]["exporter"] = exporter
    assert bool(select_hosts(["a"], {"a": found}, "exporter")) is there


@pytest.mark.parametrize(
    ("plan", "root", "asked"),
    [
        ({"docker": True}, "/", True),
        ({"docker": True}, "/tree", False),
        ({"docker": False}, "/", False),
    ],
)
def test_runtimes_of_a_tree_are_not_asked(plan, root, asked):
    hostvars = {"a": {"nvidia_container_toolkit_plan": plan, "kubegpu_root": root}}
    assert bool(select_hosts(["a"], hostvars, "runtimes")) is asked


@pytest.mark.parametrize(
    ("plan", "kube", "asked"),
    [
        ({"partitions": True}, {"kubeconfig": "/kube"}, True),
        ({"partitions": True}, {}, False),
        ({"partitions": False}, {"kubeconfig": "/kube"}, False),
        (None, {"host": "https://kube"}, False),
    ],
)
def test_a_cluster_is_asked_about_the_nodes_that_would_be_partitioned(plan, kube, asked):
    hostvars = {"a": {"nvidia_mig_plan": plan, "kubegpu_kube": kube}}
    assert bool(select_hosts(["a"], hostvars, "partitions")) is asked


def host(*vendors, loaded="580.126.09", **variables):
    gpus = [
        P4 if vendor == "nvidia" else gpu(vendor, "0000", "0000:00:06.0", None)
        for vendor in vendors
        if vendor
    ]
    return {"ansible_facts": {"gpu_node": node_of(gpus=gpus, driver__loaded=loaded)}, **variables}


class Later(dict):
    """Variables of a host; two depend on a variable that is not defined yet."""

    def get(self, name, default=None):
        if name in ("gpu_monitoring_enabled", "kubegpu_report_dir"):
            raise UndefinedError("'later' is undefined")
        return super().get(name, default)


def test_groups_of_hosts():
    hostvars = {
        "gpu1": host("nvidia", kubegpu_kube={"kubeconfig": "/root/kubeconfig"}),
        "gpu2": host("amd", kubegpu_kube={"kubeconfig": ""}),
        "cpu1": host(kubegpu_kube={"host": "https://127.0.0.1:6443"}),
        "gpu3": host("nvidia", gpu_monitoring_enabled=True, kubegpu_report_dir="report"),
        "unreachable": {},
        "unreachable, with a report": {"kubegpu_report_dir": "report"},
        "later": Later(host("nvidia")),
    }
    assert host_groups([*hostvars, "not in the inventory"], hostvars) == [
        {"host": "gpu1", "groups": ["kubegpu_nvidia", "kubegpu_gpu", "kubegpu_cluster"]},
        {"host": "gpu2", "groups": ["kubegpu_amd", "kubegpu_gpu"]},
        {"host": "cpu1", "groups": ["kubegpu_none", "kubegpu_cluster"]},
        {
            "host": "gpu3",
            "groups": ["kubegpu_nvidia", "kubegpu_gpu", "kubegpu_monitored", "kubegpu_reported"],
        },
        {
            "host": "later",
            "groups": ["kubegpu_nvidia", "kubegpu_gpu", "kubegpu_monitored", "kubegpu_reported"],
        },
    ]


def test_a_host_with_a_wrong_value_is_refused_where_it_counts():
    driver = {"part": "driver", "cluster": False}
    labels = {"part": "labels", "cluster": True}
    kept = {
        "wrong": {"gpu1": [driver], "gpu2": [labels], "cpu1": [driver], "cpu2": [driver, labels]}
    }
    cluster = {"kubegpu_kube": {"kubeconfig": "/root/kubeconfig"}}
    hostvars = {
        "gpu1": host("nvidia", __kubegpu_variables=kept, **cluster),
        "gpu2": host("nvidia", __kubegpu_variables=kept),
        "gpu3": host("nvidia", __kubegpu_variables=kept),
        "cpu1": host(__kubegpu_variables=kept, **cluster),
        "cpu2": host(__kubegpu_variables=kept, **cluster),
    }
    assert {one["host"]: one["groups"] for one in host_groups([*hostvars], hostvars)} == {
        "gpu1": ["kubegpu_refused", "kubegpu_failed"],
        "gpu2": ["kubegpu_nvidia", "kubegpu_gpu"],
        "gpu3": ["kubegpu_nvidia", "kubegpu_gpu"],
        "cpu1": ["kubegpu_none", "kubegpu_cluster"],
        "cpu2": ["kubegpu_refused", "kubegpu_failed"],
    }


def test_what_a_run_changed_is_verified():
    labels = {"nodes": {"labelled": {"changed": True}}}
    changed = {"nvidia_driver_result": {"changed": True}}
    hostvars = {
        "changed": host("nvidia", **changed),
        "labelled": host("nvidia", gpu_node_labels_result=labels),
        "next to a labelled one": host("nvidia", gpu_node_labels_result=labels),
        "plugin": host("nvidia", nvidia_device_plugin_result={"changed": True}),
        "requested": host("nvidia", gpu_verify_all="yes"),
        "waits for a reboot": host(
            "nvidia", nvidia_driver_result={"changed": True, "reboot_required": True}
        ),
        "no driver yet": host("nvidia", loaded=None, **changed),
        "switched off": host("nvidia", gpu_verify_enabled="false", **changed),
        "not read": changed,
        "failed": host("nvidia", kubegpu_failure={"task": "Install"}, **changed),
    }
    assert changed_hosts([*hostvars], hostvars) == ["changed", "labelled", "plugin", "requested"]
    assert select_hosts([*hostvars], hostvars, "driver") == [*hostvars][:6]


def test_the_mark_is_set_where_a_plan_has_steps_and_no_mark_is_there():
    plan = {"nvidia_driver_plan": {"work": True, "steps": [{"step": "driver"}]}}
    hostvars = {
        "steps": host("nvidia", **plan),
        "asked only": host("nvidia", nvidia_driver_plan={"work": True, "steps": []}),
        "switched off": host("nvidia", gpu_verify_enabled=False, **plan),
        "marked": host("nvidia", **plan),
        "marked now": host("nvidia", kubegpu_due={"changed": True}, **plan),
    }
    hostvars["marked"]["ansible_facts"]["gpu_node"]["verification_due"] = True
    assert select_hosts([*hostvars], hostvars, "begins") == ["steps"]
    assert select_hosts([*hostvars], hostvars, "due") == ["marked", "marked now"]


def test_mig_and_cuda_are_planned_where_they_are_asked_for_or_were_installed():
    hostvars = {
        "mig": host("nvidia", nvidia_mig_config="all-balanced"),
        "cuda": host("nvidia", cuda_toolkit_versions=["12.9"]),
        "libraries": host("nvidia", cuda_toolkit_libraries={"cudnn": "9"}),
        "installed": host("nvidia"),
        "neither": host("nvidia", nvidia_mig_config="", cuda_toolkit_versions=[]),
    }
    for name, there in (("installed", True), ("neither", False)):
        hostvars[name]["ansible_facts"]["gpu_node"]["cuda"] = {"configuration": there}
    short = ["nvidia_driver", "nvidia_container_toolkit"]
    for name, variables in hostvars.items():
        assert planned_parts(variables) == (short if name == "neither" else list(NODE_ROLES))


def test_hosts_whose_cluster_gets_monitoring_or_the_plugin_of_another_vendor():
    hostvars = {
        "dra": host("nvidia", nvidia_dra_driver_enabled="yes"),
        "monitoring": host("nvidia", gpu_monitoring_enabled=True),
        "no GPU": host("", gpu_monitoring_enabled=True),
        "amd": host("amd"),
        "intel": host("intel"),
        "plain": host("nvidia", nvidia_dra_driver_enabled=False, gpu_monitoring_enabled="no"),
        "none": host(""),
        "not read": {},
    }
    assert select_hosts([*hostvars], hostvars, "cluster_parts") == [*hostvars][1:5]
    assert select_hosts([*hostvars], hostvars, "dra_enabled") == ["dra"]


def test_hosts_with_amds_container_toolkit():
    wanted = {"amd_container_toolkit_enabled": True}
    hostvars = {
        "on": host("amd", **wanted, amd_container_toolkit_plan={"work": True}),
        "done": host("amd", **wanted, amd_container_toolkit_plan={"work": False}),
        "off": host("amd"),
        "other": host("nvidia", **wanted),
        "failed": host("amd", **wanted, kubegpu_failure={"task": "x"}),
    }
    assert select_hosts([*hostvars], hostvars, "amd_enabled") == ["on", "done"]
    assert select_hosts([*hostvars], hostvars, "amd_work") == ["on"]
    assert select_hosts([*hostvars], hostvars, "amd_teardown") == []
    node = hostvars["done"]["ansible_facts"]["gpu_node"]
    for there in ("version", "cdi_spec", "interrupted"):
        node["amd_container_toolkit"] = {there: "x"}
        assert select_hosts([*hostvars], hostvars, "amd_teardown") == ["done"]
    # Its package is gone, and a run was killed before the repository was.
    node["amd_container_toolkit"] = {}
    node["repositories"] = [
        {"file": "/etc/apt/sources.list.d/kubegpu-amd-container-toolkit.sources"}
    ]
    assert select_hosts([*hostvars], hostvars, "amd_teardown") == ["done"]


def test_hosts_with_amds_driver():
    wanted = {"amd_driver_enabled": "yes"}
    hostvars = {
        "on": host("amd", **wanted, amd_driver_plan={"work": True}),
        "done": host("amd", **wanted, amd_driver_plan={"work": False}),
        "other": host("nvidia", **wanted),
    }
    assert select_hosts([*hostvars], hostvars, "amd_enabled") == ["on", "done"]
    assert select_hosts([*hostvars], hostvars, "amd_work") == ["on"]
    assert select_hosts([*hostvars], hostvars, "work") == []
    node = hostvars["done"]["ansible_facts"]["gpu_node"]
    # Somebody else's packages stay.
    node["amd_driver"] = {"packages": {"amdgpu-dkms": "1"}, "managed": False}
    assert select_hosts([*hostvars], hostvars, "amd_teardown") == []
    node["amd_driver"]["managed"] = True
    assert select_hosts([*hostvars], hostvars, "amd_teardown") == ["done"]
    wrong = {"variable": "amd_driver_release", "part": "AMD driver", "cluster": False}
    checked = {"wrong": {"a": [wrong]}}
    assert wrong_values("a", host("amd", __kubegpu_variables=checked, **wanted)) == [wrong]
    toolkit_only = {"amd_container_toolkit_enabled": True}
    assert not wrong_values("a", host("amd", __kubegpu_variables=checked, **toolkit_only))


def test_a_wrong_value_of_amds_toolkit_refuses_the_hosts_that_use_it():
    wrong = {"variable": "amd_container_toolkit_docker", "part": "AMD toolkit", "cluster": False}
    checked = {"wrong": {"a": [wrong]}}
    using = host("amd", __kubegpu_variables=checked, amd_container_toolkit_enabled=True)
    assert wrong_values("a", using) == [wrong]
    assert not wrong_values("a", host("amd", __kubegpu_variables=checked))
    assert not wrong_values("a", host("nvidia", __kubegpu_variables=checked))


def test_a_plan_of_a_role_is_newer_than_that_of_the_run():
    def result(**plans):
        return {"plans": {"gpu1": plans}}

    variables = {
        "inventory_hostname": "gpu1",
        "kubegpu_plans": result(nvidia_driver={"work": True}, cuda_toolkit={"work": True}),
        "nvidia_driver_plan": result(nvidia_driver={"work": False}),
        # With a part that was planned together with it, before the driver's role.
        "nvidia_mig_plan": result(nvidia_driver={"work": True}, nvidia_mig={"work": False}),
        "cuda_toolkit_plan": {"skipped": True},
        "amd_driver_plan": {},
    }
    assert {name: plan["work"] for name, plan in _hosts.plans(variables).items()} == {
        "nvidia_driver": False, "cuda_toolkit": True, "nvidia_mig": False,
    }  # fmt: skip
    assert _hosts.plans({"inventory_hostname": "gpu2", **{"kubegpu_plans": result()}}) == {}
