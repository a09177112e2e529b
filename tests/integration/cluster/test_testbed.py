# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cluster that other tests build on: real nodes, and stand-ins that fail as the real ones do.

What of the collection is used here is its runtime part alone; labels, plugin and verification have
tests of their own.
"""

from __future__ import annotations

import json
import re
import time

import pytest
import yaml

from tests.integration.fleet.playbooks import play
from tests.testbed import cluster_images
from tests.testbed.fleet import FLEET
from tests.testbed.nodes import execute

NAMESPACE = "testbed"
RUNTIME_CLASS = "testbed-nvidia"
GPU = "nvidia.com/gpu"
PATIENCE = 400.0
pytestmark = pytest.mark.full(
    why="the test bed's own kubelets and stand-ins; test_site.py needs them all to work on one node"
)
A10, L4, CPU = FLEET if len(FLEET) == 3 else (None, None, None)
PLUGIN_FOLDER = "/var/lib/kubelet/device-plugins"


@pytest.fixture(scope="module")
def namespace(cluster):
    """A namespace for this module's pods, empty at first and gone afterwards."""
    cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait")
    cluster.kubectl("create", "namespace", NAMESPACE)
    wait_for(lambda: "default" in cluster.kubectl("-n", NAMESPACE, "get", "sa"), "an account")
    yield NAMESPACE
    cluster.kubectl("delete", "namespace", NAMESPACE, "--wait")


@pytest.fixture(scope="module")
def configured(cluster, namespace):
    """The nodes' containerd as the collection configures it, and a RuntimeClass for it."""
    alone = {"kubegpu_kube": {}, "gpu_verify_enabled": False}
    run = play("site", variables=alone)
    assert run.status == 0, run.output
    manifest = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": RUNTIME_CLASS},
        "handler": "nvidia",
    }
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(manifest))
    yield cluster
    cluster.kubectl("delete", "runtimeclass", RUNTIME_CLASS)


@pytest.fixture(scope="module")
def plugin(configured):
    """A device plugin on both GPU nodes."""
    for node in (A10, L4):
        start_plugin(configured, node, f"plugin-{node.name}", runtimeClassName=RUNTIME_CLASS)
    for node in (A10, L4):
        wait_for(
            lambda node=node: allocatable(configured, node) == str(len(node.gpus)),
            f"GPUs of {node.name}",
        )
    return configured


def wait_for(done, what):
    deadline = time.monotonic() + PATIENCE
    while not (result := done()):
        assert time.monotonic() < deadline, f"no {what} within {PATIENCE:.0f} s"
        time.sleep(0.5)
    return result


def apply_pod(cluster, name, node, container, **spec):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node.kubernetes},
            "restartPolicy": "Never",
            "containers": [{"name": "main", "imagePullPolicy": "Never", **container}],
            "terminationGracePeriodSeconds": 1,
            **spec,
        },
    }
    cluster.kubectl("delete", "pod", "-n", NAMESPACE, name, "--ignore-not-found", "--wait")
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(pod))


def start_plugin(cluster, node, name, environment=None, **spec):
    container = {
        "image": cluster_images.DEVICE_PLUGIN,
        "env": [{"name": key, "value": value} for key, value in (environment or {}).items()],
        "volumeMounts": [{"name": "plugins", "mountPath": PLUGIN_FOLDER}],
    }
    volume = {"name": "plugins", "hostPath": {"path": PLUGIN_FOLDER}}
    apply_pod(cluster, name, node, container, volumes=[volume], **spec)


def status(cluster, name):
    return json.loads(cluster.kubectl("-n", NAMESPACE, "get", "pod", name, "-o", "json"))["status"]


def ended(cluster, name):
    """Wait for a pod's end; its phase, what its container said and why it did not start."""
    phase = wait_for(
        lambda: (now := status(cluster, name)["phase"]) in ("Succeeded", "Failed") and now,
        f"end of {name}",
    )
    state = status(cluster, name)["containerStatuses"][0]["state"]["terminated"]
    log = cluster.kubectl("-n", NAMESPACE, "logs", name, check=False)
    return phase, log, state.get("message", "")


def logged(cluster, name, text):
    return wait_for(
        lambda: (
            text in (log := cluster.kubectl("-n", NAMESPACE, "logs", name, check=False)) and log
        ),
        f"{text!r} in the log of {name}",
    )


def allocatable(cluster, node):
    text = cluster.kubectl("get", "node", node.kubernetes, "-o", "json")
    return json.loads(text)["status"]["allocatable"].get(GPU, "0")


def sample(cluster, name, node, image=cluster_images.SAMPLE, gpus=1, **spec):
    container = {"image": image, "resources": {"limits": {GPU: gpus}}}
    apply_pod(cluster, name, node, container, **spec)


def test_nodes_are_ready_under_names_of_their_own(cluster):
    items = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    found = {item["metadata"]["name"]: item["status"] for item in items}
    assert set(found) == {node.kubernetes for node in FLEET}
    for node in FLEET:
        status = found[node.kubernetes]
        ready = next(one for one in status["conditions"] if one["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("True", "KubeletReady")
        machine_id = execute(node, "cat", "/etc/machine-id").strip()
        assert status["nodeInfo"]["machineID"] == machine_id
        assert node.kubernetes not in (node.name, node.hostname)
    runtimes = [status["nodeInfo"]["containerRuntimeVersion"] for status in found.values()]
    assert {runtime.rpartition(".")[0] for runtime in runtimes} == {
        "containerd://1.6",
        "containerd://1.7",
    }


@pytest.mark.parametrize("node", FLEET, ids=lambda node: node.name)
def test_a_pod_runs_to_its_end_on_each_node(cluster, namespace, node):
    container = {"image": cluster_images.BUSYBOX, "command": ["sh", "-c", "echo this is $HOSTNAME"]}
    apply_pod(cluster, f"hello-{node.name}", node, container)
    phase, log, _message = ended(cluster, f"hello-{node.name}")
    assert (phase, log) == ("Succeeded", f"this is hello-{node.name}\n")


def test_a_pod_reaches_the_api_server_by_its_service(cluster, namespace):
    script = (
        "from=/var/run/secrets/kubernetes.io/serviceaccount;"
        " nc $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null && test -s $from/token"
    )
    container = {"image": cluster_images.SAMPLE, "command": ["sh", "-c", script]}
    apply_pod(cluster, "service", A10, container)
    phase, log, _message = ended(cluster, "service")
    assert phase == "Succeeded", log


def test_the_plugin_finds_nothing_without_the_nvidia_runtime(cluster, namespace):
    start_plugin(cluster, CPU, "no-runtime", {"FAIL_ON_INIT_ERROR": "false"})
    log = logged(cluster, "no-runtime", "No devices found. Waiting indefinitely.")
    assert "could not load NVML library: libnvidia-ml.so.1: cannot open shared object file" in log
    assert "Incompatible platform detected" in log
    start_plugin(cluster, CPU, "no-runtime")
    phase, log, _message = ended(cluster, "no-runtime")
    assert phase == "Failed"
    assert "error starting plugins" in log


def test_the_plugin_offers_as_many_as_the_node_has(plugin):
    assert (allocatable(plugin, A10), allocatable(plugin, L4)) == ("2", "4")
    assert allocatable(plugin, CPU) == "0"
    log = plugin.kubectl("-n", NAMESPACE, "logs", f"plugin-{A10.name}")
    assert f"Registered device plugin for '{GPU}' with Kubelet" in log


def test_the_sample_passes_with_a_gpu(plugin):
    sample(plugin, "passes", L4, gpus=3, runtimeClassName=RUNTIME_CLASS)
    phase, log, _message = ended(plugin, "passes")
    assert phase == "Succeeded"
    assert "Test PASSED" in log


def test_the_sample_fails_without_the_runtime(plugin):
    sample(plugin, "no-class", L4)
    phase, log, _message = ended(plugin, "no-class")
    assert phase == "Failed"
    assert "error code CUDA driver version is insufficient for CUDA runtime version" in log


def test_an_image_that_is_too_new_is_refused_by_the_runtime(plugin):
    sample(plugin, "too-new", A10, cluster_images.SAMPLE_NEW, runtimeClassName=RUNTIME_CLASS)
    phase, _log, message = ended(plugin, "too-new")
    assert phase == "Failed"
    assert (
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.5, please update "
        "your driver to a newer version, or use an earlier cuda container" in message
    )
    sample(plugin, "not-too-new", L4, cluster_images.SAMPLE_NEW, runtimeClassName=RUNTIME_CLASS)
    assert ended(plugin, "not-too-new")[0] == "Succeeded"


def test_more_gpus_than_there_are_stay_pending(plugin):
    sample(plugin, "too-many", A10, gpus=3, runtimeClassName=RUNTIME_CLASS)
    events = wait_for(
        lambda: re.search(
            f"1 Insufficient {GPU}",
            plugin.kubectl("-n", NAMESPACE, "get", "events", "-o", "yaml"),
        ),
        "event of the scheduler",
    )
    assert events
    assert status(plugin, "too-many")["phase"] == "Pending"
    plugin.kubectl("-n", NAMESPACE, "delete", "pod", "too-many", "--wait")


def test_a_config_by_label_shares_the_gpus(plugin):
    """The configuration manager follows the node's label, as the real one does."""
    label, node = "nvidia.com/device-plugin.config", A10.kubernetes
    shared = {
        "version": "v1",
        "sharing": {"timeSlicing": {"resources": [{"name": GPU, "replicas": 4}]}},
    }
    data = {"default": json.dumps({"version": "v1"}), "shared": json.dumps(shared)}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
    config_map["metadata"] = {"name": "configs", "namespace": NAMESPACE}
    plugin.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(config_map))
    plugin.kubectl("create", "clusterrole", "testbed-nodes", "--verb=get,list,watch",
                   "--resource=nodes")  # fmt: skip
    plugin.kubectl("create", "clusterrolebinding", "testbed-nodes", "--clusterrole=testbed-nodes",
                   f"--serviceaccount={NAMESPACE}:default")  # fmt: skip
    try:
        mounts = [
            {"name": "configs", "mountPath": "/available-configs"},
            {"name": "chosen", "mountPath": "/config"},
            {"name": "plugins", "mountPath": PLUGIN_FOLDER},
        ]
        manager = {
            "name": "manager",
            "image": cluster_images.DEVICE_PLUGIN,
            "command": ["config-manager"],
            "env": [
                {"name": "NODE_NAME", "value": node},
                {"name": "CONFIG_FILE_SRCDIR", "value": "/available-configs"},
                {"name": "CONFIG_FILE_DST", "value": "/config/config.yaml"},
                {"name": "FALLBACK_STRATEGIES", "value": "named,single"},
            ],
            "volumeMounts": mounts,
        }
        only_once = [
            {"name": "ONESHOT", "value": "true"},
            {"name": "SEND_SIGNAL", "value": "false"},
        ]
        once = {**manager, "name": "once", "env": [*manager["env"], *only_once]}
        main = {
            "name": "main",
            "image": cluster_images.DEVICE_PLUGIN,
            "command": ["nvidia-device-plugin"],
            "env": [{"name": "CONFIG_FILE", "value": "/config/config.yaml"}],
            "volumeMounts": mounts,
        }
        plugin.kubectl("-n", NAMESPACE, "delete", "pod", f"plugin-{A10.name}", "--wait")
        apply_pod(
            plugin, f"plugin-{A10.name}", A10, {},
            runtimeClassName=RUNTIME_CLASS,
            shareProcessNamespace=True,
            initContainers=[once],
            containers=[main, manager],
            volumes=[
                {"name": "configs", "configMap": {"name": "configs"}},
                {"name": "chosen", "emptyDir": {}},
                {"name": "plugins", "hostPath": {"path": PLUGIN_FOLDER}},
            ],
        )  # fmt: skip
        wait_for(lambda: allocatable(plugin, A10) == "2", "two GPUs")
        plugin.kubectl("label", "node", node, f"{label}=shared")
        wait_for(lambda: allocatable(plugin, A10) == "8", "eight shares")
    finally:
        plugin.kubectl("label", "node", node, f"{label}-")
        plugin.kubectl("delete", "clusterrole,clusterrolebinding", "testbed-nodes")
