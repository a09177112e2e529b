# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rolling upgrade of hosts without Kubernetes, with the stand-ins of test_upgrade.py.

What takes a host out of work is tested on real dockerds and on Debian's Slurm
(tests/integration/fleet/test_host_maintenance.py).
"""

from __future__ import annotations

import json

import pytest

from tests.integration.controller.standin_cluster import NEW, OLD, Upgrades

pytestmark = pytest.mark.full(why="each run takes many seconds; decisions are in unit tests")

HOSTS = ("gpu1", "gpu2", "gpu3")


@pytest.fixture
def hosts(tmp_path):
    made = Upgrades(tmp_path)
    made.cluster()
    for name in ("before", "after"):
        path = tmp_path / name
        facts = {**json.loads(path.read_text(encoding="utf-8")), "kubelet": None}
        path.write_text(json.dumps(facts), encoding="utf-8")
    return made


def upgrade(hosts, *arguments, own=None, **variables):
    given = {"gpu_upgrade_max_unavailable": 2, "gpu_upgrade_batch": 2, "kubegpu_kube": {}}
    each = {name: (own or {}).get(name, {}) for name in HOSTS}
    return hosts.upgrade(each, *arguments, **{**given, **variables})


def outcomes(report):
    return {name: one["outcome"] for name, one in report["hosts"].items()}


def states(run, host):
    """Return what the host was asked for, without what only looks."""
    return [
        state
        for name, module, state in run.calls
        if (name, module) == (host, "gpu_host_maintenance") and "check" not in (state or "")
    ]


def test_a_wrong_value_is_refused_before_anything_is_planned(hosts):
    run, _report = upgrade(hosts, "--check", gpu_upgrade_batch=0)
    assert run.status != 0
    assert "gpu_upgrade_batch" in run.words() and "a number of nodes from 1 on" in run.words()
    assert "Finalization of task args" not in run.screen
    assert not any(states(run, name) for name in HOSTS)


def test_a_trial_a_run_and_nothing_left(hosts):
    run, report = upgrade(hosts, "--check")
    assert run.status == 0, run.screen
    assert outcomes(report) == dict.fromkeys(HOSTS, "planned") and hosts.held() == {}
    assert not any(states(run, name) for name in HOSTS) and "ml/web-gpu1" in run.words()

    run, report = upgrade(hosts)
    assert run.status == 0, run.screen
    assert outcomes(report) == dict.fromkeys(HOSTS, "done")
    assert [report["hosts"][name]["batch"] for name in HOSTS] == [1, 2, 2]
    assert report["hosts"]["gpu2"]["to"]["driver"] == NEW
    assert report["hosts"]["gpu2"]["evicted"] == ["ml/web-gpu2"]
    assert hosts.held() == {} and hosts.records() == []
    # The gate may have to restart slurmd.
    assert states(run, "gpu2") == ["drained", "cordoned", "released"]
    # No cluster is asked, and no pod is tried.
    modules = {module for _host, module, _state in run.calls}
    assert not modules & {"gpu_node_maintenance", "gpu_cluster_info", "gpu_test_pods"}


def test_a_bad_canary_and_a_host_that_does_not_become_free(hosts):
    own = {"gpu1": {"standin_sick": True}, "gpu2": {"standin_blocked": True}}
    run, report = upgrade(hosts, own=own, gpu_upgrade_max_failed=1)
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "rolled_back", "gpu2": "blocked", "gpu3": "done"}
    assert report["hosts"]["gpu1"]["to"]["driver"] == OLD
    assert hosts.held() == {} and hosts.records() == []
    assert not [call for call in run.calls if call[:2] == ("gpu2", "nvidia_driver")]


def test_hosts_of_another_run_and_out_of_work_refuse_and_count(hosts):
    hosts.cluster(gpu3={"unschedulable": True, "held_by": "r2", "was": False})
    run, report = upgrade(hosts)
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "not_started", "gpu2": "not_started", "gpu3": "refused"}
    run, report = upgrade(hosts, gpu_upgrade_on_refusal="skip")
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "done", "gpu2": "done", "gpu3": "refused"}
    # Of two at once, one is out already.
    assert [report["hosts"][name]["batch"] for name in ("gpu1", "gpu2")] == [1, 2]


@pytest.mark.parametrize("state", ["drained", "released"])
def test_a_killed_run_is_finished_or_only_released(hosts, state):
    own = {"gpu1": {"standin_kill": state}}
    run, report = upgrade(hosts, own=own)
    assert run.status not in (0, 2) and report is None
    if state == "released":
        # It died after the host was released, and the next run judges it again.
        assert hosts.held() == {}
    run, report = upgrade(hosts)
    assert run.status == 0, run.screen
    assert outcomes(report) == dict.fromkeys(HOSTS, "done") and hosts.held() == {}
    hosts.cluster(gpu2={"unschedulable": True, "held_by": "gpu-upgrade", "was": False})
    run, report = upgrade(hosts, gpu_upgrade_release=True)
    assert run.status == 0, run.screen
    assert outcomes(report) == {"gpu1": "unchanged", "gpu2": "released", "gpu3": "unchanged"}
    assert hosts.held() == {} and states(run, "gpu2") == ["released"]


HOOKS = ("before_drain", "before_change", "before_gate", "before_release")
HOOK = """
- name: Write it down
  ansible.builtin.shell: "echo {name} {{{{ inventory_hostname }}}} >>{notes}"
- name: Query the service
  ansible.builtin.fail:
    msg: The service does not answer.
  when: standin_hook | default('') == '{name}'
"""


def test_tasks_of_the_user_and_a_failure_of_each(hosts, tmp_path):
    notes, files = tmp_path / "notes", {}
    for name in HOOKS:
        path = tmp_path / f"{name}.yml"
        path.write_text(HOOK.format(name=name, notes=notes), encoding="utf-8")
        files[name] = str(path)
    given = {
        "gpu_upgrade_hooks": files,
        "gpu_upgrade_canary": 0,
        "gpu_upgrade_batch": "100%",
        "gpu_upgrade_max_unavailable": "100%",
    }
    wrong = {**given, "gpu_upgrade_hooks": {"before_gate": "/nowhere.yml"}}
    run, report = upgrade(hosts, **wrong)
    assert run.status == 2 and report is None and hosts.held() == {}
    assert "gpu_upgrade_hooks.before_gate: /nowhere.yml is not on the controller" in run.words()
    unknown = tmp_path / "unknown.yml"
    unknown.write_text("- name: Ask\n  kubegpu.nodes.no_such_module:\n", encoding="utf-8")
    wrong = {**given, "gpu_upgrade_hooks": {**files, "before_gate": str(unknown)}}
    run, report = upgrade(hosts, **wrong)
    # It is seen before any hook runs, and before a node is taken out of work.
    assert run.status != 0 and report is None and hosts.held() == {} and not notes.exists()
    assert not any(states(run, name) for name in HOSTS)

    own = dict(zip(HOSTS, ({"standin_hook": name} for name in HOOKS[1:]), strict=True))
    run, report = upgrade(hosts, own=own, **given)
    assert run.status == 2, run.screen
    # The one that fails before the gate fails after the rollback, too.
    assert outcomes(report) == {"gpu1": "blocked", "gpu2": "failed", "gpu3": "failed"}
    for name in HOSTS:
        (finding,) = report["hosts"][name]["findings"]
        assert finding["code"] == ("early_hook_failed" if name == "gpu1" else "hook_failed")
        assert finding["cause"] == "Query the service: The service does not answer."
    assert report["hosts"]["gpu2"]["rolled_back_because"] == finding["cause"]
    assert report["hosts"]["gpu2"]["to"] == {}
    assert report["hosts"]["gpu3"]["to"]["driver"] == NEW
    # gpu1 was not changed and is released; the others stay.
    assert hosts.held() == {"gpu2": "gpu-upgrade", "gpu3": "gpu-upgrade"}
    assert hosts.records() == ["gpu2", "gpu3"]
    assert not [call for call in run.calls if call[:2] == ("gpu1", "nvidia_driver")]
    said = [line.split() for line in notes.read_text(encoding="utf-8").splitlines()]
    # What the first hook did is taken back by the last one.
    assert [name for name, host in said if host == "gpu1"] == [*HOOKS[:2], HOOKS[3]]
    assert [name for name, host in said if host == "gpu2"] == [*HOOKS[:3], HOOKS[2]]
    assert [name for name, host in said if host == "gpu3"] == list(HOOKS)

    # A node that the run above left is neither released nor restored.
    own = {name: {"standin_hook": "before_drain"} for name in HOSTS}
    run, report = upgrade(hosts, own=own, gpu_upgrade_max_failed=3, **given)
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "blocked", "gpu2": "failed", "gpu3": "failed"}
    for one in report["hosts"].values():
        assert [finding["code"] for finding in one["findings"]] == ["early_hook_failed"]
        assert one["rolled_back_because"] == ""
    assert hosts.held() == {"gpu2": "gpu-upgrade", "gpu3": "gpu-upgrade"}
    assert hosts.records() == ["gpu2", "gpu3"]
    assert "nvidia_driver" not in {module for _host, module, _state in run.calls}

    notes.unlink()
    run, report = upgrade(hosts, **given)
    assert run.status == 0, run.screen
    assert outcomes(report) == dict.fromkeys(HOSTS, "done") and hosts.held() == {}
    said = notes.read_text(encoding="utf-8").splitlines()
    assert sorted(said) == sorted(f"{name} {host}" for name in HOOKS for host in HOSTS)
