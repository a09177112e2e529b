# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook accept: plan, tests, record, labels, what is released, report and exit status.

Playbook, roles, Ansible and the module gpu_node_acceptance are the real ones, with a stand-in of
dcgmi, nvbandwidth and gpu_burn; facts and cluster are stand-ins (standin_cluster.py).
"""

from __future__ import annotations

import json
import re
import sys

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.marks import MARK
from tests.integration.controller.standin_cluster import ACTION, Upgrades
from tests.integration.printed import report_of
from tests.testbed.paths import REPOSITORY
from tests.unit.fixtures.node_facts import installed

pytestmark = pytest.mark.full(why="the decisions are in unit tests; each run takes many seconds")

DRIVER = "580.126.09"
PROGRAM = REPOSITORY / "tests" / "testbed" / "files" / "acceptance" / "standin-gpu-tests"
ACTIONS = REPOSITORY / "plugins" / "action"
OWN = """
import importlib.util, json, os
from pathlib import Path
from ansible.plugins.action import ActionBase
from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _progress
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._lost_connection import (
    lost_connection_fails,
)
from ansible.errors import AnsibleConnectionFailure

NAME = {name!r}


class ActionModule(ActionBase):
    @lost_connection_fails
    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        args, place = self._task.args, Path(os.environ["STANDIN"])
        host = task_vars["inventory_hostname"]
        with (place / "calls").open("a") as calls:
            how = args.get("step") or args.get("state")
            calls.write(json.dumps([host, NAME, how]) + "\\n")
        return {{**result, "changed": False, **getattr(self, NAME)(args, place, task_vars, host)}}

    def gpu_node_facts(self, args, place, task_vars, host):
        facts = json.loads((place / "before").read_text())
        record = place / "records" / host / "state.json"
        values = json.loads(record.read_text())["values"] if record.exists() else {{}}
        facts["acceptance"] = values.get("acceptance")
        facts["driver"]["loaded"] = task_vars.get("standin_driver", facts["driver"]["loaded"])
        if task_vars.get("standin_no_gpu"):
            facts.update(gpus=[], nvml=None)
        return {{"ansible_facts": {{"gpu_node": facts}}}}

    def gpu_node_acceptance(self, args, place, task_vars, host):
        if args["step"] == "test" and task_vars.get("standin_lost"):
            raise AnsibleConnectionFailure("No route to host")
        # The scenario of each host; the real module on this machine.
        scenario = place / f"{{host}}.json"
        scenario.write_text(json.dumps({{"gpus": 2, **task_vars.get("standin_scenario", {{}})}}))
        os.environ["STANDIN_ACCEPTANCE"] = str(scenario)
        state = str(place / "records" / host / "state.json")
        options = {{**args, "state_path": state}}
        if args["step"] == "test" and task_vars.get("standin_detached"):
            answer = self.detached(options, task_vars)
        else:
            answer = self._execute_module(
                module_name="kubegpu.nodes.gpu_node_acceptance",
                module_args=options,
                task_vars={{**task_vars}},
            )
        return {{key: value for key, value in answer.items() if key != "invocation"}}

    def detached(self, options, task_vars):
        # The real action, whose lines come sooner than usual.
        spec = importlib.util.spec_from_file_location("real_action", {real!r})
        real = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(real)
        _progress._FIRST = 1.0
        self._task.args = options
        return real.ActionModule(
            task=self._task, connection=self._connection, play_context=self._play_context,
            loader=self._loader, templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        ).run(task_vars=task_vars)

    def node_gpu_label(self, args, place, task_vars, host):
        (place / "labels.json").write_text(json.dumps(args["nodes"]))
        return {{"nodes": {{}}, "refused": {{}}, "errors": {{}}, "conflicts": []}}
"""
USED = 'if args["state"] == "drained" and not findings else []'


class Acceptances(Upgrades):
    """Nodes with two GPUs, in a cluster."""

    def __init__(self, folder):
        super().__init__(folder, ("gpu_host_maintenance", "gpu_node_health"))
        actions = self._collections / "ansible_collections/kubegpu/nodes/plugins/action"
        for name in ("gpu_node_facts", "gpu_node_acceptance", "node_gpu_label"):
            path = actions / f"{name}.py"
            path.unlink(missing_ok=True)
            path.write_text(OWN.format(name=name, real=str(ACTIONS / path.name)), encoding="utf-8")
        # Pods leave only where some are.
        text = ACTION.format(name="gpu_node_maintenance")
        assert USED in text
        some = USED.replace(" else", ' and hostvars[name].get("standin_used") else')
        (actions / "gpu_node_maintenance.py").unlink(missing_ok=True)
        (actions / "gpu_node_maintenance.py").write_text(text.replace(USED, some))
        devices = [
            {"uuid": uuid, "address": f"0000:3{number}:00.0", "name": "Tesla T4",
             "mig_mode": None, "ecc_mode": "enabled", "memory_total": 15360, "mig_devices": []}
            for number, uuid in enumerate(("GPU-a", "GPU-b"))
        ]  # fmt: skip
        nvml = {"driver_version": DRIVER, "cuda_version": "13.0", "devices": devices}
        facts = installed(driver__loaded=DRIVER, driver__installed=DRIVER, nvml=nvml)
        (folder / "before").write_text(json.dumps(facts), encoding="utf-8")
        self.programs = folder / "programs"
        self.programs.mkdir()
        text = PROGRAM.read_text(encoding="utf-8")
        for name in ("dcgmi", "nvbandwidth", "gpu_burn"):
            own = text.replace("#!/usr/bin/python3", f"#!{sys.executable}", 1)
            (self.programs / name).write_text(own, encoding="utf-8")
            (self.programs / name).chmod(0o755)

    def accept(self, hosts, *arguments, **variables):
        """Run the playbook; return the run, and the report."""
        report = self._folder / "acceptance.json"
        report.unlink(missing_ok=True)
        given = {
            "kubegpu_kube": {"kubeconfig": "/dev/null"},
            "gpu_acceptance_file": str(report),
            "gpu_acceptance_required": True,
            "gpu_acceptance_programs": {
                "dcgm": str(self.programs / "dcgmi"),
                "nvbandwidth": str(self.programs / "nvbandwidth"),
                "gpu_burn": str(self.programs / "gpu_burn"),
            },
            **variables,
        }
        if "--check" in arguments:
            arguments = (*arguments, "-v")
        run = self.play("accept", hosts, *arguments, everywhere=given)
        assert not (report.exists() and "--check" in arguments)
        return run, report_of(run.screen, "__gpu_acceptance_report", report)

    def marks(self):
        nodes = json.loads((self._folder / "labels.json").read_text(encoding="utf-8"))
        return {
            name: (one["labels"].get(MARK), [taint["key"] for taint in one["taints"]],
                   one["drop_taints"])
            for name, one in nodes.items()
        }  # fmt: skip

    def record(self, host):
        path = self._folder / "records" / host / "state.json"
        return json.loads(path.read_text())["values"]["acceptance"] if path.exists() else None


@pytest.fixture
def nodes(tmp_path):
    made = Acceptances(tmp_path)
    made.cluster()
    return made


def outcomes(report):
    return {name: one["outcome"] for name, one in report["hosts"].items()}


def steps(run, host):
    return [how for one, name, how in run.calls if (one, name) == (host, "gpu_node_acceptance")]


def test_a_pass_a_failure_and_a_second_run(nodes):
    hosts = {"gpu1": {}, "gpu2": {"standin_scenario": {"dcgmi": "fail 30 4"}}}
    run, report = nodes.accept(hosts)
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "passed", "gpu2": "failed"} and not report["ok"]
    (found,) = report["hosts"]["gpu2"]["findings"]
    assert (found["error_id"], found["action"]) == (30, "triage")
    assert "LOW_BANDWIDTH (error 30, triage)" in run.words()
    assert report["hosts"]["gpu1"]["values"]["p2p"] == {"0": 240.1, "1": 240.1}
    assert [one["test"] for one in report["hosts"]["gpu1"]["tests"]] == ["dcgm", "nvbandwidth"]
    assert nodes.record("gpu1")["passed"] and not nodes.record("gpu2")["passed"]
    assert nodes.marks() == {"gpu1": ("passed", [], [MARK]), "gpu2": ("failed", [MARK], [])}
    # The taint keeps the pods away: both are released.
    assert nodes.held() == {}
    run, report = nodes.accept({"gpu1": {}, "gpu2": {}})
    assert run.status == 0, run.screen
    assert outcomes(report) == {"gpu1": "unchanged", "gpu2": "passed"}
    assert report["hosts"]["gpu1"]["at"] == nodes.record("gpu1")["at"]
    assert steps(run, "gpu1") == ["look"] and steps(run, "gpu2")[-1] == "keep"
    run, report = nodes.accept({"gpu1": {}, "gpu2": {"standin_driver": "590.1"}})
    assert run.status == 0 and outcomes(report) == {"gpu1": "unchanged", "gpu2": "passed"}
    assert report["hosts"]["gpu2"]["reason"] == "its driver was 580.126.09, and is 590.1"


def test_a_node_without_a_gpu_is_a_row_and_fails_where_gpus_are_expected(nodes):
    bare = {"standin_no_gpu": True, "kubegpu_kube": {}}
    run, report = nodes.accept({"gpu1": {}, "cpu1": bare})
    assert run.status == 0, run.screen
    assert outcomes(report) == {"gpu1": "passed", "cpu1": "not_tested"} and report["ok"]
    assert "cpu1: The node has no NVIDIA GPU." in run.words()
    expects = {**bare, "gpu_acceptance_expect": {"gpus": 8}}
    run, report = nodes.accept({"gpu1": {}, "cpu1": expects})
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "unchanged", "cpu1": "refused"} and not report["ok"]
    for arguments in ((), ("--check",)):
        run, report = nodes.accept({"cpu1": bare}, *arguments)
        assert run.status == 2 and outcomes(report) == {"cpu1": "refused"}, run.screen
        assert "nothing was tested" in run.words()


def test_a_test_that_hangs_shows_what_is_waited_for_and_is_ended(nodes):
    hosts = {"gpu1": {"standin_detached": True, "standin_scenario": {"dcgmi": "hangs"}}}
    run, report = nodes.accept(hosts, gpu_acceptance_level="quick", gpu_acceptance_timeout=4)
    assert run.status == 2, run.screen
    assert [one["code"] for one in report["hosts"]["gpu1"]["findings"]] == ["test_timed_out"]
    line = r"^gpu1: the test dcgm: running, for 0:\d\d of at most 4:04$"
    assert re.search(line, run.screen, re.MULTILINE), run.screen


def test_an_aborted_retest_takes_the_pass_away(nodes):
    run, report = nodes.accept({"gpu1": {}})
    assert run.status == 0 and nodes.marks() == {"gpu1": ("passed", [], [MARK])}, run.screen
    run, report = nodes.accept({"gpu1": {"standin_lost": True}}, gpu_acceptance_again=True)
    assert run.status == 2 and outcomes(report) == {"gpu1": "unreachable"}, run.screen
    assert nodes.record("gpu1")["causes"] == ["the tests started but did not finish"]
    assert nodes.marks() == {"gpu1": ("failed", [MARK], [])}
    # The loop ends with the connection.
    assert steps(run, "gpu1").count("test") == 1
    run, report = nodes.accept({"gpu1": {}})
    assert run.status == 0 and outcomes(report) == {"gpu1": "passed"}, run.screen
    assert "test" in steps(run, "gpu1") and nodes.marks() == {"gpu1": ("passed", [], [MARK])}


def test_only_a_batch_is_out_of_work(nodes):
    run, report = nodes.accept({"gpu1": {}, "gpu2": {}}, kubegpu_serial=1)
    assert run.status == 0, run.screen
    # The stand-in writes a line for each node of a call.
    states = [(host, how) for host, name, how in run.calls if name == "gpu_node_maintenance"]
    assert states == [
        *((host, "drained check") for host in ("gpu1", "gpu2")),
        *((host, how) for host in ("gpu1", "gpu2") for how in ("cordoned", "released")),
    ]
    assert outcomes(report) == {"gpu1": "passed", "gpu2": "passed"} and nodes.held() == {}


def test_a_trial_changes_nothing(nodes):
    run, report = nodes.accept({"gpu1": {}, "gpu2": {"standin_used": True}}, "--check")
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "planned", "gpu2": "refused"}
    assert steps(run, "gpu1") == ["look"] and nodes.held() == {} and nodes.record("gpu1") is None
    assert "ml/web-gpu2" in json.dumps(report) and "gpu_acceptance_drain" in run.words()


def test_pods_leave_where_they_may(nodes):
    run, report = nodes.accept({"gpu1": {"standin_used": True}}, gpu_acceptance_drain=True)
    assert run.status == 0, run.screen
    assert outcomes(report) == {"gpu1": "passed"} and nodes.held() == {}
    states = [how for _host, name, how in run.calls if name == "gpu_node_maintenance"]
    assert states == ["drained check", "cordoned", "drained", "released"]


def test_a_node_without_the_taint_that_fails_stays_out_of_work(nodes):
    hosts = {"gpu1": {"standin_scenario": {"gpu_burn": "faulty"}}, "gpu2": {"standin_lost": True},
             "gpu3": {}}  # fmt: skip
    run, report = nodes.accept(
        hosts, gpu_acceptance_required=False, gpu_acceptance_level="burn_in",
        gpu_acceptance_burn_minutes=1,
    )  # fmt: skip
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "failed", "gpu2": "unreachable", "gpu3": "passed"}
    assert nodes.held() == {"gpu1": "gpu-acceptance", "gpu2": "gpu-acceptance"}
    assert [one["code"] for one in report["hosts"]["gpu1"]["findings"]] == ["gpu_burn_faulty"]
    assert "remains drained" in run.words()
    assert nodes.marks()["gpu1"] == nodes.marks()["gpu2"] == ("failed", [], [])
    run, report = nodes.accept({"gpu1": {}}, gpu_acceptance_required=False)
    assert run.status == 0 and nodes.held() == {"gpu2": "gpu-acceptance"}


def test_hosts_without_a_cluster(nodes):
    run, report = nodes.accept({"gpu1": {}}, kubegpu_kube={})
    assert run.status == 0, run.screen
    assert outcomes(report) == {"gpu1": "passed"} and nodes.held() == {}
    assert {name for _host, name, _how in run.calls} >= {"gpu_host_maintenance"}
    assert not run.hosts("node_gpu_label")


def test_a_node_of_another_maintenance_is_refused(nodes):
    nodes.cluster(gpu1={"unschedulable": True, "held_by": "r2", "was": False})
    run, report = nodes.accept({"gpu1": {}})
    assert run.status == 2 and outcomes(report) == {"gpu1": "refused"}
    assert nodes.held() == {"gpu1": "r2"} and steps(run, "gpu1") == ["look"]


def test_the_report_of_the_hosts_says_how_each_of_them_ended(nodes, tmp_path):
    folder = tmp_path / "report"
    nodes.cluster(gpu3={"unschedulable": True, "held_by": "r2", "was": False})
    hosts = {"gpu1": {}, "gpu2": {"standin_scenario": {"dcgmi": "fail 30 4"}}, "gpu3": {}}
    run, report = nodes.accept(hosts, kubegpu_report_dir=str(folder))
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "passed", "gpu2": "failed", "gpu3": "refused"}
    told = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    found = {node["name"]: node for node in told["nodes"]}
    assert {name: (node["acceptance"], node["state"]) for name, node in found.items()} == {
        "gpu1": ("passed", "ready"), "gpu2": ("failed", "failed"), "gpu3": ("refused", "attention"),
    }  # fmt: skip
    assert found["gpu1"]["notes"][0].startswith("accepted ")
    cause = report["hosts"]["gpu2"]["findings"][0]["cause"]
    assert found["gpu2"]["why"] == cause
    assert "not_accepted" in [one["id"] for one in found["gpu2"]["causes"]]
    assert [one["id"] for one in found["gpu3"]["causes"]] == ["held_by_other"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    markdown = (folder / "report.md").read_text(encoding="utf-8")
    assert "<b>Acceptance:</b> refused" in page and "- Acceptance: refused" in markdown
    assert "The node failed the acceptance" in page
    assert "The node failed the acceptance" in markdown
