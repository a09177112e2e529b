# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.cluster import (
    cluster_plan,
    dra_plan,
)

NODE = {"node": "n1", "changed": False, "labels": {"kubegpu.nodes/gpu": "nvidia"}, "taints": []}
LEFT = {"node": None, "changed": False, "labels": {}}


def first(**labels):
    return cluster_plan({"nodes": {"h1": NODE}, **labels}, [])[0]


def test_nothing_to_do():
    assert first() == {
        "node": "h1", "kubernetes": "n1", "changes": ["none"], "why": ["up to date"],
    }  # fmt: skip


def test_labels_and_taints_that_come_and_go():
    taint = {"key": "gpu", "value": "", "effect": "NoSchedule"}
    row = first(nodes={"h1": {**NODE, "changed": True, "taints": [taint]}})
    assert row["changes"] == ["labels: set", "taints: set"]
    assert row["why"] == ["from the detected hardware: kubegpu.nodes/gpu=nvidia", "gpu:NoSchedule"]
    row = first(nodes={"h1": {**NODE, "changed": True, "labels": {}}})
    assert row["changes"] == ["labels: remove those of this collection"]


def test_hosts_that_are_not_in_the_cluster():
    rows = cluster_plan({"nodes": {"cpu": LEFT, "gpu": LEFT}, "unknown": ["gpu"]}, [])
    assert [(row["node"], row["changes"]) for row in rows] == [
        ("gpu", ["none: not in the cluster"])
    ]
    assert "set gpu_node_labels_node_name" in rows[0]["why"][0]


def test_a_host_that_may_be_another_node_is_shown_as_refused():
    rows = cluster_plan({"nodes": {"gpu7": LEFT}, "refused": {"gpu7": "it has cp1's id"}}, [])
    assert [(row["node"], row["changes"], row["why"]) for row in rows] == [
        ("gpu7", ["refused"], ["it has cp1's id"])
    ]


def test_a_conflict_names_the_owner():
    conflict = {"node": "n1", "kind": "label", "name": "accelerator", "owner": "kubectl-label",
                "value": "k80"}  # fmt: skip
    row = first(conflicts=[conflict])
    assert row["changes"] == ["label accelerator: left alone"]
    assert row["why"] == ["it is 'k80' and belongs to kubectl-label"]


NEEDED = [
    {"node": None, "name": "Kubernetes", "value": "v1.20.2", "verdict": "missing",
     "evidence": "/version", "next_step": "Upgrade."},
    {"node": "gpu1", "name": "driver", "value": "580.126.09", "verdict": "met",
     "evidence": "", "next_step": ""},
    {"node": "gpu1", "name": "CDI", "value": "off", "verdict": "missing",
     "evidence": "the dump", "next_step": "Switch it on."},
]  # fmt: skip


def test_the_dra_driver_and_what_it_needs():
    refused = {
        "action": "refuse",
        "preconditions": NEEDED,
        "refusals": [{"cause": "Kubernetes: v1.20.2"}, {"cause": "CDI: off"}],
    }
    rows = {row["node"]: row for row in dra_plan(refused, {})}
    assert list(rows) == ["DRA driver", "DRA: cluster", "DRA: gpu1"]
    assert rows["DRA driver"]["why"] == ["DRA: not possible: Kubernetes: v1.20.2 and 1 more"]
    assert rows["DRA: cluster"]["changes"] == ["Kubernetes: v1.20.2"]
    assert rows["DRA: cluster"]["why"] == ["missing (/version). Upgrade."]
    assert rows["DRA: gpu1"]["changes"] == ["driver: 580.126.09", "CDI: off"]
    assert rows["DRA: gpu1"]["why"] == ["met", "missing (the dump). Switch it on."]
    assert dra_plan({}, {}) == []


def test_the_dra_driver_takes_the_device_plugins_place():
    made = {"action": "apply", "api": "v1", "refusals": [], "preconditions": [],
            "objects": [{"kind": "DaemonSet"}], "replaced": [{"kind": "DaemonSet"}],
            "reasons": ["because"]}  # fmt: skip
    (row,) = dra_plan(made, {"changed": True})
    assert row["kubernetes"] == "v1"
    assert row["changes"] == ["remove the device plugin", "apply DaemonSet"]
    assert row["why"] == ["the DRA driver allocates its GPUs", "because"]
    (same,) = dra_plan(made, {"changed": False})
    assert same["changes"] == ["none"]


def test_the_device_plugin():
    def row(plan, changed=True, **result):
        given = {"changed": changed, **result}
        (last,) = cluster_plan({}, [("device plugin", plan, given), ("monitoring", {}, given)])
        return last["changes"], last["why"]

    applied = {"action": "apply", "objects": [{"kind": "DaemonSet"}], "reasons": ["because"]}
    assert row(applied) == (["apply DaemonSet"], ["because"])
    assert row(applied, changed=False) == (["none"], ["up to date"])
    assert row({"action": "refuse", "text": "no"}) == (["refused"], ["no"])
    assert row({"action": "leave", "others": ["an operator"]})[1] == ["the cluster has an operator"]
    assert row({**applied, "earlier": ["old"]}) == (
        ["apply DaemonSet", "remove those of this collection from namespace old"],
        ["because", "an earlier run deployed it there"],
    )
    # What differs, not all that is applied; an earlier place alone is a removal.
    two = {**applied, "objects": [{"kind": "DaemonSet"}, {"kind": "RuntimeClass"}]}
    assert row(two, kinds=["RuntimeClass"]) == (["apply RuntimeClass"], ["because"])
    assert row({**two, "earlier": ["old"]}, kinds=[])[0] == [
        "remove those of this collection from namespace old"
    ]
    assert row(two, kinds=[])[0] == ["remove objects of this collection"]


def test_only_labels_that_differ_are_shown():
    labels = {f"kubegpu.nodes/{number}": "same" for number in range(22)}
    had = {**labels, "kubegpu.nodes/driver": "535", "kubegpu.nodes/mig": "all"}
    has = {**labels, "kubegpu.nodes/driver": "580"}
    taint = {"key": "gpu", "value": "new", "effect": "NoSchedule"}
    node = {**NODE, "changed": True, "labels": has, "taints": [taint]}
    diff = {
        "before": {"n1": {"labels": had, "taints": ["gpu=old:NoSchedule", "a:NoSchedule"]}},
        "after": {"n1": {"labels": has, "taints": ["gpu=new:NoSchedule", "a:NoSchedule"]}},
    }
    row = first(nodes={"h1": node}, diff=diff)
    assert dict(zip(row["changes"], row["why"])) == {
        "labels: set": "from the detected hardware: kubegpu.nodes/driver=580",
        "labels: remove": "no longer from the detected hardware: kubegpu.nodes/mig",
        "taints: set": "gpu=new:NoSchedule",
        "taints: remove": "gpu=old:NoSchedule",
    }
    same = {"n1": {"labels": has}}
    row = first(nodes={"h1": {**node, "taints": []}}, diff={"before": same, "after": same})
    assert row["why"] == ["this collection becomes their owner, the values remain"]
