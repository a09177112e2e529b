# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The example kubeadm on a node of the cluster; kubeadm's own work is done by the test bed."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.integration.fleet.playbooks import REPOSITORY, play
from tests.testbed.paths import BUILD

HOST, NODE = "kube-a10", "a10-0.pool.testbed.example"
INVENTORY = REPOSITORY / "playbooks" / "examples" / "inventories" / "kubeadm"
pytestmark = pytest.mark.full(why="site of test_site.py with an example's variables")
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


@pytest.fixture
def example(cluster, tmp_path):
    """Run the example; where the cluster is, is the test bed's, all else the example's."""
    made = tmp_path / "hosts.yml"
    made.write_text(yaml.safe_dump({"workers": {"hosts": {HOST: None}}}))
    variables = {"kubegpu_kube": {"kubeconfig": str(BUILD / "kubeconfig")}}

    def run(*arguments):
        inventories = ("-i", str(INVENTORY), "-i", str(made), "--limit", HOST)
        answer = play("examples.kubeadm", *inventories, *arguments, variables=variables)
        assert answer.status == 0, answer.output
        return answer

    assert play("teardown", "--limit", HOST).status == 0
    yield run
    answer = play("teardown", "--limit", HOST)
    assert answer.status == 0, answer.output
    assert "taints" not in spec(cluster)


def spec(cluster):
    return json.loads(cluster.kubectl("get", "node", NODE, "-o", "json"))["spec"]


def test_a_node_of_kubeadm(cluster, example):
    first = example()
    found = json.loads(cluster.kubectl("get", "node", NODE, "-o", "json"))
    assert found["status"]["allocatable"]["nvidia.com/gpu"] == "2"
    assert found["spec"]["taints"] == [TAINT]
    # Pods with a GPU name the class: the default runtime is runc, as before.
    assert cluster.kubectl("get", "runtimeclass", "nvidia", "-o", "name").strip()
    (line,) = [
        line
        for line in first.screen.partition("Verification")[2].splitlines()
        if line.startswith(HOST)
    ]
    assert line.split() == [HOST, *["ok"] * 7]
    again = example()
    assert not any(stats["changed"] for stats in again.stats.values()), again.changed()
