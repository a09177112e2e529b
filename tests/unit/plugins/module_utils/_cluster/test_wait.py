# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a cluster is waited for. Its API server is a stand-in here.

The real one is in tests/integration/cluster.
"""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.options import read_expected
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.read import Reader
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.result import build_result
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.wait import wait
from tests.unit.fixtures.cluster_objects import GPU, NO_NVML, PLUGIN_LABELS, daemonset, node, pod
from tests.unit.fixtures.standin_cluster import StandinCluster, Time

PLUGIN = daemonset(selector={"app.kubernetes.io/name": "nvidia-device-plugin"})
EXPECTED = {"gpu1": {"name": "n1", "resources": {GPU: 2}}}


def plugin_pod(where="n1"):
    return pod(f"plugin-{where}", where, namespace="kubegpu", labels=PLUGIN_LABELS)


def crashed(restarts, where="n1"):
    """The plugin's pod, held back by kubelet after that many restarts."""
    one = plugin_pod(where)
    ended = {"terminated": {"exitCode": 1, "reason": "Error"}}
    one["status"]["containerStatuses"] = [
        {"name": "nvidia-device-plugin", "restartCount": restarts, "lastState": ended,
         "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
    ]  # fmt: skip
    return one


def waited(cluster, expected=None, timeout=30, at=None, **options):
    time = Time(at)
    requests = read_expected(expected or EXPECTED)
    snapshot, seconds = wait(
        Reader(cluster), requests, timeout, sleep=time.sleep, clock=time.monotonic, **options
    )
    return {**build_result(snapshot, requests), "notes": snapshot.notes}, seconds


def test_what_is_as_expected_is_not_waited_for():
    cluster = StandinCluster(nodes=[node("n1", gpus=2)], daemonsets=[PLUGIN], pods=[plugin_pod()])
    told, seconds = waited(cluster)
    assert seconds == 0 and not told["missing"]
    (layer,) = told["layers"]
    assert layer["ok"] and layer["proof"] == f"the node n1 offers 2 {GPU}"
    # Logs and events are for what is not as expected.
    assert cluster.texts == []


def test_of_other_nodes_whose_plugin_is_not_ready_a_few_are_looked_at():
    """Another run may be at work on a thousand of them."""
    others = [f"m{number:02d}" for number in range(40)]
    cluster = StandinCluster(
        nodes=[node("n1", gpus=2), *map(node, others)],
        daemonsets=[PLUGIN],
        pods=[plugin_pod(), *map(plugin_pod, others)],
        log=NO_NVML,
    )
    told, seconds = waited(cluster)
    assert seconds == 0 and not told["missing"]
    assert sorted(cluster.texts) == [
        f"/api/v1/namespaces/kubegpu/pods/plugin-{name}/log" for name in others[:10]
    ]


def test_waiting_ends_in_time_and_then_the_log_is_read():
    cluster = StandinCluster(
        nodes=[node("n1")], daemonsets=[PLUGIN], pods=[plugin_pod()], log=NO_NVML
    )
    told, seconds = waited(cluster, timeout=30)
    assert 30 <= seconds < 34
    assert told["missing"][0]["code"] == "default_runtime"
    assert cluster.texts == ["/api/v1/namespaces/kubegpu/pods/plugin-n1/log"]


def test_what_no_waiting_fixes_is_told_at_once():
    told, seconds = waited(StandinCluster(nodes=[node("n1")]))
    assert (told["missing"][0]["code"], seconds) == ("no_plugin", 0)
    told, seconds = waited(StandinCluster(nodes=[node("n2")], daemonsets=[PLUGIN]))
    assert (told["missing"][0]["code"], seconds) == ("node_unknown", 0)


def restarting(cluster, before=0):
    """Restart the plugin each ten seconds."""
    return lambda now: cluster.objects.update(pods=[crashed(before + int(now // 10))])


def test_a_plugin_that_fails_again_and_again_is_told_early():
    cluster = StandinCluster(
        nodes=[node("n1")], daemonsets=[PLUGIN], pods=[crashed(0)], log=NO_NVML
    )
    told, seconds = waited(cluster, timeout=300, at=restarting(cluster))
    assert 20 <= seconds < 24
    assert told["missing"][0]["code"] == "default_runtime"
    # Those of another time do not count.
    cluster.objects.update(pods=[crashed(7)])
    told, seconds = waited(cluster, timeout=300, at=restarting(cluster, 7))
    assert 20 <= seconds < 24


def test_a_plugin_that_fails_does_not_keep_another_node_from_being_waited_for():
    cluster = StandinCluster(
        nodes=[node("n1"), node("n2")], daemonsets=[PLUGIN], pods=[crashed(0)], log=NO_NVML
    )

    def later(now):
        restarting(cluster)(now)
        if now >= 60:
            cluster.objects.update(nodes=[node("n1"), node("n2", gpus=2)])

    both = {**EXPECTED, "gpu2": {"name": "n2", "resources": {GPU: 2}}}
    told, seconds = waited(cluster, both, timeout=300, at=later)
    assert 60 <= seconds < 64
    assert [short["key"] for short in told["missing"]] == ["gpu1"]


def rolling(generation=2, observed=2, desired=2, updated=1, available=2):
    one = daemonset(selector={"app.kubernetes.io/name": "nvidia-device-plugin"})
    one["metadata"]["generation"] = generation
    one["status"] = {
        "observedGeneration": observed, "desiredNumberScheduled": desired,
        "updatedNumberScheduled": updated, "numberAvailable": available,
    }  # fmt: skip
    return one


@pytest.mark.parametrize(
    "behind",
    [{"updated": 1}, {"updated": 2, "available": 1}, {"updated": 2, "observed": 1},
     {"observed": 0, "desired": 0, "updated": 0, "available": 0}],
)  # fmt: skip
def test_a_rollout_is_waited_for_where_it_is_asked_for(behind):
    cluster = StandinCluster(
        nodes=[node("n1", gpus=2)], daemonsets=[rolling(**behind)], pods=[plugin_pod()]
    )
    assert waited(cluster)[1] == 0
    cluster.later = (3, lambda: cluster.objects.update(daemonsets=[rolling(updated=2)]))
    told, seconds = waited(cluster, rollout=True)
    assert not told["missing"] and not told["notes"] and 0 < seconds < 30


def test_a_rollout_that_time_is_not_enough_for_is_a_note():
    cluster = StandinCluster(
        nodes=[node("n1", gpus=2)], daemonsets=[rolling()], pods=[plugin_pod()]
    )
    told, seconds = waited(cluster, rollout=True)
    assert not told["missing"] and seconds >= 30
    assert told["notes"] == (
        "Not all pods of the device plugin kubegpu/kubegpu-nvidia-device-plugin are there yet: of "
        "2, 1 are of the newest template and 2 are available.",
    )


def test_a_rollout_that_a_failing_pod_holds_up_is_not_waited_for():
    """Also where that pod is on a node of somebody else."""
    cluster = StandinCluster(
        nodes=[node("n1", gpus=2), node("n2")],
        daemonsets=[rolling()],
        pods=[plugin_pod(), crashed(0, "n2")],
        log=NO_NVML,
    )

    def restart(now):
        cluster.objects.update(pods=[plugin_pod(), crashed(int(now // 10), "n2")])

    told, seconds = waited(cluster, timeout=300, at=restart, rollout=True)
    assert not told["missing"] and len(told["notes"]) == 1 and 20 <= seconds < 24


def test_a_node_that_comes_late_is_good():
    cluster = StandinCluster(nodes=[node("n1")], daemonsets=[PLUGIN], pods=[plugin_pod()])
    cluster.later = (3, lambda: cluster.objects.update({"nodes": [node("n1", gpus=2)]}))
    told, seconds = waited(cluster)
    assert not told["missing"] and 0 < seconds < 30


def test_two_hosts_that_are_one_node_fail_and_no_other():
    cluster = StandinCluster(
        nodes=[node("n1", gpus=2), node("n2", gpus=2)],
        daemonsets=[PLUGIN],
        pods=[plugin_pod(), plugin_pod("n2")],
    )
    requests = {
        key: {"name": name, "resources": {GPU: 2}}
        for key, name in (("gpu1", "n1"), ("gpu2", "n1"), ("n2", "n2"))
    }
    told, _seconds = waited(cluster, requests)
    assert [one["key"] for one in told["missing"]] == ["gpu1", "gpu2"]
    assert all("gpu1 and gpu2 are both the node n1" in one["cause"] for one in told["missing"])


def test_a_host_with_the_machine_id_of_another_node_does_not_pass_as_that_one():
    """Root of gpu7 has cp1's machine id: cp1's GPUs do not verify gpu7, and nobody waits for it."""
    cluster = StandinCluster(
        nodes=[node("cp1", gpus=2, machine_id="a" * 32), node("gpu7", machine_id="b" * 32)],
        daemonsets=[PLUGIN],
        pods=[plugin_pod("cp1")],
    )
    expected = {"gpu7": {"machine_id": "a" * 32, "resources": {GPU: 2}}}
    told, seconds = waited(cluster, expected)
    assert seconds == 0 and told["node_of"] == {"gpu7": None}
    (missing,) = told["missing"]
    assert missing["code"] == "node_uncertain" and "node cp1" in missing["cause"]
    assert told["layers"][0]["ok"] is False
    # That it should have no GPU does not help it either.
    told, _seconds = waited(cluster, {"gpu7": {"machine_id": "a" * 32, "resources": {}}})
    assert told["missing"][0]["code"] == "node_uncertain"


def test_a_pod_s_log_is_told_as_text():
    """Whoever may make a pod chooses what it logs; the role's failure and the table show it."""
    cluster = StandinCluster(
        nodes=[node("n1")],
        daemonsets=[PLUGIN],
        pods=[crashed(3)],
        log="\x1b[2J\x1b[8mhidden\u202e\n",
    )
    told, _seconds = waited(cluster, timeout=0)
    assert told["plugin_pods"][0]["log"] == ["\\x1b[2J\\x1b[8mhidden\\u202e"]
    assert all("\x1b" not in str(value) for value in told["missing"][0].values())
    assert "\\x1b[8mhidden" in str(told["missing"])
