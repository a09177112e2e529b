# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the DRA driver needs of a cluster, for API servers of several releases (in memory)."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.cluster_preconditions import (
    cluster_preconditions,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.options import read_request
from tests.unit.fixtures.cluster_objects import daemonset
from tests.unit.fixtures.dra import driver_daemonset
from tests.unit.fixtures.dra_cluster import RELEASES, release, seen, standin

FOREIGN = daemonset("nvdp", "kube-system", labels={})
OPERATOR = {
    **daemonset("gpu-operator", "gpu-operator", labels={}, image="nvcr.io/nvidia/gpu-operator:v26"),
}


def told(cluster, domains=False, **options):
    found = cluster_preconditions(read_request(options), cluster, compute_domains=domains)
    return {one.name: one for one in found}


@pytest.mark.parametrize("name", RELEASES)
def test_each_release(name):
    found = told(release(name))
    verdicts = {key: one.verdict for key, one in found.items()}
    old = name == "1.20"
    assert verdicts == {
        "Kubernetes": "missing" if old else "met",
        "resource.k8s.io": "missing" if old else "met",
        "device plugin": "met",
    }
    version, served = RELEASES[name]
    assert found["Kubernetes"].value == version
    assert found["resource.k8s.io"].value == (", ".join(served) or "not served")
    advice = "NVIDIA documents 1.34.2 or later" in found["Kubernetes"].next_step
    assert advice == (name in ("1.32", "1.33"))


def test_on_an_old_cluster_an_upgrade_is_the_next_step():
    found = told(release("1.20"))
    for one in (found["Kubernetes"], found["resource.k8s.io"]):
        assert "Upgrade Kubernetes to 1.34.2 or later" in one.next_step
        assert "keep the device plugin" in one.next_step
    assert found["Kubernetes"].evidence == "/version of the API server: v1.20.2"


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("v1.32.9", "--runtime-config=resource.k8s.io/v1beta1=true"),
        ("v1.33.2", "--runtime-config=resource.k8s.io/v1beta2=true"),
        ("v1.35.1", "serve v1 unless it is switched off"),
    ],
)
def test_how_a_newer_server_is_made_to_serve_it(version, words):
    assert words in told(seen(standin(()), version))["resource.k8s.io"].next_step


def test_a_version_that_is_asked_for_has_to_be_served():
    one = told(release("1.34"), api="v1beta1")["resource.k8s.io"]
    assert one.met is False and "nvidia_dra_driver_api is v1beta1" in one.evidence
    assert told(release("1.36"), api="v1beta1")["resource.k8s.io"].evidence.endswith("v1beta1")


def test_an_unknown_version_is_no_refusal():
    assert told(seen(standin(), ""))["Kubernetes"].verdict == "unknown"


@pytest.mark.parametrize(("choice", "verdict"), [("refuse", "missing"), ("remove", "met")])
def test_our_device_plugin_is_removed_only_on_request(choice, verdict):
    cluster = release("1.34", daemonsets=[daemonset()])
    assert told(cluster, device_plugin=choice)["device plugin"].verdict == verdict
    # Compute domains alone give out no GPU.
    assert "device plugin" not in told(cluster, gpus=False, compute_domains="true")


@pytest.mark.parametrize(
    ("part", "name"), [(FOREIGN, "device plugin"), (driver_daemonset(), "another DRA driver")]
)
def test_what_others_deployed_is_never_changed(part, name):
    cluster = release("1.34", daemonsets=[part])
    for choice in ("refuse", "remove"):
        one = told(cluster, device_plugin=choice)[name]
        assert one.met is False and "never changes it" in one.evidence
    assert told(cluster, beside_others=True)[name].met


DOMAINS = {"gpus": False, "compute_domains": "true", "domains": True}


def test_compute_domains_alone_are_no_way_beside_another_dra_driver():
    """Its container for compute domains would be the second one of a node."""
    cluster = release("1.34", daemonsets=[driver_daemonset()])
    for options in ({}, DOMAINS):
        one = told(cluster, **options)["another DRA driver"]
        assert one.met is False and "compute domains alone" not in one.next_step
    assert told(cluster, **DOMAINS, beside_others=True)["another DRA driver"].met
    # Beside a device plugin they are one.
    one = told(release("1.34", daemonsets=[FOREIGN]))["device plugin"]
    assert "or serve compute domains alone (nvidia_dra_driver_gpus: false)." in one.next_step


def test_a_driver_for_compute_domains_alone_is_in_the_way_of_compute_domains():
    cluster = release("1.34", daemonsets=[driver_daemonset(gpus=False)])
    one = told(cluster, **DOMAINS)["another DRA driver"]
    assert one.met is False
    assert one.value.startswith("NVIDIA's DRA driver for compute domains (DaemonSet ")
    assert "another DRA driver" not in told(cluster)


def test_an_operator_without_its_device_plugin_is_no_obstacle():
    one = told(release("1.34", deployments=[OPERATOR]))["GPU operator"]
    assert one.met and "devicePlugin.enabled=false" in one.next_step


@pytest.mark.parametrize(
    ("version", "verdict"), [("v1.33.0", "missing"), ("v1.35.0", "unknown"), ("v1.36.0", "met")]
)
def test_dynamic_mig_needs_a_gate_of_kubernetes(version, verdict):
    found = told(seen(standin(), version), feature_gates={"DynamicMIG": True})
    assert found["DRAPartitionableDevices"].verdict == verdict
