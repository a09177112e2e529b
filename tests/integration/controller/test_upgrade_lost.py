# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rolling upgrade when the API server goes away, or a node of its batch.

What drains and reads the cluster is real, too, against a stand-in of an API server
(standin_api_server.py). Nodes and their drivers are stand-ins (standin_cluster.py).
"""

from __future__ import annotations

import pytest

from tests.integration.controller.standin_api_server import ApiServer, later
from tests.integration.controller.standin_cluster import NEW, OLD, Upgrades
from tests.tools.environments import REPOSITORY

pytestmark = pytest.mark.full(why="each run takes many seconds; the drain has unit tests")

SPEAKERS = ("gpu_node_health", "gpu_test_pods")


class RealDrains(Upgrades):
    """The nodes of a cluster that is asked by the real modules."""

    def __init__(self, folder, names):
        super().__init__(folder, SPEAKERS)
        action = self._collections / "ansible_collections/kubegpu/nodes/plugins/action"
        path = action / "gpu_cluster_info.py"
        path.unlink()
        path.symlink_to(REPOSITORY / "plugins/action/gpu_cluster_info.py")
        self.server = ApiServer(folder, names)
        self.names = names

    def run(self, own=None, **variables):
        """Run the upgrade; return the run and the report."""
        given = {
            "kubegpu_kube": {"kubeconfig": str(self.server.kubeconfig)},
            "gpu_node_labels_match": "name",
            "gpu_upgrade_gate": ["layers", "health"],
            **variables,
        }
        return self.upgrade({name: (own or {}).get(name, {}) for name in self.names}, **given)


@pytest.fixture
def nodes(tmp_path):
    made = RealDrains(tmp_path, ("gpu1", "gpu2"))
    yield made
    made.server.down()


def outcomes(report):
    return {name: one["outcome"] for name, one in report["hosts"].items()}


def codes(report, host):
    return [one["code"] for one in report["hosts"][host]["findings"]]


def test_an_api_server_that_is_away_for_a_while_is_waited_for(nodes):
    """It goes with an eviction that it has accepted, without an answer."""
    lost = []

    def go(pod):
        lost.append(pod)
        nodes.server.down()
        later(8, nodes.server.up)

    nodes.names = ("gpu1",)
    nodes.server.evicted = go
    run, report = nodes.run()
    assert run.status == 0, run.screen
    assert lost == ["web-gpu1"] and outcomes(report) == {"gpu1": "done"}
    assert report["hosts"]["gpu1"]["to"]["driver"] == NEW
    assert nodes.server.held() == {} and nodes.server.leases() == []


def test_an_api_server_that_stays_away_ends_the_run_with_a_report(nodes):
    """The next run, when it is back, finishes what it finds cordoned."""
    nodes.server.evicted = lambda _pod: nodes.server.down()
    run, report = nodes.run(gpu_upgrade_drain_timeout=5)
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "failed", "gpu2": "not_started"}
    assert not report["ok"] and report["stopped"]
    # It could not be released either.
    assert codes(report, "gpu1") == ["eviction_failed", "cluster_not_asked"]
    assert "cannot be reached" in report["hosts"]["gpu1"]["findings"][-1]["cause"]
    assert "nothing on it was changed, and it may be cordoned" in run.words()
    assert not [call for call in run.calls if call[1] == "nvidia_driver"]
    assert nodes.server.held() == {"gpu1": "gpu-upgrade"} and nodes.server.leases()
    # It is empty, and cluster-autoscaler leaves it all the same.
    assert nodes.server.kept() == {"gpu1": "true"}

    nodes.server.evicted = lambda _pod: None
    nodes.server.up()
    run, report = nodes.run()
    assert run.status == 0, run.screen
    assert outcomes(report) == {"gpu1": "done", "gpu2": "done"} and report["ok"]
    assert report["hosts"]["gpu1"]["from"]["driver"] == OLD
    assert nodes.server.held() == {} and nodes.records() == [] and nodes.server.leases() == []
    assert nodes.server.kept() == {}


def test_nodes_that_lose_their_power_in_the_middle_of_a_batch(tmp_path):
    """One before it is cordoned, one amid its change; the other node of the batch is finished."""
    nodes = Upgrades(tmp_path)
    nodes.cluster()
    batch = {"gpu_upgrade_canary": 0, "gpu_upgrade_batch": 3, "gpu_upgrade_max_unavailable": 3}
    own = {
        "gpu1": {}, "gpu2": {"standin_lost": "runtime_configuration"},
        "gpu3": {"standin_lost": "nvidia_driver"}, "gpu4": {},
    }  # fmt: skip
    run, report = nodes.upgrade(own, **batch)
    assert run.status == 2, run.screen
    assert outcomes(report) == {
        "gpu1": "done", "gpu2": "unreachable", "gpu3": "unreachable", "gpu4": "not_started",
    }  # fmt: skip
    assert "2 failed (gpu2, gpu3)" in report["stopped"]
    assert nodes.held() == {"gpu3": "gpu-upgrade"}
    assert [report["hosts"][name]["began"] for name in own] == [True, False, True, False]
    for name in ("gpu2", "gpu3"):
        assert "No route to host" in report["hosts"][name]["findings"][0]["cause"]
    assert "continues with it first; or release it with" in run.words()
    # They have power again.
    back = {name: {"standin_done": name == "gpu1"} for name in own}
    run, report = nodes.upgrade(back, **batch)
    assert run.status == 0, run.screen
    assert outcomes(report) == {
        "gpu1": "unchanged", "gpu2": "done", "gpu3": "done", "gpu4": "done",
    }  # fmt: skip
    # The unfinished one first, and what stood there before is what the first run recorded.
    assert report["hosts"]["gpu3"]["batch"] == 1 and report["hosts"]["gpu2"]["batch"] == 2
    assert report["hosts"]["gpu3"]["from"]["driver"] == OLD
    assert nodes.held() == {} and nodes.records() == []
