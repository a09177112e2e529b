# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._dra.installed import dra_objects
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.errors import KubeError
from tests.unit.fixtures.dra_cluster import standin

OURS = {
    "app.kubernetes.io/managed-by": "kubegpu.nodes",
    "app.kubernetes.io/name": "nvidia-dra-driver",
}


def test_an_empty_cluster_has_its_namespace_alone():
    assert dra_objects(standin(()), "kubegpu", "") == [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubegpu"}}
    ]
    assert dra_objects(standin(()), "elsewhere", "") == []


def test_only_objects_with_our_labels_and_no_more_than_their_names():
    mine = {"metadata": {"name": "a", "labels": OURS, "uid": "1"}, "spec": {"x": 1}}
    other = {"metadata": {"name": "b", "labels": {}}}
    cluster = standin(deviceclasses=[mine, other])
    found = [one for one in dra_objects(cluster, "kubegpu", "v1") if one["kind"] == "DeviceClass"]
    assert found == [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "a", "labels": OURS},
        }
    ]


def test_a_kind_that_the_server_does_not_know_is_no_error():
    cluster = standin()
    kind = "validatingadmissionpolicies"
    cluster.fails[("list", kind)] = KubeError("not found", status=404)
    assert dra_objects(cluster, "kubegpu", "v1")
    cluster.fails[("list", kind)] = KubeError("no", status=403)
    with pytest.raises(KubeError):
        dra_objects(cluster, "kubegpu", "v1")
