# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role nvidia_device_plugin on the real cluster. The plugin in the image is a stand-in."""

from __future__ import annotations

import json
import re
import subprocess
import time

import pytest

from tests.integration.cluster import rights
from tests.integration.fleet.playbooks import BIN, PATIENT, environment
from tests.testbed import nodes
from tests.testbed.fleet import chosen
from tests.testbed.paths import INVENTORY

PLAYBOOK = """
- ansible.builtin.import_playbook: kubegpu.nodes.groups
- hosts: kubegpu_nvidia
  gather_facts: false
  become: true
  tags: [nodes]
  roles: [kubegpu.nodes.nvidia_container_toolkit]
- hosts: all
  gather_facts: false
  roles: [kubegpu.nodes.gpu_node_labels, kubegpu.nodes.nvidia_device_plugin]
"""
TEARDOWN = """
- ansible.builtin.import_playbook: kubegpu.nodes.groups
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.import_role:
        name: kubegpu.nodes.nvidia_device_plugin
        tasks_from: teardown
    - ansible.builtin.import_role:
        name: kubegpu.nodes.gpu_node_labels
        tasks_from: teardown
"""
CONFIGS = {
    "shared4": {"sharing": {"timeSlicing": {"resources": [
        {"name": "nvidia.com/gpu", "replicas": 4}]}}},
    "renamed3": {"sharing": {"timeSlicing": {"renameByDefault": True, "resources": [
        {"name": "nvidia.com/gpu", "replicas": 3}]}}},
}  # fmt: skip
GPU = "nvidia.com/gpu"
pytestmark = pytest.mark.full(
    why="the plugin on three nodes, with shares, faults and rights; test_site.py brings it to one"
)
#: Restarting containerd, or not: the nodes' own part is done once.
CLUSTER_ONLY = ("--skip-tags", "nodes")


class Play:
    """A run: what it printed, and how many tasks changed something on all hosts together."""

    def __init__(self, done):
        self.status = done.returncode
        self.output = done.stdout + done.stderr
        self.changed = sum(int(count) for count in re.findall(r"changed=(\d+)", done.stdout))


@pytest.fixture
def play(tmp_path):
    def run(*arguments, text=PLAYBOOK, **variables):
        path = tmp_path / "play.yml"
        path.write_text(text, encoding="utf-8")
        argv = [str(BIN / "ansible-playbook"), "-i", str(INVENTORY), str(path), *arguments]
        argv += ["--extra-vars", json.dumps(variables)]
        return Play(
            subprocess.run(
                argv,
                env={**environment(), **PATIENT},
                capture_output=True,
                text=True,
                check=False,
                timeout=2700,
            )
        )

    return run


@pytest.fixture(scope="module")
def gpus():
    """How many GPUs the machines have, by the node's name in Kubernetes."""
    return {node.kubernetes: len(node.gpus) for node in chosen() if node.gpus}


@pytest.fixture(autouse=True, scope="module")
def clean_afterwards(cluster, tmp_path_factory):
    yield
    path = tmp_path_factory.mktemp("teardown") / "play.yml"
    path.write_text(TEARDOWN, encoding="utf-8")
    argv = [str(BIN / "ansible-playbook"), "-i", str(INVENTORY), str(path)]
    subprocess.run(argv, env=environment(), check=True, capture_output=True, timeout=2700)


def offers(cluster, wanted, resource=GPU):
    """Return whether the nodes come to offer that; the kubelet tells of a new pod after a while."""
    deadline = time.monotonic() + 300
    while offered(cluster, resource) != wanted and time.monotonic() < deadline:
        time.sleep(1)
    return offered(cluster, resource) == wanted


def offered(cluster, resource=GPU):
    items = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    return {
        item["metadata"]["name"]: int(item["status"]["allocatable"][resource])
        for item in items
        if int(item["status"]["allocatable"].get(resource, 0))
    }


def pods(cluster):
    """Return name, node and restarts of the plugin's pods."""
    text = cluster.kubectl(
        "-n", "kubegpu", "get", "pods", "-l", "app.kubernetes.io/name=nvidia-device-plugin",
        "-o", "json",
    )  # fmt: skip
    return {item["spec"]["nodeName"]: item for item in json.loads(text)["items"]}


def test_s12_the_plugin_comes_to_gpu_nodes_only_and_each_offers_its_gpus(cluster, play, gpus):
    checked = play("--check", "--diff")
    assert checked.status == 0, checked.output
    done = play()
    assert done.status == 0, done.output
    assert checked.changed == done.changed > 0
    assert offers(cluster, gpus)
    assert set(pods(cluster)) == set(gpus)
    # The default runtime is runc there.
    assert {one["spec"]["runtimeClassName"] for one in pods(cluster).values()} == {"nvidia"}
    again = play()
    assert again.status == 0, again.output
    assert again.changed == 0, again.output


def test_s15_each_node_shares_as_its_host_chose(cluster, play, gpus):
    requests = {
        "nvidia_device_plugin_configs": CONFIGS,
        "nvidia_device_plugin_config": "{{ 'shared4' if 'a10' in inventory_hostname else '' }}",
    }
    checked = play("--check", "--diff", *CLUSTER_ONLY, **requests)
    done = play(*CLUSTER_ONLY, **requests)
    assert done.status == 0, done.output
    assert checked.changed == done.changed > 0, checked.output
    shared = {name: count * 4 if "a10" in name else count for name, count in gpus.items()}
    assert offers(cluster, shared)
    assert play(*CLUSTER_ONLY, **requests).changed == 0
    # Another config is only a label: the pods stay and follow it.
    before = {node: one["metadata"]["name"] for node, one in pods(cluster).items()}
    requests["nvidia_device_plugin_config"] = "renamed3"
    done = play(*CLUSTER_ONLY, **requests)
    assert done.status == 0, done.output
    threefold = {name: 3 * count for name, count in gpus.items()}
    assert offers(cluster, threefold, f"{GPU}.shared")
    assert {node: one["metadata"]["name"] for node, one in pods(cluster).items()} == before
    # Back again, and what the configs needed is gone.
    assert play(*CLUSTER_ONLY).status == 0
    assert offers(cluster, gpus)
    left = cluster.kubectl("-n", "kubegpu", "get", "configmap,clusterrole", "-o", "name")
    assert "kubegpu-nvidia-device-plugin" not in left


def test_s15_what_is_impossible_is_refused_and_changes_nothing(cluster, play):
    before = cluster.kubectl("-n", "kubegpu", "get", "daemonset", "-o", "jsonpath={..generation}")
    wrong = {"a": {"sharing": {"timeSlicing": {"resources": [
        {"name": GPU, "replicas": 2, "devices": [0]}]}}}}  # fmt: skip
    done = play(*CLUSTER_ONLY, nvidia_device_plugin_configs=wrong)
    assert done.status != 0
    assert "sharing cannot differ between the GPUs of a node" in done.output
    requests = {"nvidia_device_plugin_configs": CONFIGS, "gpu_node_labels_device_plugin_config": ""}
    done = play(*CLUSTER_ONLY, nvidia_device_plugin_config="shared5", **requests)
    assert done.status != 0
    assert "unknown config 'shared5'" in done.output
    after = cluster.kubectl("-n", "kubegpu", "get", "daemonset", "-o", "jsonpath={..generation}")
    assert after == before


def test_s20_a_pod_whose_runtime_is_newer_is_made_again_and_no_other(cluster, play, gpus):
    assert play(*CLUSTER_ONLY).status == 0
    before = {node: one["metadata"]["name"] for node, one in pods(cluster).items()}
    node = next(one for one in chosen() if one.gpus)
    # The second of the pod's start is past.
    time.sleep(2)
    # What a run that died after the restart left behind.
    nodes.execute(node, "systemctl", "restart", "containerd")
    checked = play("--check", *CLUSTER_ONLY)
    assert checked.changed == 1, checked.output
    done = play(*CLUSTER_ONLY)
    assert done.status == 0, done.output
    assert done.changed == 1
    after = {name: one["metadata"]["name"] for name, one in pods(cluster).items()}
    assert {name for name in gpus if after[name] != before[name]} == {node.kubernetes}
    assert play(*CLUSTER_ONLY).changed == 0
    assert offers(cluster, gpus)


def test_a_plugin_that_finds_no_nvml_fails_its_node_with_cause_and_log(cluster, play):
    # The wait ends when the plugin has failed thrice, however long the pod before takes to end.
    done = play(*CLUSTER_ONLY, nvidia_device_plugin_runtime_class="")
    assert done.status != 0
    assert "RuntimeClass" in done.output
    assert "could not load NVML library" in done.output
    # The log's lines are lines.
    assert re.search(r"^E\d.*Incompatible platform detected$", done.output, re.MULTILINE)
    assert play(*CLUSTER_ONLY).status == 0


DISCOVERY = "kubegpu-gpu-feature-discovery"
LABELS = "/etc/kubernetes/node-feature-discovery/features.d/gfd"


def discovery_pods(cluster):
    """Return whether each pod of feature discovery is ready, by its node."""
    text = cluster.kubectl(
        "-n", "kubegpu", "get", "pods", "-l", "app.kubernetes.io/name=gpu-feature-discovery",
        "-o", "json",
    )  # fmt: skip
    return {
        one["spec"]["nodeName"]: any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in one["status"].get("conditions", ())
        )
        for one in json.loads(text)["items"]
        if "deletionTimestamp" not in one["metadata"]
    }


def test_feature_discovery_is_waited_for_until_it_runs(cluster, play, gpus):
    """The stand-in wants a token, as the real 0.20.0 does, unless it is told to write a file."""
    done = play(*CLUSTER_ONLY, nvidia_device_plugin_feature_discovery=True)
    assert done.status == 0, done.output
    assert discovery_pods(cluster) == dict.fromkeys(gpus, True)
    for node in chosen():
        if node.gpus:
            assert "nvidia.com/gpu.count=" in nodes.execute(node, "cat", LABELS)
    again = play(*CLUSTER_ONLY, nvidia_device_plugin_feature_discovery=True)
    assert (again.status, again.changed) == (0, 0), again.output


def test_feature_discovery_without_a_token_fails_verify_with_its_words(cluster, play):
    # What this collection applied before it always wrote the variable.
    removed = f"daemonset/{DISCOVERY}", "USE_NODE_FEATURE_API-"
    cluster.kubectl("-n", "kubegpu", "set", "env", *removed)
    try:
        deadline = time.monotonic() + 300
        while all(discovery_pods(cluster).values()) and time.monotonic() < deadline:
            time.sleep(1)
        verify = "- ansible.builtin.import_playbook: kubegpu.nodes.verify\n"
        done = play(text=verify, gpu_verify_wait_timeout=30, gpu_verify_pods=False)
        assert done.status != 0, done.output
        assert "failed to create clientsets" in done.output
        # The table breaks lines.
        assert "its pod has no token for the API server" in " ".join(done.output.split())
    finally:
        # Somebody else's manager took the field away: it comes back by ours.
        again = play(*CLUSTER_ONLY, nvidia_device_plugin_feature_discovery=True)
    assert again.status == 0, again.output
    assert all(discovery_pods(cluster).values())


def test_feature_discovery_that_cannot_start_fails_the_run_with_its_words(cluster, play, gpus):
    # The cluster has no node-feature-discovery, and so no NodeFeature API.
    requests = {
        "nvidia_device_plugin_feature_discovery": True,
        "nvidia_device_plugin_feature_discovery_api": True,
    }
    done = play(*CLUSTER_ONLY, **requests)
    assert done.status != 0
    assert "The cluster has no NodeFeature API" in done.output
    assert re.search(r"^E\d.*failed to create NodeFeature object", done.output, re.MULTILINE)
    # The plugin is none the worse.
    assert offers(cluster, gpus)
    done = play(*CLUSTER_ONLY)
    assert done.status == 0, done.output
    assert DISCOVERY not in cluster.kubectl("-n", "kubegpu", "get", "daemonset", "-o", "name")


FOREIGN = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "nvidia-device-plugin-daemonset", "namespace": "kube-system"},
    "spec": {
        "selector": {"matchLabels": {"name": "nvidia-device-plugin-ds"}},
        "template": {
            "metadata": {"labels": {"name": "nvidia-device-plugin-ds"}},
            "spec": {
                "nodeSelector": {"nobody": "has-this"},
                "containers": [
                    {
                        "name": "nvidia-device-plugin-ctr",
                        "image": "nvcr.io/nvidia/k8s-device-plugin:v0.14.3",
                    }
                ],
            },
        },
    },
}


def test_a_plugin_of_somebody_else_is_said_and_not_fought(cluster, play):
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(FOREIGN))
    try:
        done = play(*CLUSTER_ONLY, nvidia_device_plugin_version="v9.9.9")
        assert done.status == 0, done.output
        assert "kube-system/nvidia-device-plugin-daemonset). It is left alone" in done.output
        assert done.changed == 0
    finally:
        cluster.kubectl("-n", "kube-system", "delete", "daemonset", FOREIGN["metadata"]["name"])


def test_teardown_removes_all_that_the_role_made(cluster, play):
    requests = {
        "nvidia_device_plugin_configs": CONFIGS,
        "nvidia_device_plugin_pods": {"pull_secret": "mirror"},
        "nvidia_device_plugin_pull_secret_login": {
            "registry": "mirror.example", "username": "robot", "password": "hunter2secret",
        },
    }  # fmt: skip
    done = play("--diff", *CLUSTER_ONLY, **requests)
    assert done.status == 0, done.output
    assert "hunter2secret" not in done.output
    secret = cluster.kubectl("-n", "kubegpu", "get", "secret", "mirror", "-o", "jsonpath={.type}")
    assert secret == "kubernetes.io/dockerconfigjson"
    done = play(text=TEARDOWN)
    assert done.status == 0, done.output
    kinds = "namespace,runtimeclass,clusterrole,clusterrolebinding"
    left = cluster.kubectl("get", kinds, "-o", "name")
    assert "kubegpu" not in left
    assert "runtimeclass" not in left
    again = play(text=TEARDOWN)
    assert again.status == 0, again.output
    assert again.changed == 0


PARTS = ("base", "read", "pods", "nvidia", "image-secret", "teardown")


def test_the_shipped_rights_are_enough_and_the_namespace_stays_the_admins(cluster, play, tmp_path):
    rights.apply(cluster, *PARTS)
    try:
        path = rights.kubeconfig(cluster, tmp_path / "limited")
        limited = {"kubegpu_kube": {"kubeconfig": path}}
        requests = {
            **limited,
            "nvidia_device_plugin_configs": CONFIGS,
            "nvidia_device_plugin_pods": {"pull_secret": "mirror"},
            "nvidia_device_plugin_pull_secret_login": {
                "registry": "mirror.example", "username": "robot", "password": "x",
            },
        }  # fmt: skip
        done = play(*CLUSTER_ONLY, **requests)
        assert done.status == 0, done.output
        assert play(*CLUSTER_ONLY, **requests).changed == 0
        done = play(text=TEARDOWN, **limited)
        assert done.status == 0, done.output
        left = cluster.kubectl("get", "namespace,runtimeclass", "-o", "name").split()
        assert "namespace/kubegpu" in left
        assert "runtimeclass.node.k8s.io/nvidia" not in left
    finally:
        rights.delete(cluster)
