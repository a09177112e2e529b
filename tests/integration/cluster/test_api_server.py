# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The API server that other tests build on is a real one: authority, rights, nodes."""

from __future__ import annotations

import datetime
import json
import ssl
import urllib.request

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import Cluster, Connection
from tests.testbed import cluster_made
from tests.testbed.cluster_pki import Authority


def test_its_certificate_is_refused_by_who_knows_another_authority(api, tmp_path):
    other = Authority.make(tmp_path / "other")
    context = ssl.create_default_context(cafile=str(other.certificate))
    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        urllib.request.urlopen(f"{api.server}/readyz", context=context, timeout=10)


def test_a_client_without_rights_is_refused(api, tmp_path):
    path = api.authority.kubeconfig(tmp_path / "nobody", api.server, "nobody")
    done = api.kubectl(f"--kubeconfig={path}", "get", "nodes", check=False)
    assert 'nodes is forbidden: User "nobody" cannot list resource "nodes"' in done


def test_made_nodes_are_ready_and_have_machine_ids(api):
    names = cluster_made.create_many(api, 20, "shown")
    try:
        nodes = json.loads(api.kubectl("get", "nodes", "-o", "json"))["items"]
        found = {node["metadata"]["name"]: node["status"] for node in nodes}
        assert set(names) <= set(found)
        status = found[names[3]]
        assert status["nodeInfo"]["machineID"] == cluster_made.machine_id(names[3])
        assert status["conditions"][0]["status"] == "True"
    finally:
        cluster_made.delete(api, names)


def test_its_answers_tell_its_time(api):
    """By it a run judges the age of pods, whose creationTimestamp is of the same clock."""
    cluster = Cluster.connect(Connection(kubeconfig=str(api.kubeconfig)))
    cluster_made.create(api, [cluster_made.node("dated")])
    try:
        made = cluster.get("/api/v1/nodes/dated")
        created = datetime.datetime.fromisoformat(made["metadata"]["creationTimestamp"])
        assert 0 <= cluster.server_time - created.timestamp() < 60
    finally:
        cluster_made.delete(api, ["dated"])
