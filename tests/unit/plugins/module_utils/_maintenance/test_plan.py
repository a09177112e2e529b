# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What becomes of each pod of a node."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.timestamp import unix_time
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.pause import PAUSE
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance.plan import (
    classify,
    find_kured,
    read_daemonsets,
    read_pod,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance.types import (
    CLASSES,
    DaemonSets,
    Node,
    Pod,
    Request,
    WaitFor,
)
from tests.unit.fixtures.cluster_objects import pod as pod_object

DAEMONS = DaemonSets(frozenset({"agent", "plugin"}), frozenset({"plugin"}))
KEEP = {"kubegpu.nodes/maintenance": "keep"}
NOW = unix_time("2026-11-24T10:00:00Z")


def request(**options):
    return Request((), "drained", "r1", **{"keep_labels": KEEP, **options})


def pod(**more):
    given = {"phase": "Running", "gpus": 1, "owner_kind": "ReplicaSet", "owner_name": "web"}
    return Pod("ml", "p", "u", "n1", **{**given, **more})


def daemon(uid, **more):
    return pod(owner_kind="DaemonSet", owner_name=uid, owner_uid=uid, **more)


def spec(env="", path="", **more):
    found = {"name": "main", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": env}]}
    volumes = [{"name": "v", "hostPath": {"path": path}}] if path else []
    return pod_object("p", containers=[found], volumes=volumes, **more)


@pytest.mark.parametrize(
    ("data", "gpus", "sign"),
    [
        # NVIDIA/gpu-operator#2570 (2026): they keep the driver loaded.
        (spec(runtimeClassName="nvidia"), 0, "RuntimeClass nvidia"),
        (spec(runtimeClassName="nvidia-cdi"), 0, "RuntimeClass nvidia-cdi"),
        (spec(env="all"), 0, "NVIDIA_VISIBLE_DEVICES=all"),
        (spec(path="/dev/nvidia0"), 0, "the host's /dev/nvidia0"),
        (spec(path="/dev/dri"), 0, "the host's /dev/dri"),
        (spec(path="/dev/kfd"), 0, "the host's /dev/kfd"),
        # A request says more, and the others say nothing of a GPU.
        (spec(runtimeClassName="nvidia"), 1, ""),
        (spec(env="void"), 0, ""),
        (spec(runtimeClassName="gvisor", path="/var/lib"), 0, ""),
    ],
)
def test_a_pod_that_may_use_gpus_without_a_request(data, gpus, sign):
    assert read_pod(data, gpus).sign == sign


def test_containers_have_the_short_ids_of_a_node():
    started = {"containerID": "containerd://4f2a9c1d5e6b7788990011223344"}
    data = pod_object("p", status={"containerStatuses": [started, {"name": "waits"}]})
    assert read_pod(data).containers == ("4f2a9c1d5e6b",)


BARE = {"owner_kind": "", "owner_name": ""}
JOB = {"owner_kind": "Job", "owner_name": "train"}


@pytest.mark.parametrize(
    ("one", "options", "expected"),
    [
        (pod(), {}, "evict"),
        (pod(phase="Succeeded"), {}, "gone"),
        (pod(phase="Failed", **BARE), {}, "gone"),
        (pod(phase="Pending"), {}, "evict"),
        (pod(deletion="2026-11-23T12:00:00Z", **BARE), {}, "leaves"),
        (pod(labels=KEEP, **BARE), {}, "kept label"),
        (pod(labels=KEEP), {"keep_labels": {}}, "evict"),
        (pod(mirror=True, owner_kind="Node"), {}, "kept static"),
        (daemon("agent"), {}, "kept daemonset"),
        (daemon("agent", gpus=0), {"all_pods": True}, "kept daemonset"),
        # It would be made again at once, whatever its volumes.
        (daemon("agent", on_disk=("a",)), {"pause": True}, "kept daemonset"),
        (daemon("agent", deletion="2026-11-23T12:00:00Z"), {}, "kept daemonset"),
        (daemon("plugin"), {}, "kept daemonset"),
        (daemon("plugin", gpus=0), {"pause": True}, "leaves"),
        # The DaemonSet is gone: nobody makes its pod again.
        (daemon("gone"), {}, "refused unmanaged_pod"),
        (daemon("gone"), {"unmanaged": "delete"}, "evict"),
        (pod(gpus=0), {}, "kept no_gpu"),
        (pod(gpus=0, **BARE), {}, "kept no_gpu"),
        (pod(gpus=0), {"all_pods": True}, "evict"),
        (pod(**BARE), {}, "refused unmanaged_pod"),
        (pod(**BARE), {"unmanaged": "delete"}, "evict"),
        (pod(in_memory=("shm",)), {}, "evict"),
        (pod(in_memory=("shm",)), {"local_data": "refuse"}, "refused local_data"),
        (pod(on_disk=("a",)), {}, "refused local_data"),
        (pod(on_disk=("a",)), {"local_data": "delete"}, "evict"),
        (pod(on_disk=("a",), **BARE), {}, "refused local_data unmanaged_pod"),
        # The one permission does not imply the other.
        (pod(on_disk=("a",), **BARE), {"local_data": "delete"}, "refused unmanaged_pod"),
        (pod(on_disk=("a",), **BARE), {"unmanaged": "delete"}, "refused local_data"),
        (pod(**JOB), {}, "evict"),
        (pod(**JOB), {"wait_for": WaitFor(("Job",))}, "waits"),
        (pod(on_disk=("a",), **JOB), {"wait_for": WaitFor(("Job",))}, "waits"),
        (pod(), {"wait_for": WaitFor(("Job",))}, "evict"),
        (pod(), {"wait_for": WaitFor(())}, "waits"),
        (pod(**JOB), {"wait_for": WaitFor(("Job",), namespaces=("other",))}, "evict"),
        (pod(**JOB), {"wait_for": WaitFor(("Job",), {"a": "b"})}, "evict"),
        (pod(labels={"a": "b"}, **JOB), {"wait_for": WaitFor(("Job",), {"a": "b"})}, "waits"),
        (pod(gpus=0, **JOB), {"wait_for": WaitFor(("Job",))}, "kept no_gpu"),
    ],
)
def test_the_class_of_a_pod(one, options, expected):
    decision = classify(one, request(**options), DAEMONS)
    words = [decision.kind, decision.why, *(finding.code for finding in decision.findings)]
    assert " ".join(word for word in words if word) == expected
    for finding in decision.findings:
        assert "ml/p" in finding.cause and finding.next_step


def test_a_pod_whose_time_is_over_is_judged_as_any_other():
    options = request(wait_for=WaitFor(("Job",)))
    late = classify(pod(on_disk=("a",), **JOB), options, DAEMONS, waiting=False)
    assert late.kind == "refused"


TEXTS = st.sampled_from(["", "a", "b"])
PODS = st.builds(
    Pod,
    namespace=TEXTS,
    name=TEXTS,
    uid=TEXTS,
    node=st.just("n1"),
    phase=st.sampled_from(["", "Pending", "Running", "Succeeded", "Failed", "Unknown"]),
    labels=st.sampled_from([{}, KEEP, {"a": "b"}]),
    owner_kind=st.sampled_from(["", "ReplicaSet", "StatefulSet", "Job", "DaemonSet", "Node"]),
    owner_name=TEXTS,
    owner_uid=st.sampled_from(["", "agent", "plugin", "gone"]),
    mirror=st.booleans(),
    deletion=st.sampled_from(["", "2026-11-23T12:00:00Z"]),
    ready=st.booleans(),
    in_memory=st.sampled_from([(), ("shm",)]),
    on_disk=st.sampled_from([(), ("a",), ("a", "b")]),
    gpus=st.integers(0, 2),
)
REQUESTS = st.builds(
    request,
    all_pods=st.booleans(),
    pause=st.booleans(),
    keep_labels=st.sampled_from([{}, KEEP]),
    wait_for=st.sampled_from([None, WaitFor(("Job",)), WaitFor(())]),
    unmanaged=st.sampled_from(["refuse", "delete"]),
    local_data=st.sampled_from(["refuse", "memory", "delete"]),
)


@given(PODS, REQUESTS, st.booleans())
def test_every_pod_is_in_one_class_and_a_refusal_says_why(one, options, waiting):
    decision = classify(one, options, DAEMONS, waiting=waiting)
    assert decision.kind in CLASSES
    assert bool(decision.findings) == (decision.kind == "refused")
    assert bool(decision.why) == (decision.kind == "kept")
    assert waiting or decision.kind != "waits"
    if decision.kind in ("evict", "waits", "refused"):
        assert not one.mirror
        assert one.owner_kind != "DaemonSet" or one.owner_uid not in DAEMONS.uids
    if decision.kind == "evict" and options.local_data != "delete":
        assert not one.on_disk


@given(PODS, REQUESTS)
def test_with_all_permissions_nothing_is_refused(one, options):
    free = replace(options, unmanaged="delete", local_data="delete")
    assert classify(one, free, DAEMONS).kind != "refused"


def test_a_pod_object_is_read():
    data = pod_object(
        "web-0",
        gpus=2,
        volumes=[
            {"name": "scratch", "emptyDir": {}},
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
            {"name": "config", "configMap": {"name": "c"}},
        ],
        status={"conditions": [{"type": "Ready", "status": "True"}]},
    )
    data["metadata"].update(
        uid="u1",
        ownerReferences=[
            {"kind": "Other", "name": "o", "uid": "1"},
            {"kind": "StatefulSet", "name": "web", "uid": "2", "controller": True},
        ],
        annotations={"kubernetes.io/config.mirror": "x"},
        deletionTimestamp="2026-11-23T12:00:00Z",
    )
    found = read_pod(data, gpus=2)
    assert (found.full_name, found.uid, found.node, found.gpus) == ("default/web-0", "u1", "n1", 2)
    assert (found.owner_kind, found.owner_name, found.owner_uid) == ("StatefulSet", "web", "2")
    assert (found.in_memory, found.on_disk) == (("shm",), ("scratch",))
    assert found.ready and found.mirror and found.deletion == "2026-11-23T12:00:00Z"
    assert found.to_json()["owner"] == "StatefulSet/web"
    assert read_pod({}).to_json()["owner"] is None


def daemonset(uid, *terms):
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    affinity = {"affinity": {"nodeAffinity": required}} if terms else {}
    return {"metadata": {"uid": uid}, "spec": {"template": {"spec": affinity}}}


def test_daemonsets_that_leave_a_paused_node():
    rule = {"key": PAUSE, "operator": "DoesNotExist"}
    other = {"key": "a", "operator": "Exists"}
    found = read_daemonsets(
        [
            daemonset("none"),
            daemonset("pauses", {"matchExpressions": [other, rule]}),
            # Terms are alternatives: one without the rule lets the pod stay.
            daemonset("may-stay", {"matchExpressions": [rule]}, {"matchExpressions": [other]}),
            daemonset("unlike", {"matchExpressions": [{"key": PAUSE, "operator": "Exists"}]}),
        ],
        NOW,
    )
    assert found.uids == {"none", "pauses", "may-stay", "unlike"}
    assert found.pausing == {"pauses"}


HOUR = 3600 * 10**9
ONE = {
    "nodeID": "n1", "metadata": {"unschedulable": False},
    "created": "2026-11-24T08:59:59.123456789Z", "TTL": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "locked"),
    [
        (json.dumps(ONE), ["n1"]),
        (json.dumps({"maxOwners": 2, "locks": [ONE, {**ONE, "nodeID": "n2"}]}), ["n1", "n2"]),
        (json.dumps({"maxOwners": 2, "locks": []}), []),
        # An hour and a second ago. Without a TTL, or with one that cannot be read, it does not end.
        (json.dumps({**ONE, "TTL": HOUR}), []),
        (json.dumps({**ONE, "TTL": 2 * HOUR}), ["n1"]),
        (json.dumps({**ONE, "TTL": "1h"}), ["n1"]),
        (json.dumps({**ONE, "TTL": HOUR, "created": "yesterday"}), ["n1"]),
        (json.dumps({"locks": [{**ONE, "TTL": HOUR}, {**ONE, "nodeID": "n2"}]}), ["n2"]),
        ("", []), ("{", []), ("[1]", []), ('{"locks": 3}', []), ('{"nodeID": ""}', []),
    ],
)  # fmt: skip
def test_a_node_that_kured_reboots_is_not_touched(text, locked):
    meta = {"uid": "k", "namespace": "kube-system", "name": "kured"}
    one = {"metadata": {**meta, "annotations": {"weave.works/kured-node-lock": text}}}
    found = {
        name: find_kured(
            Node(name, "1", unschedulable=False, ready=True), read_daemonsets([one], NOW)
        )
        for name in ("n1", "n2", "n3")
    }
    assert [name for name, finding in found.items() if finding] == locked
    for name in locked:
        assert found[name].code == "held_by_kured" and name in found[name].cause
        assert "kubectl -n kube-system annotate daemonset kured" in found[name].next_step
