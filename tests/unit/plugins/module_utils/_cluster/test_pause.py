# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pause of nodes: refusals, what waits, and what an ended run leaves. The real cluster is in
tests/integration/cluster/test_mig.py."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.pause import (
    Pauser,
    Settings,
    failure,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import KubeError
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.apply import Labeller
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.apply import (
    Settings as LabelSettings,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.names import KEEP_NODE
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.options import read_requests
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.pause import (
    PAUSE,
    away_from_paused,
    leaves_paused,
)
from tests.unit.fixtures import cluster_objects
from tests.unit.fixtures.standin_cluster import StandinCluster, Time

PLUGIN = "kubegpu-nvidia-device-plugin"
MANAGER = "kubegpu.nodes"
LABELS = {"kubegpu.nodes/gpu": "nvidia"}


class PauseCluster(StandinCluster):
    """Nodes n1 and n2 with the plugin's pods, server-side apply, and the DaemonSet controller."""

    def __init__(self, affinity=None):
        affinity = {"nodeAffinity": away_from_paused()} if affinity is None else affinity
        daemonset = cluster_objects.daemonset()
        daemonset["spec"]["template"]["spec"]["affinity"] = affinity
        super().__init__(
            nodes=[cluster_objects.node(name) for name in ("n1", "n2")],
            daemonsets=[daemonset],
            pods=[self.plugin_pod(name) for name in ("n1", "n2")],
        )
        for one in self.objects["nodes"]:
            one["metadata"]["uid"] = one["metadata"]["name"]
        #: Whether pods leave a paused node.
        self.controller = True
        self.applied = []
        #: Called after each apply.
        self.then = lambda: None

    @staticmethod
    def plugin_pod(node):
        pod = cluster_objects.pod(f"plugin-{node}", node, namespace="kubegpu")
        pod["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": PLUGIN}]
        pod["status"]["containerStatuses"] = [{"containerID": f"containerd://{node}-main"}, {}]
        pod["status"]["initContainerStatuses"] = [{"containerID": f"containerd://{node}-init"}]
        return pod

    def node(self, name="n1"):
        return next(one for one in self.objects["nodes"] if one["metadata"]["name"] == name)

    def state(self, name="n1"):
        found = self.node(name)
        return found["metadata"]["labels"].get(PAUSE), bool(found["spec"].get("unschedulable"))

    def kept(self, name="n1"):
        """Return the annotation for cluster-autoscaler."""
        return self.node(name)["metadata"].get("annotations", {}).get(KEEP_NODE)

    def list(self, path, **params):
        kind = path.rpartition("/")[2]
        if kind != "pods":
            return super().list(path, **params)
        name = params["fieldSelector"].split(",")[0].partition("=")[2]
        found = [one for one in self.objects["pods"] if one["spec"].get("nodeName") == name]
        return iter(copy.deepcopy(found))

    def apply(self, path, body, *, field_manager, force=False, dry_run=False):
        self._fail("patch", "nodes")
        node = copy.deepcopy(self.node(path.rpartition("/")[2]))
        meta, spec = node["metadata"], node["spec"]
        fields = meta.get("managedFields") or []
        before = next((one for one in fields if one["manager"] == field_manager), {})
        owned = before.get("fieldsV1", {})
        for kind in ("labels", "annotations"):
            meta.setdefault(kind, {})
            for name in owned.get("f:metadata", {}).get(f"f:{kind}", {}):
                meta[kind].pop(name[2:], None)
            meta[kind].update(body["metadata"].get(kind) or {})
        if "f:unschedulable" in owned.get("f:spec", {}):
            spec.pop("unschedulable", None)
        spec.update(body.get("spec") or {})
        entry = {
            "manager": field_manager,
            "operation": "Apply",
            "fieldsV1": {
                "f:metadata": {
                    f"f:{kind}": {f"f:{name}": {} for name in body["metadata"].get(kind) or ()}
                    for kind in ("labels", "annotations")
                },
                "f:spec": {f"f:{name}": {} for name in body.get("spec") or {}},
            },
        }
        meta["managedFields"] = [
            {"manager": "kubelet", "operation": "Update"},
            *(one for one in fields if one["manager"] not in (field_manager, "kubelet")),
            entry,
        ]
        if not dry_run:
            self.applied.append(meta["name"])
            self.objects["nodes"] = [
                node if one["metadata"]["name"] == meta["name"] else one
                for one in self.objects["nodes"]
            ]
            if PAUSE in meta["labels"] and self.controller:
                name = f"plugin-{meta['name']}"
                self.objects["pods"] = [
                    one for one in self.objects["pods"] if one["metadata"]["name"] != name
                ]
            self.then()
        return copy.deepcopy(node)

    def label(self):
        """Label the nodes, as the role gpu_node_labels does."""
        nodes = {name: {"labels": LABELS} for name in ("n1", "n2")}
        return Labeller(self, LabelSettings(MANAGER), False)(read_requests(nodes))


@pytest.fixture
def cluster():
    made = PauseCluster()
    made.label()
    made.applied.clear()
    return made


def pauser(cluster, reason="mig", dry_run=False, allow_pods=False):
    time = Time()
    settings = Settings(reason, MANAGER, allow_pods, 30)
    return Pauser(cluster, settings, dry_run, time.sleep, time.monotonic)


def pause(cluster, *names, **more):
    return pauser(cluster, **more).pause(read_requests({name: {} for name in names or ["n1"]}))


def resume(cluster, *names, **more):
    return pauser(cluster, **more).resume(read_requests({name: {} for name in names or ["n1"]}))


def test_a_node_is_paused_and_resumed(cluster):
    (paused,) = pause(cluster).values()
    assert paused.to_json() == {
        "node": "n1",
        "changed": True,
        "paused": "mig",
        "cordoned": True,
        "pods": [],
        "left": [f"kubegpu/{PLUGIN}"],
        "containers": ["n1-init", "n1-main"],
    }
    assert cluster.state() == ("mig", True) and cluster.state("n2") == (None, False)
    assert cluster.node()["metadata"]["labels"]["kubegpu.nodes/gpu"] == "nvidia"
    assert not pause(cluster)["n1"].changed
    assert resume(cluster)["n1"].changed
    assert cluster.state() == (None, False)
    assert cluster.node()["metadata"]["labels"]["kubegpu.nodes/gpu"] == "nvidia"
    assert not resume(cluster)["n1"].changed
    assert cluster.applied == ["n1", "n1"]


def test_the_cordon_of_somebody_else_stays(cluster):
    cluster.node()["spec"]["unschedulable"] = True
    assert not pause(cluster)["n1"].to_json()["cordoned"]
    resume(cluster)
    assert cluster.state() == (None, True)


def test_the_autoscaler_leaves_a_node_while_it_is_paused(cluster):
    pause(cluster)
    assert cluster.kept() == "true" and cluster.kept("n2") is None
    resume(cluster)
    assert cluster.kept() is None
    # So does the next run after one that was killed.
    pause(cluster)
    cluster.label()
    assert cluster.kept() is None and cluster.state() == (None, False)


@pytest.mark.parametrize("value", ["true", "false"])
def test_an_annotation_of_somebody_else_stays(cluster, value):
    cluster.node()["metadata"].setdefault("annotations", {})[KEEP_NODE] = value
    pause(cluster)
    assert cluster.kept() == value and cluster.state() == ("mig", True)
    resume(cluster)
    assert cluster.kept() == value


def test_check_mode_changes_nothing_and_waits_for_nothing(cluster):
    outcome = pause(cluster, "n1", "n2", dry_run=True)
    assert all(one.changed for one in outcome.values())
    assert outcome["n2"].containers == ("n2-init", "n2-main")
    assert cluster.state() == (None, False) and not cluster.applied


def test_pods_with_gpus_are_named_and_nothing_is_changed(cluster):
    cluster.objects["pods"] += [
        cluster_objects.pod("train-0", "n1", gpus=2, namespace="team"),
        cluster_objects.pod("web", "n1"),
    ]
    outcome = pause(cluster, "n1", "n2")
    error = outcome["n1"].error
    assert error.cause == "Pods use GPUs of the node n1, and it is not paused."
    assert error.evidence == "pods: team/train-0" and "kubectl drain n1" in error.next_step
    assert cluster.applied == ["n2"]
    assert failure(outcome) is error
    allowed = pause(cluster, allow_pods=True)["n1"]
    assert allowed.changed and allowed.pods == ("team/train-0",)


def test_a_pod_that_came_before_the_cordon_ends_the_pause(cluster):
    def schedule():
        if len(cluster.applied) == 1:
            cluster.objects["pods"].append(cluster_objects.pod("late", "n1", gpus=1))

    cluster.then = schedule
    assert "default/late" in pause(cluster)["n1"].error.evidence
    assert cluster.state() == (None, False)


def test_pods_that_do_not_leave_end_the_pause(cluster):
    cluster.controller = False
    error = pause(cluster)["n1"].error
    assert "have not left the paused node n1 in 30 seconds" in error.cause
    assert "kubegpu/plugin-n1" in error.evidence
    assert cluster.state() == (None, False)


def test_daemonsets_of_an_earlier_release_are_named():
    cluster = PauseCluster(affinity={})
    outcome = pause(cluster)["n1"]
    error = outcome.error
    assert outcome.containers == ("n1-init", "n1-main")
    assert "would not leave the node n1" in error.cause
    assert f"kubegpu/{PLUGIN}" in error.evidence
    assert not cluster.applied
    # Who asks in check mode learns of the pods with GPUs in any case.
    cluster.objects["pods"].append(cluster_objects.pod("train", "n1", gpus=1))
    asked = pause(cluster, dry_run=True, allow_pods=True)["n1"]
    assert asked.error.code == "pause_unknown" and asked.pods == ("default/train",)
    assert asked.containers == outcome.containers
    # On a node without its pods it does not matter.
    cluster.objects["pods"] = []
    assert pause(cluster)["n1"].changed


def test_a_pause_for_another_reason_stays(cluster):
    pause(cluster, reason="upgrade")
    assert not pause(cluster)["n1"].changed
    assert not resume(cluster)["n1"].changed
    assert cluster.state() == ("upgrade", True)
    assert resume(cluster, reason="upgrade")["n1"].changed


def test_a_node_in_maintenance_is_paused_already_and_stays_so(cluster):
    """gpu_node_maintenance labels the node with a field manager of its own."""
    cluster.node()["metadata"]["labels"][PAUSE] = "maintenance"
    cluster.node()["spec"]["unschedulable"] = True
    cluster.objects["pods"] = [cluster_objects.pod("web", "n1")]
    assert not pause(cluster)["n1"].changed
    assert not resume(cluster)["n1"].changed
    assert cluster.state() == ("maintenance", True) and not cluster.applied


def test_the_next_labels_end_a_pause_that_was_left(cluster):
    pause(cluster)
    result = cluster.label()
    assert result.changed
    assert result.before["n1"]["labels"][PAUSE] == "mig" and result.before["n1"]["unschedulable"]
    assert "unschedulable" not in result.after["n1"]
    assert cluster.state() == (None, False)
    # And where somebody removed the label alone.
    pause(cluster)
    del cluster.node()["metadata"]["labels"][PAUSE]
    fields = cluster.node()["metadata"]["managedFields"][-1]["fieldsV1"]
    del fields["f:metadata"]["f:labels"][f"f:{PAUSE}"]
    assert cluster.label().changed and cluster.state() == (None, False)
    assert not cluster.label().changed


def test_hosts_without_a_node_and_servers_that_fail(cluster):
    outcome = pause(cluster, "elsewhere")
    assert outcome["elsewhere"].to_json()["node"] is None and failure(outcome) is None
    cluster.fails["patch", "nodes"] = KubeError("no right", status=403)
    outcome = pause(cluster, "n1", "n2")
    assert failure(outcome).cause == "no right; no right"


@pytest.mark.parametrize(
    ("affinity", "leaves"),
    [
        (away_from_paused(), True),
        (away_from_paused([{"key": "a", "operator": "Exists"}], []), True),
        ({}, False),
        ({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}, False),
    ],
)
def test_which_pods_leave(affinity, leaves):
    assert leaves_paused(affinity) is leaves
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if leaves:
        # One term without the rule is enough to stay.
        required["nodeSelectorTerms"].append({"matchExpressions": []})
        assert not leaves_paused(affinity)


ACTIONS = st.sampled_from(["pause", "resume", "cordon", "uncordon", "label", "pods", "no pods"])


@given(st.lists(ACTIONS, max_size=12))
@settings(max_examples=60, deadline=None)
def test_a_pause_is_taken_back_whatever_happened_in_between(actions):
    cluster = PauseCluster()
    cluster.label()
    by_hand = False
    for action in actions:
        spec = cluster.node()["spec"]
        if action == "pause":
            pause(cluster)
        elif action == "resume":
            resume(cluster)
        elif action == "label":
            cluster.label()
        elif action == "cordon" and not spec.get("unschedulable"):
            spec["unschedulable"], by_hand = True, True
        elif action == "uncordon" and by_hand:
            spec.pop("unschedulable", None)
            by_hand = False
        elif action == "pods":
            cluster.objects["pods"].append(cluster_objects.pod("train", "n1", gpus=1))
        elif action == "no pods":
            cluster.objects["pods"] = [
                one for one in cluster.objects["pods"] if one["metadata"]["name"] != "train"
            ]
    resume(cluster)
    assert cluster.state() == (None, by_hand)
    assert cluster.node()["metadata"]["labels"]["kubegpu.nodes/gpu"] == "nvidia"
    cluster.label()
    applied = len(cluster.applied)
    assert not cluster.label().changed and len(cluster.applied) == applied
