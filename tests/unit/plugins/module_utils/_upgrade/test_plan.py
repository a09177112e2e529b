# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan of a rolling upgrade: what is disturbed, who is refused, and the batches."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.etcd_quorum import (
    Quorum,
    find_quorum,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.options import (
    amount,
    read_request,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.plan import (
    count_elsewhere,
    disturbed,
    has_work,
    out_elsewhere,
    plan_upgrade,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.types import (
    LEVELS,
    Host,
    Request,
)

LOAD = {"step": "load", "action": "load", "detail": "580.126.09", "reason": "requested"}
HOLD = {"step": "hold", "action": "hold", "detail": "580.126.09", "reason": "an upgrade"}


def driver(*steps, **more):
    return {"work": True, "change": True, "action": "upgrade", "steps": list(steps), **more}


def row(name, **more):
    return {"node": name, "ready": True, "unschedulable": False, "held_by": "", "findings": [],
            **more}  # fmt: skip


def host(name, work=True, **more):
    plans = {"driver": driver(LOAD) if work else {"work": False, "steps": []}}
    return Host(**{"name": name, "plans": plans, "row": row(name), "driver": "550.1", **more})


def hosts(count, **more):
    return [host(f"gpu{number}", **more) for number in range(1, count + 1)]


def codes(plan, name):
    (found,) = [one for one in plan.hosts if one.name == name]
    return [finding.code for finding in found.findings]


@pytest.mark.parametrize(
    ("plans", "reboot", "level"),
    [
        ({}, "auto", "nothing"),
        ({"driver": driver(LOAD)}, "auto", "all"),
        ({"driver": driver(LOAD)}, "never", "gpu"),
        ({"driver": driver(HOLD)}, "auto", "nothing"),
        ({"driver": driver(reboot={"required": True, "reason": "nouveau"})}, "auto", "all"),
        ({"mig": {"interrupts": True}}, "auto", "gpu"),
        ({"mig": {"interrupts": False, "change": True}}, "auto", "nothing"),
        # The role reboots for a mode by itself, whatever the upgrade does for the driver.
        ({"mig": {"interrupts": True, "reboots": True}}, "never", "all"),
        ({"mig": {"interrupts": False, "reboots": True}}, "auto", "nothing"),
        ({"toolkit": {"containerd": True}}, "auto", "runtime"),
        ({"toolkit": {"change_packages": True}, "cuda": {"change": True}}, "auto", "nothing"),
        ({"toolkit": {"crio": True}, "mig": {"interrupts": True}}, "auto", "gpu"),
    ],
)
def test_what_a_change_disturbs(plans, reboot, level):
    assert disturbed(plans, reboot) == level


@pytest.mark.parametrize(
    ("plans", "reboot", "works"),
    [
        ({"toolkit": {"work": True, "containerd": True, "steps": []}}, "auto", False),
        ({"toolkit": {"work": True, "steps": [{"step": "cdi"}]}}, "auto", True),
        ({"driver": {"action": "refuse", "reasons": ["no"]}}, "auto", True),
        ({"driver": {"work": False, "reboot": {"required": True}}}, "auto", True),
        ({"driver": {"work": False, "reboot": {"required": True}}}, "never", False),
        ({}, "auto", False),
    ],
)
def test_what_is_a_reason_to_take_a_node_out_of_work(plans, reboot, works):
    assert has_work(plans, reboot) is works


def test_a_canary_then_batches_of_the_size_that_is_asked_for():
    plan = plan_upgrade(Request(batch=("2",), max_unavailable="2"), hosts(6))
    assert plan.batches == (("gpu1",), ("gpu2", "gpu3"), ("gpu4", "gpu5"), ("gpu6",))
    assert [one.batch for one in plan.hosts] == [1, 2, 2, 3, 3, 4]
    assert {one.pods for one in plan.hosts} == {"all"} and not plan.refused


def test_canaries_by_name_and_sizes_as_a_list():
    request = Request(canary=("gpu4", "gpu2", "gpu4"), batch=("1", "50%"), max_unavailable="100%")
    plan = plan_upgrade(request, hosts(6))
    assert plan.batches == (("gpu4", "gpu2"), ("gpu1",), ("gpu3", "gpu5"), ("gpu6",))


def test_an_unfinished_node_comes_first_also_without_work():
    left = host("gpu3", work=False, row=row("gpu3", held_by="gpu-upgrade", unschedulable=True))
    plan = plan_upgrade(Request(), [host("gpu1"), host("gpu2", work=False), left])
    assert plan.batches == (("gpu3",), ("gpu1",))
    assert [one.action for one in plan.hosts] == ["change", "none", "resume"]


def test_nodes_that_others_took_out_use_up_the_budget():
    away = [
        host("gpu1", work=False, row=row("gpu1", unschedulable=True)),
        host("gpu2", work=False, row=row("gpu2", ready=False)),
    ]
    plan = plan_upgrade(Request(max_unavailable="50%"), [*away, *hosts(4)[2:]])
    assert plan.refused and not plan.batches
    (finding,) = plan.findings
    assert finding.code == "budget_used" and "gpu1, gpu2" in finding.cause
    # With room for one more, the batches are smaller than asked for.
    plan = plan_upgrade(Request(max_unavailable="3", batch=("2",)), [*away, *hosts(4)[2:]])
    assert plan.batches == (("gpu3",), ("gpu4",))


def test_nodes_out_of_work_that_are_no_hosts_of_the_run():
    gpus = {"nvidia.com/gpu": {"capacity": 4}}
    nodes = {
        "gpu1": {"ready": False, "held": "gpu-upgrade", "resources": gpus},
        "lost": {"ready": False, "held": None, "resources": gpus},
        "left": {"ready": True, "held": "gpu-upgrade", "resources": {}},
        "cpu": {"ready": False, "held": None, "resources": {}},
        "good": {"ready": True, "held": None, "resources": gpus},
    }
    assert out_elsewhere(nodes, {"gpu1"}) == ["left", "lost"]
    # All that can be out of work count for a percentage.
    assert count_elsewhere(nodes, {"gpu1"}) == 3


def test_nodes_that_are_no_hosts_of_the_run_use_up_the_budget():
    """Else each run could lose another node: one that is unreachable takes no part in the next."""
    plan = plan_upgrade(Request(max_unavailable="1"), hosts(4), elsewhere=["lost"])
    assert plan.refused and not plan.batches and plan.to_json()["elsewhere"] == ["lost"]
    (finding,) = plan.findings
    assert finding.code == "budget_used" and "lost" in finding.cause
    plan = plan_upgrade(Request(max_unavailable="2", batch=("2",)), hosts(3), elsewhere=["lost"])
    assert plan.batches == (("gpu1",), ("gpu2",), ("gpu3",))


@pytest.mark.parametrize(
    ("most", "others", "refused", "batches"),
    [
        # With --limit: three of 200 nodes are lost, and a quarter of the cluster may be out.
        ("25%", 196, False, [1, 3]),
        ("1%", 196, True, []),
        ("2%", 196, False, [1, 1, 1, 1]),
        # A number is a number, whatever else the cluster has.
        ("3", 196, True, []),
        ("4", 196, False, [1, 1, 1, 1]),
        # The cluster did not list the others.
        ("50%", 0, True, []),
        ("75%", 0, False, [1, 2, 1]),
    ],
)
def test_a_percentage_is_of_the_nodes_that_are_counted(most, others, refused, batches):
    request = Request(max_unavailable=most, batch=("3",))
    plan = plan_upgrade(request, hosts(4), elsewhere=["a", "b", "c"], others=others)
    assert plan.refused is refused and [len(one) for one in plan.batches] == batches
    if refused:
        assert f"({most} of {4 + max(3, others)} nodes: " in plan.findings[0].cause


@pytest.mark.parametrize(
    ("value", "refused"),
    [("true", True), ("paused-for-driver-upgrade", True), ("pre-installed", False),
     ("false", False), ("", False)],
)  # fmt: skip
def test_an_operator_with_a_driver_of_its_own_keeps_it(value, refused):
    label = {"nvidia.com/gpu.deploy.driver": value}
    plan = plan_upgrade(Request(), [host("gpu1", labels=label)])
    assert codes(plan, "gpu1") == (["operator_driver"] if refused else [])
    assert not refused or value in plan.hosts[0].findings[0].evidence


def test_a_node_that_is_out_itself_may_be_upgraded():
    away = host("gpu1", row=row("gpu1", unschedulable=True))
    plan = plan_upgrade(Request(max_unavailable="1"), [away, host("gpu2", work=False)])
    assert plan.batches == (("gpu1",),)


def test_all_refusals_are_told_at_once_and_nothing_is_started():
    held = {"code": "held_by_other", "cause": "theirs", "evidence": "", "next_step": "wait"}
    bare = {"code": "unmanaged_pod", "cause": "bare", "evidence": "", "next_step": "delete"}
    busy = {"code": "pdb_blocks", "cause": "web", "evidence": "", "next_step": "a replica"}
    refused = {"action": "refuse", "work": True, "reasons": ["a Kepler GPU"], "steps": []}
    found = [
        host("gpu1", row=row("gpu1", held_by="r2", findings=[held])),
        host("gpu2", drain={"findings": [bare, busy], "waiting": []}),
        host("gpu3", plans={"driver": refused}),
        host("gpu4", labels={"nvidia.com/gpu.deploy.driver": "true"}),
        host("gpu5", kubelet="/var/lib/kubelet"),
        host("gpu6", driver=""),
        host("gpu7", failure={"cause": "No route to host"}),
        host("gpu8"),
    ]
    plan = plan_upgrade(Request(rollback="require", canary=("gpux",)), found)
    assert plan.refused and not plan.batches
    assert [codes(plan, one.name) for one in found] == [
        ["held_by_other"], ["unmanaged_pod"], ["plan_refused"], ["operator_driver"],
        ["no_cluster"], ["no_rollback"], ["host_failed"], [],
    ]  # fmt: skip
    assert [finding.code for finding in plan.findings] == ["canary_unknown"]
    # What time may solve is no refusal.
    assert plan.hosts[1].blocks == (busy,)
    plan = plan_upgrade(Request(on_refusal="skip", max_unavailable="100%"), found)
    assert plan.batches == (("gpu6",), ("gpu8",)) and not plan.refused


CONTROL = "node-role.kubernetes.io/control-plane"
ETCD = "node-role.kubernetes.io/etcd"


def control_plane(states, label=CONTROL):
    """Return nodes of a control plane by whether they are ready, and one that is not of it."""
    nodes = {
        f"gpu{number}": {"labels": {label: ""}, "ready": ready}
        for number, ready in enumerate(states, 1)
    }
    return {**nodes, "worker": {"labels": {}, "ready": False}}


@pytest.mark.parametrize(
    ("states", "label", "refused"),
    [
        # Of one or two, none can be spared.
        ([True], CONTROL, ["gpu1"]),
        ([True, True], "node-role.kubernetes.io/master", ["gpu1", "gpu2"]),
        ([True, True, True], CONTROL, []),
        # The reboot of a member that is away costs nothing.
        ([True, True, False], ETCD, ["gpu1", "gpu2"]),
        ([True, True, True, True, False], ETCD, []),
        ([True, True, True, False, False], ETCD, ["gpu1", "gpu2", "gpu3"]),
        ([], CONTROL, []),
    ],
)
def test_a_control_plane_keeps_its_quorum(states, label, refused):
    found = [host(f"gpu{number}", row=row(f"gpu{number}", ready=number > len(states)
             or states[number - 1])) for number in range(1, 7)]  # fmt: skip
    request, quorum = Request(max_unavailable="100%"), find_quorum(control_plane(states, label))
    plan = plan_upgrade(request, found, quorum)
    assert [one.name for one in plan.hosts if "quorum_lost" in codes(plan, one.name)] == refused
    assert plan.refused is bool(refused) and (not plan.batches) is bool(refused)
    # Without a reboot no member is away, nor where the user says that it may be.
    for more in ({"reboot": "never"}, {"keep_quorum": False}):
        assert not plan_upgrade(replace(request, **more), found, quorum).refused


def test_what_a_lost_quorum_is_told_by():
    plan = plan_upgrade(Request(max_unavailable="100%"), hosts(1),
                        find_quorum(control_plane([True, True, False])))  # fmt: skip
    (finding,) = plan.hosts[0].findings
    assert "while gpu1 restarts: 2 of 3 members are ready, and 2 have to be" in finding.cause
    assert finding.evidence == "members: gpu1, gpu2, gpu3; not ready: gpu3"


def test_nodes_with_etcd_count_before_those_of_the_control_plane():
    nodes = {**control_plane([True, True]), **control_plane([True] * 3, ETCD)}
    assert find_quorum({**nodes, "cp": {"labels": {CONTROL: ""}, "ready": True}}) == Quorum(
        frozenset({"gpu1", "gpu2", "gpu3"})
    )
    assert find_quorum({}).spare < 0


def test_members_do_not_reboot_in_one_batch():
    """Also those that an earlier run left unfinished."""
    request = Request(canary=0, batch=("100%",), max_unavailable="100%")
    left = [
        host(f"gpu{number}", row=row(f"gpu{number}", held_by="gpu-upgrade")) for number in (1, 2)
    ]
    plan = plan_upgrade(request, [*left, *hosts(6)[2:]], find_quorum(control_plane([True] * 4)))
    assert plan.batches == (("gpu1",), ("gpu2",), ("gpu3",), ("gpu4", "gpu5", "gpu6"))
    assert [one.member for one in plan.hosts] == [True] * 4 + [False] * 2
    plan = plan_upgrade(request, hosts(6), find_quorum(control_plane([True] * 5)))
    assert plan.batches == (("gpu1", "gpu2"), ("gpu3", "gpu4"), ("gpu5", "gpu6"))


@pytest.mark.parametrize(
    ("toolkit", "server", "mig", "member"),
    [
        ({"containerd": True}, True, False, True),
        # Its level is that of the GPUs, and the server restarts as well.
        ({"containerd": True}, True, True, True),
        # kubeadm's etcd is a static pod; a restart of Docker is none of the server.
        ({"containerd": True}, False, False, False),
        ({"docker": True}, True, False, False),
        ({"change_packages": True}, True, False, False),
    ],
)
@pytest.mark.parametrize("reboot", ["auto", "never"])
def test_a_server_that_runs_etcd_itself_restarts_with_its_runtime(
    toolkit, server, mig, member, reboot
):
    plans = {"toolkit": {**toolkit, "steps": [LOAD]}, "mig": {"interrupts": mig}}
    found = [host(f"gpu{number}", plans=plans, control_plane=server) for number in (1, 2, 3)]
    request = Request(max_unavailable="100%", batch=("100%",), canary=0, reboot=reboot)
    plan = plan_upgrade(request, found, find_quorum(control_plane([True] * 3, ETCD)))
    assert [one.member for one in plan.hosts] == [member] * 3
    assert len(plan.batches) == (3 if member else 1)
    plan = plan_upgrade(request, found, find_quorum(control_plane([True, True, False], ETCD)))
    assert codes(plan, "gpu1") == (["quorum_lost"] if member else [])


@pytest.mark.parametrize(
    ("reboot", "server", "batches"),
    [("auto", False, 3), ("never", False, 1), ("never", True, 3)],
)
def test_the_rollback_of_unfinished_nodes_keeps_the_quorum(reboot, server, batches):
    """The killed run had installed their drivers, so that no step is left."""
    left = [
        host(f"gpu{number}", work=False, control_plane=server,
             row=row(f"gpu{number}", held_by="gpu-upgrade"))
        for number in (1, 2, 3)
    ]  # fmt: skip
    request = Request(max_unavailable="100%", reboot=reboot)
    plan = plan_upgrade(request, left, find_quorum(control_plane([True] * 3)))
    assert {one.disturbs for one in plan.hosts} == {"nothing"}
    assert len(plan.batches) == batches and sum(map(len, plan.batches)) == 3


@pytest.mark.parametrize(("rollback", "refused"), [("try", False), ("require", True)])
def test_a_package_manager_that_does_not_answer_is_told(rollback, refused):
    request = Request(rollback=rollback)
    plan = plan_upgrade(request, [host("gpu1", unasked="apt is locked.", missing=("a",))])
    (found,) = plan.hosts
    told = found.findings if refused else found.blocks
    told = [one.as_problem() if refused else one for one in told]
    assert [one["code"] for one in told] == ["no_rollback", "rollback_unknown"]
    assert told[1]["cause"].endswith("its package manager did not answer. apt is locked.")
    assert plan.refused is refused


def test_pods_that_leave_are_named():
    drain = {
        "findings": [],
        "evicted": [{"namespace": "ml", "name": "web-0"}],
        "waiting": [{"namespace": "ml", "name": "train"}],
    }
    (found,) = plan_upgrade(Request(), [host("gpu1", drain=drain)]).hosts
    assert found.leave == ("ml/web-0", "ml/train") and found.changes == ("driver: load 580.126.09",)


def test_a_release_takes_what_this_upgrade_holds_and_nothing_else():
    mine = row("gpu2", held_by="gpu-upgrade", unschedulable=True)
    theirs = row("gpu3", held_by="r2", unschedulable=True)
    found = [host("gpu1"), host("gpu2", row=mine), host("gpu3", row=theirs)]
    plan = plan_upgrade(Request(release=True), found)
    assert plan.batches == (("gpu2",),) and not plan.refused
    assert not plan_upgrade(Request(release=True), found[:1]).batches


STATES = st.sampled_from(["", "cordoned", "down", "mine", "theirs"])


def made(index, state, work):
    name = f"gpu{index}"
    given = {
        "cordoned": {"unschedulable": True},
        "down": {"ready": False},
        "mine": {"unschedulable": True, "held_by": "gpu-upgrade", "was_unschedulable": False},
        "theirs": {"unschedulable": True, "held_by": "r2", "findings": [
            {"code": "held_by_other", "cause": "theirs"}]},
    }.get(state, {})  # fmt: skip
    return host(name, work=work, row=row(name, **given))


@given(
    st.lists(st.tuples(STATES, st.booleans()), max_size=12),
    st.integers(0, 4),
    st.lists(st.sampled_from(["1", "3", "25%", "100%"]), min_size=1, max_size=3),
    st.sampled_from(["1", "2", "25%", "100%"]),
)
def test_batches_hold_each_host_once_and_never_too_many(states, canary, batch, most):
    found = [made(index, state, work) for index, (state, work) in enumerate(states)]
    request = Request(canary=canary, batch=tuple(batch), max_unavailable=most, on_refusal="skip")
    plan = plan_upgrade(request, found)
    flat = [name for one in plan.batches for name in one]
    works = [one.name for one in plan.hosts if one.works]
    assert sorted(flat) == sorted(works if not plan.refused else [])
    out = {one.name for one in found if one.is_out(request.run)}
    mine = {one.name for one in found if one.held_by == request.run}
    assert set(plan.batches[0] if mine and plan.batches else ()) == (
        mine if plan.batches else set()
    )
    for one in plan.batches:
        if not mine & set(one) and plan.limit > len(out):
            assert len(out | set(one)) <= plan.limit
    # The others' nodes are not touched.
    assert not {one.name for one in found if one.held_by == "r2"} & set(flat)
    assert all(one.disturbs in LEVELS for one in plan.hosts)


@pytest.mark.parametrize(
    ("value", "count", "number"),
    [("1", 9, 1), ("25%", 4, 1), ("25%", 3, 1), ("25%", 9, 2), ("100%", 3, 3)],
)
def test_percentages_are_rounded_down_and_never_nothing(value, count, number):
    assert amount(value, count) == number


def test_values_as_a_user_writes_them():
    request = read_request({"batch": [1, "50%"], "canary": "2", "max_unavailable": 3})
    assert (request.batch, request.canary, request.max_unavailable) == (("1", "50%"), 2, "3")
    assert read_request({}) == Request()
    assert read_request({"canary": ["gpu1"]}).canary == ("gpu1",)


@pytest.mark.parametrize(
    ("name", "value"),
    [("batch", "0"), ("batch", "101%"), ("batch", []), ("batch", True), ("canary", -1),
     ("canary", [""]), ("canary", {"a": 1}), ("max_unavailable", "x"), ("max_failed", -1),
     ("pods", "some"), ("run", " "), ("rollback", "yes")],
)  # fmt: skip
def test_a_wrong_value_names_its_variable(name, value):
    with pytest.raises(Exception, match=f"gpu_upgrade_{name}"):
        read_request({name: value})
