# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is read of a cluster for its monitoring."""

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.workloads import recognize
from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring.installed import (
    read_monitoring,
)


class Server:
    """Answers of an API server by path."""

    def __init__(self, objects):
        self.objects = objects
        self.asked = []

    def get(self, path):
        self.asked.append(path)
        return self.objects.get(path)


def item(name, namespace="kubegpu", **labels):
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "uid": "1"},
        "data": {"secret": "x"},
    }


API = "/apis/monitoring.coreos.com/v1"


def test_kinds_and_objects_are_read_without_their_content():
    server = Server({
        API: {"resources": [{"kind": "PodMonitor"}, {"kind": "Alertmanager"}]},
        "/api/v1/namespaces/kubegpu": item("kubegpu"),
        f"{API}/namespaces/kubegpu/podmonitors/kubegpu-dcgm-exporter": item("x", a="b"),
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/kubegpu-dcgm-exporter": item("y"),
    })  # fmt: skip
    found = read_monitoring(server, "kubegpu")
    assert found["kinds"] == ["PodMonitor"]
    assert [(one["apiVersion"], one["kind"]) for one in found["objects"]] == [
        ("v1", "Namespace"), ("monitoring.coreos.com/v1", "PodMonitor"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ]  # fmt: skip
    assert found["objects"][1]["metadata"] == {
        "name": "x", "namespace": "kubegpu", "labels": {"a": "b"},
    }  # fmt: skip
    assert "secret" not in str(found)
    assert not [path for path in server.asked if "prometheusrules" in path]


def test_a_cluster_without_the_operator_is_asked_once_for_it():
    server = Server({})
    assert read_monitoring(server, "kubegpu") == {"kinds": [], "objects": []}
    assert [path for path in server.asked if "coreos" in path] == [API]


def test_what_an_earlier_run_made_in_another_namespace_is_read_too():
    def exporter(namespace, name="kubegpu-dcgm-exporter", owner="kubegpu.nodes"):
        labels = {"app.kubernetes.io/managed-by": owner}
        pod = {"spec": {"containers": [{"name": "x", "image": "a/dcgm-exporter:1"}]}}
        metadata = {"namespace": namespace, "name": name, "labels": labels}
        return {"metadata": metadata, "spec": {"template": pod}}

    items = [
        exporter("kubegpu"), exporter("old"), exporter("team", "dcgm-exporter"),
        exporter("operator", owner="Helm"),
    ]  # fmt: skip
    server = Server({
        "/api/v1/namespaces/old": item("old"),
        "/api/v1/namespaces/old/configmaps/kubegpu-gpus-dashboard": item("x", "old"),
        "/apis/apps/v1/namespaces/kubegpu/daemonsets/kubegpu-dcgm-exporter": item("y"),
    })  # fmt: skip
    found = read_monitoring(server, "kubegpu", recognize(items, "DaemonSet"))["objects"]
    assert [(one["kind"], one["metadata"]["namespace"]) for one in found] == [
        ("DaemonSet", "kubegpu"), ("ConfigMap", "old"),
    ]  # fmt: skip
    assert not [path for path in server.asked if "/team/" in path or "/operator/" in path]
    # Those of the whole cluster are asked for once.
    assert len(server.asked) == len(set(server.asked))
