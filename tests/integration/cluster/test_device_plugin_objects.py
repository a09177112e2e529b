# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The device plugin's objects in a real API server, without nodes that would run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.integration.cluster import rights
from tests.testbed import cluster_made
from tests.testbed.cluster_control import ACCOUNT
from tests.tools.environments import collections
from tests.unit.fixtures import node_facts

NAME = "kubegpu-nvidia-device-plugin"
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.set_fact:
        gpu_node: "{{ facts }}"
        cacheable: true
    - ansible.builtin.include_role:
        name: kubegpu.nodes.nvidia_device_plugin
        tasks_from: "{{ entry | default('main') }}"
"""


@pytest.fixture
def play(api, tmp_path):
    """Run the role for one host, which is facts and a made node."""
    cluster_made.create(api, [cluster_made.node("plugin-a")])
    facts = node_facts.node(os__machine_id=cluster_made.machine_id("plugin-a"))
    host = {"ansible_connection": "local", "facts": facts}
    kube = {"kubeconfig": str(api.kubeconfig)}
    variables = {"kubegpu_kube": kube, "kubegpu_apply": {"wait_timeout": 0}}
    inventory = {"all": {"hosts": {"gpu1.example.com": host}, "vars": variables}}
    (tmp_path / "inventory.yml").write_text(yaml.safe_dump(inventory))
    (tmp_path / "play.yml").write_text(PLAY)

    def run(*arguments, **options):
        program = Path(sys.executable).parent / "ansible-playbook"
        argv = [str(program), "-i", "inventory.yml", "play.yml", *arguments]
        return subprocess.run(
            [*argv, "--extra-vars", json.dumps(options)],
            cwd=tmp_path,
            env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(collections())},
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )

    yield run
    done = run(entry="teardown")
    cluster_made.delete(api, ["plugin-a"])
    assert done.returncode == 0, done.stdout


@pytest.mark.full(why="another owner of an object that test_site applies")
def test_a_field_of_somebody_else_stops_the_run_with_his_name(api, play):
    first = play()
    assert first.returncode == 0, first.stdout + first.stderr
    patch = {"spec": {"template": {"spec": {"priorityClassName": "system-cluster-critical"}}}}
    api.kubectl(
        "-n", "kubegpu", "patch", "daemonset", NAME, "--field-manager", "somebody",
        "-p", json.dumps(patch),
    )  # fmt: skip
    done = play()
    assert done.returncode != 0
    assert 'conflict with \\"somebody\\"' in done.stdout
    assert "priorityClassName" in done.stdout
    forced = play(nvidia_device_plugin_force_conflicts=True)
    assert forced.returncode == 0, forced.stdout
    assert "changed=0" in play().stdout


@pytest.mark.full(why="a refusal of the role's options; the objects are those of the test before")
def test_a_login_that_is_not_whole_is_named_and_not_shown(api, play):
    login = {"registry": "mirror.example", "username": "robot", "pasword": "hunter2secret"}
    done = play(
        nvidia_device_plugin_pods={"pull_secret": "mirror"},
        nvidia_device_plugin_pull_secret_login=login,
    )
    assert done.returncode != 0
    # The role's argument specification refuses the key before anything is planned.
    assert "pasword" in done.stdout and "password" in done.stdout
    assert "hunter2secret" not in done.stdout + done.stderr


PARTS = ("base", "read", "pods", "nvidia", "teardown")
WHOLE = {
    "configs": {
        "shared": {"sharing": {"timeSlicing": {"resources": [
            {"name": "nvidia.com/gpu", "replicas": 2}]}}},
        "mps": {"sharing": {"mps": {"resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}}},
    },
    "feature_discovery": True,
}  # fmt: skip


@pytest.fixture
def limited(api, tmp_path):
    """A kubeconfig of the account with the rights of the role, and no others."""
    rights.apply(api, *PARTS)
    yield rights.kubeconfig(api, tmp_path / "limited")
    rights.delete(api)


@pytest.mark.full(why="the rights of one more role; test_maintenance has those of its own")
def test_the_offered_rights_are_enough_for_the_role_and_for_nothing_of_others(api, limited, play):
    """Binding and class of somebody else are objects that the token could delete before."""
    binding, runtime_class = "somebodys", "kata"
    api.kubectl("create", "clusterrolebinding", binding, "--clusterrole=view", "--user=somebody")
    apply = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "kata",
             "metadata": {"name": runtime_class}}  # fmt: skip
    api.kubectl("apply", "-f", "-", stdin=json.dumps(apply))
    try:
        for what in (f"clusterrolebinding/{binding}", f"runtimeclass/{runtime_class}"):
            assert "forbidden" in api.kubectl("--as", ACCOUNT, "delete", what, check=False)
        options = {f"nvidia_device_plugin_{name}": value for name, value in WHOLE.items()}
        kube = {"kubegpu_kube": {"kubeconfig": limited}}
        done = play(**options, **kube)
        assert done.returncode == 0, done.stdout + done.stderr
        # Objects that are no longer requested, and teardown.
        assert play(**kube).returncode == 0
        assert play(entry="teardown", **kube).returncode == 0
        left = api.kubectl("get", "clusterrolebinding,runtimeclass", "-o", "name").split()
        assert {
            f"clusterrolebinding.rbac.authorization.k8s.io/{binding}",
            f"runtimeclass.node.k8s.io/{runtime_class}",
        } <= set(left)
        assert "runtimeclass.node.k8s.io/nvidia" not in left
    finally:
        api.kubectl("delete", "clusterrolebinding", binding)
        api.kubectl("delete", "runtimeclass", runtime_class)
