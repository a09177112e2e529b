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

from tests.testbed import cluster_made
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
    variables = {"kubegpu_kubeconfig": str(api.kubeconfig), "nvidia_device_plugin_wait_timeout": 0}
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
        nvidia_device_plugin_pull_secret="mirror",
        nvidia_device_plugin_pull_secret_login=login,
    )
    assert done.returncode != 0
    assert "lacks password and does not know pasword" in done.stdout
    assert "hunter2secret" not in done.stdout + done.stderr
