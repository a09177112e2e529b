# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""gpu_node_maintenance against a real API server and its controllers; the nodes are made objects.

A stand-in places pods and ends them, as a scheduler and kubelets would (workloads.py).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.names import KEEP_NODE
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.pause import PAUSE
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance.types import RECORD
from ansible_collections.kubegpu.nodes.plugins.modules import gpu_node_maintenance
from tests.integration import ansible_process
from tests.integration.cluster import rights
from tests.integration.cluster.workloads import (
    BASE,
    NODES,
    STUBBORN,
    Pods,
    admin,
    make_nodes,
    stopped,
    template,
    wait_until,
)
from tests.testbed import cluster_made
from tests.testbed.paths import REPOSITORY
from tests.tools.environments import collections
from tests.unit.module_process import predicted, run_module

A, B, DOWN = "maint-a", "maint-b", "maint-down"
PARTS = ("base", "read", "nodes", "maintenance")
# This server has no group resource.k8s.io, and a missing right there is a warning (_cluster/read).
NEEDED = [
    ("base", "nodes", "list"),
    ("read", "pods", "list"),
    ("read", "daemonsets", "list"),
    ("nodes", "nodes", "patch"),
    ("maintenance", "pods/eviction", "create"),
]


@pytest.fixture
def kube(api):
    cluster = admin(api)
    make_nodes(api, cluster, [A, B])
    yield cluster
    cluster_made.delete(api, [item["metadata"]["name"] for item in cluster.list(NODES)])


@pytest.fixture
def pods(kube):
    found = Pods(kube)
    found.end_pods()
    yield found
    found.clear()


@pytest.fixture
def arguments(api):
    """Return the arguments of a call."""

    def make(state, *names, **options):
        nodes = {name: {} for name in names or (A,)}
        given = {"run": "r1", "timeout": 20, "poll": 1, **options}
        return {"kubeconfig": str(api.kubeconfig), "nodes": nodes, "state": state, **given}

    return make


@pytest.fixture
def maintain(arguments):
    """The module as an administrator; the check before each run has to say the same."""

    def run(state, *names, **options):
        return predicted(gpu_node_maintenance.main, arguments(state, *names, **options))

    return run


def node(kube, name=A):
    return kube.get(f"{NODES}/{name}")


def cordoned(kube, name=A):
    return bool(node(kube, name)["spec"].get("unschedulable"))


def record(kube, name=A):
    text = (node(kube, name)["metadata"].get("annotations") or {}).get(RECORD)
    return json.loads(text) if text else None


def codes(answer, name=A):
    return [item["code"] for item in answer["nodes"][name]["findings"]]


def names(items):
    return [item["name"] for item in items]


def on_node(pods, name=A):
    return [
        key
        for key, item in pods.list().items()
        if item["spec"].get("nodeName") == name and "deletionTimestamp" not in item["metadata"]
    ]


# Cordon and release


def test_a_cordon_and_its_record_are_one_request(kube, maintain):
    answer = maintain("cordoned", A, B, reason="new cards")
    assert answer["changed"] and answer["ok"] and answer["requests"] == {"list": 2, "patch": 2}
    assert cordoned(kube) and cordoned(kube, B)
    said = record(kube)
    assert said.pop("since").endswith("Z")
    assert said == {
        "run": "r1", "reason": "new cards", "was_unschedulable": False, "paused": False,
        "kept_before": "",
    }  # fmt: skip
    assert node(kube)["metadata"]["annotations"][KEEP_NODE] == "true"
    again = maintain("cordoned", A, B, reason="new cards")
    assert not again["changed"] and again["requests"] == {"list": 2}
    row = again["nodes"][A]
    assert (row["held_by"], row["was_unschedulable"], row["unschedulable"]) == ("r1", False, True)
    back = maintain("released", A, B)
    assert back["changed"] and not cordoned(kube) and record(kube) is None
    assert back["diff"]["after"][A] == {
        "unschedulable": False, "run": None, "reason": None, "paused": False,
        "scale_down_disabled": False, "pods": [],
    }  # fmt: skip
    assert KEEP_NODE not in (node(kube)["metadata"].get("annotations") or {})
    assert not maintain("released", A, B)["changed"]


def test_a_node_that_was_cordoned_by_hand_is_so_afterwards(api, kube, maintain):
    api.kubectl("cordon", A)
    # A node that no run holds is not released.
    assert not maintain("released")["changed"] and cordoned(kube)
    answer = maintain("cordoned")
    assert answer["changed"] and answer["nodes"][A]["was_unschedulable"] is True
    answer = maintain("released")
    assert answer["changed"] and cordoned(kube) and record(kube) is None


def test_an_annotation_for_the_autoscaler_is_so_afterwards(api, kube, maintain):
    api.kubectl("annotate", "node", A, f"{KEEP_NODE}=false")
    maintain("cordoned")
    assert node(kube)["metadata"]["annotations"][KEEP_NODE] == "true"
    maintain("released")
    assert node(kube)["metadata"]["annotations"][KEEP_NODE] == "false"


def test_a_node_of_another_run_is_refused_by_name(kube, maintain):
    maintain("cordoned", reason="its fans")
    before = node(kube)
    for state in ("cordoned", "drained", "released"):
        answer = maintain(state, A, B, run="r2")
        assert answer["failed"] and codes(answer) == ["held_by_other"]
        assert "by the run r1 (its fans)" in answer["msg"]
        assert answer["nodes"][B]["ok"]
    assert node(kube) == before
    answer = maintain("drained", run="r2", take_over=True)
    assert answer["changed"] and record(kube)["run"] == "r2"
    assert record(kube)["was_unschedulable"] is False
    maintain("released", run="r2")
    assert not cordoned(kube)


@pytest.mark.full(why="another obstacle than test_a_node_of_another_run_is_refused_by_name")
def test_a_record_that_cannot_be_read_is_nobodys(api, kube, maintain):
    api.kubectl("annotate", "node", A, f"{RECORD}=by hand")
    for state in ("cordoned", "released"):
        answer = maintain(state)
        assert answer["failed"] and codes(answer) == ["record_unreadable"]
        assert f"kubectl annotate node {A} {RECORD}-" in answer["next_step"]
    assert not cordoned(kube)


@pytest.mark.full(why="the matching of test_labels.py")
def test_nodes_are_found_by_machine_id_and_unknown_ones_are_told(kube, arguments):
    given = arguments("cordoned")
    given["nodes"] = {
        "gpu1.example.com": {"machine_id": cluster_made.machine_id(A)},
        "gone.example.com": {},
    }
    answer = predicted(gpu_node_maintenance.main, given)
    assert answer["failed"] and codes(answer, "gone.example.com") == ["node_unknown"]
    assert answer["nodes"]["gpu1.example.com"]["node"] == A and cordoned(kube)


@pytest.mark.full(why="writers at the same time, as in test_labels.py")
def test_a_node_that_changes_in_between_is_read_again(kube, arguments):
    """The patch carries the version that was read; on 409 the node is read and planned again."""
    stop = threading.Event()

    def disturb():
        other, count = admin_of(kube), 0
        while not stop.is_set():
            count += 1
            other.patch(f"{NODES}/{A}", {"metadata": {"labels": {"count": str(count)}}})
            time.sleep(0.02)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for state in ("cordoned", "released") * 2:
            answer = run_module(gpu_node_maintenance.main, arguments(state))
            assert answer["ok"], answer
    finally:
        stop.set()
        thread.join()
    assert record(kube) is None and not cordoned(kube)


def admin_of(kube):
    return type(kube)(kube._send, kube.server)


# Drain


def test_what_goes_and_what_stays(kube, pods, maintain):
    pods.workload("Deployment", "web", replicas=1)
    pods.workload("StatefulSet", "db", serviceName="db", replicas=1)
    pods.workload("DaemonSet", "agent")
    placed = [name for app in ("web", "db") for name in pods.place(app, A)]
    agents = bind_daemon(pods, "agent")
    pods.make("static", A, annotations={"kubernetes.io/config.mirror": "x"})
    pods.make("kept", A, labels={"kubegpu.nodes/maintenance": "keep"})
    pods.make("no-gpu", A, gpus=0)
    pods.make("elsewhere", B)
    answer = maintain("drained")
    assert answer["ok"], answer
    row = answer["nodes"][A]
    assert sorted(names(row["evicted"])) == sorted(placed)
    assert {item["owner"].partition("/")[0] for item in row["evicted"]} == {
        "ReplicaSet", "StatefulSet",
    }  # fmt: skip
    assert all(item["gpus"] == 1 and item["seconds"] is not None for item in row["evicted"])
    assert {item["name"]: item["why"] for item in row["kept"]} == {
        "static": "static", "kept": "label", agents[A]: "daemonset",
    }  # fmt: skip
    assert sorted(on_node(pods)) == sorted(["static", "kept", "no-gpu", agents[A]])
    assert on_node(pods, B).count("elsewhere") == 1
    # The StatefulSet has made a pod of the same name again, which is not waited for.
    assert pods.list("db-0")["db-0"]["spec"].get("nodeName") is None
    again = maintain("drained")
    assert not again["changed"] and again["requests"]["list"] == 3
    answer = maintain("drained", pods="all", unmanaged="delete")
    assert names(answer["nodes"][A]["evicted"]) == ["no-gpu"]


def bind_daemon(pods, name):
    """Bind the pods of a DaemonSet to the nodes that they were made for; return them by node."""
    made = wait_until(lambda: found if len(found := pods.list(name)) == 2 else None)
    bound = {}
    for one, item in made.items():
        terms = item["spec"]["affinity"]["nodeAffinity"]
        (term,) = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        bound[term["matchFields"][0]["values"][0]] = one
    for where, one in bound.items():
        pods.place(one, where)
    return bound


@pytest.mark.full(why="another end of the wait for a budget")
def test_a_budget_that_opens_lets_the_pod_go(kube, pods, arguments):
    pods.workload("Deployment", "web", replicas=2)
    first, second = pods.place("web", A, 2)
    pods.await_budget(pods.budget("web", "web"), currentHealthy=2, disruptionsAllowed=1)
    answers = {}

    def drain():
        answers["real"] = run_module(gpu_node_maintenance.main, arguments("drained", timeout=60))

    thread = threading.Thread(target=drain)
    thread.start()
    # One goes at once; the other only when the new one is ready elsewhere.
    wait_until(lambda: len(on_node(pods)) == 1)
    pods.place("web", B)
    thread.join()
    assert answers["real"]["ok"], answers
    assert sorted(names(answers["real"]["nodes"][A]["evicted"])) == sorted([first, second])
    assert on_node(pods) == []


@pytest.mark.full(why="the client's second attempts are in unit tests")
def test_an_api_server_that_is_away_during_the_drain_is_waited_for(api, kube, pods, arguments):
    """It stands still while a budget blocks, and the drain goes on when it answers again."""
    pods.workload("Deployment", "web", replicas=2)
    first, second = pods.place("web", A, 2)
    pods.await_budget(pods.budget("web", "web"), currentHealthy=2, disruptionsAllowed=1)
    answers = {}

    def drain():
        answers["real"] = run_module(gpu_node_maintenance.main, arguments("drained", timeout=90))

    thread = threading.Thread(target=drain)
    thread.start()
    wait_until(lambda: len(on_node(pods)) == 1)
    # Shorter than a request may last: an eviction that may have been done is not tried again.
    with stopped(api, "kube-apiserver"):
        time.sleep(5)
        assert thread.is_alive()
    pods.place("web", B)
    thread.join()
    assert answers["real"]["ok"], answers
    assert sorted(names(answers["real"]["nodes"][A]["evicted"])) == sorted([first, second])
    assert on_node(pods) == [] and cordoned(kube)


def test_a_budget_that_blocks_is_named_and_the_node_released(kube, pods, maintain):
    pods.workload("Deployment", "web", replicas=1)
    (name,) = pods.place("web", A)
    pods.await_budget(pods.budget("web", "web"), currentHealthy=1)
    pods.make("other", B)
    before = node(kube)
    # Long enough for the pod of the other node to go on a machine under load.
    answer = maintain("drained", A, B, timeout=15, unmanaged="delete")
    assert answer["failed"] and answer["code"] == "pdb_blocks"
    (finding,) = answer["nodes"][A]["findings"]
    assert (finding["pod"], finding["budget"]) == (f"default/{name}", "web")
    assert (finding["needs"], finding["has"]) == (1, 1)
    assert names(answer["nodes"][A]["waiting"]) == [name] and on_node(pods) == [name]
    assert node(kube)["spec"] == before["spec"] and record(kube) is None
    # The other node is done, and stays so.
    assert answer["nodes"][B]["ok"] and cordoned(kube, B) and on_node(pods, B) == []
    # Against the budget, only if asked for.
    assert maintain("drained", A, eviction="delete")["ok"]


@pytest.mark.full(why="another state before the drain")
def test_a_node_that_was_cordoned_before_the_drain_stays_so_if_it_fails(kube, pods, maintain):
    pods.workload("Deployment", "web", replicas=1)
    pods.place("web", A)
    pods.await_budget(pods.budget("web", "web"), currentHealthy=1)
    maintain("cordoned")
    assert maintain("drained", timeout=1)["failed"]
    assert cordoned(kube) and record(kube)["run"] == "r1"


@pytest.mark.full(why="the module's part of test_eviction.py")
def test_a_pod_that_crashes_under_a_budget_is_told(pods, maintain):
    pods.workload("Deployment", "crash", replicas=1)
    pods.place("crash", A, ready=False)
    pods.await_budget(pods.budget("crash", "crash"), expectedPods=1, currentHealthy=0)
    answer = maintain("drained", timeout=1)
    assert codes(answer) == ["unready_guarded"]


def test_what_can_never_go_is_refused_before_anything_is_written(kube, pods, maintain):
    owner = {"kind": "ReplicaSet", "name": "rs", "uid": "1"}
    empty = {"volumes": [{"name": "scratch", "emptyDir": {}}]}
    pods.make("bare", A)
    # What the garbage collector would remove at once, has an owner of a kind that it cannot see.
    pods.make("good", A, owner={**owner, "apiVersion": "example.com/v1", "kind": "Trainer"})
    before = node(kube)
    answer = maintain("drained")
    assert answer["failed"] and codes(answer) == ["unmanaged_pod"]
    assert node(kube) == before and sorted(on_node(pods)) == ["bare", "good"]
    assert maintain("drained", unmanaged="delete")["ok"]
    maintain("released")
    owner = {**owner, "apiVersion": "example.com/v1", "kind": "Trainer"}
    pods.make("disk", A, owner=owner, **empty)
    pods.make("bare-disk", A, **empty)
    answer = maintain("drained")
    assert sorted(codes(answer)) == ["local_data", "local_data", "unmanaged_pod"]
    # The volume alone does not make a pod without a controller go.
    assert codes(maintain("drained", local_data="delete")) == ["unmanaged_pod"]
    assert sorted(on_node(pods)) == ["bare-disk", "disk"] and not cordoned(kube)
    assert maintain("drained", local_data="delete", unmanaged="delete")["ok"]
    maintain("released")
    memory = {"volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]}
    pods.make("shm", A, owner=owner, **memory)
    assert codes(maintain("drained", local_data="refuse")) == ["local_data"]
    assert maintain("drained")["ok"] and on_node(pods) == []


@pytest.mark.full(why="the module's part of test_eviction.py")
def test_two_budgets_are_refused_before_anything_is_written(kube, pods, maintain):
    pods.workload("Deployment", "web", replicas=2)
    pods.place("web", A, 2)
    for name in ("b1", "b2"):
        pods.await_budget(pods.budget(name, "web"), currentHealthy=2)
    before = node(kube)
    answer = maintain("drained")
    assert codes(answer) == ["two_budgets", "two_budgets"]
    assert node(kube) == before and len(on_node(pods)) == 2


def test_jobs_are_waited_for(kube, pods, arguments, maintain):
    pods.workload("Job", "train", template={
        "metadata": {"labels": {"app": "train"}},
        "spec": {**template("train")["spec"], "restartPolicy": "Never"},
    })  # fmt: skip
    (name,) = pods.place("train", A)
    pods.workload("Deployment", "web", replicas=1)
    (web,) = pods.place("web", A)
    before = node(kube)
    check = run_module(
        gpu_node_maintenance.main, arguments("drained", wait_for={"timeout": 1}), check=True
    )
    assert check["ok"] and names(check["nodes"][A]["waiting"]) == [name]
    answer = run_module(gpu_node_maintenance.main, arguments("drained", wait_for={"timeout": 1}))
    # Nothing else was disturbed for it.
    assert codes(answer) == ["job_running"] and answer["changed"] is False
    assert sorted(on_node(pods)) == sorted([name, web]) and node(kube)["spec"] == before["spec"]
    finish = threading.Timer(2, lambda: pods.status(f"{BASE}/pods/{name}", False, "Succeeded"))
    finish.start()
    answer = maintain("drained", wait_for={"timeout": 60})
    finish.join()
    assert answer["ok"] and names(answer["nodes"][A]["evicted"]) == [web]
    # Left as it is, with its log.
    assert name in on_node(pods)


@pytest.mark.full(why="another end of the wait for a job")
def test_jobs_that_do_not_finish_are_evicted_if_asked_for(pods, arguments):
    pods.workload("Job", "train", template={
        "metadata": {"labels": {"app": "train"}},
        "spec": {**template("train")["spec"], "restartPolicy": "Never"},
    })  # fmt: skip
    (name,) = pods.place("train", A)
    wait_for = {"timeout": 1, "on_timeout": "evict"}
    answer = run_module(gpu_node_maintenance.main, arguments("drained", wait_for=wait_for))
    assert answer["ok"] and names(answer["nodes"][A]["evicted"]) == [name]


@pytest.mark.full(why="another end of a pod")
def test_a_pod_that_ignores_the_signal_is_waited_for_and_can_be_killed(pods, arguments):
    def drain(**options):
        return run_module(gpu_node_maintenance.main, arguments("drained", **options))

    owner = {"apiVersion": "example.com/v1", "kind": "Trainer", "name": "t", "uid": "1"}
    pods.make("slow", A, owner=owner, annotations={STUBBORN: "yes"}, grace=600)
    answer = drain(timeout=2)
    # It was told to end, and its time is not over.
    assert codes(answer) == ["terminating_long"] and "until 20" in answer["cause"]
    assert answer["nodes"][A]["waiting"][0]["deletion"]
    pods.make("slow-too", A, owner=owner, annotations={STUBBORN: "yes"}, grace=600)
    answer = drain(timeout=1, grace_period=0)
    assert "slow-too" in names(answer["nodes"][A]["evicted"])
    assert "slow-too" not in pods.list()


@pytest.mark.full(why="another end of a pod")
def test_a_node_that_is_not_ready_cannot_end_its_pods(api, kube, maintain):
    quiet = Pods(kube)
    cluster_made.create(api, [cluster_made.node(DOWN, ready=False)])
    try:
        quiet.workload("Deployment", "web", replicas=1)
        quiet.place("web", DOWN)
        begin = time.monotonic()
        answer = maintain("drained", DOWN, timeout=600)
        assert time.monotonic() - begin < 300
        assert codes(answer, DOWN) == ["node_not_ready"]
        assert "made by the testbed" in answer["evidence"] and not cordoned(kube, DOWN)
        assert maintain("cordoned", DOWN)["nodes"][DOWN]["ready"] is False
    finally:
        quiet.clear()


def test_our_plugin_is_paused_and_comes_back(kube, pods, maintain):
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": PAUSE, "operator": "DoesNotExist"}]}],
    }}}  # fmt: skip
    paused = template("plugin", 0)
    paused["spec"]["affinity"] = affinity
    pods.workload("DaemonSet", "plugin", template=paused)
    pods.workload("DaemonSet", "agent")
    plugins, agents = bind_daemon(pods, "plugin"), bind_daemon(pods, "agent")
    answer = maintain("drained", pause_plugins=True)
    assert answer["ok"] and answer["nodes"][A]["evicted"] == []
    assert node(kube)["metadata"]["labels"][PAUSE] == "maintenance"
    assert on_node(pods) == [agents[A]] and plugins[B] in on_node(pods, B)
    assert not maintain("drained", pause_plugins=True)["changed"]
    maintain("released")
    assert PAUSE not in node(kube)["metadata"]["labels"]
    wait_until(lambda: len(pods.list("plugin")) == 2)


@pytest.mark.full(why="another owner of the label")
def test_a_pause_of_somebody_else_stays(api, kube, maintain):
    api.kubectl("label", "node", A, f"{PAUSE}=theirs")
    maintain("cordoned", pause_plugins=True)
    maintain("released")
    assert node(kube)["metadata"]["labels"][PAUSE] == "theirs"


def test_check_mode_changes_no_byte(kube, pods, arguments):
    pods.workload("Deployment", "web", replicas=1)
    pods.place("web", A)
    pods.workload("Deployment", "held", replicas=1)
    pods.place("held", A)
    pods.await_budget(pods.budget("held", "held"), currentHealthy=1)

    def everything():
        return [kube.get(NODES)["items"], kube.get(f"{BASE}/pods")["items"]]

    before = everything()
    for state in ("cordoned", "drained", "released"):
        run_module(gpu_node_maintenance.main, arguments(state), check=True)
    assert everything() == before
    answer = run_module(gpu_node_maintenance.main, arguments("drained"), check=True)
    assert codes(answer) == ["pdb_blocks"] and len(answer["nodes"][A]["evicted"]) == 1


# Interrupted


def test_killed_in_the_middle_and_run_again(api, kube, pods, arguments):
    pods.workload("Deployment", "web", replicas=1)
    (name,) = pods.place("web", A)
    path = pods.budget("web", "web")
    pods.await_budget(path, currentHealthy=1)
    api.kubectl("cordon", B)
    given = arguments("drained", A, B, timeout=600)
    code = (
        "import json, sys; from tests.unit.module_process import run_module; "
        "from ansible_collections.kubegpu.nodes.plugins.modules import gpu_node_maintenance as m; "
        "run_module(m.main, json.loads(sys.argv[1]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", f"import tests.conftest; {code}", json.dumps(given)], cwd=REPOSITORY
    )
    try:
        wait_until(lambda: record(kube) and record(kube, B), seconds=120)
    finally:
        process.kill()
        process.wait()
    assert cordoned(kube) and on_node(pods) == [name]
    kube.delete(path)
    answer = run_module(gpu_node_maintenance.main, given)
    assert answer["ok"] and names(answer["nodes"][A]["evicted"]) == [name]
    assert run_module(gpu_node_maintenance.main, arguments("released", A, B))["ok"]
    assert not cordoned(kube) and cordoned(kube, B)


@pytest.mark.full(why="slices are in the unit tests too")
def test_slices_go_on_where_the_one_before_stopped(kube, pods, arguments):
    pods.workload("Deployment", "web", replicas=1)
    (name,) = pods.place("web", A)
    path = pods.budget("web", "web")
    pods.await_budget(path, currentHealthy=1)
    pods.make("bare", B)
    given = {**arguments("drained", A, B, timeout=60), "_slice": 1}
    first = run_module(gpu_node_maintenance.main, given)
    assert first["_progress"] == [f"{A}: waiting for default/{name} (pdb_blocks)"]
    kube.delete(path)
    answer = first
    for _attempt in range(30):
        if "_carry" not in answer:
            break
        answer = run_module(gpu_node_maintenance.main, {**given, "_carry": answer["_carry"]})
    assert answer["failed"] and codes(answer, B) == ["unmanaged_pod"]
    row = answer["nodes"][A]
    assert row["ok"] and names(row["evicted"]) == [name] and row["evicted"][0]["seconds"] > 0
    # The diff is that of the whole task.
    assert answer["diff"]["before"][A]["unschedulable"] is False
    assert answer["diff"]["after"][A]["unschedulable"] is True
    assert B not in answer["diff"]["before"]


@pytest.mark.full(why="waits for the end of slices, two minutes")
def test_a_task_shows_what_it_waits_for(kube, pods, arguments, tmp_path):
    pods.workload("Deployment", "web", replicas=1)
    (name,) = pods.place("web", A)
    path = pods.budget("web", "web")
    pods.await_budget(path, currentHealthy=1)
    task = {
        "kubegpu.nodes.gpu_node_maintenance": arguments("drained", timeout=600),
        "register": "answer",
    }
    copy = {"content": "{{ answer }}", "dest": str(tmp_path / "answer")}
    tasks = [task, {"ansible.builtin.copy": copy}]
    play = tmp_path / "play.json"
    play.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))

    def open_budget():
        other = admin_of(kube)
        wait_until(lambda: record(other), seconds=300)
        # A slice that lasts longer than planned has a general line first; a minute later comes that
        # of the pod.
        time.sleep(110)
        other.delete(path)

    opener = threading.Thread(target=open_budget)
    opener.start()
    variables = {"ansible_python_interpreter": sys.executable}
    done = ansible_process.run(
        [
            str(Path(sys.executable).parent / "ansible-playbook"),
            "--inventory", "localhost,", "--connection", "local", str(play),
            "--extra-vars", json.dumps(variables),
        ],
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(collections())},
        cwd=collections(), timeout=600,
    )  # fmt: skip
    opener.join()
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"{A}: waiting for default/{name} \(pdb_blocks\), for \d+:\d\d", done.stderr)
    row = json.loads((tmp_path / "answer").read_text())["nodes"][A]
    assert row["ok"] and names(row["evicted"]) == [name]


# Rights


@pytest.fixture
def account(api, tmp_path):
    """The connection of the account, which has the rights to maintain nodes."""
    rights.apply(api, *PARTS)
    yield {"kubeconfig": rights.kubeconfig(api, tmp_path / "account")}
    rights.delete(api)


def busy(pods):
    """Put on a node what needs all rights."""
    pods.workload("DaemonSet", "agent")
    bind_daemon(pods, "agent")
    pods.workload("Deployment", "web", replicas=1)
    pods.place("web", A)


def test_the_shipped_rights_are_enough(pods, arguments, account):
    busy(pods)
    for state in ("cordoned", "drained", "released"):
        answer = predicted(
            gpu_node_maintenance.main, {**arguments(state, pause_plugins=True), **account}
        )
        assert answer["ok"] and answer["changed"] and "warnings" not in answer, answer
    pods.make("bare", A)
    answer = run_module(
        gpu_node_maintenance.main,
        {**arguments("drained", unmanaged="delete", eviction="delete"), **account},
    )
    assert codes(answer) == ["forbidden"]
    assert "The right 'delete' on 'pods' in the namespace default is missing" in answer["msg"]


@pytest.mark.full(*("-".join(one) for one in NEEDED[1:]), why="another right is left out")
@pytest.mark.parametrize("right", NEEDED, ids="-".join)
def test_no_right_can_be_left_out(api, kube, pods, arguments, account, right):
    busy(pods)
    part, resource, verb = right
    less = rights.less(part, "ClusterRole", resource, verb)
    before = node(kube)["spec"], record(kube), on_node(pods)
    api.kubectl("apply", "-f", "-", stdin=json.dumps(less))
    try:
        answer = wait_until(lambda: lacking(arguments, account))
    finally:
        rights.apply(api, *PARTS)
    assert f"The right '{verb}' on '{resource}'" in answer["msg"]
    assert f'resources: ["{resource}"], verbs: ["{verb}"]' in answer["next_step"]
    assert (node(kube)["spec"], record(kube), on_node(pods)) == before


def lacking(arguments, account):
    """Return the answer of a drain that fails; the API server learns of a new role a bit later."""
    given = {**arguments("drained"), **account}
    check = run_module(gpu_node_maintenance.main, given, check=True)
    return run_module(gpu_node_maintenance.main, given) if check.get("failed") else None
