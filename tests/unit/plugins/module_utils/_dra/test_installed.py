# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.objects import identity
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.installed import dra_objects
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.manifests import manifests
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.options import read_request
from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.types import Layout
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.errors import KubeError
from tests.unit.fixtures.dra_cluster import by_plural, standin

OURS = {
    "app.kubernetes.io/managed-by": "kubegpu.nodes",
    "app.kubernetes.io/name": "nvidia-dra-driver",
}


def test_an_empty_cluster_has_its_namespace_alone():
    assert dra_objects(standin(()), "kubegpu", "") == [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubegpu"}}
    ]
    assert dra_objects(standin(()), "elsewhere", "") == []


def test_objects_with_our_labels_or_our_names_and_no_more_of_them_than_metadata():
    mine = {"metadata": {"name": "a", "labels": OURS, "uid": "1"}, "spec": {"x": 1}}
    other = {"metadata": {"name": "b", "labels": {}}}
    plugin = {"metadata": {"name": "c", "labels": {**OURS, "app.kubernetes.io/name": "plugin"}}}
    named = {"metadata": {"name": "gpu.nvidia.com", "labels": {"chart": "x"}}, "spec": {"x": 1}}
    cluster = standin(deviceclasses=[mine, other, plugin, named])
    found = [one for one in dra_objects(cluster, "kubegpu", "v1") if one["kind"] == "DeviceClass"]
    assert found == [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": name, "labels": labels},
        }
        for name, labels in (("a", OURS), ("gpu.nvidia.com", {"chart": "x"}))
    ]


def test_an_object_of_others_is_found_whatever_of_our_names_it_has():
    layout = Layout("v1", compute_domains=True, clique_label=True)
    made = manifests(read_request({"feature_gates": {"MPSSupport": True}}), layout)
    # The namespace and the definitions are read by their names.
    named = [one for one in made if one["kind"] not in ("Namespace", "CustomResourceDefinition")]
    others = [{**one, "metadata": {**one["metadata"], "labels": {}}} for one in named]
    found = dra_objects(standin(namespaces=(), **by_plural(others)), "kubegpu", "v1")
    assert {identity(one) for one in found} == {identity(one) for one in named}


def test_a_kind_that_the_server_does_not_know_is_no_error():
    cluster = standin()
    kind = "validatingadmissionpolicies"
    cluster.fails[("list", kind)] = KubeError("not found", status=404)
    assert dra_objects(cluster, "kubegpu", "v1")
    cluster.fails[("list", kind)] = KubeError("no", status=403)
    with pytest.raises(KubeError):
        dra_objects(cluster, "kubegpu", "v1")
