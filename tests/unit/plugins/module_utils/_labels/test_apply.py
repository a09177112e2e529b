# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is told where a node changes at the wrong moment. The cluster is a stand-in here.

The real one is in tests/integration/cluster.
"""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import Cluster, KubeError
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.errors import (
    FieldConflict,
    Server,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.apply import Labeller, Settings
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.options import read_requests
from ansible_collections.kubegpu.nodes.plugins.module_utils._labels.result import (
    failure,
    join_names,
)

GPU = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def unused(*_arguments):
    raise AssertionError


class StandinCluster(Cluster):
    """Nodes in memory; applies by one manager, and fails when it is told to."""

    def __init__(self, *names):
        super().__init__(unused, Server("https://kube"), sleep=lambda _seconds: None)
        self.nodes = {name: self.node(name) for name in names}
        self.failures = {}
        self.calls = []

    @staticmethod
    def node(name):
        metadata = {"name": name, "uid": name, "resourceVersion": "1", "labels": {"x": "y"}}
        metadata["managedFields"] = [{"manager": "kubelet", "operation": "Update"}]
        return {"metadata": metadata, "spec": {}, "status": {}}

    def list(self, path, **params):
        self.calls.append("list")
        selector = str(params.get("fieldSelector", "")).rpartition("=")[2]
        found = [item for name, item in self.nodes.items() if selector in ("", name)]
        return iter(copy.deepcopy(found))

    def _write(self, verb, method, path, body, params, dry_run, content_type=""):
        name = path.rpartition("/")[2]
        kind = "apply" if "apply" in content_type else "patch"
        self.calls.append(f"{kind} {name}")
        for error in self.failures.pop((kind, name), []):
            raise error
        data = copy.deepcopy(self.nodes[name])
        metadata = data["metadata"]
        if kind == "apply":
            labels = body["metadata"].get("labels") or {}
            metadata["labels"] = {"x": "y", **labels}
            entry = {"manager": "kubegpu.nodes", "operation": "Apply"}
            entry["fieldsV1"] = {"f:metadata": {"f:labels": {f"f:{label}": {} for label in labels}}}
            metadata["managedFields"] = [metadata["managedFields"][0], entry]
        else:
            metadata["annotations"] = body["metadata"]["annotations"]
            data["spec"]["taints"] = body["spec"]["taints"]
        if not dry_run:
            self.nodes[name] = data
        return copy.deepcopy(data)


def run(cluster, nodes, dry_run=False):
    return Labeller(cluster, Settings("kubegpu.nodes"), dry_run)(read_requests(nodes))


def test_what_an_attempt_before_did_is_told_too():
    cluster = StandinCluster("n1")
    cluster.failures["patch", "n1"] = [KubeError("changed", status=409)]
    result = run(cluster, {"n1": {"labels": {"a": "1"}, "taints": [GPU]}})
    # The labels were there at the second attempt.
    assert cluster.calls == ["list", "apply n1", "patch n1", "list", "patch n1"]
    assert result.before == {"n1": {}}
    assert result.after == {
        "n1": {"labels": {"a": "1"}, "taints": ["nvidia.com/gpu=present:NoSchedule"]}
    }


def test_labels_that_a_node_did_not_have_are_told():
    cluster = StandinCluster("n1")
    assert run(cluster, {"n1": {"labels": {"x": "y", "a": "1"}}}).nodes["n1"]["added"] == ["a"]
    again = run(cluster, {"n1": {"labels": {"x": "y", "a": "1", "b": "2"}}})
    assert again.nodes["n1"]["added"] == ["b"]
    unchanged = run(cluster, {"n1": {"labels": {"x": "y", "a": "1", "b": "2"}}})
    assert unchanged.nodes["n1"]["added"] == []
    assert run(cluster, {"n9": {"labels": {"a": "1"}}}).nodes["n9"]["added"] == []


def test_a_trial_shows_what_the_run_shows():
    request = {"n1": {"labels": {"a": "1"}, "taints": [GPU]}, "n2": {"labels": {"b": "2"}}}
    cluster = StandinCluster("n1", "n2")
    trial = run(cluster, request, dry_run=True)
    assert cluster.nodes["n1"] == cluster.node("n1")
    real = run(cluster, request)
    assert (trial.before, trial.after) == (real.before, real.after)
    assert trial.nodes == real.nodes


def test_a_node_that_is_gone_is_unknown():
    cluster = StandinCluster("n1", "n2")

    def gone():
        del cluster.nodes["n2"]
        return KubeError("uid", status=409)

    class Vanishing(list):
        def __iter__(self):
            yield gone()

    cluster.failures["apply", "n2"] = Vanishing()
    result = run(cluster, {name: {"labels": {"a": "1"}} for name in ("n1", "n2")})
    assert result.unknown == ["n2"]
    assert result.nodes["n2"]["node"] is None
    assert list(result.after) == ["n1"]
    assert failure(result) is None


def test_a_policy_that_refuses_one_node_does_not_stop_the_others():
    cluster = StandinCluster("n1", "n2")
    denied = KubeError("not on Fridays", status=403, reason="Denied")
    cluster.failures["apply", "n1"] = [denied]
    result = run(cluster, {name: {"labels": {"a": "1"}} for name in ("n1", "n2")})
    assert list(result.after) == ["n2"]
    assert result.errors == {"n1": denied}


def test_conflicts_are_told_beside_what_failed():
    cluster = StandinCluster("n1", "n2")
    owned = FieldConflict("metadata.labels.a", "argocd")
    cluster.failures["apply", "n1"] = [KubeError("owned", status=409, field_conflicts=(owned,))]
    cluster.failures["apply", "n2"] = [KubeError("not valid", status=422)]
    cause = failure(run(cluster, {name: {"labels": {"a": "1"}} for name in cluster.nodes}))["cause"]
    assert "could not be labelled: n2" in cause and "belongs to argocd" in cause


@pytest.mark.parametrize("status", [401, 403, None])
def test_what_is_wrong_for_all_is_asked_for_once(status):
    cluster = StandinCluster("n1", "n2", "n3")
    cluster.failures["apply", "n1"] = [KubeError("no", status=status)]
    with pytest.raises(KubeError, match="no"):
        run(cluster, {name: {"labels": {"a": "1"}} for name in ("n1", "n2", "n3")})
    assert cluster.calls == ["list", "apply n1"]


def test_what_is_wrong_for_one_is_told_and_the_others_are_done():
    cluster = StandinCluster("n1", "n2", "n3")
    cluster.failures["apply", "n2"] = [KubeError("not valid", status=422, next_step="Correct it.")]
    result = run(cluster, {name: {"labels": {"a": "1"}} for name in ("n1", "n2", "n3")})
    assert sorted(result.after) == ["n1", "n3"]
    assert failure(result) == {
        "cause": "These nodes could not be labelled: n2. The first of them: not valid",
        "evidence": "",
        "next_step": "Correct it.",
    }


def test_a_conflict_that_only_the_server_saw_is_one():
    cluster = StandinCluster("n1")
    conflict = FieldConflict("metadata.labels.example.com/a", "argocd")
    cluster.failures["apply", "n1"] = [KubeError("owned", status=409, field_conflicts=(conflict,))]
    result = run(cluster, {"n1": {"labels": {"example.com/a": "1"}}})
    [found] = result.conflicts
    assert (found.kind, found.name, found.owner) == ("label", "example.com/a", "argocd")
    assert "argocd" in failure(result)["cause"]


def test_many_names_are_counted():
    assert join_names(["a", "b"]) == "a, b"
    assert (
        join_names([str(number) for number in range(12)])
        == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"
    )


def test_labels_that_only_go_are_a_change():
    cluster = StandinCluster("n1")
    run(cluster, {"n1": {"labels": {"a": "1"}}})
    result = run(cluster, {"n1": {}})
    assert result.changed and result.before == {"n1": {"labels": {"a": "1"}}}
    assert not run(cluster, {"n1": {}}).changed


def test_a_host_that_is_no_node_is_warned_of():
    result = run(StandinCluster("n1"), {"n1": {"labels": {"a": "1"}}, "n9": {"labels": {"a": "1"}}})
    [warning] = [text for text in result.warnings if "not nodes of the cluster" in text]
    assert "n9" in warning and result.unknown == ["n9"]
    assert "Next step: " in warning and "set gpu_node_labels_node_name" in warning


def test_a_cluster_that_has_none_of_the_hosts_is_an_error():
    """A wrong context: nothing may be deployed there. In check mode they may still join."""
    asked = {"n7": {"labels": {"a": "1"}}, "n9": {"labels": {"a": "1"}}, "cpu": {}}
    result = run(StandinCluster("n1"), asked)
    wrong = failure(result)
    assert wrong["cause"] == "None of these hosts is a node of the cluster https://kube: n7, n9."
    assert "right cluster" in wrong["next_step"] and result.warnings == []
    predicted = run(StandinCluster("n1"), asked, True)
    assert failure(predicted) is None
    assert any(wrong["cause"] in text for text in predicted.warnings)
    assert failure(run(StandinCluster("n1"), {"cpu": {}})) is None


@pytest.mark.parametrize(
    ("dry_run", "words"), [(False, "were labelled"), (True, "would be labelled")]
)
def test_what_was_labelled_in_check_mode_would_be(dry_run, words):
    cluster = StandinCluster("n1")
    cluster.nodes["n1"]["status"] = {"conditions": [{"type": "Ready", "status": "False"}]}
    asked = {"n1": {"labels": {"a": "1"}}, "n9": {"labels": {"a": "1"}}}
    unknown, not_ready = run(cluster, asked, dry_run).warnings
    assert f"The others {words}." in unknown
    assert not_ready == f"These nodes are not ready: n1. They {words}."


def with_id(machine_id):
    return {"status": {"nodeInfo": {"machineID": machine_id}}}


def test_a_host_that_may_be_another_node_is_refused_and_the_others_are_done():
    """Root of gpu7 has cp1's machine id; labels and taints would go there."""
    cluster = StandinCluster("cp1", "gpu7", "gpu8")
    for name, id_ in (("cp1", "a" * 32), ("gpu7", "b" * 32), ("gpu8", "c" * 32)):
        cluster.nodes[name].update(with_id(id_))
    request = {"labels": {"kubegpu.nodes/gpu": "nvidia"}, "taints": [GPU]}
    requests = {
        "gpu7": {"machine_id": "a" * 32, **request},
        "gpu8": {"machine_id": "c" * 32, **request},
    }
    for dry_run in (True, False):
        result = run(cluster, requests, dry_run=dry_run)
        assert list(result.after) == ["gpu8"]
        assert result.nodes["gpu7"]["node"] is None and result.nodes["gpu7"]["taints"] == []
        assert list(result.refused) == ["gpu7"] and result.unknown == []
        wrong = failure(result)
        assert wrong["cause"].startswith(
            "Which node these hosts are is not certain: gpu7. The first of them: gpu7 has the "
            "machine id of the node cp1"
        )
        assert "/etc/machine-id" in wrong["next_step"]
    assert not any("cp1" in call or "gpu7" in call for call in cluster.calls)


def test_what_is_refused_does_not_hide_what_failed():
    cluster = StandinCluster("n1", "n2")
    owned = FieldConflict("metadata.labels.a", "argocd")
    cluster.failures["apply", "n1"] = [KubeError("owned", status=409, field_conflicts=(owned,))]
    cluster.failures["apply", "n2"] = [KubeError("not valid", status=422)]
    request = {"labels": {"a": "1"}}
    both = {"x": {"name": "n1", **request}, "y": {"name": "n1", **request}}
    result = run(cluster, {"n1": request, "n2": request})
    cause = failure(result)["cause"]
    assert "could not be labelled: n2. The first of them: not valid" in cause
    assert cause.endswith("and belongs to argocd (requested: '1')")
    cluster.failures["apply", "n2"] = [KubeError("not valid", status=422)]
    cause = failure(run(cluster, {**both, "n2": {"labels": {"a": "2"}}}))["cause"]
    assert "not certain: x, y" in cause and "could not be labelled: n2" in cause
