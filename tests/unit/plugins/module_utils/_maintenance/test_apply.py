# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Drains of nodes against a stand-in for the API server, whose time passes only in sleeps.

The real one is in tests/integration/cluster/test_maintenance.py.
"""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.read import ACTIVE
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.types import Expected
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.errors import KubeError
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.timestamp import unix_time
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance.apply import Maintenance
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance.result import (
    build_result,
    failure,
    progress,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance.types import (
    RECORD,
    LeaseRequest,
    Request,
    WaitFor,
)
from tests.unit.fixtures.cluster_objects import node, pod
from tests.unit.fixtures.standin_cluster import StandinCluster, Time

DUE = "2026-11-23T12:00:00Z"
SHORT = "The disruption budget b1 needs 1 healthy pods and has 1 currently"
BLOCKED = KubeError("no", status=429, causes=(("DisruptionBudget", SHORT),))
FORBIDDEN = KubeError("The right 'create' on 'pods/eviction'", status=403, reason="Forbidden")
LOST = KubeError("no answer", reason="Unreachable")


class Server(StandinCluster):
    """Evicts and patches; a pod is gone ``ends`` seconds after its eviction."""

    def __init__(self, nodes, pods, **objects):
        super().__init__(nodes=nodes, pods=pods, **objects)
        self.time = Time(self._pass)
        self.calls = []
        #: By pod: what an eviction is answered, an error or a list of them for the first times.
        self.answers = {}
        self.ends = 0.0
        self._due = {}
        self.patch_error = None
        self.list_errors = []
        #: The selectors of the lists of pods.
        self.looks = []
        #: What reading all nodes is answered for the first times; None for the nodes.
        self.away = []

    def eviction_version(self):
        self.calls.append("version")
        return "policy/v1"

    def evict(self, path, uid, version, *, grace=None, dry_run=False):
        name = path.rpartition("/")[2]
        self.calls.append(f"{'try' if dry_run else 'evict'} {name}")
        answer = self.answers.get(name)
        if isinstance(answer, list):
            answer = answer[0] if dry_run else (answer.pop(0) if answer else None)
        if answer is not None:
            raise answer
        if not dry_run:
            found = self._pod(name)
            found["metadata"]["deletionTimestamp"] = DUE
            self._due[name] = self.time.now + self.ends
            self._pass(self.time.now)

    def delete(self, path, *, uid="", grace=None, dry_run=False):
        self.calls.append(f"{'try ' if dry_run else ''}delete {path.rpartition('/')[2]} {grace}")
        if not dry_run:
            self._remove(path.rpartition("/")[2])
        return True

    def patch(self, path, body, *, dry_run=False, **more):
        name = path.rpartition("/")[2]
        self.calls.append(f"{'try ' if dry_run else ''}patch {name}")
        if self.patch_error:
            raise self.patch_error
        (found,) = [one for one in self.objects["nodes"] if one["metadata"]["name"] == name]
        found = copy.deepcopy(found) if dry_run else found
        metadata = body["metadata"]
        for kind in ("annotations", "labels"):
            there = found["metadata"].setdefault(kind, {})
            there.update(metadata.get(kind, {}))
            for key in [key for key, value in there.items() if value is None]:
                del there[key]
        found["spec"].update(body.get("spec", {}))
        return copy.deepcopy(found)

    def list(self, path, **params):
        if path == "/api/v1/nodes" and self.away:
            error = self.away.pop(0)
            if error is not None:
                raise error
        found = super().list(path, **params)
        if path != "/api/v1/pods":
            return found
        selector, _comma, active = params["fieldSelector"].partition(f",{ACTIVE}")
        self.looks.append(selector)
        if not active:
            return (one for one in found if one["status"]["phase"] not in ("Succeeded", "Failed"))
        if self.list_errors:
            raise self.list_errors.pop(0)
        return (one for one in found if one["spec"]["nodeName"] == selector.partition("=")[2])

    def _pod(self, name):
        return next((one for one in self.objects["pods"] if one["metadata"]["name"] == name), None)

    def _remove(self, name):
        self.objects["pods"] = [
            one for one in self.objects["pods"] if one["metadata"]["name"] != name
        ]

    def _pass(self, now):
        for name in [name for name, due in self._due.items() if due <= now]:
            del self._due[name]
            self._remove(name)

    def cordoned(self, name="n1"):
        (found,) = [one for one in self.objects["nodes"] if one["metadata"]["name"] == name]
        return bool(found["spec"].get("unschedulable"))

    def recorded(self):
        return [
            one["metadata"]["name"]
            for one in self.objects["nodes"]
            if RECORD in one["metadata"].get("annotations", {})
        ]


def a_pod(name, where="n1", kind="ReplicaSet", **more):
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    made = pod(name, where, gpus=1, status=ready, **more)
    made["metadata"]["uid"] = name
    if kind:
        owner = {"kind": kind, "name": "w", "uid": "o", "controller": True}
        made["metadata"]["ownerReferences"] = [owner]
    return made


def maintenance(server, state="drained", names=("n1",), limit=0, carried=None, **options):
    check = options.pop("check", False)
    given = {"run": "r1", "timeout": 60, **options}
    request = Request(tuple(Expected(name, name) for name in names), state, **given)
    return Maintenance(
        server,
        request,
        dry_run=check,
        limit=limit,
        carried=carried or {},
        sleep=server.time.sleep,
        clock=server.time.monotonic,
    )


def run(server, *arguments, **options):
    return maintenance(server, *arguments, **options).run()


def foretold(server, *arguments, **options):
    """Return the rows of a run, having seen that check mode foretells it and changes nothing."""
    before = copy.deepcopy(server.objects)
    calls = len(server.calls)
    told = build_result(run(server, *arguments, check=True, **options))
    assert server.objects == before
    assert all(one.startswith(("try", "version")) for one in server.calls[calls:])
    rows = run(server, *arguments, **options)
    real = build_result(rows)
    assert (told["changed"], told["diff"], told["ok"]) == (
        real["changed"], real["diff"], real["ok"],
    )  # fmt: skip
    return rows


def codes(row):
    return [item["code"] for item in row["findings"]]


def test_a_drain_asks_then_cordons_then_evicts_then_looks_again():
    server = Server([node("n1"), node("n2")], [a_pod("a"), a_pod("b"), a_pod("c", "n2")])
    server.ends = 3
    row = run(server)["n1"]
    assert row["ok"] and row["unschedulable"] and row["held_by"] == "r1"
    assert [item["name"] for item in row["evicted"]] == ["a", "b"]
    assert [item["seconds"] for item in row["evicted"]] == [3.0, 3.0]
    assert server.calls == ["version", "try a", "try b", "patch n1", "evict a", "evict b"]
    assert [one["metadata"]["name"] for one in server.objects["pods"]] == ["c"]


def test_a_round_looks_at_the_nodes_and_not_at_each_pod():
    few = Server([node("n1")], [a_pod(f"a{number}") for number in range(9)])
    few.ends = 3
    assert run(few)["n1"]["ok"]
    # Before, when they were evicted, after one and two seconds more, and when none was left.
    assert few.looks == [ACTIVE, *["spec.nodeName=n1"] * 3, ACTIVE]
    names = [f"n{number}" for number in range(5)]
    many = Server([node(name) for name in names], [a_pod(f"p-{name}", name) for name in names])
    many.ends = 3
    assert all(row["ok"] for row in run(many, names=names).values())
    assert many.looks == [ACTIVE] * 5


def test_check_mode_foretells_a_drain():
    server = Server([node("n1"), node("n2")], [a_pod("a"), a_pod("c", "n2")])
    rows = foretold(server, names=("n1", "n2"))
    assert all(row["changed"] for row in rows.values())
    again = foretold(server, names=("n1", "n2"))
    assert not any(row["changed"] for row in again.values())


def test_check_mode_tells_what_was_found_too():
    server = Server([node("n1")], [])
    told = run(server, "cordoned", check=True)["n1"]
    assert (told["held_by"], told["unschedulable"]) == ("r1", True)
    assert told["found"] == {"held_by": None, "unschedulable": False}


def test_check_mode_foretells_a_budget_that_stays():
    server = Server([node("n1"), node("n2")], [a_pod("a"), a_pod("b"), a_pod("c", "n2")])
    server.answers["a"] = BLOCKED
    rows = foretold(server, names=("n1", "n2"))
    assert codes(rows["n1"]) == ["pdb_blocks"]
    assert (rows["n1"]["findings"][0]["needs"], rows["n1"]["findings"][0]["has"]) == (1, 1)
    assert [item["name"] for item in rows["n1"]["evicted"]] == ["b"]
    # Released, while the other one stays as asked for.
    assert not server.cordoned("n1") and server.cordoned("n2") and server.recorded() == ["n2"]
    assert server.time.now >= 60
    error = failure(rows, "drained")
    assert error.code == "pdb_blocks" and error.cause.startswith("These nodes could not be drained")


def test_a_failed_drain_leaves_an_earlier_cordon():
    server = Server([node("n1")], [a_pod("a")])
    run(server, "cordoned")
    server.answers["a"] = BLOCKED
    assert codes(foretold(server)["n1"]) == ["pdb_blocks"]
    assert server.cordoned() and server.recorded() == ["n1"]


def test_another_reason_is_a_change():
    server = Server([node("n1")], [])
    for reason, changed in (("fans", True), ("fans", False), ("cards", True), ("", False)):
        row = foretold(server, "cordoned", reason=reason)["n1"]
        assert row["changed"] is changed, reason


def test_a_budget_that_opens():
    server = Server([node("n1")], [a_pod("a")])
    server.answers["a"] = [BLOCKED, BLOCKED, BLOCKED]
    row = run(server)["n1"]
    assert row["ok"] and row["evicted"][0]["seconds"] == 6.0
    # 1, 2 and 3 seconds, then five each.
    assert server.calls.count("evict a") == 4


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (a_pod("bad", kind=""), "unmanaged_pod"),
        (a_pod("bad", volumes=[{"name": "v", "emptyDir": {}}]), "local_data"),
        (a_pod("two"), "two_budgets"),
        (a_pod("not-mine"), "forbidden"),
    ],
)
def test_a_refusal_comes_before_any_change(bad, code):
    server = Server([node("n1"), node("n2")], [a_pod("a"), bad, a_pod("c", "n2")])
    server.answers["two"] = KubeError(
        "no", evidence="This pod has more than one PodDisruptionBudget", status=500
    )
    server.answers["not-mine"] = FORBIDDEN
    rows = foretold(server, names=("n1", "n2"))
    assert codes(rows["n1"]) == [code] and rows["n1"]["changed"] is False
    assert rows["n1"]["evicted"] == [] and not server.cordoned("n1")
    assert rows["n2"]["ok"] and server.cordoned("n2")


def test_jobs_come_first_and_nothing_else_is_disturbed():
    server = Server([node("n1")], [a_pod("job", kind="Job"), a_pod("web")])
    server.time.at = lambda now: server._remove("job") if now >= 20 else None
    row = run(server, wait_for=WaitFor(("Job",), timeout=100))["n1"]
    assert row["ok"] and [item["name"] for item in row["evicted"]] == ["web"]
    # The clock of the drain begins when the job has gone.
    assert row["evicted"][0]["seconds"] == 0.0
    server = Server([node("n1")], [a_pod("job", kind="Job"), a_pod("web")])
    row = run(server, wait_for=WaitFor(("Job",), timeout=100))["n1"]
    assert codes(row) == ["job_running"] and row["changed"] is False
    assert "evict web" not in server.calls and 100 <= server.time.now < 110


def test_a_job_whose_time_is_over_is_judged_again():
    server = Server([node("n1")], [a_pod("job", kind="Job")])
    row = run(server, wait_for=WaitFor(("Job",), timeout=10, evict=True))["n1"]
    assert row["ok"] and [item["name"] for item in row["evicted"]] == ["job"]
    disk = a_pod("job", kind="Job", volumes=[{"name": "v", "emptyDir": {}}])
    server = Server([node("n1")], [disk])
    row = run(server, wait_for=WaitFor(("Job",), timeout=10, evict=True))["n1"]
    assert codes(row) == ["local_data"] and not server.cordoned()


def test_a_node_that_is_not_ready_is_not_waited_for():
    server = Server([node("n1", ready=False, message="kubelet stopped")], [a_pod("a")])
    server.ends = 1e9
    row = foretold(server)["n1"]
    assert codes(row) == ["node_not_ready"] and server.time.now == 0
    assert row["findings"][0]["evidence"] == "kubelet stopped"
    empty = Server([node("n1", ready=False)], [])
    assert foretold(empty)["n1"]["ok"]


def test_a_pod_that_never_ends():
    server = Server([node("n1")], [a_pod("a")])
    server.ends = 1e9
    row = run(server)["n1"]
    assert codes(row) == ["terminating_long"]
    assert row["evicted"][0]["seconds"] is None and row["waiting"][0]["deletion"] == DUE


def test_another_pod_of_the_same_name_is_not_the_one():
    server = Server([node("n1"), node("n2")], [a_pod("db-0")])

    def remake(now):
        server._remove("db-0")
        made = a_pod("db-0", "n2")
        made["metadata"]["uid"] = "new"
        server.objects["pods"].append(made)

    server.ends = 1e9
    server.time.at = remake
    row = run(server)["n1"]
    assert row["ok"] and server.time.now == 1.0


def test_a_pod_that_comes_in_between_goes_too():
    server = Server([node("n1")], [a_pod("a")])

    def late(now):
        if now == 1.0:
            server._remove("a")
            server.objects["pods"].append(a_pod("late"))

    server.ends = 1e9
    server.time.at = late
    assert not run(server, timeout=3)["n1"]["ok"]
    server = Server([node("n1")], [])
    patch = server.patch

    def patch_late(path, body, **more):
        # Between the list of pods and the cordon.
        server.objects["pods"].append(a_pod("late"))
        return patch(path, body, **more)

    server.patch = patch_late
    row = run(server)["n1"]
    assert row["ok"] and [item["name"] for item in row["evicted"]] == ["late"]


def test_a_server_that_is_away_for_a_moment_ends_nothing():
    server = Server([node("n1")], [a_pod("a")])
    server.ends = 2
    server.list_errors = [LOST, LOST]
    server.answers["a"] = [LOST, LOST]
    assert run(server)["n1"]["ok"]


def lost(number):
    """Return errors of a server that is away, each of its own: the last one is added to."""
    return [KubeError("no answer", reason="Unreachable") for _one in range(number)]


def test_a_server_that_is_away_when_all_is_read_again_ends_nothing():
    server = Server([node("n1")], [a_pod("a")])
    server.away = [None, *lost(1), KubeError("starts", status=503)]
    row = run(server)["n1"]
    assert row["ok"] and server.time.now == 3.0
    # The node whose time is over is asked about as well.
    server = Server([node("n1")], [a_pod("a")])
    server.answers["a"] = BLOCKED
    server.away = [None, *lost(1)]
    assert codes(run(server)["n1"]) == ["pdb_blocks"] and not server.cordoned()


def test_a_server_that_stays_away_is_told_with_what_stays_cordoned():
    server = Server([node("n1")], [a_pod("a")])
    server.away = [None, *lost(1000)]
    with pytest.raises(KubeError) as caught:
        run(server)
    assert 60 <= server.time.now < 75 and server.cordoned()
    assert "remains cordoned by this run: n1" in caught.value.next_step
    # Without an answer, nothing was cordoned.
    with pytest.raises(KubeError) as caught:
        run(server)
    assert caught.value.next_step == ""


def test_a_server_that_restarts_between_two_slices_is_waited_for():
    server = Server([node("n1")], [a_pod("a")])
    server.answers["a"] = [BLOCKED] * 9
    one = maintenance(server, limit=10)
    carried = one.carry(one.run())
    server.away = lost(2)
    rows = maintenance(server, limit=30, carried=carried).run()
    assert rows["n1"]["ok"] and [item["name"] for item in rows["n1"]["evicted"]] == ["a"]
    server.away = lost(100)
    with pytest.raises(KubeError) as caught:
        maintenance(server, limit=30, carried=carried).run()
    assert "remains cordoned by this run: n1" in caught.value.next_step


def test_a_pod_that_is_gone_before_is_not_counted_as_evicted():
    server = Server([node("n1")], [a_pod("a"), a_pod("b")])
    real = server.evict

    def evict(path, uid, version, *, grace=None, dry_run=False):
        if path.endswith("/b") and not dry_run:
            server._remove("b")
            raise KubeError("not found", status=404)
        real(path, uid, version, grace=grace, dry_run=dry_run)

    server.evict = evict
    row = run(server)["n1"]
    assert row["ok"] and [item["name"] for item in row["evicted"]] == ["a"]


def test_a_right_that_is_missing_on_the_node_is_named():
    server = Server([node("n1")], [a_pod("a")])
    server.patch_error = KubeError(
        "The right 'patch' on 'nodes' is missing", status=403, reason="Forbidden"
    )
    for state in ("cordoned", "drained"):
        row = foretold(server, state)["n1"]
        assert codes(row) == ["forbidden"] and "'patch' on 'nodes'" in row["findings"][0]["cause"]
    assert "evict a" not in server.calls
    server.patch_error = KubeError("a webhook says no", status=403, reason="Denied")
    assert codes(run(server)["n1"]) == ["node_not_patched"]
    server.patch_error = KubeError("gone", status=404)
    assert codes(run(server)["n1"]) == ["node_unknown"]


def test_deletion_goes_past_budgets_and_only_if_asked_for():
    server = Server([node("n1")], [a_pod("a")])
    server.answers["a"] = BLOCKED
    assert run(server, delete=True, grace_period=0)["n1"]["ok"]
    assert server.calls == ["try delete a 0", "patch n1", "delete a 0"]


def test_pods_without_gpus_go_only_if_asked_for():
    plain = a_pod("plain", containers=[{"name": "c"}])
    in_init = a_pod(
        "init", containers=[{"name": "c"}],
        init=[{"name": "i", "resources": {"limits": {"nvidia.com/mig-1g.10gb": "1"}}}],
    )  # fmt: skip
    server = Server([node("n1")], [plain, in_init])
    assert [item["name"] for item in run(server)["n1"]["evicted"]] == ["init"]
    assert [item["name"] for item in run(server, all_pods=True)["n1"]["evicted"]] == ["plain"]


def test_slices_carry_what_was_before():
    server = Server([node("n1"), node("n2")], [a_pod("a"), a_pod("b"), a_pod("c", "n2", kind="")])
    server.answers["a"] = [BLOCKED] * 30
    names = ("n1", "n2")
    carried, lines, rows = {}, [], {}
    for _slice in range(60):
        one = maintenance(server, names=names, limit=10, carried=carried, timeout=600)
        rows = one.run()
        carried = one.carry(rows)
        if not carried:
            break
        lines += progress(rows)
        # Time passes between two slices, too.
        server.time.sleep(1)
    assert lines[0] == "n1: waiting for default/a (pdb_blocks)"
    assert list(rows) == list(names) and codes(rows["n2"]) == ["unmanaged_pod"]
    assert rows["n1"]["ok"] and {item["name"] for item in rows["n1"]["evicted"]} == {"a", "b"}
    assert all(item["seconds"] is not None for item in rows["n1"]["evicted"])
    result = build_result(rows)
    assert result["diff"]["before"] == {
        "n1": {
            "unschedulable": False, "run": None, "reason": None, "paused": False,
            "scale_down_disabled": False, "pods": ["default/a", "default/b"],
        }
    }  # fmt: skip
    assert server.calls.count("try a") == 1 and server.calls.count("patch n1") == 1


def test_a_slice_releases_what_an_earlier_one_cordoned():
    server = Server([node("n1")], [a_pod("a")])
    server.answers["a"] = BLOCKED
    carried, rows = {}, {}
    for _slice in range(60):
        one = maintenance(server, limit=10, carried=carried)
        rows = one.run()
        carried = one.carry(rows)
        if not carried:
            break
    assert codes(rows["n1"]) == ["pdb_blocks"] and not rows["n1"]["changed"]
    assert not server.cordoned() and server.recorded() == []
    assert 60 <= server.time.now < 75


def ready(name, boot, is_ready=True):
    made = node(name)
    conditions = [{"type": "Ready", "status": str(is_ready), "message": "kubelet is down"}]
    made["status"].update(conditions=conditions, nodeInfo={"bootID": boot})
    return made


def test_nodes_are_waited_for_until_they_report_their_boot():
    server = Server([ready("n1", "old"), ready("n2", "x", is_ready=False)], [])

    def report(now):
        server.objects["nodes"][0]["status"]["nodeInfo"]["bootID"] = "new" if now >= 10 else "old"
        server.objects["nodes"][1] = ready("n2", "x", is_ready=now >= 5)

    server.time.at = report
    given = {"names": ("n1", "n2"), "boots": {"n1": "new"}, "ready_timeout": 60}
    rows = run(server, "cordoned", **given)
    assert server.time.now == 10 and all(row["ok"] for row in rows.values())
    assert rows["n1"]["boot_id"] == "new" and rows["n2"]["ready"]
    # Without the time nothing is waited for, and nobody fails.
    assert run(server, "cordoned", boots={"n1": "other"})["n1"]["ok"]
    told = run(server, "cordoned", names=("n1", "n2"), boots={"n1": "other"}, ready_timeout=5)
    assert codes(told["n1"]) == ["boot_not_reported"] and told["n2"]["ok"]
    server.time.at = lambda _now: None
    server.objects["nodes"][1] = ready("n2", "x", is_ready=False)
    told = run(server, "cordoned", names=("n2",), ready_timeout=5)
    assert codes(told["n2"]) == ["not_ready_in_time"]
    assert told["n2"]["findings"][0]["evidence"] == "kubelet is down"


def test_kured_and_another_run_are_seen_before_anything_is_changed():
    lock = {"weave.works/kured-node-lock": '{"nodeID": "n2"}'}
    kured = {"metadata": {"uid": "k", "name": "kured", "namespace": "kured", "annotations": lock}}
    server = Server([node("n1"), node("n2")], [a_pod("a"), a_pod("b", "n2")], daemonsets=[kured])
    rows = foretold(server, names=("n1", "n2"))
    assert codes(rows["n2"]) == ["held_by_kured"] and rows["n1"]["ok"]
    assert not server.cordoned("n2") and server.cordoned("n1")
    assert codes(run(server, "cordoned", names=("n2",))["n2"]) == ["held_by_kured"]
    server = Server([node("n1")], [a_pod("a")])
    held = {"holderIdentity": "r2: other 7 b", "renewTime": DUE, "leaseDurationSeconds": 3600}
    path = "/apis/coordination.k8s.io/v1/namespaces/kubegpu/leases/up"
    server.groups[path] = {"metadata": {"uid": "u"}, "spec": held}
    server.server_time = unix_time(DUE)
    one = maintenance(server, lease=LeaseRequest("up"))
    assert codes(one.run()["n1"]) == ["lease_held"] and one.lease_process == "other 7 b"
    assert server.calls == []


def test_a_drain_whose_lease_another_run_has_now_ends_and_releases_nothing():
    server = Server([node("n1")], [a_pod("a")])
    server.answers["a"] = BLOCKED
    one = maintenance(server, limit=10)
    carried = one.carry(one.run())
    assert carried and server.cordoned()
    server.calls.clear()
    held = {"holderIdentity": "r2: other 7 b", "renewTime": DUE, "leaseDurationSeconds": 3600}
    path = "/apis/coordination.k8s.io/v1/namespaces/kubegpu/leases/up"
    server.groups[path] = {"metadata": {"uid": "u"}, "spec": held}
    server.server_time = unix_time(DUE)
    one = maintenance(server, limit=10, carried=carried, lease=LeaseRequest("up"))
    rows = one.run()
    assert codes(rows["n1"]) == ["lease_held"] and not one.carry(rows)
    assert server.calls == [] and server.cordoned()
