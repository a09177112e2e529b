# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the logs of a cluster's pods are read. Its API server is a stand-in here."""

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.pods import pod_view
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.read import Reader
from tests.unit.fixtures.cluster_objects import NO_NVML, PLUGIN_LABELS, pod
from tests.unit.fixtures.standin_cluster import StandinCluster


def plugin_pod():
    return pod("plugin-n1", "n1", namespace="kubegpu", labels=PLUGIN_LABELS)


def logged(cluster, tail=60):
    reader = Reader(cluster)
    (view,) = [pod_view(item) for item in cluster.objects["pods"]]
    return reader.log(view, "plugin", tail)


def test_a_log_is_read_within_a_limit():
    """L4: a container of anybody's may write lines without an end."""
    cluster = StandinCluster(pods=[plugin_pod()], log=NO_NVML)
    assert logged(cluster) == NO_NVML
    assert cluster.limits == {262144} and cluster.tails == {60}


def test_of_a_log_with_long_lines_the_last_ones_are_read():
    """The API server counts the bytes from the first line that is asked for, and drops the end."""
    lines = ["x" * 30_000 + "\n"] * 999 + ["the cause\n"]
    asked = []

    class Long(StandinCluster):
        def text(self, path, **params):
            asked.append(params["tailLines"])
            return "".join(lines[-params["tailLines"] :])[: params["limitBytes"]]

    cluster = Long(pods=[plugin_pod()])
    assert logged(cluster, 1000) == "the cause\n"
    assert asked == [1000, 100, 10, 1]
