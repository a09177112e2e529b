# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Labels and taints in a real API server: what is set, what stays, what is refused and how."""

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
import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import (
    Cluster,
    Connection,
    KubeError,
)
from ansible_collections.kubegpu.nodes.plugins.modules import node_gpu_label
from tests.integration.cluster import rights
from tests.integration.cluster.labelling import refused
from tests.testbed import cluster_made
from tests.testbed.cluster_control import ACCOUNT
from tests.tools.environments import collections
from tests.unit.fixtures import node_facts
from tests.unit.module_process import predicted, run_module

NODES = "/api/v1/nodes"
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


@pytest.fixture
def nodes(api, cluster):
    """Three nodes like a kubelet's; gone after the test."""
    names = ["label-a", "label-b", "label-c"]
    cluster_made.create(api, [cluster_made.node(name) for name in names])
    for name in names:
        # The API server gives a new node the taint not-ready, which a controller would take away.
        cluster.patch(f"{NODES}/{name}", {"spec": {"taints": None}}, field_manager="controller")
    yield names
    left = [item["metadata"]["name"] for item in api.get(NODES)["items"]]
    cluster_made.delete(api, left)


@pytest.fixture
def cluster(api):
    return Cluster.connect(Connection(kubeconfig=str(api.kubeconfig)))


@pytest.fixture
def label(api):
    """The module as an administrator; the check before each run has to say the same."""

    def run(wishes, **options):
        return predicted(
            node_gpu_label.main, {"kubeconfig": str(api.kubeconfig), "nodes": wishes, **options}
        )

    return run


def look(api, name):
    return api.get(f"{NODES}/{name}")


def labels_of(api, name):
    own = ("kubernetes.io/hostname", "kubernetes.io/os")
    labels = look(api, name)["metadata"]["labels"]
    return {key: value for key, value in labels.items() if key not in own}


def taints_of(api, name):
    found = look(api, name)["spec"].get("taints") or []
    return [f"{item['key']}={item.get('value', '')}:{item['effect']}" for item in found]


# What is set, and what stays


def test_s16_labels_annotations_and_taints_in_one_call(api, nodes, label):
    wishes = {
        # By machine id, under the name of the inventory.
        "gpu1.example.com": {
            "machine_id": cluster_made.machine_id("label-a"),
            "labels": {"kubegpu.nodes/gpu": "nvidia", "accelerator": "nvidia-tesla-k80"},
            "annotations": {"example.com/why": "a text: with all that it may have"},
            "taints": [GPU_TAINT],
        },
        "label-b": {"labels": {"accelerator": "nvidia-tesla-p100"}},
        "web1.example.com": {"machine_id": "0" * 32},
    }
    before = look(api, "label-c")
    first = label(wishes)
    assert first["changed"]
    assert first["requests"] == {"list": 1, "patch": 3}
    assert {key: row["node"] for key, row in first["nodes"].items()} == {
        "gpu1.example.com": "label-a",
        "label-b": "label-b",
        "web1.example.com": None,
    }
    assert first["nodes"]["gpu1.example.com"]["found_by"] == "machine_id"
    # A machine of the inventory that is no node and shall have nothing is no news.
    assert first["unknown"] == []
    assert labels_of(api, "label-a") == wishes["gpu1.example.com"]["labels"]
    assert labels_of(api, "label-b") == {"accelerator": "nvidia-tesla-p100"}
    assert "nvidia.com/gpu=present:NoSchedule" in taints_of(api, "label-a")
    annotations = look(api, "label-a")["metadata"]["annotations"]
    assert annotations["example.com/why"] == "a text: with all that it may have"
    assert look(api, "label-c") == before
    second = label(wishes)
    assert not second["changed"]
    assert second["requests"] == {"list": 1, "patch": 0}
    assert second["diff"] == {"before": {}, "after": {}}


def test_a_stale_label_of_ours_goes_and_those_of_others_stay(api, nodes, label):
    label({"label-a": {"labels": {"ours": "1", "stale": "1"}, "annotations": {"a": "b"}}})
    api.kubectl("label", "node", "label-a", "theirs=2")
    answer = label({"label-a": {"labels": {"ours": "1"}}})
    assert answer["diff"]["before"]["label-a"]["labels"] == {"ours": "1", "stale": "1"}
    assert answer["diff"]["after"]["label-a"]["labels"] == {"ours": "1"}
    assert labels_of(api, "label-a") == {"ours": "1", "theirs": "2"}
    label({"label-a": {}})
    assert labels_of(api, "label-a") == {"theirs": "2"}
    assert not label({"label-a": {}})["changed"]


def test_a_label_that_somebody_else_sets_too_stays_when_we_go(api, nodes, label, cluster):
    label({"label-a": {"labels": {"shared": "1"}}})
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "label-a", "labels": {"shared": "1"}},
    }
    cluster.apply(f"{NODES}/label-a", body, field_manager="argocd")
    answer = label({"label-a": {}})
    assert answer["changed"]
    assert answer["diff"]["after"]["label-a"]["labels"] == {"shared": "1 (of argocd)"}
    assert labels_of(api, "label-a") == {"shared": "1"}


def test_a_conflict_names_the_owner_and_all_else_is_done(api, nodes, label):
    label({"label-a": {"labels": {"first": "1"}}})
    api.kubectl("label", "node", "label-a", "accelerator=nvidia-tesla-k80")
    wish = {
        "label-a": {"labels": {"accelerator": "nvidia-tesla-p100", "other": "2"}},
        "label-b": {"labels": {"accelerator": "nvidia-tesla-p100"}},
    }
    answer = label(wish)
    assert answer["failed"]
    assert answer["conflicts"] == [
        {
            "node": "label-a",
            "kind": "label",
            "name": "accelerator",
            "label": "accelerator",
            "owner": "kubectl-label",
            "value": "nvidia-tesla-k80",
            "wanted": "nvidia-tesla-p100",
        }
    ]
    assert (
        "label-a: label accelerator is 'nvidia-tesla-k80' and belongs to kubectl-label"
        in (answer["msg"])
    )
    assert "force_conflicts" in answer["next_step"]
    assert labels_of(api, "label-a") == {"accelerator": "nvidia-tesla-k80", "other": "2"}
    assert labels_of(api, "label-b") == {"accelerator": "nvidia-tesla-p100"}
    # It stays a failure, and nothing is asked for in vain.
    again = label(wish)
    assert again["failed"] and not again["changed"]
    assert again["requests"]["patch"] == 0
    forced = label(wish, force_conflicts=True)
    assert forced["diff"]["before"]["label-a"]["labels"]["accelerator"] == (
        "nvidia-tesla-k80 (of kubectl-label)"
    )
    assert labels_of(api, "label-a")["accelerator"] == "nvidia-tesla-p100"
    assert not label(wish)["changed"]


def test_a_label_from_before_the_first_apply_is_somebody_elses_too(api, nodes, label, cluster):
    cluster_made.create(api, [cluster_made.node("label-d", {"accelerator": "by-hand"})])
    # Some clusters are kept free of them; the server then has a name of its own for the owner.
    cluster.patch(f"{NODES}/label-d", {"metadata": {"managedFields": [{}]}})
    assert "managedFields" not in look(api, "label-d")["metadata"]
    answer = label({"label-d": {"labels": {"accelerator": "other", "more": "1"}}})
    assert [item["owner"] for item in answer["conflicts"]] == ["before-first-apply"]
    assert labels_of(api, "label-d") == {"accelerator": "by-hand", "more": "1"}


def test_foreign_taints_are_kept_and_ours_go(api, nodes, label):
    api.kubectl("taint", "node", "label-a", "example.com/theirs=x:NoExecute")
    theirs = taints_of(api, "label-a")
    soft = {"key": "nvidia.com/gpu", "effect": "PreferNoSchedule"}
    label({"label-a": {"taints": [GPU_TAINT, soft]}})
    assert taints_of(api, "label-a") == [
        *theirs,
        "nvidia.com/gpu=present:NoSchedule",
        "nvidia.com/gpu=:PreferNoSchedule",
    ]
    assert not label({"label-a": {"taints": [GPU_TAINT, soft]}})["changed"]
    # Another value is ours to set; what is no longer wished goes.
    label({"label-a": {"taints": [{**GPU_TAINT, "value": "yes"}]}})
    assert taints_of(api, "label-a") == [*theirs, "nvidia.com/gpu=yes:NoSchedule"]
    # With labels in the same run, in check mode too.
    answer = label({"label-a": {"labels": {"x": "1"}, "taints": [GPU_TAINT]}})
    assert answer["diff"]["after"]["label-a"] == {
        "labels": {"x": "1"},
        "taints": ["example.com/theirs=x:NoExecute", "nvidia.com/gpu=present:NoSchedule"],
    }
    label({"label-a": {}})
    assert taints_of(api, "label-a") == theirs
    metadata = look(api, "label-a")["metadata"]
    assert "kubegpu.nodes/taints" not in metadata.get("annotations", {})


def test_a_taint_of_somebody_else_under_our_key_is_a_conflict(api, nodes, label):
    api.kubectl("taint", "node", "label-a", "nvidia.com/gpu=other:NoSchedule")
    answer = label({"label-a": {"taints": [GPU_TAINT], "labels": {"x": "1"}}})
    assert answer["failed"]
    assert [(item["kind"], item["name"], item["value"]) for item in answer["conflicts"]] == [
        ("taint", "nvidia.com/gpu:NoSchedule", "other")
    ]
    assert taints_of(api, "label-a") == ["nvidia.com/gpu=other:NoSchedule"]
    assert labels_of(api, "label-a") == {"x": "1"}
    label({"label-a": {"taints": [GPU_TAINT], "labels": {"x": "1"}}}, force_conflicts=True)
    assert taints_of(api, "label-a") == ["nvidia.com/gpu=present:NoSchedule"]


def test_a_taint_that_is_there_already_stays_when_we_go(api, nodes, label):
    api.kubectl("taint", "node", "label-a", "nvidia.com/gpu=present:NoSchedule")
    assert not label({"label-a": {"taints": [GPU_TAINT]}})["changed"]
    assert not label({"label-a": {}})["changed"]
    assert taints_of(api, "label-a") == ["nvidia.com/gpu=present:NoSchedule"]


def test_a_taint_that_comes_in_between_is_not_lost(api, nodes, cluster):
    """The patch carries the version that was read; on 409 the list is read again."""
    stop = threading.Event()
    # One thread keeps changing the node's taints, as its controllers do.
    busy = Cluster.connect(Connection(kubeconfig=str(api.kubeconfig)))
    written = []

    def disturb():
        count = 0
        while not stop.is_set() and count < 200:
            now = busy.get(f"{NODES}/label-a")
            foreign = {"key": f"example.com/t{count}", "effect": "PreferNoSchedule"}
            others = [
                item for item in now["spec"].get("taints") or [] if item["key"] == "nvidia.com/gpu"
            ]
            body = {
                "metadata": {"resourceVersion": now["metadata"]["resourceVersion"]},
                "spec": {"taints": [*others, foreign]},
            }
            try:
                busy.patch(f"{NODES}/label-a", body, field_manager="controller")
            except KubeError as error:
                assert error.status == 409
                continue
            written.append(foreign["key"])
            count += 1
            time.sleep(0.02)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for value in ("a", "b", "c", "d"):
            wish = {"label-a": {"taints": [{**GPU_TAINT, "value": value}]}}
            arguments = {"kubeconfig": str(api.kubeconfig), "nodes": wish}
            answer = run_module(node_gpu_label.main, arguments)
            assert not answer.get("failed"), answer
    finally:
        stop.set()
        thread.join()
    assert written
    assert sorted(taints_of(api, "label-a")) == sorted(
        ["nvidia.com/gpu=d:NoSchedule", f"{written[-1]}=:PreferNoSchedule"]
    )


def test_labels_of_feature_discovery_are_left_to_it(api, nodes, label, cluster):
    wish = {"label-a": {"labels": {"nvidia.com/gpu.count": "2", "kubegpu.nodes/gpu": "nvidia"}}}
    answer = label(wish)
    assert not answer["feature_discovery"]
    assert labels_of(api, "label-a")["nvidia.com/gpu.count"] == "2"
    # It comes, and says what it finds, on another node first.
    patch = {"metadata": {"labels": {"nvidia.com/gfd.timestamp": "1763710000"}}}
    cluster.patch(f"{NODES}/label-b", patch, field_manager="nfd-master")
    answer = label(wish)
    assert answer["feature_discovery"]
    assert answer["left_to_feature_discovery"] == ["nvidia.com/gpu.count"]
    assert labels_of(api, "label-a") == {"kubegpu.nodes/gpu": "nvidia"}
    answer = label(wish, feature_discovery="absent")
    assert labels_of(api, "label-a")["nvidia.com/gpu.count"] == "2"
    answer = label(wish, feature_discovery="present")
    assert labels_of(api, "label-a") == {"kubegpu.nodes/gpu": "nvidia"}


# Which nodes


def test_unknown_and_not_ready_nodes_are_listed_and_the_rest_is_done(api, nodes, label):
    cluster_made.create(api, [cluster_made.node("label-down", ready=False)])
    wish = {"labels": {"x": "1"}}
    answer = label({"gone.example.com": wish, "label-down": wish, "label-a": wish})
    assert not answer.get("failed")
    assert answer["unknown"] == ["gone.example.com"]
    assert answer["not_ready"] == ["label-down"]
    assert answer["nodes"]["label-down"]["ready"] is False
    assert labels_of(api, "label-a") == labels_of(api, "label-down") == {"x": "1"}
    said = json.dumps(answer["warnings"])
    assert "gone.example.com" in said and "label-down" in said


def test_a_host_with_the_machine_id_of_another_node_moves_nothing_there(api, nodes, label):
    """Root of label-a took over label-c's id, to have its labels and a NoExecute taint go there."""
    evict = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoExecute"}
    wish = {"labels": {"kubegpu.nodes/gpu": "nvidia"}, "taints": [evict]}
    wishes = {
        "label-a": {"machine_id": cluster_made.machine_id("label-c"), **wish},
        "label-b": {"machine_id": cluster_made.machine_id("label-b"), **wish},
    }
    before = [look(api, name) for name in ("label-a", "label-c")]
    answer = label(wishes)
    assert answer["failed"] and list(answer["refused"]) == ["label-a"]
    assert "has the machine id of the node label-c" in answer["refused"]["label-a"]
    # Neither there nor anywhere else; the other host is done.
    assert [look(api, name) for name in ("label-a", "label-c")] == before
    assert labels_of(api, "label-b") == {"kubegpu.nodes/gpu": "nvidia"}
    assert taints_of(api, "label-b") == ["nvidia.com/gpu=present:NoExecute"]
    # The node whose id it is can be in the run too, and is served.
    wishes["label-c"] = {"machine_id": cluster_made.machine_id("label-c"), "labels": {"x": "1"}}
    answer = label(wishes)
    assert list(answer["refused"]) == ["label-a"]
    assert labels_of(api, "label-c") == {"x": "1"} and taints_of(api, "label-c") == []
    # Nor can it take away there what is ours.
    label({"label-a": {"machine_id": cluster_made.machine_id("label-c")}})
    assert labels_of(api, "label-c") == {"x": "1"}


def test_a_duplicate_machine_id_fails_the_hosts_that_it_concerns(api, nodes, label, cluster):
    same = {"status": {"nodeInfo": {"machineID": cluster_made.machine_id("label-a")}}}
    cluster.patch(f"{NODES}/label-b/status", same, kind="strategic")
    before = look(api, "label-a")
    wishes = {
        "gpu1": {"machine_id": cluster_made.machine_id("label-a"), "labels": {"x": "1"}},
        "label-c": {"labels": {"x": "1"}},
    }
    answer = label(wishes)
    assert answer["failed"] and list(answer["refused"]) == ["gpu1"]
    assert "The nodes label-a and label-b have the same machine id, that of gpu1" in answer["cause"]
    assert "systemd-machine-id-setup" in answer["next_step"]
    assert look(api, "label-a") == before
    assert labels_of(api, "label-c") == {"x": "1"}
    # Who does not ask for one of them is not bothered; who has its name is told apart.
    del wishes["gpu1"]
    wishes["label-a"] = {"machine_id": cluster_made.machine_id("label-a"), "labels": {"x": "1"}}
    answer = label(wishes)
    assert not answer.get("failed") and labels_of(api, "label-a") == {"x": "1"}
    assert "label-a and label-b" in json.dumps(answer["warnings"])


def test_two_hosts_with_one_machine_id_or_one_node_are_named(api, nodes, label):
    one = cluster_made.machine_id("label-a")
    wish = {"labels": {"x": "1"}}
    answer = refused(
        api, {"gpu1": {"machine_id": one, **wish}, "gpu2": {"machine_id": one, **wish}}
    )
    assert "The hosts gpu1 and gpu2 have the same machine id" in answer["cause"]
    assert sorted(answer["refused"]) == ["gpu1", "gpu2"] and labels_of(api, "label-a") == {}
    answer = label({"gpu1": {"machine_id": one, "labels": {"y": "1"}}, "label-a": wish})
    assert "The hosts gpu1 and label-a are both the node label-a" in answer["refused"]["gpu1"]
    # The one that has the node's name is it.
    assert labels_of(api, "label-a") == {"x": "1"}


def test_a_node_that_is_deleted_meanwhile_is_not_made_anew(api, nodes, cluster):
    data = cluster.get(f"{NODES}/label-b")
    cluster_made.delete(api, ["label-b"])
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "label-b", "uid": data["metadata"]["uid"], "labels": {"x": "1"}},
    }
    with pytest.raises(KubeError) as caught:
        cluster.apply(f"{NODES}/label-b", body)
    assert caught.value.status == 409
    assert cluster.get(f"{NODES}/label-b") is None


def test_lists_come_in_pages(api, nodes, cluster):
    before = dict(cluster.requests)
    found = [item["metadata"]["name"] for item in cluster.list(NODES, limit=1)]
    assert sorted(found) == nodes
    assert cluster.requests["list"] - before.get("list", 0) == 3


@pytest.mark.full(why="more nodes than test_lists_come_in_pages, whose pages are of one node")
def test_more_than_a_page_of_nodes(api, label):
    names = cluster_made.create_many(api, 512, "page")
    try:
        wishes = {name: {"labels": {"x": "1"}} for name in names[-20:]}
        answer = label(wishes)
        # The last ones are on the second page.
        assert answer["requests"] == {"list": 2, "patch": 20}
        assert answer["unknown"] == []
        assert not label(wishes)["changed"]
    finally:
        cluster_made.delete(api, names)


# Values that the server would refuse are refused before


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"labels": {"a b": "1"}}, "'a b'"),
        ({"labels": {"a": "Tesla P100"}}, "a is 'Tesla P100'"),
        ({"labels": {"a": "x" * 64}}, "a is 'xxx"),
        ({"taints": [{"key": "a", "effect": "Never"}]}, "taint"),
        ({"lables": {}}, "lables"),
        ({"annotations": {"kubegpu.nodes/taints": "x"}}, "kubegpu.nodes/taints"),
    ],
)
def test_what_is_not_valid_is_told_before_anything_is_asked(api, wish, said):
    answer = refused(api, {"label-a": wish})
    assert said in answer["msg"]
    assert "label-a" in answer["msg"]


# Rights


WISH = {"label-a": {"labels": {"x": "1"}, "annotations": {"a": "b"}, "taints": [GPU_TAINT]}}


def test_the_shipped_rights_are_enough(api, nodes, account):
    answer = predicted(node_gpu_label.main, {"nodes": WISH, **account})
    assert not answer.get("failed"), answer
    assert labels_of(api, "label-a") == {"x": "1"}
    answer = predicted(node_gpu_label.main, {"nodes": {"label-a": {}}, **account})
    assert not answer.get("failed"), answer
    assert labels_of(api, "label-a") == {}
    # The token is in nothing that comes back.
    assert account["api_key"] not in json.dumps(answer)


@pytest.mark.full("nodes-patch", why="another right is left out")
@pytest.mark.parametrize(("part", "verb"), [("base", "list"), ("nodes", "patch")])
def test_no_right_can_be_left_out(api, nodes, account, part, verb):
    less = rights.less(part, "ClusterRole", "nodes", verb)
    api.kubectl("apply", "-f", "-", stdin=json.dumps(less))
    try:
        wait_until(lambda: may(api, verb) == "no")
        answer = refused(api, WISH, **account)
    finally:
        rights.apply(api, "base", "nodes")
        wait_until(lambda: may(api, verb) == "yes")
    assert answer["cause"].startswith(
        f"The right '{verb}' on 'nodes' in the whole cluster is missing: the user {ACCOUNT}"
    )
    rule = f'{{apiGroups: [""], resources: ["nodes"], verbs: ["{verb}"]}}'
    assert rule in answer["next_step"]
    assert labels_of(api, "label-a") == {}


def may(api, verb):
    return api.kubectl("auth", "can-i", verb, "nodes", f"--as={ACCOUNT}", check=False).split()[0]


def wait_until(condition, seconds=180):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_missing_right_is_asked_for_once(api, nodes, tmp_path):
    path = api.authority.kubeconfig(tmp_path / "reader", api.server, "reader")
    manifest = [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "reader"},
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "reader"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "reader",
            },
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}
            ],
        },
    ]
    for item in manifest:
        api.kubectl("apply", "-f", "-", stdin=json.dumps(item))
    wishes = {name: {"labels": {"x": "1"}} for name in nodes}
    wait_until(lambda: "'patch'" in refused(api, wishes, kubeconfig=str(path))["msg"])
    # Who may list needs no more where nothing differs.
    arguments = {"kubeconfig": str(path), "nodes": {name: {} for name in nodes}}
    assert not run_module(node_gpu_label.main, arguments).get("failed")


# The role


PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.set_fact:
        gpu_node: "{{ facts }}"
        cacheable: true
    - ansible.builtin.include_role:
        name: kubegpu.nodes.gpu_node_labels
        tasks_from: "{{ entry | default('main') }}"
    - ansible.builtin.copy:
        content: "{{ gpu_node_labels_result | to_json }}"
        dest: "{{ answer }}"
      check_mode: false
      delegate_to: localhost
      run_once: true
"""


class Play:
    """The role on hosts that are facts, with the inventory's names, not the nodes'."""

    def __init__(self, folder, api, machines):
        self.folder = folder
        hosts = {
            name: {"ansible_connection": "local", "facts": facts}
            for name, facts in machines.items()
        }
        variables = {"kubegpu_kube": {"kubeconfig": str(api.kubeconfig)}}
        inventory = {"all": {"hosts": hosts, "vars": variables}}
        (folder / "inventory.yml").write_text(yaml.safe_dump(inventory))
        (folder / "play.yml").write_text(PLAY)

    def __call__(self, *arguments, warnings=0, **variables):
        done = self.run(*arguments, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr.count("[WARNING]") == warnings, done.stderr
        return json.loads((self.folder / "answer.json").read_text()), done.stdout

    def run(self, *arguments, **variables):
        variables["answer"] = str(self.folder / "answer.json")
        programs = Path(sys.executable).parent
        argv = [
            str(programs / "ansible-playbook"), "-i", "inventory.yml", "play.yml", *arguments,
            "--extra-vars", json.dumps(variables),
        ]  # fmt: skip
        return subprocess.run(
            argv,
            cwd=self.folder,
            env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(collections())},
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )


@pytest.fixture
def play(api, nodes, tmp_path):
    p100 = {**node_facts.P4, "product": "Tesla P100-PCIE-16GB", "device_id": "15f8"}
    second = {**p100, "address": "0000:00:06.0"}
    machines = {
        "gpu1.example.com": node_facts.node(
            os__machine_id=cluster_made.machine_id("label-a"), gpus=[p100, second]
        ),
        "gpu2.example.com": node_facts.node(gpus=[node_facts.P4], os__machine_id=""),
        "web1.example.com": node_facts.node(
            os__machine_id=cluster_made.machine_id("label-c"), gpus=[]
        ),
    }
    play = Play(tmp_path, api, machines)
    # A host whose node cannot be found by machine id.
    inventory = yaml.safe_load((tmp_path / "inventory.yml").read_text())
    inventory["all"]["hosts"]["gpu2.example.com"].update(
        gpu_node_labels_node_name="label-b", nvidia_device_plugin_config="shared"
    )
    (tmp_path / "inventory.yml").write_text(yaml.safe_dump(inventory))
    return play


@pytest.mark.full(why="the role, which test_site runs too, on more nodes")
def test_s16_the_role_labels_from_what_is_in_the_nodes_in_one_call(api, play):
    variables = {"gpu_node_labels_taints": [GPU_TAINT]}
    checked, _screen = play("--check", **variables)
    assert labels_of(api, "label-a") == {}
    answer, _screen = play(**variables)
    assert checked["changed"] and answer["changed"]
    assert checked["requests"] == answer["requests"] == {"list": 1, "patch": 4}
    assert {host: row["node"] for host, row in answer["nodes"].items()} == {
        "gpu1.example.com": "label-a",
        "gpu2.example.com": "label-b",
        "web1.example.com": "label-c",
    }
    assert labels_of(api, "label-a") == {
        "accelerator": "nvidia-tesla-p100",
        "kubegpu.nodes/gpu": "nvidia",
        "kubegpu.nodes/gpu-nvidia": "true",
        "kubegpu.nodes/gpu.count": "2",
        "kubegpu.nodes/gpu.generation": "pascal",
        "kubegpu.nodes/gpu.product": "Tesla-P100-PCIE-16GB",
    }
    assert labels_of(api, "label-b")["accelerator"] == "nvidia-tesla-p4"
    assert labels_of(api, "label-b")["nvidia.com/device-plugin.config"] == "shared"
    assert labels_of(api, "label-c") == {}
    assert taints_of(api, "label-a") == ["nvidia.com/gpu=present:NoSchedule"]
    assert taints_of(api, "label-c") == []
    again, _screen = play(**variables)
    assert not again["changed"]
    assert again["requests"] == {"list": 1, "patch": 0}
    torn, _screen = play(entry="teardown")
    assert torn["changed"]
    assert all(labels_of(api, f"label-{name}") == {} for name in "abc")
    assert taints_of(api, "label-a") == []


@pytest.mark.full(why="the refusal of test_s16_the_role_...'s options; one more playbook run")
def test_hosts_of_two_clusters_are_named_and_nothing_is_asked(api, play):
    path = play.folder / "inventory.yml"
    inventory = yaml.safe_load(path.read_text())
    other = {"kubeconfig": "/elsewhere"}
    inventory["all"]["hosts"]["web1.example.com"]["kubegpu_kube"] = other
    path.write_text(yaml.safe_dump(inventory))
    done = play.run()
    assert done.returncode != 0
    assert "gpu1.example.com and web1.example.com are not of one cluster" in done.stdout
    assert labels_of(api, "label-a") == {}


@pytest.mark.full(why="the role's plan next to its check mode in test_s16_the_role_...")
def test_the_roles_plan_changes_nothing(api, play):
    before = [look(api, f"label-{name}") for name in "abc"]
    answer, screen = play("--diff", entry="plan")
    assert answer["changed"]
    assert "nvidia-tesla-p100" in screen
    assert [look(api, f"label-{name}") for name in "abc"] == before


@pytest.mark.full(
    why="the role's side of test_a_host_with_the_machine_id_...; one more playbook run"
)
def test_the_role_fails_the_host_that_may_be_another_node_and_no_other(api, play):
    path = play.folder / "inventory.yml"
    inventory = yaml.safe_load(path.read_text())
    hosts = inventory["all"]["hosts"]
    # gpu2's node is label-b; it says that it is label-c, which is web1's.
    hosts["gpu2.example.com"]["facts"]["os"]["machine_id"] = cluster_made.machine_id("label-c")
    del hosts["web1.example.com"]
    path.write_text(yaml.safe_dump(inventory))
    done = play.run()
    assert done.returncode != 0
    recap = done.stdout.partition("PLAY RECAP")[2]
    assert re.search(r"gpu1\.example\.com .*failed=0", recap), done.stdout
    assert re.search(r"gpu2\.example\.com .*failed=1", recap), done.stdout
    assert "has the machine id of the node label-c" in done.stdout
    assert labels_of(api, "label-a")["kubegpu.nodes/gpu"] == "nvidia"
    assert labels_of(api, "label-b") == labels_of(api, "label-c") == {}
