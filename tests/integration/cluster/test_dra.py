# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""S22: the DRA driver on the API server of a real Kubernetes 1.20, which cannot have it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.testbed import cluster_made
from tests.tools.environments import collections
from tests.unit.fixtures import node_facts

PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.set_fact:
        gpu_node: "{{ facts }}"
        cacheable: true
    - ansible.builtin.include_role:
        name: kubegpu.nodes.nvidia_dra_driver
        tasks_from: "{{ entry | default('main') }}"
"""
KINDS = "daemonsets,deployments,serviceaccounts,clusterroles,clusterrolebindings,roles,rolebindings"
OURS = "app.kubernetes.io/name=nvidia-dra-driver"


@pytest.fixture
def run(api, tmp_path):
    """Run a play for one host, which is facts and a made node."""
    cluster_made.create(api, [cluster_made.node("dra-a")])
    facts = node_facts.node(
        os__machine_id=cluster_made.machine_id("dra-a"), driver__loaded="580.126.09"
    )
    host = {"ansible_connection": "local", "facts": facts}
    variables = {
        "kubegpu_kube": {"kubeconfig": str(api.kubeconfig)},
        "nvidia_dra_driver_enabled": True,
    }
    inventory = {"all": {"hosts": {"gpu1.example.com": host}, "vars": variables}}
    (tmp_path / "inventory.yml").write_text(yaml.safe_dump(inventory))

    def started(text, *arguments, **options):
        (tmp_path / "play.yml").write_text(text)
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

    yield started
    cluster_made.delete(api, ["dra-a"])


def there(api):
    """The objects of this collection's DRA driver."""
    listed = api.kubectl("get", KINDS, "-A", "-l", OURS, "-o", "name").split()
    crds = api.kubectl("get", "customresourcedefinitions", "-l", OURS, "-o", "name").split()
    return sorted([*listed, *crds])


def changed(done):
    """The number of changes in Ansible's recap."""
    assert done.returncode == 0, done.stdout + done.stderr
    recap = done.stdout.rpartition("PLAY RECAP")[2]
    return int(recap.partition("changed=")[2].split()[0])


@pytest.mark.full(why="a refusal before anything is applied; the stage unit has its reasons")
def test_s22_kubernetes_1_20_is_refused_with_what_would_be_needed(api, run):
    done = run(PLAY)
    assert done.returncode != 0
    for words in (
        "DRA: not possible.",
        "Kubernetes: v1.20.2",
        "resource.k8s.io: not served",
        "Upgrade Kubernetes to 1.34.2 or later",
        "CDI: containerd 1.6.20, without CDI",
    ):
        assert words in done.stdout
    assert there(api) == []


@pytest.mark.full(why="the other entry points of the role that was refused")
def test_s22_the_report_shows_each_precondition(api, run):
    done = run(PLAY, entry="report", nvidia_dra_driver_enabled=False)
    assert done.returncode == 0, done.stdout + done.stderr
    words = " ".join(done.stdout.split())
    for part in (
        "DRA: cluster",
        "DRA: gpu1.example.com",
        "driver: 580.126.09",
        "device plugin: none",
    ):
        assert part in words
    planned = run(PLAY, entry="plan")
    assert planned.returncode == 0, planned.stdout
    assert changed(planned) == 0
    assert there(api) == []
