# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What diagnose says of a real cluster, of causes that are made in it, and of pods without GPU."""

from __future__ import annotations

import json
import shlex
import time

import pytest
import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.rules.tables import (
    FAILURES,
)
from tests.integration.cluster.diagnosing import diagnose, errors
from tests.integration.fleet.playbooks import play
from tests.testbed.fleet import chosen
from tests.testbed.nodes import execute
from tests.testbed.paths import INVENTORY

pytestmark = pytest.mark.full(why="faults of a cluster; the causes are unit tests by name")
A10, L4 = "a10-0.pool.testbed.example", "l4-0.pool.testbed.example"
HOST_A10, HOST_L4 = "kube-a10", "kube-l4"
MARKER = "kubegpu.nodes/gpu"
PLUGIN = "kubegpu-nvidia-device-plugin"
GPU = "nvidia.com/gpu"


@pytest.fixture(scope="module")
def kube(cluster):
    """A cluster that site has brought all the way."""
    run = play("site")
    assert run.status == 0, run.output
    return cluster


@pytest.fixture
def back(kube):
    """Whatever a test made, it says how that is fixed; then the cluster has to be whole."""
    steps = []
    yield steps.append
    for step in reversed(steps):
        step()
    wait_for(lambda: allocatable(kube) == {A10: "2", L4: "4"}, 600)


def allocatable(kube):
    nodes = json.loads(kube.kubectl("get", "nodes", "-o", "json"))["items"]
    shown = {
        node["metadata"]["name"]: node["status"]["allocatable"].get(GPU, "0") for node in nodes
    }
    return {name: count for name, count in shown.items() if count != "0"}


def wait_for(what, seconds=300):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(1)


def site_labels():
    run = play("site", "--tags", "labels", "--limit", HOST_A10)
    assert run.status == 0, run.output


def pod(name, gpus=0, **spec):
    limits = {GPU: str(gpus)} if gpus else {}
    box = {"name": "c", "image": "localhost/testbed/none:1", "imagePullPolicy": "Never",
           "resources": {"limits": limits}}  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [box], **spec},
    }


def only(where):
    return {"nodeSelector": {"kubernetes.io/hostname": where}}


def plugin_pods(kube):
    labels = "app.kubernetes.io/name=nvidia-device-plugin"
    return kube.kubectl("-n", "kubegpu", "get", "pods", "-l", labels, "-o", "json")


def test_pods_without_a_gpu(kube, back):
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": "research"},
        "spec": {"hard": {f"requests.{GPU}": "0"}},
    }
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("x", 1)["spec"]}
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "research"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    pods = [
        pod("too-many", 8), pod("tainted", 1, **only(L4)), pod("holder", 2, **only(A10)),
        pod("late", 1, **only(A10)), pod("none"), pod("labelled", 1, nodeSelector={"zone": "x"}),
        # The L4s are free, and no scheduler places it.
        pod("unplaced", 1, schedulerName="nobody", **only(L4),
            tolerations=[{"key": "team", "operator": "Exists"}]),
    ]  # fmt: skip
    names = [one["metadata"]["name"] for one in pods]
    back(lambda: kube.kubectl("delete", "namespace", "research", "--wait=true"))
    back(lambda: kube.kubectl("taint", "node", L4, "team-", check=False))
    back(lambda: kube.kubectl("delete", "pods", *names, "--wait=true"))
    kube.kubectl("create", "namespace", "research")
    kube.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(quota))
    kube.kubectl("taint", "node", L4, "team=a:NoSchedule")
    wait_for(lambda: "hard" in kube.kubectl("-n", "research", "get", "quota", "-o", "json"))
    kube.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([web, *pods[:3]]))
    wait_for(lambda: A10 in kube.kubectl("get", "pod", "holder", "-o", "json"))
    kube.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(pods[3:]))
    wait_for(lambda: "exceeded quota" in kube.kubectl("-n", "research", "get", "events"))
    wait_for(lambda: "Insufficient" in kube.kubectl("get", "pod", "late", "-o", "json"))
    asked = [*(f"default/{name}" for name in names if name != "holder"), "research/web"]

    run, result = diagnose("pods", gpu_diagnose_pods=[*asked, "default/nobody"])
    found = {one["pod"]: one["id"] for one in result["findings"] if one["pod"]}
    assert found == {
        "default/too-many": "asks_too_many",
        "default/tainted": "no_node_matches",
        "default/late": "all_taken",
        "default/none": "asks_no_gpu",
        "default/labelled": "no_node_matches",
        "default/unplaced": "not_scheduled",
        "research/web": "quota_exceeded",
        "default/nobody": "pod_unknown",
    }, result["findings"]
    by_pod = {one["pod"]: one for one in result["findings"]}
    assert "default/holder (2)" in by_pod["default/late"]["evidence"]
    assert "team=a:NoSchedule" in by_pod["default/tainted"]["evidence"]
    # The nodes themselves are whole, and every node is a line of the second table.
    assert {one["verdict"] for one in result["hosts"].values()} <= {"ok", "no GPU"}
    nodes = {one["name"]: one for one in result["pods"][0]["nodes"]}
    assert set(nodes) == {A10, L4} and not nodes[A10]["fits"]
    assert run.status != 0 and "Nodes for the pods that wait" in run.output


# What a CUDA program or NVIDIA's hook says before the container ends: in its own words.
SAID = {
    row.code: row.example
    for row in FAILURES
    if row.code in (
        "cuda_driver_insufficient", "ptx_toolchain", "no_kernel_image", "mps_not_reachable",
        "no_cuda_device", "unmet_requirement",
    )
}  # fmt: skip
HOLDER = json.dumps({"run": "gpu-upgrade"})


def busybox():
    return yaml.safe_load(INVENTORY.read_text())["all"]["vars"]["testbed_busybox_image"]


def says(name, words):
    """Return a pod that asks for a GPU, says something and fails."""
    box = {"name": "c", "image": busybox(), "imagePullPolicy": "Never",
           "command": ["/bin/sh", "-c", 'echo "$0"; exit 1', words],
           "resources": {"limits": {GPU: "1"}}}  # fmt: skip
    return pod(name, restartPolicy="Never", containers=[box], **only(L4))


def waits(name, **changes):
    """Return a pod with a node and a GPU whose container cannot be started."""
    made = pod(name, 1, **only(L4))
    made["spec"]["containers"][0].update(changes)
    return made


def deployment(name, **spec):
    template = {"metadata": {"labels": {"app": name}}, "spec": {**pod("x", 1)["spec"], **spec}}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template},
    }  # fmt: skip


def test_pods_that_fail_do_not_start_or_are_refused(kube, back):
    failing = {**SAID, "pod_failed": "something new"}
    expected = {f"default/{code.replace('_', '-')}": code for code in failing}
    pods = [says(code.replace("_", "-"), words) for code, words in failing.items()]
    pods += [
        waits("no-image"),
        waits("no-registry", image="registry.testbed.invalid/x:1", imagePullPolicy="IfNotPresent"),
        waits("no-config", image=busybox(), envFrom=[{"configMapRef": {"name": "nobody"}}]),
        # The scheduler is not asked, and kubelet has only two GPUs.
        pod("forced", 4, nodeName=A10),
        pod("held", 1, **only(A10)),
    ]
    expected |= {
        "default/no-image": "image_missing",
        "default/no-registry": "image_pull_failed",
        "default/no-config": "container_config",
        "default/held": "held_by_upgrade",
        "default/classless": "runtime_class_missing",
        "default/nobodys": "pod_not_created",
    }
    made = [
        deployment("classless", runtimeClassName="nowhere"),
        deployment("nobodys", serviceAccountName="nobody"),
    ]
    names = [one["metadata"]["name"] for one in pods]
    back(lambda: kube.kubectl("annotate", "node", A10, "kubegpu.nodes/maintenance-", check=False))
    back(lambda: kube.kubectl("uncordon", A10))
    back(lambda: kube.kubectl("delete", "pods", *names, "--wait=true", "--ignore-not-found"))
    back(lambda: kube.kubectl("delete", "deployments", "classless", "nobodys", check=False))
    kube.kubectl("annotate", "node", A10, f"kubegpu.nodes/maintenance={HOLDER}")
    kube.kubectl("cordon", A10)
    kube.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([*made, *pods]))

    def come_about():
        items = json.loads(kube.kubectl("get", "pods", "-o", "json"))["items"]
        ended = [one for one in items if one["status"]["phase"] == "Failed"]
        said = kube.kubectl("get", "events", "-o", "json") + json.dumps(items)
        words = ("ErrImageNeverPull", "ErrImagePull", "CreateContainerConfigError", "nowhere")
        return len(ended) == len(failing) + 1 and all(one in said for one in words)

    wait_for(come_about, 600)
    wait_for(lambda: "FailedCreate" in kube.kubectl("get", "events") and "nobody" in
             kube.kubectl("get", "events", "--field-selector=reason=FailedCreate"))  # fmt: skip
    _run, result = diagnose("failing", gpu_diagnose_pods=[*expected, "default/forced"])
    found = {one["pod"]: one["id"] for one in result["findings"] if one["pod"]}
    print(json.dumps(result["findings"], indent=1))
    # Which of its two checks of a pod comes first differs among releases of kubelet.
    assert found.pop("default/forced") in ("allocation_failed", "taken_at_admission"), found
    assert found == expected, result["findings"]
    assert {one["verdict"] for one in result["hosts"].values()} <= {"ok", "no GPU"}


def test_a_device_plugin_that_ends_again_and_again(kube, back):
    def start_with(setting):
        kube.kubectl("-n", "kubegpu", "set", "env", f"daemonset/{PLUGIN}", setting)
        # A rollout would wait for the first pod before it replaces the second one.
        labels = "app.kubernetes.io/name=nvidia-device-plugin"
        kube.kubectl("-n", "kubegpu", "delete", "pods", "-l", labels, "--wait=true")

    def crashed():
        """Whether kubelet waits for most of a minute before it starts them again."""
        states = [
            state
            for one in json.loads(plugin_pods(kube))["items"]
            for state in one["status"].get("containerStatuses") or ()
        ]
        reasons = [(one["state"].get("waiting") or {}).get("reason") for one in states]
        return (
            reasons == ["CrashLoopBackOff"] * 2
            and all(one["restartCount"] >= 3 for one in states)
            and allocatable(kube) == {}
        )

    back(lambda: start_with("CONFIG_FILE-"))
    # The catalogue has no row for these words of the plugin.
    start_with("CONFIG_FILE=/nowhere")
    wait_for(crashed, 600)
    _run, result = diagnose("crash-loop")
    print(json.dumps(result["findings"], indent=1))
    assert errors(result) == {HOST_A10: ["plugin_crash_loop"], HOST_L4: ["plugin_crash_loop"]}


def test_a_node_without_its_label_and_one_with_a_taint(kube, back):
    # As the finding says. A label that kubectl puts back is kubectl's, and stays at a teardown.
    back(site_labels)
    back(lambda: kube.kubectl("taint", "node", L4, "team-", check=False))
    kube.kubectl("label", "node", A10, f"{MARKER}-")
    kube.kubectl("taint", "node", L4, "team=a:NoExecute")
    wait_for(lambda: A10 not in plugin_pods(kube) and L4 not in plugin_pods(kube))
    wait_for(lambda: allocatable(kube) == {})
    waiting = pod("waiting", 1)
    back(lambda: kube.kubectl("delete", "pods", "waiting", "--wait=true"))
    kube.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(waiting))
    run, result = diagnose("label", gpu_diagnose_pods=["default/waiting"])
    assert errors(result) == {
        HOST_A10: ["plugin_selects_not"], HOST_L4: ["plugin_tolerates_not"],
    }, result["findings"]  # fmt: skip
    # Of both of them the pod is what follows.
    assert all("gpu_not_offered" in one["follows"] for one in result["findings"])
    assert result["pods"][0]["roots"] == ["plugin_selects_not", "plugin_tolerates_not"]
    assert {host for host, one in run.stats.items() if one["failures"]} == {HOST_A10, HOST_L4}


def test_a_cluster_without_a_device_plugin_and_one_that_is_whole(kube, back):
    run, result = diagnose("whole")
    assert run.status == 0 and result["ok"] and errors(result) == {}, run.output
    assert result["hosts"][HOST_A10]["node"] == A10

    def again():
        assert play("site", "--tags", "device_plugin").status == 0

    back(again)
    kube.kubectl("-n", "kubegpu", "delete", "daemonset", PLUGIN, "--wait=true")
    wait_for(lambda: allocatable(kube) == {})
    _run, result = diagnose("no-plugin")
    assert errors(result) == {HOST_A10: ["no_plugin"], HOST_L4: ["no_plugin"]}, result["findings"]
    (one, _other) = result["findings"]
    assert one["fix"] == "ansible-playbook kubegpu.nodes.site --tags device_plugin"


def test_a_second_device_plugin_that_an_operator_manages(kube, back):
    selector = {"app": "nvidia-device-plugin"}
    labels = {**selector, "app.kubernetes.io/managed-by": "gpu-operator"}
    box = {"name": "nvidia-device-plugin", "image": busybox(), "imagePullPolicy": "Never",
           "command": ["sleep", "3600"]}  # fmt: skip
    spec = {"terminationGracePeriodSeconds": 0, "containers": [box], **only(A10)}
    theirs = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": "nvidia-device-plugin-daemonset", "namespace": "gpu-operator", "labels": labels,
        },
        "spec": {
            "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }  # fmt: skip
    back(lambda: kube.kubectl("delete", "namespace", "gpu-operator", "--wait=true"))
    kube.kubectl("create", "namespace", "gpu-operator")
    kube.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(theirs))

    def runs():
        items = json.loads(kube.kubectl("-n", "gpu-operator", "get", "pods", "-o", "json"))["items"]
        return [one["status"]["phase"] for one in items] == ["Running"]

    wait_for(runs)
    _run, result = diagnose("operator-conflict")
    assert errors(result) == {HOST_A10: ["operator_conflict"]}, result["findings"]
    (one,) = (one for one in result["findings"] if one["severity"] == "error")
    assert "gpu-operator" in one["evidence"] and HOST_A10 in one["fix"]


def machine_a10():
    return next(one for one in chosen() if one.name == HOST_A10)


def ready(kube):
    """Whether the node of the A10s is."""
    status = json.loads(kube.kubectl("get", "node", A10, "-o", "json"))["status"]
    return [one["status"] for one in status["conditions"] if one["type"] == "Ready"] == ["True"]


def plugin_of_a10(kube):
    """Return the name of the plugin's pod, and its process as the node sees it."""
    items = json.loads(plugin_pods(kube))["items"]
    (name,) = (one["metadata"]["name"] for one in items if one["spec"]["nodeName"] == A10)
    # The kernel has the first 15 characters of its name.
    return name, execute(machine_a10(), "pgrep", "--exact", "nvidia-device-p").strip()


def fix(kube, one):
    """Do what a finding says, with the kubectl of this cluster."""
    kube.kubectl(*shlex.split(one["fix"].partition("kubectl ")[2]))


def test_a_plugin_whose_socket_the_kubelet_has_lost(kube, back):
    machine = machine_a10()
    name, process = plugin_of_a10(kube)
    back(lambda: execute(machine, "systemctl", "start", "kubelet"))
    back(lambda: execute(machine, "kill", "-CONT", process, check=False))
    # A kubelet that starts removes all sockets, and this plugin does not notice.
    execute(machine, "kill", "-STOP", process)
    execute(machine, "systemctl", "restart", "kubelet")
    wait_for(lambda: allocatable(kube) == {L4: "4"} and ready(kube))
    _run, result = diagnose("socket-lost")
    print(json.dumps(result["findings"], indent=1))
    assert errors(result) == {HOST_A10: ["not_registered"]}, result["findings"]
    (one,) = (one for one in result["findings"] if one["severity"] == "error")
    assert f"kubegpu/{name} is Running, but kubelet on {A10} offers no {GPU}" in one["cause"]
    # The last of its log: it has not seen that it has to register again.
    assert one["evidence"].endswith(f"Registered device plugin for '{GPU}' with Kubelet")
    fix(kube, one)
    wait_for(lambda: allocatable(kube) == {A10: "2", L4: "4"}, 600)


def test_a_gpu_that_the_plugin_has_marked_unhealthy(kube, back):
    machine = machine_a10()
    name, process = plugin_of_a10(kube)
    uuid = f"GPU-5ca1ab1e-0000-4000-8000-{1:012d}"
    # With its pod goes what is written there.
    back(lambda: kube.kubectl("-n", "kubegpu", "delete", "pod", name, "--ignore-not-found"))
    execute(machine, "tee", f"/proc/{process}/root/tmp/standin-xids", stdin=f"69 {uuid}\n")
    wait_for(lambda: allocatable(kube) == {A10: "1", L4: "4"})
    _run, result = diagnose("unhealthy")
    print(json.dumps(result["findings"], indent=1))
    assert errors(result) == {HOST_A10: ["gpu_unhealthy"]}, result["findings"]
    (one,) = (one for one in result["findings"] if one["severity"] == "error")
    assert one["cause"] == f"1 of 2 {GPU} on {A10} are unhealthy."
    assert f"Xid=69 on Device={uuid}; marking device as unhealthy." in one["evidence"]
    fix(kube, one)
    wait_for(lambda: allocatable(kube) == {A10: "2", L4: "4"}, 600)


def test_a_kubelet_that_does_not_run_and_a_host_that_no_node_is_called_like(kube, back):
    machine = machine_a10()
    _run, result = diagnose(
        "node-unknown", "--limit", HOST_A10,
        gpu_node_labels_node_name="nowhere", gpu_node_labels_match="name",
    )  # fmt: skip
    assert errors(result) == {HOST_A10: ["node_unknown"]}, result["findings"]

    # Before its GPUs are counted: those of a node that is not ready stay as they were.
    back(lambda: wait_for(lambda: ready(kube)))
    back(lambda: execute(machine, "systemctl", "start", "kubelet"))
    execute(machine, "systemctl", "stop", "kubelet")
    wait_for(lambda: not ready(kube))
    _run, result = diagnose("node-not-ready")
    assert errors(result) == {HOST_A10: ["node_not_ready"]}, result["findings"]


def test_an_api_server_that_does_not_answer(kube, tmp_path):
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text(kube.kubeconfig.read_text().replace(kube.server, "https://127.0.0.1:9"))
    _run, result = diagnose("no-api-server", kubegpu_kube={"kubeconfig": str(nowhere)})
    assert list(errors(result).values()) == [["cluster_not_asked"]], result["findings"]
    unseen = {row["host"] for row in result["unseen"] if row["what"] == "its node in Kubernetes"}
    assert {HOST_A10, HOST_L4} <= unseen
