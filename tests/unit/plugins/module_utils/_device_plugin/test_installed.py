# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the cluster has of the device plugin; the real one is asked in tests/integration/cluster."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.installed import (
    plugin_objects,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.manifests import (
    manifests,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.objects import identity
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.options import (
    read_request,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import Cluster
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.client import Response
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.errors import KubeError, Server

INSIDE = "/api/v1/namespaces/kubegpu"
SET = "/apis/apps/v1/namespaces/kubegpu/daemonsets/kubegpu-nvidia-device-plugin"
CLASS = "/apis/node.k8s.io/v1/runtimeclasses/nvidia"


def named(name, **more):
    return {"metadata": {"name": name, "namespace": "kubegpu", "uid": "1"}, **more}


class StandinServer:
    """Answers by path; what it does not have is a 404, and 403 is said where it is told to."""

    def __init__(self, **more):
        self.objects = {
            INSIDE: named("kubegpu"),
            SET: named("set", spec={"replicas": 1}),
            CLASS: named("c"),
        }
        status = {"phase": "Running", "startTime": "2026-11-22T12:00:00Z"}
        pod = named("plugin-1", spec={"nodeName": "n1", "tolerations": []}, status=status)
        self.lists = {"pods": [pod], **more}
        self.forbidden = ""
        self.asked = []

    def send(self, method, target, headers, body):
        path, _mark, query = target.partition("?")
        self.asked.append((method, path, query))
        inside, _slash, last = path.rpartition("/")
        if last == self.forbidden:
            return Response(403, json.dumps({"message": "no", "reason": "Forbidden"}).encode(), {})
        if path in self.objects:
            return Response(200, json.dumps(self.objects[path]).encode(), {})
        if inside in (INSIDE, SET.rpartition("/")[0].rpartition("/")[0]) and last in self.lists:
            return Response(200, json.dumps({"items": self.lists[last]}).encode(), {})
        return Response(404, json.dumps({"reason": "NotFound"}).encode(), {})

    @property
    def cluster(self):
        return Cluster(self.send, Server("https://kube"), sleep=lambda _seconds: None)


def test_what_is_there_is_whole_and_named():
    server = StandinServer()
    found = plugin_objects(server.cluster, "kubegpu", "pods")
    assert [(one["apiVersion"], one["kind"], one["metadata"]["name"]) for one in found] == [
        ("v1", "Namespace", "kubegpu"),
        ("node.k8s.io/v1", "RuntimeClass", "c"),
        ("apps/v1", "DaemonSet", "set"),
        ("v1", "Pod", "plugin-1"),
    ]
    assert found[2]["spec"] == {"replicas": 1}
    assert [method for method, _path, _query in server.asked] == ["GET"] * 4
    # Nothing is listed where nobody asks for it.
    server.asked.clear()
    assert plugin_objects(server.cluster, "kubegpu") == found[:3]
    assert len(server.asked) == 3
    # Of a pod on each of a thousand nodes, what is needed.
    assert found[3] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "plugin-1", "namespace": "kubegpu"},
        "spec": {"nodeName": "n1"},
        "status": {"startTime": "2026-11-22T12:00:00Z"},
    }


def test_its_pods_are_those_of_all_that_the_plugin_consists_of():
    server = StandinServer()
    plugin_objects(server.cluster, "kubegpu", "pods")
    chosen = server.asked[-1][2]
    request = read_request(
        {
            "configs": {"mps": {"sharing": {"mps": {"resources": [
                {"name": "nvidia.com/gpu", "replicas": 2}]}}}},
            "feature_discovery": True,
        }
    )  # fmt: skip
    sets = [one for one in manifests(request) if one["kind"] == "DaemonSet"]
    assert len(sets) == 3
    for one in sets:
        assert one["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"] in chosen


def test_amds_plugin_has_its_own_names_and_no_runtime_class():
    server = StandinServer()
    server.objects[SET.replace("nvidia", "amd")] = named("kubegpu-amd-device-plugin")
    found = plugin_objects(server.cluster, "kubegpu", "pods", "amd")
    assert [one["kind"] for one in found] == ["Namespace", "DaemonSet", "Pod"]
    assert found[1]["metadata"]["name"] == "kubegpu-amd-device-plugin"
    chosen = server.asked[-1][2]
    assert "amd-device-plugin" in chosen and "amd-node-labeller" in chosen
    assert CLASS not in [path for _method, path, _query in server.asked]


def test_what_is_not_there_is_left_out():
    server = StandinServer()
    server.objects = {}
    server.lists = {"pods": []}
    assert plugin_objects(server.cluster, "kubegpu", "pods") == []


def test_of_all_that_lies_in_the_namespace_nothing_but_its_names_is_told():
    secret = named("login", type="kubernetes.io/dockerconfigjson", data={".d": "aHVudGVyMg=="})
    secret["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "kubegpu.nodes"}
    secret["metadata"]["annotations"] = {"last-applied": "aHVudGVyMg=="}
    server = StandinServer(
        secrets=[secret], configmaps=[named("m", data={"a": "b"})], services=[named("s")],
        persistentvolumeclaims=[named("p")], daemonsets=[named("d", spec={"template": {}})],
    )  # fmt: skip
    found = plugin_objects(server.cluster, "kubegpu", "all")
    assert {identity(one)[0] for one in found[3:]} == {
        "Pod", "ConfigMap", "Secret", "Service", "PersistentVolumeClaim", "DaemonSet",
    }  # fmt: skip
    assert "aHVudGVyMg==" not in json.dumps(found)
    (told,) = (one for one in found if one["kind"] == "Secret")
    assert told == {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/dockerconfigjson",
        "metadata": {
            "name": "login",
            "namespace": "kubegpu",
            "labels": {"app.kubernetes.io/managed-by": "kubegpu.nodes"},
        },
    }


@pytest.mark.parametrize("last", ["kubegpu", "nvidia", "kubegpu-nvidia-device-plugin", "pods"])
def test_a_right_that_is_missing_is_an_error_and_not_an_absence(last):
    server = StandinServer()
    server.forbidden = last
    with pytest.raises(KubeError):
        plugin_objects(server.cluster, "kubegpu", "pods")
