# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the outputs in the guides of clusters are made."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.workloads import (
    foreign,
    recognize,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.client import (
    Client,
    Connection,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.errors import (
    FieldConflict,
    KubeError,
    Server,
    from_answer,
    unreachable,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.apply import Labeller, Settings
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.options import read_requests
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.result import failure
from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring.verify import metric_layers
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import LayerResult
from tests.integration.plans import guide_clusters as clusters
from tests.integration.plans import machines
from tests.integration.plans.guides import Output, Plan, verified
from tests.tools.environments import REPOSITORY
from tests.unit.fixtures import cluster_objects as objects
from tests.unit.fixtures.dra_cluster import release
from tests.unit.fixtures.machines import (
    DEBIAN_12,
    MACHINES,
    SERVER,
    UBUNTU_2404,
    Machine,
    nvidia,
    row,
)
from tests.unit.fixtures.node_facts import node
from tests.unit.fixtures.plans import nvidia_mig_plan
from tests.unit.fixtures.standin_cluster import StandinCluster
from tests.unit.plugins.module_utils._dra.test_node_preconditions import READY
from tests.unit.plugins.module_utils._labels.test_apply import StandinCluster as Labelled

CONTAINERD = {
    "/usr/bin/containerd": "",
    "/etc/containerd/config.toml": (
        'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]\n'
        'runtime_type = "io.containerd.runc.v2"\n'
    ),
}
K3S = {
    "/usr/local/bin/k3s": "",
    "/var/lib/rancher/k3s/data/current/bin/containerd": "",
    "/var/lib/rancher/k3s/agent/etc/containerd/config.toml": "version = 3\n",
}
WORKER = {**UBUNTU_2404, **CONTAINERD}
A100 = Machine((*SERVER, *row(nvidia("", "20b5", "1533"), "07 0f 47 4e")), WORKER)
L4 = Machine((*SERVER, nvidia("0000:3b:00.0", "27b8", "16ee")), WORKER)
T4 = Machine((*SERVER, nvidia("0000:3b:00.0", "1eb8", "12a2")), {**DEBIAN_12, **K3S})
A100_DRIVEN = machines.by_runfile(replace(A100, functions=A100.functions[:6]), "580.95.05", "open")
#: The driver is in a container: its module is loaded, and the node has no file of it.
A100_CONTAINER = clusters.with_files(
    replace(A100, functions=A100.functions[:5]),
    {
        "/proc/driver/nvidia/version": (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"
        ),
        "/sys/module/nvidia/version": "580.95.05\n",
    },
)
MARKER = {"kubegpu.nodes/gpu": "nvidia"}
SERVES = Server("https://192.0.2.10:6443", "context gpu-cluster of /home/ops/.kube/config")
GPU1, GPU2 = "gpu1.example.com", "gpu2.example.com"


def fleet() -> dict[str, Any]:
    """Return the facts of a node with four A100 and one with an L4."""
    return {GPU1: clusters.facts_of(A100), GPU2: clusters.facts_of(L4)}


def offering(**gpus: int) -> StandinCluster:
    """Return a cluster whose nodes offer GPUs, by a device plugin of this collection."""
    nodes = [
        objects.node(f"{name}.example.com", gpus=count, labels=MARKER)
        for name, count in gpus.items()
    ]
    pods = [plugin_pod(f"{name}.example.com", number) for number, name in enumerate(gpus, ord("a"))]
    plugin = objects.daemonset(selector={"app": "plugin"}, runtimeClassName="nvidia")
    return StandinCluster(nodes=nodes, pods=pods, daemonsets=[plugin], log="")


def plugin_pod(node: str, letter: int, **more: Any) -> dict[str, Any]:
    return objects.pod(
        f"kubegpu-nvidia-device-plugin-{chr(letter)}7xk2",
        node,
        namespace="kubegpu",
        labels={"app": "plugin"},
        **more,
    )


def kubeadm_cluster() -> str:
    given = clusters.variables("kubeadm", "group_vars/all.yml")
    facts = fleet()
    marked = clusters.labels(facts, given)
    return clusters.table(marked, nvidia_device_plugin=clusters.plugin(facts, given))


def kubeadm_verify() -> str:
    found = clusters.judged(fleet(), {}, offering(gpu1=4, gpu2=1))
    return verified(clusters.with_pods(found), clusters.LAYERS)


def kubeadm_troubles() -> str:
    message = (
        'nodes is forbidden: User "system:serviceaccount:kubegpu:kubegpu-ansible" cannot list '
        'resource "nodes" in API group "" at the cluster scope'
    )
    body = json.dumps({"message": message, "reason": "Forbidden"}).encode()
    forbidden = from_answer(SERVES, "GET", "/api/v1/nodes", 403, body, {})
    waiting = {
        "reason": "ImagePullBackOff",
        "message": 'Back-off pulling image "nvcr.io/nvidia/k8s-device-plugin:v0.20.1"',
    }
    status = {
        "containerStatuses": [
            {"name": "nvidia-device-plugin", "ready": False, "restartCount": 0,
             "state": {"waiting": waiting}}
        ]
    }  # fmt: skip
    cluster = offering(gpu1=0)
    cluster.objects["pods"] = [plugin_pod(GPU1, ord("a"), phase="Pending", status=status)]
    facts = {GPU1: clusters.facts_of(A100)}
    (pull,) = (one for one in clusters.judged(facts, {}, cluster)[GPU1] if one.ok is False)
    (unknown,) = (
        one for one in clusters.judged(facts, {}, StandinCluster())[GPU1] if one.ok is False
    )
    return clusters.said(forbidden, pull, unknown)


def k3s_verify() -> str:
    facts = {"homelab": clusters.facts_of(T4)}
    cluster = StandinCluster(
        nodes=[objects.node("homelab", gpus=1, labels=MARKER)],
        daemonsets=[objects.daemonset(runtimeClassName="nvidia")],
    )
    return verified(clusters.with_pods(clusters.judged(facts, {}, cluster)), clusters.LAYERS)


def k3s_troubles() -> str:
    kubeconfig = "/home/anna/.kube/k3s.yaml"
    try:
        Client(Connection(kubeconfig=kubeconfig))
    except KubeError as error:
        missing = error
    server = Server("https://127.0.0.1:6443", f"context default of {kubeconfig}")
    refused = unreachable(server, ConnectionRefusedError("Connection refused"))
    return clusters.said(missing, refused)


def labels_table() -> str:
    facts = {**fleet(), "web1.example.com": clusters.facts_of(MACHINES["none"])}
    return clusters.table(clusters.labels(facts, {}))


def labels_conflict() -> str:
    cluster = Labelled(GPU1)
    cluster.nodes[GPU1]["metadata"]["labels"]["accelerator"] = "a100"
    owned = FieldConflict("metadata.labels.accelerator", "kubectl-label")
    cluster.failures["apply", GPU1] = [KubeError("conflict", status=409, field_conflicts=(owned,))]
    requests = read_requests({GPU1: {"labels": {"accelerator": "nvidia-a100", **MARKER}}})
    wrong = failure(Labeller(cluster, Settings("kubegpu.nodes"), False)(requests))
    assert wrong is not None
    return clusters.said(KubeError(wrong["cause"], next_step=wrong["next_step"]))


def sharing() -> tuple[dict[str, Any], dict[str, str]]:
    """Return the variables of the guide, and the config of each host."""
    given = clusters.variables("time_slicing", "group_vars/all.yml")
    chosen = {
        host: clusters.variables("time_slicing", f"group_vars/{group}.yml")
        for host, group in ((GPU1, "a100"), (GPU2, "l4"))
    }
    return given, {host: one["nvidia_device_plugin_config"] for host, one in chosen.items()}


def sharing_cluster() -> str:
    given, chosen = sharing()
    marked = clusters.labels(fleet(), {}, configs=chosen)
    plan = clusters.plugin(fleet(), given, chosen)
    return clusters.table(marked, nvidia_device_plugin=plan)


def sharing_refused() -> str:
    given, _chosen = sharing()
    row = {"name": "nvidia.com/gpu", "replicas": 4}
    wrong = [{**row, "devices": ["0"]}, {**row, "replicas": 1}]
    facts = {GPU2: clusters.facts_of(L4)}
    plans = [clusters.plugin(facts, given, {GPU2: "shared16"})]
    for one in wrong:
        configs = {"shared2": {"sharing": {"timeSlicing": {"resources": [one]}}}}
        plans.append(clusters.plugin(facts, {"nvidia_device_plugin_configs": configs}))
    return clusters.said(*(plan["text"] for plan in plans))


def mig_troubles() -> str:
    facts = clusters.facts_of(A100_DRIVEN)
    pods = [{"namespace": "ml", "name": "train-0", "count": 1}]
    cluster = {"name": GPU1, "labels": {}, "resources": {"nvidia.com/gpu": {"pods": pods}}}
    texts = [
        nvidia_mig_plan(facts, config="all-1g.10gb", cluster=cluster)["reasons"],
        nvidia_mig_plan(facts, config="all-1g.5gb")["reasons"],
    ]
    return clusters.said(*(text for reasons in texts for text in reasons[:1]))


def dra_plan(version: str) -> dict[str, Any]:
    given = clusters.variables("dra", "group_vars/all.yml")
    cluster = release(version, daemonsets=[objects.daemonset()])
    return clusters.dra({"gpu1": node(**READY)}, given, cluster)


def monitoring_table() -> str:
    given = clusters.variables("monitoring", "group_vars/all.yml")
    plan = clusters.monitoring(given, ["ServiceMonitor", "PrometheusRule"])
    return clusters.table(gpu_monitoring=plan)


def monitored(exporters: bool) -> dict[str, list[LayerResult]]:
    """Return the layers of two nodes, of which the second one has an exporter only if asked."""
    cluster = offering(gpu1=4, gpu2=1)
    nodes = {GPU1: 4, **({GPU2: 1} if exporters else {})}
    exporter = objects.daemonset(
        "kubegpu-dcgm-exporter",
        labels={"app.kubernetes.io/name": "kubegpu-dcgm-exporter"},
        image="nvcr.io/nvidia/k8s/dcgm-exporter:4.6.1-4.8.4-distroless",
        container_name="dcgm-exporter",
        selector={"app": "exporter"},
    )
    cluster.objects["daemonsets"].append(exporter)
    ready = {"conditions": [{"type": "Ready", "status": "True"}],
             "containerStatuses": [{"name": "dcgm-exporter", "ready": True, "restartCount": 0,
                                    "state": {"running": {}}}]}  # fmt: skip
    for name in nodes:
        cluster.objects["pods"].append(
            objects.pod(f"kubegpu-dcgm-exporter-{name[3]}", name, namespace="kubegpu",
                        labels={"app": "exporter"}, status=ready)
        )  # fmt: skip
    cluster.log = "".join(
        f'DCGM_FI_DEV_GPU_TEMP{{gpu="{number}",UUID="GPU-{number}",hostname="n"}} 40\n'
        for number in range(4)
    )
    return clusters.judged(fleet(), {}, cluster, metric_layers)


def monitoring_verify(exporters: bool) -> str:
    found = clusters.with_pods(monitored(exporters))
    return verified(found, (*clusters.LAYERS, "metrics"))


def kubespray_refused() -> str:
    plays = yaml.safe_load((REPOSITORY / "playbooks/examples/kubespray.yml").read_text())
    text = plays[0]["tasks"][0]["ansible.builtin.assert"]["fail_msg"]
    return clusters.said(re.sub(r"{{[^}]*}}", "nvidia", text))


def operator_workloads() -> list[str]:
    """Return how the GPU operator and its device plugin are named."""
    operator = objects.daemonset(
        "gpu-operator", "gpu-operator", labels={"app": "gpu-operator"},
        image="nvcr.io/nvidia/gpu-operator:v26.7.0", container_name="gpu-operator",
    )  # fmt: skip
    plugin = objects.daemonset(
        "nvidia-device-plugin-daemonset", "gpu-operator",
        labels={"app": "nvidia-device-plugin-daemonset"},
        image="nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
    )  # fmt: skip
    found = [*recognize([operator], "Deployment"), *recognize([plugin], "DaemonSet")]
    return [str(one) for one in foreign(found, "nvidia")]


def operator_table() -> str:
    facts = {"gpu1": clusters.facts_of(A100_CONTAINER)}
    plan = clusters.plugin(facts, {}, others=operator_workloads())
    return clusters.table(nvidia_device_plugin=plan)


def operator_mig() -> str:
    cluster = {"name": "gpu1", "labels": {"nvidia.com/mig.config": "all-balanced"}}
    facts = clusters.facts_of(A100_DRIVEN)
    plan = nvidia_mig_plan(facts, config="all-1g.10gb", cluster=cluster)
    return clusters.said(plan["reasons"][0])


OUTPUTS: Mapping[str, Output] = {
    "kubeadm-plan": Plan({GPU1: A100, "web1.example.com": MACHINES["none"]}),
    "kubeadm-cluster": kubeadm_cluster,
    "kubeadm-verify": kubeadm_verify,
    "kubeadm-troubles": kubeadm_troubles,
    "k3s-plan": Plan({"homelab": T4}),
    "k3s-verify": k3s_verify,
    "k3s-troubles": k3s_troubles,
    "labels-cluster": labels_table,
    "labels-conflict": labels_conflict,
    "sharing-cluster": sharing_cluster,
    "sharing-refused": sharing_refused,
    "mig-plan": Plan({GPU1: A100_DRIVEN}),
    "mig-troubles": mig_troubles,
    "dra-cluster": lambda: clusters.table(nvidia_dra_driver=dra_plan("1.34")),
    "dra-refused": lambda: clusters.said(dra_plan("1.20")["text"]),
    "monitoring-cluster": monitoring_table,
    "monitoring-verify": lambda: monitoring_verify(True),
    "monitoring-troubles": lambda: monitoring_verify(False),
    "kubespray-refused": kubespray_refused,
    "operator-plan": Plan({"gpu1": A100_CONTAINER}),
    "operator-cluster": operator_table,
    "operator-mig": operator_mig,
}
