# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""S19: the objects of the monitoring in a real API server.

The API server has no nodes. The definitions of the Prometheus operator's kinds are made by the
test, so that they are seen. No object of them is made: Debian's Kubernetes 1.20 ends with a fault
when it encodes the metadata of a custom object, because its vendored reflect2 is older than the Go
that compiled it. What a real Prometheus makes of them is in ../engines/test_prometheus_rules.py.
"""

from __future__ import annotations

import json

import pytest
import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import Cluster, Connection
from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring.installed import (
    read_monitoring,
)
from tests.integration.cluster import rights
from tests.integration.cluster.own_plays import run_play
from tests.testbed import cluster_made
from tests.testbed.cluster_control import ACCOUNT
from tests.unit.fixtures import node_facts

pytestmark = pytest.mark.full(why="the objects again by themselves, with faults")

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
PARTS = ("base", "read", "monitoring")
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


@pytest.fixture
def play(api, tmp_path):
    """Run the role for one host, which is facts and a made node."""
    cluster_made.create(api, [cluster_made.node("gpu-a")])
    facts = node_facts.node(os__machine_id=cluster_made.machine_id("gpu-a"))
    host = {"ansible_connection": "local", "facts": facts}
    variables = {
        "kubegpu_kube": {"kubeconfig": str(api.kubeconfig)},
        "gpu_monitoring_enabled": True,
        "kubegpu_apply": {"wait_timeout": 0},
    }
    inventory = {"all": {"hosts": {"gpu1.example.com": host}, "vars": variables}}
    (tmp_path / "inventory.yml").write_text(yaml.safe_dump(inventory))
    (tmp_path / "play.yml").write_text(PLAY)

    def run(*arguments, **options):
        return run_play(tmp_path, *arguments, **options)

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


def connect(api):
    return Cluster.connect(Connection(kubeconfig=str(api.kubeconfig)))


def test_s19_the_objects_are_applied_once_and_check_says_the_same(api, play):
    options = {"gpu_monitoring_pod_labels": ["app"]}
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


@pytest.fixture
def limited(api, tmp_path):
    """A kubeconfig of the account with the rights of the role, and no others."""
    rights.apply(api, *PARTS)
    yield rights.kubeconfig(api, tmp_path / "limited")
    rights.delete(api)


def test_the_offered_rights_are_enough_for_the_role_and_for_nothing_of_others(api, limited, play):
    api.kubectl("-n", "kubegpu", "create", "configmap", "somebodys")
    for what in ("configmap/somebodys", "clusterrole/view", "namespace/kubegpu"):
        assert "forbidden" in api.kubectl(
            "--as", ACCOUNT, "-n", "kubegpu", "delete", what, check=False
        )
    kube = {"kubegpu_kube": {"kubeconfig": limited}}
    for arguments, options in (
        (["--check"], {"gpu_monitoring_pod_labels": ["app"]}),
        ([], {"gpu_monitoring_pod_labels": ["app"]}),
        # What is no longer requested, and teardown.
        ([], {}),
        ([], {"entry": "plan"}),
    ):
        done = play(*arguments, **options, **kube)
        assert done.status == 0, done.output
    assert ours(api) >= {f"daemonset/{NAME}", f"serviceaccount/{NAME}"}
    done = play(entry="teardown", **kube)
    assert done.status == 0, done.output
    assert ours(api) == set()
    assert "somebodys" in api.kubectl("-n", "kubegpu", "get", "configmaps", "-o", "name")


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
