# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What differs between a node and what it shall have, without a cluster."""

from __future__ import annotations

import dataclasses
import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.node import (
    has_discovery,
    managed_metadata,
    read_node,
    recorded_taints,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.options import read_requests
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.plan import (
    plan,
    view,
    with_version,
    without_discovered,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.types import (
    TAINTS_ANNOTATION,
    Taint,
)

GPU = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
THEIRS = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": "2026"}


def entry(manager, labels=(), annotations=(), operation="Update", **more):
    metadata = {
        f"f:{kind}": {".": {}, **{f"f:{name}": {} for name in names}}
        for kind, names in (("labels", labels), ("annotations", annotations))
        if names
    }
    fields = {"f:metadata": metadata, **more.pop("fields", {})}
    return {"manager": manager, "operation": operation, "fieldsV1": fields, **more}


def node(name="n1", machine_id="", **changes):
    """A node as a kubelet made it, with what is changed."""
    managed = changes.pop("managed", [entry("kubelet", ["kubernetes.io/hostname"])])
    metadata = {
        "name": name,
        "uid": f"uid-of-{name}",
        "resourceVersion": "7",
        "labels": {"kubernetes.io/hostname": name, **changes.pop("labels", {})},
        "annotations": changes.pop("annotations", {}),
        "managedFields": managed,
    }
    data = {
        "metadata": metadata,
        "spec": {"taints": changes.pop("taints", None)},
        "status": {
            "nodeInfo": {"machineID": machine_id},
            "conditions": [{"type": "Ready", "status": changes.pop("ready", "True")}],
        },
    }
    assert not changes
    return read_node(data, "kubegpu.nodes")


def applied(labels=(), annotations=()):
    return entry("kubegpu.nodes", labels, annotations, operation="Apply")


def request(**given):
    [one] = read_requests({"n1": given})
    return one


def test_an_equal_node_needs_nothing():
    now = node(labels={"a": "1"}, managed=[applied(["a"])])
    found = plan(request(labels={"a": 1}), now)
    assert not found.differs and found.conflicts == ()


def test_a_new_label_is_applied_with_all_that_is_ours():
    now = node(labels={"a": "1"}, managed=[applied(["a"])])
    found = plan(request(labels={"a": "1", "b": "2"}, annotations={"c": "3"}), now)
    assert found.apply == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "n1",
            "uid": "uid-of-n1",
            "labels": {"a": "1", "b": "2"},
            "annotations": {"c": "3"},
        },
    }
    assert found.taints is None


def test_a_stale_label_is_left_out_of_what_is_applied():
    now = node(labels={"a": "1", "old": "1"}, managed=[applied(["a", "old"])])
    found = plan(request(labels={"a": "1"}), now)
    assert found.apply["metadata"]["labels"] == {"a": "1"}
    gone = plan(request(), now)
    assert "labels" not in gone.apply["metadata"]


def test_an_empty_wish_for_a_node_without_ours_is_nothing():
    assert not plan(request(), node(labels={"x": "1"})).differs


def test_what_somebody_else_has_as_we_want_it_we_own_too():
    now = node(labels={"a": "1"}, managed=[entry("kubectl-label", ["a"])])
    found = plan(request(labels={"a": "1"}), now)
    assert found.differs and found.conflicts == ()
    assert view(now, found, request(labels={"a": "1"})) == {"labels": {"a": "1 (of kubectl-label)"}}


def test_an_update_under_our_name_is_not_what_we_applied():
    now = node(labels={"a": "2"}, managed=[entry("kubegpu.nodes", ["a"])])
    [conflict] = plan(request(labels={"a": "1"}), now).conflicts
    assert conflict.owner == "kubegpu.nodes"


def test_what_was_applied_to_a_subresource_is_not_ours():
    status = entry("kubegpu.nodes", ["a"], operation="Apply", subresource="status")
    assert node(labels={"a": "1"}, managed=[status]).managed == frozenset()


def test_a_conflict_leaves_the_label_out_and_force_puts_it_in():
    managers = [entry("kubectl-label", ["a"]), entry("argocd", ["a"], operation="Apply")]
    now = node(labels={"a": "2"}, managed=managers)
    wanted = request(labels={"a": "1", "b": "1"})
    found = plan(wanted, now)
    assert found.apply["metadata"]["labels"] == {"b": "1"}
    [conflict] = found.conflicts
    assert (conflict.owner, conflict.value, conflict.wanted) == ("kubectl-label, argocd", "2", "1")
    forced = plan(wanted, now, force=True)
    assert forced.apply["metadata"]["labels"] == {"a": "1", "b": "1"}
    assert forced.conflicts == ()


def test_a_label_without_any_owner_on_a_tracked_node_can_be_set():
    assert plan(request(labels={"a": "1"}), node(labels={"a": "2"})).conflicts == ()


def test_what_is_on_an_untracked_node_belongs_to_who_was_before():
    now = node(labels={"a": "2"}, managed=None)
    [conflict] = plan(request(labels={"a": "1"}), now).conflicts
    assert conflict.owner == "before-first-apply"


# Taints


def patch_of(found, now):
    """The list that would be sent, and what would be recorded_taints."""
    text = found.taints["metadata"]["annotations"][TAINTS_ANNOTATION]
    return found.taints["spec"]["taints"], None if text is None else json.loads(text)


def test_a_taint_is_put_behind_those_of_others_and_remembered():
    now = node(taints=[THEIRS])
    found = plan(request(taints=[GPU]), now)
    assert found.apply is None
    body = {"key": "nvidia.com/gpu", "effect": "NoSchedule", "value": "present"}
    assert patch_of(found, now) == ([THEIRS, body], ["nvidia.com/gpu=present:NoSchedule"])
    assert with_version(found.taints, "8")["metadata"]["resourceVersion"] == "8"


def mine(*texts):
    return {TAINTS_ANNOTATION: json.dumps(list(texts))}


def test_a_taint_that_is_no_longer_wished_goes_and_with_it_the_memory():
    now = node(taints=[GPU, THEIRS], annotations=mine("nvidia.com/gpu=present:NoSchedule"))
    assert patch_of(plan(request(), now), now) == ([THEIRS], None)
    alone = node(taints=[GPU], annotations=mine("nvidia.com/gpu=present:NoSchedule"))
    assert patch_of(plan(request(), alone), alone) == (None, None)


def test_a_taint_that_somebody_changed_since_is_theirs():
    now = node(
        taints=[{**GPU, "value": "other"}], annotations=mine("nvidia.com/gpu=present:NoSchedule")
    )
    assert patch_of(plan(request(), now), now) == ([{**GPU, "value": "other"}], None)
    [conflict] = plan(request(taints=[GPU]), now).conflicts
    assert (conflict.kind, conflict.value, conflict.wanted) == ("taint", "other", "present")


def test_a_new_value_of_our_taint_takes_its_place():
    now = node(taints=[GPU, THEIRS], annotations=mine("nvidia.com/gpu=present:NoSchedule"))
    taints, memory = patch_of(plan(request(taints=[{**GPU, "value": "x"}]), now), now)
    assert [item.get("value") for item in taints] == ["x", None]
    assert memory == ["nvidia.com/gpu=x:NoSchedule"]


def test_the_same_key_with_another_effect_is_another_taint():
    soft = {"key": "nvidia.com/gpu", "effect": "PreferNoSchedule"}
    now = node(taints=[GPU])
    taints, memory = patch_of(plan(request(taints=[soft]), now), now)
    assert taints == [GPU, soft]
    assert memory == ["nvidia.com/gpu:PreferNoSchedule"]


def test_a_taint_that_was_there_as_wished_is_not_taken_over():
    now = node(taints=[GPU])
    assert not plan(request(taints=[GPU]), now).differs


def test_a_taint_can_be_taken_away_whoever_set_it():
    now = node(taints=[GPU, THEIRS])
    wish = dataclasses.replace(request(), drop_taints=(GPU["key"],))
    assert patch_of(plan(wish, now), now) == ([THEIRS], None)
    assert not plan(wish, node(taints=[THEIRS])).differs
    # What is asked for stays.
    both = dataclasses.replace(request(taints=[GPU]), drop_taints=(GPU["key"],))
    assert not plan(both, now).differs


def test_a_taint_of_ours_that_somebody_removed_comes_back():
    now = node(annotations=mine("nvidia.com/gpu=present:NoSchedule"))
    taints, _memory = patch_of(plan(request(taints=[GPU]), now), now)
    assert [item["key"] for item in taints] == ["nvidia.com/gpu"]
    assert patch_of(plan(request(), now), now) == (None, None)


@pytest.mark.parametrize("text", ["", "no json", '"x"', "[1, null]", '["::"]', "{}"])
def test_a_memory_that_somebody_broke_is_none(text):
    found = recorded_taints(node(annotations={TAINTS_ANNOTATION: text}))
    assert all(isinstance(one, Taint) for one in found.values())
    plan(request(taints=[GPU]), node(annotations={TAINTS_ANNOTATION: text}))


def test_ours_is_what_is_there_still():
    now = node(
        labels={"a": "1", "x": "2"},
        managed=[applied(["a"]), entry("kubelet", ["x"])],
        taints=[GPU, THEIRS],
        annotations=mine("nvidia.com/gpu=present:NoSchedule"),
    )
    assert managed_metadata(now) == {"labels": {"a": "1"}, "annotations": {}, "taints": [GPU]}


# Feature discovery


def test_feature_discovery_is_known_by_its_labels_or_their_owner():
    assert has_discovery([node(), node(labels={"nvidia.com/gfd.timestamp": "1"})])
    owned = node(
        labels={"nvidia.com/gpu.count": "1"},
        managed=[entry("nfd-master", ["nvidia.com/gpu.count"])],
    )
    assert has_discovery([owned])


def test_our_own_labels_and_those_by_hand_are_no_feature_discovery():
    label = "nvidia.com/gpu.count"
    for manager in (applied([label]), entry("kubectl-label", [label])):
        assert not has_discovery([node(labels={label: "1"}, managed=[manager])])
    # Node feature discovery alone says nothing of NVIDIA's.
    pci = "feature.node.kubernetes.io/pci-10de.present"
    assert not has_discovery([node(labels={pci: "true"}, managed=[entry("nfd-master", [pci])])])


def test_its_labels_are_taken_out_of_a_wish():
    found, left = without_discovered(request(labels={"nvidia.com/gpu.count": "1", "a": "b"}))
    assert found.labels == {"a": "b"} and left == ("nvidia.com/gpu.count",)


# Wishes


def test_whose_the_taint_is_that_is_in_the_way_is_told():
    now = node(
        taints=[{**GPU, "value": "other"}],
        managed=[
            entry("kubelet", ["a"]),
            entry("kubegpu.nodes", fields={"f:spec": {"f:taints": {}}}),
            entry("autoscaler", fields={"f:spec": {"f:taints": {}}}),
        ],
    )
    [conflict] = plan(request(taints=[GPU]), now).conflicts
    assert conflict.owner == "autoscaler"
