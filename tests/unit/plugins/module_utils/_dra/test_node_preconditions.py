# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.node_preconditions import (
    node_preconditions,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.options import read_request
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.types import Layout
from tests.unit.fixtures.cluster_objects import GPU, pod
from tests.unit.fixtures.cluster_objects import node as node_object
from tests.unit.fixtures.dra_cluster import MARKER, seen, standin
from tests.unit.fixtures.node_facts import P4, node

GB200 = {**P4, "device_id": "2941", "product": "GB200"}
READY = {
    "driver__loaded": "580.126.09",
    "runtimes__containerd__version": "2.1.4",
    "runtimes__containerd__cdi_enabled": True,
}
DOMAINS = {"compute_domains": "true"}


def told(options=None, *, state=None, domains=False, clique=False, host=None, **facts):
    given = {"gpu_node": node(**{**READY, **facts}), **(host or {})}
    there = state or seen(standin())["nodes"]["n1"]
    layout = Layout("v1", domains, clique_label=clique)
    found = node_preconditions(read_request(options or {}), layout, "gpu1", given, there)
    assert all(one.node == "gpu1" for one in found)
    return {one.name: one for one in found}


def in_cluster(*pods, gpus=0, **labels):
    nodes = [node_object("n1", gpus=gpus, labels={**MARKER, **labels})]
    return seen(standin(nodes=nodes, pods=list(pods)))["nodes"]["n1"]


def test_a_node_with_everything():
    found = told()
    assert {one.verdict for one in found.values()} == {"met"}
    assert sorted(found) == [
        "CDI", "GPUs of the device plugin", "driver", "kubelet's folder", "label",
    ]  # fmt: skip
    assert not any(one.next_step for one in found.values())


@pytest.mark.parametrize(
    ("loaded", "coming", "domains", "verdict"),
    [
        (None, "", False, "missing"),
        ("550.90.07", "", False, "missing"),
        ("565.57.01", "", False, "met"),
        ("550.90.07", "580.126.09", False, "met"),
        ("580.126.09", "550.90.07", False, "missing"),
        ("570.133.20", "", True, "missing"),
        ("570.158.01", "", True, "met"),
    ],
)
def test_the_driver_that_will_be_loaded_counts(loaded, coming, domains, verdict):
    one = told(domains=domains, host={"driver": coming}, driver__loaded=loaded)["driver"]
    assert one.verdict == verdict and one.value == (coming or loaded or "none")
    assert ("nvidia_driver_branch" in one.next_step) == (verdict == "missing")


def test_an_older_driver_will_do_for_domains_without_names():
    gates = {"IMEXDaemonsWithDNSNames": False, "ComputeDomainCliques": False}
    found = told({**DOMAINS, "feature_gates": gates}, domains=True, driver__loaded="565.57.01")
    assert found["driver"].met


@pytest.mark.parametrize(
    ("version", "enabled", "asked", "verdict", "words"),
    [
        ("2.1.4", True, False, "met", "enable_cdi is true"),
        ("1.7.24", False, False, "missing", "nvidia_container_toolkit_runtime_cdi: true"),
        ("1.7.24", False, True, "met", "this run enables it"),
        ("1.6.20", None, True, "missing", "Upgrade containerd"),
        ("2.2.0", None, False, "met", "is not shown"),
        ("1.7.0", None, False, "unknown", "containerd config dump"),
        (None, None, False, "unknown", "containerd config dump"),
    ],
)
def test_cdi_in_containerd(version, enabled, asked, verdict, words):
    one = told(
        host={"cdi": asked},
        runtimes__containerd__version=version,
        runtimes__containerd__cdi_enabled=enabled,
    )["CDI"]
    assert one.verdict == verdict and words in f"{one.evidence} {one.next_step}"


@pytest.mark.parametrize(
    ("runtimes", "verdict"),
    [
        ({"containerd": None, "docker": None, "crio": {"version": "1.28.2"}}, "met"),
        ({"containerd": None, "docker": None, "crio": {"version": "1.26.0"}}, "missing"),
        ({"containerd": None, "docker": None, "crio": {"version": None}}, "unknown"),
        ({"containerd": None, "docker": {"version": "28.5.1"}, "crio": None}, "unknown"),
        ({"containerd": {"cri_enabled": None}, "docker": None, "crio": None}, "unknown"),
    ],
)
def test_cdi_in_other_runtimes(runtimes, verdict):
    assert told(runtimes=runtimes)["CDI"].verdict == verdict


def test_the_label_comes_with_the_run():
    state = seen(standin(nodes=[node_object("n1")]))["nodes"]["n1"]
    one = told(state=state)["label"]
    assert (
        one.met
        and one.value == "no kubegpu.nodes/gpu=nvidia"
        and "gpu_node_labels" in one.next_step
    )
    discovered = in_cluster(**{"nvidia.com/gpu.present": "true"})
    assert told(state=discovered)["label"].evidence == "feature discovery: nvidia.com/gpu.present"


def test_a_host_that_the_cluster_does_not_have():
    found = node_preconditions(
        read_request({}), Layout("v1", False), "gpu1", {"gpu_node": node(**READY)}, None
    )
    assert {one.name: one.verdict for one in found}["node"] == "unknown"


@pytest.mark.parametrize(
    ("kubelet", "verdict", "words"),
    [
        (None, "missing", "no kubelet"),
        ({"directory": "/var/lib/kubelet", "plugin_folders": []}, "missing", "plugins_registry"),
        (
            {
                "directory": "/var/lib/k0s/kubelet",
                "plugin_folders": ["plugins_registry", "plugins"],
            },
            "unknown",
            "nvidia_dra_driver_kubelet_directory: /var/lib/k0s/kubelet",
        ),
    ],
)
def test_the_kubelets_folder(kubelet, verdict, words):
    one = told(kubelet=kubelet)["kubelet's folder"]
    assert one.verdict == verdict and words in f"{one.evidence} {one.next_step}"


def test_a_pod_with_a_gpu_of_the_device_plugin_is_an_obstacle():
    name = "GPUs of the device plugin"
    one = told(state=in_cluster(pod("train", gpus=1), gpus=2))[name]
    assert one.met is False and one.value == f"2 {GPU}"
    assert one.evidence == "pods have them: default/train"
    assert told(state=in_cluster(gpus=2))[name].met
    alone = {"gpus": False, **DOMAINS}
    assert name not in told(alone, state=in_cluster(pod("train", gpus=1), gpus=2), domains=True)


def test_dynamic_mig_and_our_partitions():
    gates = {"feature_gates": {"DynamicMIG": True}}
    assert told(gates)["MIG"].met
    assert told(gates, host={"mig": "all-1g.10gb"})["MIG"].met is False
    assert told(gates, mig__managed=True)["MIG"].met is False


@pytest.mark.parametrize(
    ("packages", "unit", "mode", "verdict"),
    [
        ({"nvidia-imex": "580"}, "masked", "driverManaged", "met"),
        ({"nvidia-imex": "580"}, "inactive", "driverManaged", "missing"),
        ({"nvidia-imex-580": "580"}, "active", "driverManaged", "missing"),
        ({}, None, "driverManaged", "missing"),
        ({"nvidia-imex": "580"}, "active", "hostManaged", "met"),
        ({"nvidia-imex": "580"}, "masked", "hostManaged", "missing"),
    ],
)
def test_imex_is_run_by_one_of_the_two(packages, unit, mode, verdict):
    one = told(
        {**DOMAINS, "imex_mode": mode},
        domains=True,
        gpus=[GB200],
        driver__packages=packages,
        driver__services={"nvidia-imex": unit},
    )["IMEX"]
    assert one.verdict == verdict and mode in one.evidence


def test_domains_need_a_rack_and_a_clique():
    found = told(DOMAINS, domains=True, gpus=[GB200])
    assert found["NVLink between nodes"].value == "GB200 NVL72"
    assert found["NVLink clique"].verdict == "unknown"
    assert told(DOMAINS, domains=True, clique=True)["NVLink clique"].met
    labelled = in_cluster(**{"nvidia.com/gpu.clique": "a.0"})
    assert told(DOMAINS, domains=True, state=labelled)["NVLink clique"].value == "a.0"
    assert told(DOMAINS, domains=True)["NVLink between nodes"].verdict == "unknown"
