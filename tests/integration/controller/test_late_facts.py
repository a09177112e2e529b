# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts that a node returns after the hosts were checked, by modules of Ansible's own.

With inject_facts_as_vars they are variables of the node, and the first host of a play has the
variables of all that runs once. Nodes and cluster are stand-ins, modules of Ansible are real.
"""

from __future__ import annotations

import json
import sys

import pytest

from tests.integration.controller.standin_cluster import Upgrades
from tests.integration.controller.standin_nodes import Nodes

FULL = pytest.mark.full(why="by the same code")
CLUSTER = {"kubegpu_kube": {"kubeconfig": "/dev/null"}}
# What templates need, and what this collection reads.
FACTS = {
    "now": 5, "dict": 5, "lookup": 5, "query": 5,
    "kubegpu_kube": {"delegate": "gpu1", "kubeconfig": "/of/the/node"},
    "nvidia_device_plugin_image": "registry.example/of-the-node",
}  # fmt: skip
PROGRAM = """#!{python}
import json, subprocess, sys
done = subprocess.run([{python!r}, *sys.argv[1:]], stdout=subprocess.PIPE, text=True)
text = done.stdout
if any(f"AnsiballZ_{{name}}.py" in sys.argv[1] for name in {modules!r}):
    text = json.dumps({{**json.loads(text), "ansible_facts": json.loads({facts!r})}})
print(text)
sys.exit(done.returncode)
"""


def evil(folder, *modules, facts=None):
    """Return the variables of a host whose answers of these modules have such facts."""
    program = folder / "evil-python"
    text = PROGRAM.format(python=sys.executable, modules=modules, facts=json.dumps(facts or FACTS))
    program.write_text(text)
    program.chmod(0o755)
    return {"ansible_python_interpreter": str(program)}


def upgrade(folder, own, **variables):
    nodes = Upgrades(folder)
    nodes.cluster()
    batch = {"gpu_upgrade_canary": 0, "gpu_upgrade_batch": 2, "gpu_upgrade_max_unavailable": 2}
    run, report = nodes.upgrade(
        {"gpu1": own, "gpu2": {}}, **batch, **variables, gpu_upgrade_max_failed=1
    )
    assert report is not None, run.screen
    return run, {name: one["outcome"] for name, one in report["hosts"].items()}, report


def test_what_ansibles_own_modules_return_in_an_upgrade_is_no_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("ANSIBLE_INJECT_FACT_VARS", "true")
    every = ("stat", "slurp", "file", "copy", "command")
    run, outcomes, _report = upgrade(tmp_path, evil(tmp_path, *every))
    assert outcomes == {"gpu1": "done", "gpu2": "done"}, run.screen
    assert run.status == 0 and "Upgrade result" in run.screen


@pytest.mark.parametrize(
    "hook",
    [
        "before_drain",
        pytest.param("before_change", marks=FULL),
        "before_gate",
        pytest.param("before_release", marks=FULL),
    ],
)
def test_a_node_that_returns_such_facts_in_a_hook_costs_itself_only(tmp_path, monkeypatch, hook):
    """It is the first host of the batch, and of the play that reports."""
    monkeypatch.setenv("ANSIBLE_INJECT_FACT_VARS", "true")
    tasks = tmp_path / "hook.yml"
    tasks.write_text(json.dumps([{"name": "A task of a user", "ansible.builtin.ping": {}}]))
    run, outcomes, report = upgrade(
        tmp_path, evil(tmp_path, "ping"), gpu_upgrade_hooks={hook: str(tasks)}
    )
    assert outcomes == {"gpu1": "failed", "gpu2": "done"}, run.screen
    found = json.dumps(report["hosts"]["gpu1"]["findings"])
    assert "gpu1 has facts with names of variables: dict, kubegpu_kube, lookup, now" in found
    assert run.status == 2 and "is not callable" not in run.screen, run.screen


ROLES = [
    "gpu_node_labels", "nvidia_device_plugin",
    *(pytest.param(one, marks=FULL) for one in ("amd_device_plugin", "gpu_verify")),
    pytest.param("gpu_monitoring", marks=FULL), pytest.param("nvidia_dra_driver", marks=FULL),
]  # fmt: skip


@pytest.mark.parametrize("role", ROLES)
def test_such_facts_before_a_role_cost_their_host_only(tmp_path, monkeypatch, role):
    """The facts of the node were read before; what runs once was refused for all hosts."""
    monkeypatch.setenv("ANSIBLE_INJECT_FACT_VARS", "true")
    nodes = Nodes(tmp_path)
    play = {
        "hosts": "all",
        "gather_facts": False,
        "tasks": [
            {"kubegpu.nodes.gpu_node_facts": {}},
            {"ansible.builtin.ping": {}},
            {"ansible.builtin.import_role": {"name": f"kubegpu.nodes.{role}"}},
        ],
    }
    given = {**CLUSTER, "gpu_monitoring_enabled": True, "nvidia_dra_driver_enabled": True}
    run = nodes.play(
        nodes.own("role.yml", [play]),
        {"gpu1": evil(tmp_path, "ping"), "gpu2": {}},
        everywhere=given,
    )
    assert "gpu1 has facts with names of variables" in run.words(), run.screen
    once = [
        host for host, name, _state in run.calls if name in ("node_gpu_label", "gpu_cluster_info")
    ]
    assert once and set(once) == {"gpu2"}, run.screen


def test_such_facts_between_playbooks_cost_their_host_only(tmp_path, monkeypatch):
    monkeypatch.setenv("ANSIBLE_INJECT_FACT_VARS", "true")
    nodes = Nodes(tmp_path)
    task = {"ansible.builtin.ping": {}, "tags": ["always"]}
    between = {"hosts": "all", "gather_facts": False, "tasks": [task]}
    plays = [
        {"import_playbook": "kubegpu.nodes.groups"},
        between,
        {"import_playbook": "kubegpu.nodes.parts.cluster_nodes"},
    ]
    own = {"gpu1": evil(tmp_path, "ping"), "gpu2": {}}
    run = nodes.play(nodes.own("own.yml", plays), own, "--tags", "labels", everywhere=CLUSTER)
    assert run.status == 2 and "gpu1 has facts with names of variables" in run.words(), run.screen
    assert run.hosts("node_gpu_label") == ["gpu2"], run.screen


@pytest.mark.parametrize("inject", ["true", "false"])
def test_a_late_fact_does_not_change_where_a_cluster_is_asked(tmp_path, monkeypatch, inject):
    """The variable of the inventory is a template, and the fact has the name that it uses."""
    monkeypatch.setenv("ANSIBLE_INJECT_FACT_VARS", inject)
    nodes = Nodes(tmp_path)
    merged = "(kubegpu_kube | kubegpu.nodes.cluster_connection(hostvars, 'gpu1'))"
    shown = [
        "raw {{ kubegpu_kube.host }}",
        "host {{ CONNECTION.host }}",
        "token {{ CONNECTION.token == 'A-SECRET' }}",
        "kept {{ __kubegpu_variables.connections }}",
    ]
    tasks = [
        {"ansible.builtin.ping": {}},
        *({"ansible.builtin.debug": {"msg": one.replace("CONNECTION", merged)}} for one in shown),
    ]
    plays = [
        {"import_playbook": "kubegpu.nodes.groups"},
        {"hosts": "all", "gather_facts": False, "tasks": tasks},
    ]
    own = evil(tmp_path, "ping", facts={"address_of_cluster": "https://of-the-node.example"})
    given = {
        "kubegpu_kube": {
            "host": "{{ address_of_cluster | default('https://cluster.example') }}",
            "token": "{{ token_of_cluster }}",
        },
        "token_of_cluster": "A-SECRET",
    }
    run = nodes.play(nodes.own("own.yml", plays), {"gpu1": own}, "-vv", everywhere=given)
    assert run.status == 0, run.screen
    late = "https://of-the-node.example" if inject == "true" else "https://cluster.example"
    assert f"raw {late}" in run.screen, run.screen
    assert "host https://cluster.example" in run.screen and "token True" in run.screen, run.screen
    assert "kept {" in run.screen and "A-SECRET" not in run.screen
