# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""playbooks/files/rbac.yml: with its token no right is missing, and each one of them is used.

What the playbooks ask of the API server, on one of this test's own, without kubelets. Its audit log
says which rights were used. The nodes are made; a stand-in ends the pods that were deleted.
test_site.py has the same token on a real cluster.
"""

from __future__ import annotations

import pytest
import yaml

from ansible_collections.kubegpu.nodes.plugins.modules import (
    gpu_cluster_info,
    gpu_node_maintenance,
    gpu_test_pods,
)
from tests.integration.cluster import rights
from tests.integration.cluster.own_plays import GROUPS, run_play
from tests.integration.cluster.workloads import GPU, Pods, admin, wait_until
from tests.testbed import cluster_made
from tests.testbed.cluster_control import ACCOUNT, ControlPlane
from tests.tools.environments import collections
from tests.unit.fixtures.kernel_gpus import amd_node, intel_node
from tests.unit.fixtures.node_facts import node
from tests.unit.fixtures.rights import allows, lacking, part_names, rights_of
from tests.unit.module_process import run_module

pytestmark = pytest.mark.full(
    why="test_site.py has the token on a cluster, test_rights.py the file"
)

BOTH, INTEL = "rights-both", "rights-intel"
FACTS = {
    BOTH: {**amd_node(), "gpus": [*node()["gpus"], *amd_node()["gpus"]]},
    INTEL: intel_node("xe"),
}
OFFERS = {BOTH: {GPU: "1", "amd.com/gpu": "2"}, INTEL: {"gpu.intel.com/xe": "1"}}
SITE = """
- import_playbook: kubegpu.nodes.parts.cluster_nodes
"""
# The part of the playbook teardown that speaks to the cluster.
TEARDOWN = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.import_role:
        name: kubegpu.nodes.gpu_verify
        tasks_from: foreign_nodes
    - ansible.builtin.import_role:
        name: kubegpu.nodes.gpu_node_labels
        tasks_from: teardown
    - ansible.builtin.import_role:
        name: kubegpu.nodes.gpu_monitoring
        tasks_from: teardown
    - ansible.builtin.import_tasks: {folder}/teardown_device_plugins.yml
    - ansible.builtin.import_role:
        name: kubegpu.nodes.gpu_verify
        tasks_from: teardown
"""
SLICING = {"sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}}}
MPS = {"sharing": {"mps": {"resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}}}
# Options with which most objects are made.
WHOLE = {
    "gpu_node_labels_taints": [{"key": "kubegpu.nodes/gpu", "effect": "NoSchedule"}],
    "nvidia_device_plugin_configs": {"shared": SLICING, "mps": MPS},
    "nvidia_device_plugin_feature_discovery": True,
    "nvidia_device_plugin_feature_discovery_api": True,
    "nvidia_device_plugin_pods": {"pull_secret": "mirror"},
    "nvidia_device_plugin_pull_secret_login": {
        "registry": "mirror.example", "username": "robot", "password": "x",
    },
    "gpu_monitoring_enabled": True,
    "gpu_monitoring_pod_labels": ["app"],
}  # fmt: skip
# Debian's Kubernetes 1.20 does not have these groups, and ends with a fault at objects of the last
# one (test_monitoring_objects.py). That their rights are those of the objects is in the unit tests
# test_rights.py and test_dra_rights.py.
NOT_HERE = ("resource.k8s.io", "monitoring.coreos.com")
NOT_HERE_PARTS = ("dra", "compute-domains")
# With a ServiceMonitor alone; and the page of an exporter that is ready, which no controller leaves
# on nodes without kubelets: test_cluster_modules.py shows that the right is needed.
ELSEWHERE = (("services", "kubegpu-dcgm-exporter"), ("pods/proxy", ""))
LABELLER = "kubegpu-amd-node-labeller"
OF_KUBEGPU = {"app.kubernetes.io/instance": "kubegpu"}


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    """An API server whose audit log has this file's requests alone, with two nodes."""
    plane = ControlPlane(tmp_path_factory.mktemp("rights") / "plane")
    try:
        plane.up(with_parent=True)
        cluster_made.create(plane, [made(name) for name in FACTS])
        yield plane
    finally:
        plane.remove()


def made(name):
    one = cluster_made.node(name)
    one["status"]["capacity"] = one["status"]["allocatable"] = {"cpu": "8", **OFFERS[name]}
    return one


@pytest.fixture(scope="module")
def token(plane, tmp_path_factory):
    rights.apply(plane)
    return rights.kubeconfig(plane, tmp_path_factory.mktemp("token") / "kubeconfig")


@pytest.fixture(scope="module")
def play(token, tmp_path_factory):
    folder = tmp_path_factory.mktemp("play")
    hosts = {}
    for name, facts in FACTS.items():
        system = {**facts["os"], "machine_id": cluster_made.machine_id(name)}
        hosts[name] = {"ansible_connection": "local", "facts": {**facts, "os": system}}
    variables = {
        "kubegpu_kube": {"kubeconfig": token},
        # No controller makes pods here, so that the rollout is not waited for.
        "kubegpu_apply": {"wait_timeout": 0},
    }
    inventory = {"all": {"hosts": hosts, "vars": variables}}
    (folder / "inventory.yml").write_text(yaml.safe_dump(inventory))
    tasks = f"{collections()}/ansible_collections/kubegpu/nodes/playbooks/tasks"

    def run(text, *arguments, **options):
        (folder / "play.yml").write_text(GROUPS + text.replace("{folder}", tasks))
        done = run_play(folder, *arguments, **options)
        assert done.status == 0, done.output
        # A right that is missing can be a warning.
        assert "is missing" not in done.output, done.output

    return run


@pytest.fixture
def pods(plane):
    found = Pods(admin(plane))
    found.end_pods()
    yield found
    found.clear()


def old_labeller(plane):
    """An administrator deployed the labeller of AMD, which nobody wants any more."""
    labels = {"app.kubernetes.io/managed-by": "kubegpu.nodes"}
    meta = {"name": LABELLER, "labels": labels}
    inside = {**meta, "namespace": "kubegpu"}
    rbac = "rbac.authorization.k8s.io"
    role = {"apiGroup": rbac, "kind": "ClusterRole", "name": LABELLER}
    pod = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"nodeSelector": {"no": "node"}, "containers": [{"name": "x", "image": "x"}]},
    }
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": pod}
    items = [
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": meta, "rules": []},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", "metadata": meta,
         "roleRef": role, "subjects": []},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": inside},
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": inside, "spec": spec},
    ]  # fmt: skip
    plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(items))


def verify(pods, token):
    """Do what the playbooks verify, accept and diagnose ask: the plugin fails."""
    made = {"plugin-1": "nvidia-device-plugin", "exporter-1": "dcgm-exporter"}
    for name, application in made.items():
        labels = {"app.kubernetes.io/name": application, **OF_KUBEGPU}
        # The page of an exporter that is ready is read, and the log of a plugin that is not.
        ready = name == "exporter-1"
        pods.make(name, BOTH, namespace="kubegpu", labels=labels, gpus=0, ready=ready)
    card = {"vendor": "nvidia", "kernel_driver": "nvidia"}
    expected = {BOTH: {"resources": {GPU: 4}, "gpus": [card]}}
    for options in ({"wait_timeout": 1, "metrics": True}, {"pods": ["default/nobody"]}):
        answer = run_module(
            gpu_cluster_info.main, {"kubeconfig": token, "expected": expected, **options}
        )
        assert "layers" in answer or "pods" in answer, answer
    nodes = {BOTH: {"resources": {GPU: 1}}}
    tried = run_module(gpu_test_pods.main, {"kubeconfig": token, "nodes": nodes, "timeout": 1})
    assert tried["nodes"][BOTH]["code"] == "not_scheduled", tried
    for name in made:
        pods.kube.delete(f"/api/v1/namespaces/kubegpu/pods/{name}", grace=0)


def maintain(pods, token):
    """Do what the playbook upgrade asks: drain a node twice with the Lease, and release it."""
    pods.make("train", INTEL)
    given = {
        "kubeconfig": token, "nodes": {INTEL: {}}, "run": "r1", "timeout": 30, "poll": 1,
        "unmanaged": "delete",
    }  # fmt: skip
    lease = {"name": "kubegpu-upgrade"}
    for state, more in (("drained", {}), ("drained", {}), ("released", {"done": True})):
        options = {**given, "state": state, "lease": {**lease, **more}, "_process": "here 1 a"}
        answer = run_module(gpu_node_maintenance.main, options)
        assert answer.get("ok") and "warnings" not in answer, answer


def test_no_right_is_missing_and_none_could_be_left_out(plane, play, pods, token):
    old_labeller(plane)
    play(SITE, **WHOLE)
    # Who makes a role needs the rights that are in it.
    used = rights.granted_on(plane)
    verify(pods, token)
    maintain(pods, token)
    # What is no longer requested is removed.
    play(SITE, gpu_monitoring_enabled=True)
    play(TEARDOWN)
    used |= rights.asked(plane)
    assert rights.refused(plane) == []
    assert lacking(used, rights_of()) == []
    shown = [name for name in part_names() if name not in NOT_HERE_PARTS]
    unused = [
        right
        for right in rights_of(*shown)
        if right.group not in NOT_HERE
        and (right.resource, right.name) not in ELSEWHERE
        and not any(allows(right, one) for one in used)
    ]
    assert unused == []


def test_a_part_that_is_removed_is_named_by_its_right(plane, pods, token):
    pods.make("train", INTEL)
    rights.delete(plane, "maintenance")
    given = {
        "kubeconfig": token, "nodes": {INTEL: {}}, "run": "r1", "state": "drained",
        "unmanaged": "delete",
    }  # fmt: skip

    def lacking_right():
        # The API server learns of it a bit later.
        answer = run_module(gpu_node_maintenance.main, given, check=True)
        return answer if answer.get("failed") else None

    answer = wait_until(lacking_right)
    assert "The right 'create' on 'pods/eviction'" in answer["msg"] and ACCOUNT in answer["msg"]
