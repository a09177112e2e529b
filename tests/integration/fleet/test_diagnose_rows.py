# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of the catalogue of causes, each made on a converged node: it is the only root cause.

One run has all faults (faults.py). The rows that need another state of the node's
daemons have a run of their own; where the others are shown, tests/unit/fixtures/catalogue.py says.
"""

from __future__ import annotations

import json

import pytest
import yaml

from tests.integration.fleet.fault_cases import FAULTS
from tests.integration.fleet.faults import TOP, Fault, files, inventory
from tests.integration.fleet.playbooks import INVENTORY, on_nodes, play, run_module
from tests.testbed.nodes import copy_in
from tests.testbed.payload import tar

pytestmark = pytest.mark.full(why="causes on a node of test_site.py; they are unit tests by name")

NODE, OTHER = "gpu3", "gpu2"
RUNTIME = "/usr/bin/nvidia-container-runtime"
WHOLE = "whole"
# As many as share one connection of ssh (MaxSessions).
FORKS = "8"
# A layer needs a folder below it.
PREPARE = (
    "mkdir -p /var/lib/dkms /var/lib/rancher /etc/cdi /run/cdi /var/log/apt; "
    "mv /.dockerenv /root/dockerenv"
)
RESTORE = (
    f"rm -rf {TOP}; mv /root/dockerenv /.dockerenv; "
    "rmdir --ignore-fail-on-non-empty /var/lib/dkms /var/lib/rancher /etc/cdi"
)


# What the playbook diagnose calls on a node, without the tasks around it, which would take as long
# again for each host. A host whose fault could not be made is not in the result.
PLAY = """
- hosts: all
  gather_facts: false
  become: true
  tasks:
    - name: Layers
      kubegpu.nodes.gpu_node_verify:
        require_default: "{{ require_default | default([]) }}"
        container: false
        fabric_timeout: 0
      register: verified
    - name: Health
      kubegpu.nodes.gpu_node_health:
        boots: 2
      register: health
    - name: Publish
      ansible.builtin.set_fact:
        gpu_diagnose_plan:
          health: "{{ health }}"
          root: true
    - name: Find the root causes
      kubegpu.nodes.fleet_result:
        of: diagnosis
        hosts: "{{ ansible_play_hosts }}"
        given: {rows: "{{ rows }}", cluster: {}}
      register: found
      run_once: true
      vars:
        layers: "{{ ansible_play_hosts | map('extract', hostvars, ['verified', 'layers']) }}"
        rows: >-
          {{
            dict(ansible_play_hosts | zip(layers))
            | dict2items(key_name='node', value_name='layers')
          }}
    - name: Write them
      ansible.builtin.copy:
        content: "{{ found.result | to_json }}"
        dest: "{{ dest }}"
      delegate_to: localhost
      become: false
      run_once: true
"""


def by_host(dest):
    """Return the findings by host, and the result."""
    result = json.loads(dest.read_text())
    found = {host: [] for host in result["hosts"]}
    for one in result["findings"]:
        found[one["host"]].append(one)
    return found, result


def diagnose(dest, hosts):
    """Run the playbook, which must change nothing."""
    variables = {"gpu_diagnose_file": str(dest), "gpu_diagnose_boots": 2}
    run = play("diagnose", "--limit", hosts, variables=variables)
    assert dest.exists(), run.output
    assert all(one["changed"] == 0 for one in run.stats.values()), run.stats
    return by_host(dest)


@pytest.fixture(scope="module")
def diagnosed(story, started, tmp_path_factory):
    """All faults on one node, and what one run says of them."""
    assert story.first
    (node,) = (one for one in started if one.name == NODE)
    folder = tmp_path_factory.mktemp("faults")
    faults = {WHOLE: Fault(""), **FAULTS}
    known = yaml.safe_load(INVENTORY.read_text(encoding="utf-8"))["all"]["hosts"][NODE]
    more = folder / "faults.yml"
    more.write_text(yaml.safe_dump(inventory(faults, known)), encoding="utf-8")
    look, dest = folder / "look.yml", folder / "diagnosis.json"
    look.write_text(PLAY, encoding="utf-8")
    before = on_nodes("cat /proc/1/mountinfo", NODE)
    try:
        on_nodes(PREPARE, NODE)
        copy_in(node, tar(files(faults), {}))
        run = play(
            str(look), "-i", str(more), "--limit", ":".join(faults), "--forks", FORKS,
            variables={"dest": str(dest)},
        )  # fmt: skip
    finally:
        on_nodes(RESTORE, NODE)
    assert dest.exists(), run.output
    assert on_nodes("cat /proc/1/mountinfo", NODE) == before
    return (*by_host(dest), run.answers)


def failures(answers, name):
    """Return what failed on a host that has no result."""
    return [one for (_task, host), one in answers.items() if host == name and not one.get("layers")]


def test_the_node_without_a_fault_is_whole(diagnosed):
    found, result, answers = diagnosed
    assert WHOLE in found, failures(answers, WHOLE)
    assert result["hosts"][WHOLE]["verdict"] == "ok", found[WHOLE]
    assert [one["id"] for one in found[WHOLE]] == []


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_the_only_root(diagnosed, name):
    found, _result, answers = diagnosed
    assert name in found, failures(answers, name)
    fault = FAULTS[name]
    shown = [(one["id"], one["gpu"]) for one in found[name]]
    assert shown == [(fault.row, fault.subject)], found[name]
    (one,) = found[name]
    print(f"{name}: {json.dumps(one, indent=1)}")
    assert one["cause"].endswith((".", "?", ")")) and one["next_step"], one
    assert one["id"] not in one["follows"]


STATE = "/var/lib/kubegpu/state.json"
KEEP = f"rm -rf /root/kept; cp -a /etc/containerd /root/kept; cp -a {STATE} /root/kept-state.json"
# The record has the handler, as if somebody else had taken it out of the configuration.
RECORD_BACK = f"cp -a /root/kept-state.json {STATE}"
ALL_BACK = (
    f"{RECORD_BACK}; rm -rf /etc/containerd; mv /root/kept /etc/containerd; "
    "rm /root/kept-state.json; systemctl restart containerd"
)


def test_a_daemon_that_has_lost_the_handler_and_one_that_does_not_run(story, tmp_path):
    assert story.first
    dest = tmp_path / "diagnosis.json"
    on_nodes(KEEP, NODE)
    try:
        gone = {"name": "nvidia", "state": "absent", "restart": True}
        run_module(NODE, "kubegpu.nodes.containerd_runtime", gone)
        on_nodes(RECORD_BACK, NODE)
        # A Docker that does not run beside a containerd of Kubernetes is none of its runtimes.
        on_nodes("systemctl stop docker.socket docker containerd", OTHER)
        found, _result = diagnose(dest, f"{NODE}:{OTHER}")
    finally:
        on_nodes(ALL_BACK, NODE)
        on_nodes("systemctl start containerd docker.socket docker; sleep 1", OTHER)
    print(json.dumps(found, indent=1))
    assert [one["id"] for one in found[NODE]] == ["runtime_lost"], found[NODE]
    assert [one["id"] for one in found[OTHER]] == ["containerd_not_running"], found[OTHER]
    found, result = diagnose(dest, f"{NODE}:{OTHER}")
    assert result["ok"], found


def test_a_handler_that_runs_another_program(story, tmp_path):
    """Two spellings of BinaryName do it. Here the file's own time would tell of the edit."""
    assert story.first
    edit = (
        f"{KEEP}; grep -rl {RUNTIME} /etc/containerd | xargs sed -i 's|{RUNTIME}|/usr/sbin/runc|'; "
        "systemctl restart containerd"
    )
    on_nodes(edit, NODE)
    try:
        found, _result = diagnose(tmp_path / "diagnosis.json", NODE)
    finally:
        on_nodes(ALL_BACK, NODE)
    print(json.dumps(found, indent=1))
    assert [one["id"] for one in found[NODE]] == ["wrong_program"], found[NODE]
