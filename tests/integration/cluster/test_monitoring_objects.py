# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""S19: the monitoring in a real API server, and a real Prometheus that finds the exporter by it.

The API server has no nodes: the pod is made by the test, and its address is a stand-in exporter on
loopback. The definitions of the Prometheus operator's kinds are made by the test, so that the role
sees them. No object of them is made: Debian's Kubernetes 1.20 ends with a fault when it encodes the
metadata of a custom object, because its vendored reflect2 is older than the Go that compiled it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
import yaml

from ansible_collections.kubegpu.nodes.plugins.filter.gpu_monitoring_plan import (
    gpu_monitoring_plan,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import Cluster, Connection
from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring.installed import (
    read_monitoring,
)
from tests.testbed import cluster_made, prometheus
from tests.testbed.paths import HERE
from tests.tools.environments import collections
from tests.unit.fixtures import node_facts

pytestmark = pytest.mark.full(why="Debian's Prometheus beside the API server")

NAME = "kubegpu-dcgm-exporter"
GROUP = "monitoring.coreos.com"
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.set_fact:
        gpu_node: "{{ facts }}"
        cacheable: true
    - ansible.builtin.include_role:
        name: kubegpu.nodes.gpu_monitoring
        tasks_from: "{{ entry | default('main') }}"
    - ansible.builtin.debug:
        msg: "{{ gpu_monitoring_plan.reasons + gpu_monitoring_plan.others }}"
      when: gpu_monitoring_plan is defined
"""
KINDS = ("ServiceMonitor", "PodMonitor", "PrometheusRule")


def definition(kind):
    plural = f"{kind.lower()}s"
    spec = {"type": "object", "properties": {"jobLabel": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {
        "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
    }  # fmt: skip
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [version],
        },
    }


@pytest.fixture
def operator(api):
    """The kinds of the Prometheus operator."""
    items = [definition(kind) for kind in KINDS]
    api.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List",
                                                      "items": items}))  # fmt: skip
    names = [f"crd/{item['metadata']['name']}" for item in items]
    api.kubectl("wait", "--for=condition=Established", *names, "--timeout=120s")
    yield
    api.kubectl("delete", *names)


class Run:
    """A run: what it printed, and how many tasks changed something."""

    def __init__(self, done):
        self.status = done.returncode
        self.output = done.stdout + done.stderr
        self.changed = sum(int(count) for count in re.findall(r"changed=(\d+)", done.stdout))


@pytest.fixture
def play(api, tmp_path):
    """Run the role for one host, which is facts and a made node."""
    cluster_made.create(api, [cluster_made.node("gpu-a")])
    facts = node_facts.node(os__machine_id=cluster_made.machine_id("gpu-a"))
    host = {"ansible_connection": "local", "facts": facts}
    variables = {
        "kubegpu_kube": {"kubeconfig": str(api.kubeconfig)},
        "gpu_monitoring_enabled": True,
        "gpu_monitoring_wait_timeout": 0,
    }
    inventory = {"all": {"hosts": {"gpu1.example.com": host}, "vars": variables}}
    (tmp_path / "inventory.yml").write_text(yaml.safe_dump(inventory))
    (tmp_path / "play.yml").write_text(PLAY)

    def run(*arguments, **options):
        program = Path(sys.executable).parent / "ansible-playbook"
        argv = [str(program), "-i", "inventory.yml", "play.yml", *arguments]
        return Run(
            subprocess.run(
                [*argv, "--extra-vars", json.dumps(options)],
                cwd=tmp_path,
                env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(collections())},
                capture_output=True,
                text=True,
                timeout=1200,
                check=False,
            )
        )

    yield run
    done = run(entry="teardown")
    api.kubectl("delete", "namespace", "kubegpu", "--ignore-not-found", "--wait=true")
    cluster_made.delete(api, ["gpu-a"])
    assert done.status == 0, done.output


def ours(api):
    """Return kind and name of all objects with our label, but for the namespace."""
    kinds = "ds,cm,svc,sa,clusterroles,clusterrolebindings"
    found = api.kubectl(
        "get", kinds, "-A", "-l", "app.kubernetes.io/managed-by=kubegpu.nodes", "-o", "name"
    )
    return {line.partition("/")[0].partition(".")[0] + "/" + line.partition("/")[2]
            for line in found.split()}  # fmt: skip


def read(api, what):
    return json.loads(api.kubectl("-n", "kubegpu", "get", what, "-o", "json"))


def free_port():
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def background(*argv):
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=60)


def make_pod(api, port):
    """Make what the DaemonSet's controller and a kubelet would: a pod that runs on loopback."""
    template = read(api, f"daemonset/{NAME}")["spec"]["template"]
    (container,) = template["spec"]["containers"]
    (declared,) = container["ports"]
    assert declared["containerPort"] == port
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{NAME}-x", "namespace": "kubegpu", **template["metadata"]},
        "spec": {
            "nodeName": "gpu-a",
            "automountServiceAccountToken": False,
            "containers": [{"name": container["name"], "image": container["image"],
                            "ports": [declared]}],
        },
    }  # fmt: skip
    api.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    status = {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}],
              "conditions": [{"type": "Ready", "status": "True"}]}  # fmt: skip
    status_of(api, f"/api/v1/namespaces/kubegpu/pods/{NAME}-x/status", status)


def status_of(api, path, status):
    """Write a status, as a kubelet does; kubectl 1.20 cannot."""
    connect(api).patch(path, {"status": status}, kind="merge")


def connect(api):
    return Cluster.connect(Connection(kubeconfig=str(api.kubeconfig)))


def scrape_config(monitor, kubeconfig):
    """Return the configuration that the Prometheus operator makes of a PodMonitor."""
    spec = monitor["spec"]
    (endpoint,) = spec["podMetricsEndpoints"]

    def label(name):
        return f"__meta_kubernetes_pod_label_{re.sub('[^a-zA-Z0-9]', '_', name)}"

    keep = [
        {"action": "keep", "source_labels": [label(name)], "regex": re.escape(value)}
        for name, value in spec["selector"]["matchLabels"].items()
    ]
    return {
        "job_name": "podMonitor/kubegpu",
        "honor_labels": endpoint.get("honorLabels", False),
        "metrics_path": endpoint["path"],
        "scrape_interval": "1s",
        "scrape_timeout": "1s",
        "kubernetes_sd_configs": [
            {"role": "pod", "kubeconfig_file": str(kubeconfig),
             "namespaces": {"names": [monitor["metadata"]["namespace"]]}}
        ],
        "relabel_configs": [
            *keep,
            {"action": "keep", "source_labels": ["__meta_kubernetes_pod_container_port_name"],
             "regex": endpoint["port"]},
            {"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"},
            {"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"},
            {"source_labels": [label(spec["jobLabel"])], "target_label": "job"},
        ],
    }  # fmt: skip


def query(address, expression):
    text = urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(f"{address}/api/v1/query?{text}", timeout=10) as answer:
        return json.load(answer)["data"]["result"]


def wait_for(what, seconds=180):
    last = None
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            last = what()
        except OSError as error:
            last = error
        else:
            if last:
                return last
        time.sleep(0.5)
    raise AssertionError(f"not within {seconds} seconds; last: {last}")


def test_s19_prometheus_finds_the_exporter_and_keeps_the_labels_of_its_users(api, play, tmp_path):
    port = free_port()
    options = {"gpu_monitoring_listen": f":{port}", "gpu_monitoring_pod_labels": ["app"]}
    # Check mode says what the run does, in a new namespace and in one that is there.
    tried = play("--check", **options)
    assert tried.status == 0 and tried.changed > 0, tried.output
    assert ours(api) == set()
    done = play(**options)
    assert done.status == 0, done.output
    assert "annotations of the pods: the cluster has no" in done.output
    objects = {
        f"daemonset/{NAME}", f"configmap/{NAME}-counters", "configmap/kubegpu-gpus-dashboard",
        f"serviceaccount/{NAME}", f"clusterrole/{NAME}", f"clusterrolebinding/{NAME}",
    }  # fmt: skip
    assert ours(api) == objects
    again = play(**options)
    assert (again.status, again.changed) == (0, 0), again.output
    planned = play(entry="plan", **options)
    assert (planned.status, planned.changed) == (0, 0), planned.output
    for mode in (["--check"], []):
        fewer = play(*mode, **{**options, "gpu_monitoring_pod_labels": []})
        assert fewer.status == 0 and fewer.changed > 0, fewer.output
    assert ours(api) == objects - {f"clusterrole/{NAME}", f"clusterrolebinding/{NAME}"}

    plan = gpu_monitoring_plan({"scrape": "pod_monitor"}, kinds=KINDS)
    (monitor,) = [one for one in plan["objects"] if one["kind"] == "PodMonitor"]
    (tmp_path / "rules.json").write_text(json.dumps(plan["rules"]))
    make_pod(api, port)
    config = {
        "global": {"evaluation_interval": "1s"},
        "rule_files": ["rules.json"],
        "scrape_configs": [scrape_config(monitor, api.kubeconfig)],
    }
    (tmp_path / "prometheus.json").write_text(json.dumps(config))
    programs, listen = prometheus.programs(), free_port()
    subprocess.run(
        [str(programs / "promtool"), "check", "config", str(tmp_path / "prometheus.json")],
        check=True, timeout=120,
    )  # fmt: skip
    address = f"http://127.0.0.1:{listen}"
    standin = str(HERE / "dcgm_exporter.py")
    with (
        background(sys.executable, standin, str(port), "gpu-a", "2", "team-a/train-0"),
        background(
            str(programs / "prometheus"), f"--config.file={tmp_path}/prometheus.json",
            f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address=127.0.0.1:{listen}",
        ),
    ):  # fmt: skip
        found = wait_for(lambda: query(address, 'DCGM_FI_DEV_GPU_TEMP{gpu="0"}'))
        (sample,) = [one["metric"] for one in found]
        assert (sample["namespace"], sample["pod"]) == ("team-a", "train-0")
        assert sample["job"] == "kubegpu-dcgm" and sample["Hostname"] == "gpu-a"
        assert not [name for name in sample if name.startswith("exported_")]
        # The role's own recording rule sees both GPUs.
        (counted,) = wait_for(lambda: query(address, "kubegpu:gpus:count"))
        assert counted["metric"]["Hostname"] == "gpu-a" and counted["value"][1] == "2"
    gone = play(entry="teardown")
    assert gone.status == 0 and gone.changed == 1, gone.output
    assert ours(api) == set()


def test_the_kinds_are_seen_and_a_foreign_exporter_is_left_alone(api, operator, play):
    found = read_monitoring(connect(api), "kubegpu")
    assert found == {"kinds": list(KINDS), "objects": []}
    pod = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "x", "image": "nvcr.io/nvidia/k8s/dcgm-exporter:1"}]},
    }
    other = {
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "nvidia-dcgm-exporter", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": pod},
    }  # fmt: skip
    api.kubectl("apply", "-f", "-", stdin=json.dumps(other))
    try:
        left = play()
        assert (left.status, left.changed) == (0, 0), left.output
        assert "DCGM exporter (DaemonSet default/nvidia-dcgm-exporter)" in left.output
    finally:
        api.kubectl("-n", "default", "delete", "daemonset", "nvidia-dcgm-exporter")
