# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer metrics: a sample for each GPU, or the reason why not."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.options import read_expected
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.read import Reader
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.result import build_result
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.wait import wait
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.errors import KubeError
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.timestamp import unix_time
from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring.manifests import manifests
from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring.options import read_request
from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring.verify import metric_layers
from tests.testbed.dcgm_exporter import text
from tests.unit.fixtures.cluster_objects import GPU, container, daemonset, node, pod
from tests.unit.fixtures.standin_cluster import StandinCluster, Time

LABELS = {
    "app.kubernetes.io/name": "dcgm-exporter",
    "app.kubernetes.io/managed-by": "kubegpu.nodes",
}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}
NVIDIA = {"vendor": "nvidia", "kernel_driver": "nvidia"}
IMAGE = "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.1-4.8.4-distroless"


def exporter(name="kubegpu-dcgm-exporter", image=IMAGE, **more):
    selector = {"app.kubernetes.io/name": "dcgm-exporter"}
    labels = LABELS if name.startswith("kubegpu-") else {}
    return daemonset(
        name, image=image, container_name="x", selector=selector, labels=labels, **more
    )


def cluster(status=None, log="", exporters=None, **more):
    made = pod("exporter-x", namespace="kubegpu", labels=LABELS, status=status or READY)
    objects = {
        "nodes": [node(gpus=2)], "pods": [made],
        "daemonsets": [exporter()] if exporters is None else exporters, **more,
    }  # fmt: skip
    return StandinCluster(log=log, **objects)


OURS = manifests(read_request({}), "none", False)


def our_pod(**more):
    """Return the pod of the exporter as this collection deploys it."""
    (spec,) = [one["spec"]["template"]["spec"] for one in OURS if one["kind"] == "DaemonSet"]
    spec = copy.deepcopy({key: spec[key] for key in ("containers", "volumes")})
    spec["containers"][0].update(more)
    return pod("exporter-x", namespace="kubegpu", labels=LABELS, status=READY, **spec)


def user(started="2026-11-27T10:00:00Z", phase="Running", resource=GPU, name="train"):
    limits = [container(limits={resource: "1"})]
    return pod(name, namespace="ml", containers=limits, phase=phase, status={"startTime": started})


def held(page, exporter_pod, *users):
    found = cluster(log=page, pods=[exporter_pod, *users])
    for one in users:
        for limits in (c["resources"]["limits"] for c in one["spec"]["containers"]):
            for part in ("capacity", "allocatable"):
                found.objects["nodes"][0]["status"][part].update(dict.fromkeys(limits, "2"))
    found.server_time = unix_time("2026-11-27T10:10:00Z")
    (entry,) = layers(found)
    return entry


ALONE, SHOWN = text("n1", 2, ""), text("n1", 2, "ml/train")


def test_samples_without_the_pods_that_hold_gpus_fail():
    entry = held(ALONE, our_pod(), user())
    assert (entry["ok"], entry["code"]) == (False, "pods_without_metrics")
    assert "pods with GPUs: ml/train" in entry["evidence"]
    # All is set: the socket in the folder is another kubelet's, or none.
    assert "/var/lib/kubelet/pod-resources" in entry["evidence"]
    assert "gpu_monitoring_kubelet_directory" in entry["next_step"]


@pytest.mark.parametrize(
    ("page", "users"),
    [
        (SHOWN, [user()]),
        (ALONE, []),
        # It may not be in the samples yet, holds no GPU, or holds another vendor's.
        (ALONE, [user("2026-11-27T10:08:00Z")]),
        (ALONE, [user("")]),
        (ALONE, [user(phase="Pending")]),
        (ALONE, [user(phase="Succeeded")]),
        (ALONE, [user(resource="amd.com/gpu")]),
        (ALONE, [user(resource="nvidia.com/hostdev")]),
        # The older names of the label.
        (SHOWN.replace('pod="', 'pod_name="'), [user()]),
        (SHOWN.replace('pod="', 'exported_pod="'), [user()]),
    ],
)
def test_samples_with_pods_or_without_users_are_well(page, users):
    assert held(page, our_pod(), *users)["ok"]


def test_a_label_of_the_exporter_itself_is_no_pod_that_uses_a_gpu():
    """With the mapping on, GPUs without a pod have empty labels."""
    page = ALONE.replace('device="', 'pod="",namespace="",device="')
    assert held(page, our_pod(), user())["code"] == "pods_without_metrics"
    assert held(ALONE + 'up{pod="x"} 1\n', our_pod(), user())["code"] == "pods_without_metrics"


SHARED = "nvidia.com/gpu.shared"


def environment(**values):
    return [{"name": name, "value": value} for name, value in values.items()]


@pytest.mark.parametrize(
    ("more", "resource", "evidence", "step"),
    [
        ({"env": environment()}, GPU, "DCGM_EXPORTER_KUBERNETES: not set",
         "Set DCGM_EXPORTER_KUBERNETES=true"),
        ({"env": environment(DCGM_EXPORTER_KUBERNETES="false")}, GPU,
         "DCGM_EXPORTER_KUBERNETES: false", "gpu_monitoring_environment"),
        ({"volumeMounts": []}, GPU, "no folder of the host is mounted at",
         "/var/lib/kubelet/pod-resources"),
        ({"volumeMounts": [], "env": [], "args": ["--kubernetes"]}, GPU,
         "no folder of the host is mounted at", "Mount the folder"),
        ({"env": environment(DCGM_EXPORTER_KUBERNETES="true",
                             DCGM_POD_RESOURCES_KUBELET_SOCKET="/x/kubelet.sock")}, GPU,
         "mounted at /x", "at /x"),
        ({}, SHARED, "they hold nvidia.com/gpu.shared", f"NVIDIA_RESOURCE_NAMES={SHARED}"),
        ({}, "nvidia.com/mig-1g.10gb", "has the host's folder", "kubelet.sock"),
    ],
)  # fmt: skip
def test_the_setting_that_is_missing_is_named(more, resource, evidence, step):
    entry = held(ALONE, our_pod(**more), user(resource=resource))
    assert entry["code"] == "pods_without_metrics"
    assert evidence in entry["evidence"] and step in entry["next_step"]


def layers(found, gpus=2, name="n1"):
    expected = read_expected(
        {"gpu1": {"name": name, "resources": {GPU: gpus}, "gpus": [NVIDIA] * gpus}}
    )
    time = Time()
    snapshot, _waited = wait(Reader(found), expected, 0, sleep=time.sleep, clock=time.monotonic)
    return metric_layers(found, snapshot, expected)


def test_a_sample_for_each_gpu():
    found = cluster(log=text("n1", 2, ""))
    (entry,) = layers(found)
    assert entry["ok"] is True and entry["node"] == "gpu1" and entry["layer"] == "metrics"
    assert "samples of 2 GPUs" in entry["proof"]
    assert found.texts == ["/api/v1/namespaces/kubegpu/pods/exporter-x/proxy/metrics"]


def test_an_instance_of_mig_is_no_further_gpu():
    page = text("n1", 1, "").replace('device="nvidia0"', 'device="nvidia0",GPU_I_ID="1"')
    (entry,) = layers(cluster(log=text("n1", 1, "") + page))
    assert entry["code"] == "gpu_without_metrics" and "1 of 2 GPUs" in entry["cause"]


def test_another_text_is_no_sample():
    (entry,) = layers(cluster(log='node_load1{UUID="GPU-1"} 1\nDCGM_FI_DEV_GPU_TEMP 40\n'))
    assert "0 of 2 GPUs" in entry["cause"]


@pytest.mark.parametrize(("found", "code"), [
    (cluster(pods=[]), "exporter_missing"),
    (cluster(exporters=[]), "exporter_missing"),
    (cluster(exporters=[exporter("x", "rocm/device-metrics-exporter:1")]), "exporter_missing"),
    (cluster(status={"phase": "Pending"}), "exporter_not_ready"),
])  # fmt: skip
def test_no_exporter(found, code):
    (entry,) = layers(found)
    assert (entry["ok"], entry["code"]) == (False, code)
    assert entry["cause"] and entry["next_step"]


def test_a_pod_that_does_not_start_has_its_own_cause():
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}
    status = {"containerStatuses": [{"name": "x", "ready": False, "state": waiting}]}
    (entry,) = layers(cluster(status=status))
    assert entry["code"] not in ("", "exporter_not_ready") and "image" in entry["cause"]


def test_an_exporter_that_does_not_answer():
    found = cluster()

    def refuse(path, **_params):
        raise KubeError("the server could not find the requested resource", status=503)

    found.text = refuse
    (entry,) = layers(found)
    assert entry["code"] == "exporter_no_answer" and "does not answer" in entry["cause"]


def test_a_host_that_is_no_node_and_one_without_gpus():
    (entry,) = layers(cluster(), name="other")
    assert entry["code"] == "node_unknown"
    assert layers(cluster(), gpus=0) == []


def test_exporters_are_parts_and_no_foreign_device_plugins():
    found = cluster(exporters=[exporter("nvidia-dcgm-exporter")])
    time = Time()
    expected = read_expected({})
    snapshot, _waited = wait(Reader(found), expected, 0, sleep=time.sleep, clock=time.monotonic)
    result = build_result(snapshot, expected)
    (part,) = result["parts"]
    assert (part["kind"], part["vendor"], part["managed"]) == ("exporter", "nvidia", False)
    assert result["foreign"] == [] and len(result["exporter_pods"]) == 1


def test_a_rollout_waits_for_our_exporter():
    late = exporter()
    late["status"]["numberAvailable"] = 0
    found = cluster(exporters=[late])
    time = Time()
    snapshot, waited = wait(
        Reader(found), (), 30, rollout=True, sleep=time.sleep, clock=time.monotonic
    )
    assert waited >= 30 and "the exporter kubegpu/kubegpu-dcgm-exporter" in snapshot.notes[0]
