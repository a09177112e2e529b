# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What verify, and of some of it diagnose, say of a real cluster that is broken on purpose.

What the user saw of each is in build/<name of the test bed>/seen.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest
import yaml

from tests.integration.cluster.diagnosing import diagnose, errors
from tests.integration.fleet.playbooks import environment, play
from tests.testbed.fleet import chosen
from tests.testbed.nodes import execute
from tests.testbed.paths import BUILD, INVENTORY

A10, L4, CPU = (
    "a10-0.pool.testbed.example",
    "l4-0.pool.testbed.example",
    "cpu-0.pool.testbed.example",
)
SEEN = BUILD / "seen"
PLUGIN = "kubegpu-nvidia-device-plugin"
MARKER = "kubegpu.nodes/gpu"
TESTS = "app.kubernetes.io/name=gpu-verify"
pytestmark = pytest.mark.full(
    why="faults, one at a time; test_site.py verifies a cluster that is whole"
)
SHORT = ("-e", "gpu_verify_wait_timeout=15")


@pytest.fixture(scope="module")
def kube(cluster):
    """A cluster that site has brought all the way."""
    run = play("site")
    assert run.status == 0, run.output
    return cluster


@pytest.fixture
def back(kube):
    """Whatever a test broke, it says how that is fixed; then the cluster has to be whole."""
    steps = []
    yield steps.append
    for step in reversed(steps):
        step()
    settle(kube)


def settle(kube):
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        if allocatable(kube) == {A10: "2", L4: "4"}:
            return
        time.sleep(2)
    pytest.fail(f"the cluster did not come back: {allocatable(kube)}")


def allocatable(kube):
    nodes = json.loads(kube.kubectl("get", "nodes", "-o", "json"))["items"]
    shown = {
        node["metadata"]["name"]: node["status"]["allocatable"].get("nvidia.com/gpu", "0")
        for node in nodes
        if any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])
    }
    return {name: count for name, count in shown.items() if count != "0"}


def wait_for(what, seconds=300):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(1)


def node(name):
    return next(one for one in chosen() if one.name == name)


def verify(name, *arguments):
    """Run the playbook; what the user saw is kept. Returns exit status, that text, and the rows."""
    dest = BUILD / f"verify-{name}.json"
    dest.unlink(missing_ok=True)
    run = play("verify", "-e", f"kubegpu_verify_file={dest}", *arguments)
    SEEN.mkdir(exist_ok=True)
    (SEEN / f"{name}.txt").write_text(run.screen.strip() + "\n")
    rows = {row["node"]: row for row in json.loads(dest.read_text())}
    # Of a host without a GPU nothing is known here, but for what its node offers.
    return run, {name: row for name, row in rows.items() if row["result"] != "no GPU"}


def layer(rows, host, name):
    return next(entry for entry in rows[host]["layers"] if entry["layer"] == name)


def leftovers(kube):
    return kube.kubectl("get", "pods", "-A", "-l", TESTS, "-o", "name").split()


def plugin_pods(kube, *arguments):
    labels = "app.kubernetes.io/name=nvidia-device-plugin"
    return kube.kubectl("-n", "kubegpu", "get", "pods", "-l", labels, "-o", "json", *arguments)


def delete_plugin_pods(kube):
    labels = "app.kubernetes.io/name=nvidia-device-plugin"
    kube.kubectl("-n", "kubegpu", "delete", "pods", "-l", labels, "--wait=true")


def test_s13_the_default_runtime_is_not_nvidia(kube, back):
    path = "/spec/template/spec/runtimeClassName"
    back(lambda: delete_plugin_pods(kube))
    back(lambda: patch(kube, {"op": "add", "path": path, "value": "nvidia"}))
    patch(kube, {"op": "remove", "path": path})
    delete_plugin_pods(kube)
    wait_for(lambda: "0" not in restarts(kube) and restarts(kube))
    run, rows = verify("default-runtime", *SHORT)
    assert run.status != 0
    for host in rows:
        entry = layer(rows, host, "allocatable")
        assert entry["code"] == "default_runtime", entry
        assert "default runtime of the node is runc, not nvidia" in entry["cause"]
        assert "NVML" in entry["evidence"]
        assert rows[host]["runtime"] == "ok"
    _run, result = diagnose("default-runtime")
    assert errors(result) == {host: ["default_runtime"] for host in rows}, result["findings"]


def patch(kube, *operations):
    kube.kubectl("-n", "kubegpu", "patch", "daemonset", PLUGIN, "--type=json", "-p",
                 json.dumps(operations))  # fmt: skip


def restarts(kube):
    """How often each plugin's container has been started again, as far as it is known."""
    found = []
    for pod in json.loads(plugin_pods(kube))["items"]:
        for status in pod["status"].get("containerStatuses", []):
            found.append(str(status["restartCount"]))
    return found


def test_the_toolkit_is_missing(kube, back):
    program = "/usr/bin/nvidia-container-runtime"
    back(lambda: kube.kubectl("taint", "node", A10, "testbed-", check=False))
    back(lambda: execute(node("kube-a10"), "mv", f"{program}.gone", program))
    # Without the program not even a container that runs could be ended.
    kube.kubectl("taint", "node", A10, "testbed=empty:NoExecute")
    wait_for(lambda: A10 not in allocatable(kube) and A10 not in plugin_pods(kube))
    execute(node("kube-a10"), "mv", program, f"{program}.gone")
    kube.kubectl("taint", "node", A10, "testbed-")
    wait_for(lambda: A10 in plugin_pods(kube))
    run, rows = verify("toolkit-missing", *SHORT)
    assert run.status != 0
    assert layer(rows, "kube-a10", "toolkit")["code"] == "toolkit_missing"
    assert layer(rows, "kube-a10", "allocatable")["code"] == "runtime_missing"
    assert rows["kube-l4"]["failed"] is False
    # What the kubelet says of it is what follows.
    _run, result = diagnose("toolkit-missing")
    assert errors(result) == {"kube-a10": ["toolkit_missing"]}, result["findings"]
    (one,) = (one for one in result["findings"] if one["severity"] == "error")
    assert "runtime_missing" in one["follows"]


def test_a_plugin_on_a_node_without_a_gpu(kube, back):
    back(lambda: kube.kubectl("label", "node", CPU, f"{MARKER}-"))
    kube.kubectl("label", "node", CPU, f"{MARKER}=nvidia")
    wait_for(lambda: CPU in plugin_pods(kube))
    run, rows = verify("plugin-without-gpu", *SHORT)
    assert run.status != 0
    entry = layer(rows, "kube-cpu", "allocatable")
    assert entry["code"] == "plugin_without_gpu"
    assert f"is on {CPU}, which has no GPU" in entry["cause"]
    assert rows["kube-a10"]["failed"] is False and rows["kube-l4"]["failed"] is False
    _run, result = diagnose("plugin-without-gpu")
    assert errors(result) == {"kube-cpu": ["plugin_without_gpu"]}, result["findings"]


def test_s14_all_gpus_are_taken(kube, back):
    image = yaml.safe_load(INVENTORY.read_text())["all"]["vars"]["testbed_busybox_image"]
    pods = [holder("train-0", A10, 2, image), holder("train-1", L4, 4, image)]
    back(lambda: kube.kubectl("delete", "pods", "train-0", "train-1", "--wait=true"))
    kube.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(pods))
    kube.kubectl("wait", "pods", "train-0", "train-1", "--for=condition=Ready", "--timeout=300s")
    run, rows = verify("all-taken")
    assert run.status == 0, run.output
    entry = layer(rows, "kube-l4", "pod")
    assert (entry["ok"], entry["code"]) == (None, "all_taken")
    assert (
        entry["cause"] == f"All 4 nvidia.com/gpu of {L4} are taken, by the pod default/train-1 (4)."
    )
    assert rows["kube-l4"]["allocatable"] == "ok" and rows["kube-l4"]["pod"] == "not tried"
    run, rows = verify("all-taken-strict", "-e", "gpu_verify_busy=fail")
    assert run.status != 0 and rows["kube-a10"]["failed"]
    assert leftovers(kube) == []


def holder(name, where, count, image):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {"kubernetes.io/hostname": where},
            "containers": [
                {
                    "name": "train",
                    "image": image,
                    "imagePullPolicy": "Never",
                    "command": ["sleep", "3600"],
                    "resources": {"limits": {"nvidia.com/gpu": count}},
                }
            ],
        },
    }


def test_the_images_cuda_is_too_new(kube):
    images = yaml.safe_load(INVENTORY.read_text())["all"]["vars"]
    run, rows = verify(
        "cuda-too-new", "-e", f"gpu_verify_image={images['testbed_sample_too_new_image']}"
    )
    assert run.status != 0
    entry = layer(rows, "kube-a10", "pod")
    assert entry["code"] == "unmet_requirement"
    assert "CUDA 13.3" in entry["cause"] and "535.183.01, whose own CUDA is 12.2" in entry["cause"]
    assert "nvidia-container-cli: requirement error" in entry["evidence"]
    assert "CUDA 12.2 or older" in entry["next_step"]
    assert leftovers(kube) == []


def test_containerds_configuration_was_broken_by_hand(kube, back):
    config = "/etc/containerd/config.toml"
    back(lambda: execute(node("kube-a10"), "systemctl", "restart", "containerd"))
    back(lambda: execute(node("kube-a10"), "cp", "-p", "/root/config.toml.good", config))
    execute(node("kube-a10"), "cp", "-p", config, "/root/config.toml.good")
    execute(node("kube-a10"), "sh", "-c", f"echo '[plugins.\"io.containerd' >> {config}")
    execute(node("kube-a10"), "systemctl", "restart", "containerd", check=False)
    wait_for(lambda: A10 not in allocatable(kube), seconds=400)
    run, rows = verify("containerd-broken", *SHORT)
    assert run.status != 0
    runtime = layer(rows, "kube-a10", "runtime")
    assert runtime["ok"] is False and config in runtime["cause"] + runtime["evidence"], runtime
    assert layer(rows, "kube-a10", "allocatable")["code"] == "node_not_ready"
    assert rows["kube-l4"]["failed"] is False


def test_an_api_server_that_does_not_answer_is_a_row_of_the_table(kube, tmp_path):
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text(kube.kubeconfig.read_text().replace(kube.server, "https://127.0.0.1:9"))
    kube = json.dumps({"kubegpu_kube": {"kubeconfig": str(nowhere)}})
    run, rows = verify("no-api-server", "-e", kube)
    assert run.status != 0
    assert {rows[host]["runtime"] for host in ("kube-a10", "kube-l4")} == {"ok"}
    told = [row["allocatable"] for row in rows.values()]
    assert told.count("failed") == 1 and rows["cluster"]["allocatable"] == "failed"
    assert "127.0.0.1:9" in rows["cluster"]["notes"][0]
    table = run.screen.partition("Verification")[2]
    assert "Next step:" in table


@pytest.mark.full(str(int(signal.SIGINT)), why="another signal")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_run_leaves_no_pod(kube, number):
    assert leftovers(kube) == []
    process = start_slow()
    try:
        wait_for(lambda: running(kube) == 2, seconds=400)
        # A kubelet (1.20) that is told within a second of a start forgets it for a minute.
        time.sleep(3)
        process.send_signal(number)
        process.wait(timeout=200)
        assert process.returncode != 0
        # Asked to go at once; how long kubelet takes to end them is its own affair.
        wait_for(lambda: not staying(kube), seconds=100)
        wait_for(lambda: leftovers(kube) == [], seconds=400)
    finally:
        process.kill()
        # A module that goes on although its playbook is dead sees that its pods went, and ends.
        kube.kubectl("-n", "kubegpu", "delete", "pods", "-l", TESTS, "--timeout=300s")


def pods_of_tests(kube):
    return json.loads(kube.kubectl("get", "pods", "-A", "-l", TESTS, "-o", "json"))["items"]


def running(kube):
    return sum(pod["status"]["phase"] == "Running" for pod in pods_of_tests(kube))


def staying(kube):
    """Test pods that nobody has asked to go."""
    return [one for one in pods_of_tests(kube) if "deletionTimestamp" not in one["metadata"]]


def start_slow():
    """Start a verification whose pods take long."""
    images = yaml.safe_load(INVENTORY.read_text())["all"]["vars"]
    more = {
        "gpu_verify_image": images["testbed_busybox_image"],
        "gpu_verify_command": ["sleep", "600"],
        "gpu_verify_container": False,
        "kubegpu_verify_file": str(BUILD / "verify-interrupted.json"),
    }
    # What a shell starts in the background ignores SIGINT, and so would all of its children.
    argv = ["env", "--default-signal=INT", sys.executable, "-m", "ansible", "playbook",
            "-i", str(INVENTORY), "kubegpu.nodes.verify", "-e", json.dumps(more)]  # fmt: skip
    return subprocess.Popen(
        argv, env=environment(), cwd=BUILD, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def test_what_a_killed_run_left_is_removed_by_the_next(kube, tmp_path):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "gpu-verify-left-over",
            "namespace": "kubegpu",
            "labels": {
                "app.kubernetes.io/managed-by": "kubegpu.nodes",
                "app.kubernetes.io/name": "gpu-verify",
                "kubegpu.nodes/run": "earlier",
            },
            "annotations": {"kubegpu.nodes/owner": "elsewhere 1 1"},
        },
        "spec": holder("x", A10, 2, "localhost/testbed/busybox:1")["spec"],
    }
    kube.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(pod))
    run, rows = verify("left-over")
    assert run.status == 0, run.output
    assert rows["kube-a10"]["pod"] == "ok"
    assert leftovers(kube) == []
