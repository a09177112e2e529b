# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer metrics: a sample for each GPU, or the reason why not."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.options import read_expected
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.read import Reader
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.result import build_result
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.wait import wait
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.errors import KubeError
from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring.verify import metric_layers
from tests.testbed.dcgm_exporter import text
from tests.unit.fixtures.cluster_objects import GPU, daemonset, node, pod
from tests.unit.fixtures.standin_cluster import StandinCluster, Time

LABELS = {
    "app.kubernetes.io/name": "dcgm-exporter",
    "app.kubernetes.io/managed-by": "kubegpu.nodes",
}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}
NVIDIA = {"vendor": "nvidia", "kernel_driver": "nvidia"}
IMAGE = "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless"


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
