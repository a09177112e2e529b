# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""S17: one run over nodes of NVIDIA, AMD, Intel and none, with a real API server.

The nodes are made and run no pods; what they offer is in their status, as kubelets would report it.
"""

from __future__ import annotations

import json

import pytest
import yaml

from tests.integration.cluster.own_plays import GROUPS, run_play
from tests.testbed import cluster_made
from tests.tools.environments import collections
from tests.unit.fixtures.kernel_gpus import amd_node, intel_node
from tests.unit.fixtures.node_facts import node

pytestmark = pytest.mark.full(why="plugins of more vendors; test_site.py has one on a real kubelet")
PLAYBOOK = """
- import_playbook: kubegpu.nodes.{name}
"""
TASKS = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.import_tasks: {folder}/{name}.yml
"""
SITE, PLAN, TEARDOWN = "parts.cluster_nodes", "plan_kubernetes", "teardown_device_plugins"
LABEL = "kubegpu.nodes/gpu"
# A node, its facts and what its kubelet reports.
HOSTS = {
    "vendor-intel": (intel_node("xe"), {"gpu.intel.com/xe": "1"}),
    "vendor-both": (
        {**amd_node(), "gpus": [*node()["gpus"], *amd_node()["gpus"]]},
        {"nvidia.com/gpu": "1", "amd.com/gpu": "2"},
    ),
    "vendor-none": (node(gpus=[]), {}),
}


def facts_of(name):
    facts = HOSTS[name][0]
    return {**facts, "os": {**facts["os"], "machine_id": cluster_made.machine_id(name)}}


def made(name):
    one = cluster_made.node(name)
    one["status"]["capacity"] = one["status"]["allocatable"] = {"cpu": "8", **HOSTS[name][1]}
    return one


@pytest.fixture
def play(api, tmp_path):
    cluster_made.create(api, [made(name) for name in HOSTS])
    hosts = {name: {"ansible_connection": "local", "facts": facts_of(name)} for name in HOSTS}
    hosts["vendor-both"]["gpu_monitoring_enabled"] = "{{ only_here | default(false) }}"
    variables = {
        "kubegpu_kube": {"kubeconfig": str(api.kubeconfig)},
        # No controller makes pods here, so that the rollout is not waited for.
        "kubegpu_apply": {"wait_timeout": 1},
    }
    (tmp_path / "inventory.yml").write_text(
        yaml.safe_dump({"all": {"hosts": hosts, "vars": variables}})
    )
    folder = f"{collections()}/ansible_collections/kubegpu/nodes/playbooks/tasks"

    def run(name, *arguments, **options):
        text = (PLAYBOOK if name == SITE else TASKS).format(folder=folder, name=name)
        (tmp_path / "play.yml").write_text(GROUPS + text)
        return run_play(tmp_path, *arguments, **options)

    yield run
    cluster_made.delete(api, [*HOSTS])


def daemonsets(api):
    text = api.kubectl("-n", "kubegpu", "get", "daemonsets", "-o", "json", check=False)
    items = json.loads(text)["items"] if text.startswith("{") else []
    return {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in items}


def selected(api, spec):
    """The nodes that a DaemonSet's selector takes."""
    labels = ",".join(f"{name}={value}" for name, value in spec["nodeSelector"].items())
    text = api.kubectl("get", "nodes", "-l", labels, "-o", "name")
    return {one.removeprefix("node/") for one in text.split()}


def test_s17_each_vendor_gets_its_own_plugin_and_nothing_is_left(api, play):
    labeller = {"amd_device_plugin_labeller": True}
    # Without --diff, with which each object is a call of its own (test_five_nodes.py has it).
    checked = play(SITE, "--check", **labeller)
    assert checked.status == 0, checked.output
    assert daemonsets(api) == {}
    first = play(SITE, **labeller)
    assert first.status == 0, first.output
    assert checked.changed == first.changed > 0, checked.output + first.output
    plugins = daemonsets(api)
    assert {name: selected(api, spec) for name, spec in plugins.items()} == {
        "kubegpu-nvidia-device-plugin": {"vendor-both"},
        "kubegpu-amd-device-plugin": {"vendor-both"},
        "kubegpu-amd-node-labeller": {"vendor-both"},
        "kubegpu-intel-device-plugin": {"vendor-intel"},
    }
    again = play(SITE, **labeller)
    assert (again.status, again.changed) == (0, 0), again.output
    # What is no longer asked for is removed, and nothing else.
    assert play(SITE).changed == 1
    assert set(plugins) - set(daemonsets(api)) == {"kubegpu-amd-node-labeller"}
    # As the playbook teardown has it.
    gone = play(TEARDOWN, gpu_verify_result={"plugins": ["amd", "intel"]})
    assert gone.status == 0, gone.output
    assert daemonsets(api) == {}
    left = api.kubectl("get", "clusterroles,clusterrolebindings,runtimeclasses", "-o", "name")
    assert "kubegpu" not in left and "runtimeclass" not in left
    assert "kubegpu" not in api.kubectl("get", "namespaces", "-o", "name")


@pytest.mark.parametrize("name", [SITE, PLAN])
def test_hosts_that_differ_in_what_is_deployed_are_named_and_nothing_is_done(api, play, name):
    done = play(name, only_here=True)
    assert done.status != 0 and done.changed == 0, done.output
    said = " ".join(done.output.split())
    assert "gpu_monitoring_enabled differs between vendor-both and vendor-intel" in said
    assert "Set it for all hosts of the cluster alike" in said
    assert daemonsets(api) == {}
    labels = api.kubectl("get", "nodes", "-l", LABEL, "-o", "name")
    assert not any(name in labels for name in HOSTS)


def test_s17_a_node_that_does_not_offer_its_gpus_says_why(api, play):
    # The graphics of a processor, which this node does not report.
    name = "vendor-both"
    facts = facts_of(name)
    facts["gpus"] = facts["gpus"][1:]
    extra = {**facts["device_nodes"][-1], "address": "0000:46:00.0"}
    facts["device_nodes"] = [*facts["device_nodes"], extra]
    done = play(SITE, "--limit", name, facts=facts)
    assert done.status != 0
    assert "expected is amd.com/gpu: 3" in " ".join(done.output.split())
    gone = play(TEARDOWN, "--limit", name, gpu_verify_result={"plugins": ["amd"]})
    assert gone.status == 0, gone.output
