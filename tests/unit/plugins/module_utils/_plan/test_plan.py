# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts of a node, planned together and after one another."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.parts import PARTS
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.plan import (
    in_cluster,
    plan_node,
    variables_of,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.types import Run
from tests.unit.fixtures.driver_cases import facts
from tests.unit.fixtures.node_facts import installed, node

RUN = Run(controller="2.19.0", today="2026-11-28")
NVIDIA = list(PARTS)[:4]
LOADED = "distro 535.104.05 open services"
OLD = "distro 580.126.09 open held loaded=570.86.15 services"


def test_parts_of_one_call_are_planned_for_what_the_driver_will_be():
    asked = {"nvidia_driver_branch": "580", "cuda_toolkit_versions": ["13.0"]}
    plans = plan_node(facts("T4", "u24"), asked, NVIDIA, RUN)
    assert list(plans) == NVIDIA
    assert plans["nvidia_driver"]["action"] == "install"
    assert plans["nvidia_driver"]["next_driver"].startswith("580")
    # Without a driver of 580 it is refused; the loaded one is none.
    assert plans["cuda_toolkit"]["action"] == "install"
    alone = plan_node(facts("T4", "u24", LOADED), asked, ["cuda_toolkit"], RUN)
    assert alone["cuda_toolkit"]["action"] == "refuse"


def test_after_the_driver_its_result_counts():
    asked = {"cuda_toolkit_versions": ["13.0"], "nvidia_driver_result": {"next_driver": "580"}}
    known = facts("T4", "u24", LOADED)
    plans = plan_node(known, asked, ["cuda_toolkit"], RUN)
    assert plans["cuda_toolkit"]["action"] == "install"


@pytest.mark.parametrize("role", PARTS)
def test_each_part_is_refused_for_a_wrong_value(role):
    prefix = PARTS[role].role or role
    wrong = {f"{prefix}_repository": "half", "nvidia_mig_config": 7, "amd_driver_hold": "perhaps"}
    plan = plan_node(node(), wrong, [role], RUN)[role]
    assert plan["action"] == "refuse" and plan["work"] is True
    assert any(prefix in reason for reason in plan["reasons"])
    assert plan["refusals"][0]["cause"]


def test_a_variable_without_a_value_refuses_the_parts_that_need_it():
    wrong = {"nvidia_driver_branch": InputError("nvidia_driver_branch has no value.")}
    plans = plan_node(installed(), {}, NVIDIA, RUN, wrong=wrong)
    assert plans["nvidia_driver"]["reasons"] == ["nvidia_driver_branch has no value."]
    assert plans["nvidia_container_toolkit"]["action"] != "refuse"


def test_facts_of_another_release_are_named():
    known = {key: one for key, one in node().items() if key != "container_toolkit"}
    plan = plan_node(known, {}, ["nvidia_container_toolkit"], RUN)["nvidia_container_toolkit"]
    assert plan["action"] == "refuse" and "another release" in plan["reasons"][0]


def test_a_driver_that_is_not_managed_has_an_empty_plan():
    plans = plan_node(facts("T4", "u24", OLD), {"nvidia_driver_enabled": "no"}, NVIDIA, RUN)
    assert plans["nvidia_driver"] == {}


def test_keys_of_mappings_and_values_of_none_are_defaults():
    mirror = {"url": "https://mirror.example/cuda/{distribution}/{architecture}", "name": None}
    asked = {"nvidia_driver_repository": mirror, "nvidia_driver_branch": None}
    asked["nvidia_driver_source"] = "nvidia"
    plan = plan_node(facts("T4", "u24"), asked, ["nvidia_driver"], RUN)["nvidia_driver"]
    assert plan["repository"]["name"] == "kubegpu-nvidia-driver"
    assert plan["repository"]["url"].startswith("https://mirror.example/cuda/ubuntu2404/")


def test_variables_that_plans_depend_on_are_those_of_the_roles():
    names = variables_of(PARTS)
    assert {"nvidia_driver_branch", "nvidia_driver_reboot", "nvidia_driver_repository"} <= names
    assert not {"nvidia_driver_controller", "nvidia_driver_today", "kubegpu_proxy"} & names


@pytest.mark.parametrize(("drains", "kept"), [(True, False), (False, True)])
def test_pods_that_are_drained_are_no_reason_against_a_layout(drains, kept):
    row = {"name": "node1", "labels": {"a": "b"}, "resources": {"nvidia.com/gpu": {"pods": []}}}
    answer = {"nodes": {"node1": row}, "node_of": {"gpu1": "node1"}}
    found = in_cluster("gpu1", answer, drains=drains)
    assert ("resources" in found) is kept
    # Another manager of MIG is seen in any case.
    assert found["labels"] == row["labels"] and found["name"] == "node1"
    assert in_cluster("gpu2", answer, drains=drains) == {}
    failed = {"cause": "It does not answer.", "evidence": "Seen."}
    assert in_cluster("gpu1", failed, drains=drains) == {"error": "It does not answer. Seen."}


def exporter(hosts=None, **variables):
    """Return the plan of the exporter of a host; its text files have a folder."""
    found = node()
    found["exporter"]["textfile_directories"] = ["/var/lib/node_exporter"]
    given = {f"gpu_monitoring_{name}": value for name, value in variables.items()}
    given["inventory_hostname"] = "gpu1"
    run = Run(hosts=hosts)
    return plan_node(found, given, ["gpu_exporter"], run)["gpu_exporter"]


def test_counters_of_an_exporter_are_the_text_of_their_file():
    made = exporter(method="container")
    assert (made["action"], made["method"], made["work"]) == ("change", "container", True)
    assert "DCGM_FI_DEV_GPU_TEMP, gauge, " in made["counters"]
    assert "DCGM_FI_PROF_" in made["counters"]
    assert "DCGM_FI_PROF_" not in exporter(method="container", profiling=False)["counters"]
    own = exporter(method="container", counters=["DCGM_FI_DEV_GPU_TEMP, gauge, Heat."])
    assert own["counters"] == "DCGM_FI_DEV_GPU_TEMP, gauge, Heat."
    assert own["changes"][0].startswith("set up nvcr.io/nvidia/k8s/dcgm-exporter:")
    assert own["why"] == [step["reason"] for step in own["steps"]]


@pytest.mark.parametrize(
    "variables",
    [{"counters": ["nothing"]}, {"method": "dcgm"}, {"listen": "x"}, {"profiling": "perhaps"}],
)
def test_wrong_values_of_an_exporter_are_refusals_by_the_variables_name(variables):
    made = exporter(**variables)
    assert (made["action"], made["changes"]) == ("refuse", ["monitoring: refused"])
    assert f"gpu_monitoring_{next(iter(variables))}" in made["reasons"][0]
    assert made["why"] == made["reasons"]


def test_what_prometheus_reads_of_a_host():
    made = exporter(method="container", address="2001:db8::1", listen=":9555")
    assert made["target"] == {
        "host": "gpu1", "job": "kubegpu-dcgm", "scheme": "http", "gpus": made["scrape"]["gpus"],
        "targets": ["[2001:db8::1]:9555"],
    }  # fmt: skip
    made = exporter(method="textfile", address="10.0.0.7", node_exporter_port=9100)
    assert made["target"]["targets"] == ["10.0.0.7:9100"]
    assert exporter(listen="x")["target"]["targets"] == []


def test_a_prometheus_that_is_not_in_the_inventory_is_told():
    told = "gpu_monitoring_prometheus_host is mon1, and the inventory of this run has no such host"
    assert exporter(["gpu1"], prometheus_host="mon1")["warnings"][0].startswith(told)
    for hosts, name in ((["gpu1", "mon1"], "mon1"), (["gpu1"], ""), (None, "mon1")):
        assert exporter(hosts, prometheus_host=name)["warnings"] == []


def test_the_repository_of_the_driver_has_the_packages_of_the_exporter():
    found = installed()
    earlier = {"nvidia_driver": {"next_repository": ""}}
    alone = plan_node(found, {}, ["gpu_exporter"], RUN, earlier)["gpu_exporter"]
    address = alone["repository"]["url"]
    earlier = {"nvidia_driver": {"next_repository": address}}
    made = plan_node(found, {}, ["gpu_exporter"], RUN, earlier)["gpu_exporter"]
    assert made["repository"] is None and made["packages"] == alone["packages"]
