# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role gpu_acceptance makes of its modules' answers: its own expressions, in their order.

Ansible runs the playbook in tests/integration/controller/test_acceptance.py.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from ansible_collections.kubegpu.nodes.plugins.filter.gpu_node_labels import gpu_node_labels
from ansible_collections.kubegpu.nodes.plugins.filter.rollout import rollout
from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.marks import MARK
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.cluster import host_row
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.types import Node, Run
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._acceptance import report_hosts
from tests.unit.plugins.module_utils._acceptance.test_plan import PROGRAMS, facts

ROLES = Path(__file__).parents[3] / "roles"
AT = "2026-11-24T02:00:00+00:00"
HEALTHY = {"findings": [], "new": None, "gpus": []}
LOW = {"code": "dcgm_failed", "severity": "error", "subject": "GPU 1", "cause": "It failed.",
       "next_step": "", "evidence": "", "error_id": 30}  # fmt: skip


@cache
def role(name):
    loader = DataLoader()
    found = {}
    for folder in ("defaults", "vars"):
        path = str(ROLES / name / folder / "main.yml")
        found.update(loader.load_from_file(path, trusted_as_template=True))
    return found


def tasks_of(tasks):
    for task in tasks:
        yield task
        for part in ("block", "rescue"):
            yield from tasks_of(task.get(part, ()))


def trusted(value):
    """Return a value of a file of tasks, whose texts are templates."""
    if isinstance(value, str):
        return trust_as_template(value)
    if isinstance(value, list):
        return [trusted(one) for one in value]
    if isinstance(value, dict):
        return {key: trusted(one) for key, one in value.items()}
    return value


class Host:
    """One host of the play, with the facts that the role sets."""

    def __init__(self, name="gpu1", **variables):
        self.name = name
        self.facts = {"ansible_facts": {"gpu_node": facts()}, **variables}

    def evaluate(self, expression, roles=("gpu_acceptance",), **more):
        known = {key: value for one in roles for key, value in role(one).items()}
        own = {**known, "inventory_hostname": self.name, **self.facts, **more}
        hosts = {
            "hostvars": {self.name: {"inventory_hostname": self.name, **self.facts}},
            "ansible_play_batch": [self.name], "ansible_play_hosts": [self.name],
            "ansible_play_hosts_all": [self.name], "ansible_check_mode": False,
        }  # fmt: skip
        templar = Templar(DataLoader(), variables={**own, **hosts})
        filters = templar._engine.environment.filters
        filters["kubegpu.nodes.gpu_node_labels"] = gpu_node_labels
        filters["kubegpu.nodes.rollout"] = rollout
        return templar.template(trust_as_template(expression))

    def set(self, file, task_name, **more):
        """Set the facts of a task, where its condition applies."""
        tasks = yaml.safe_load((ROLES / "gpu_acceptance" / "tasks" / f"{file}.yml").read_text())
        (task,) = [one for one in tasks_of(tasks) if one["name"] == task_name]
        own = {key: trusted(text) for key, text in task.get("vars", {}).items()}
        condition = task.get("when")
        if condition and not self.evaluate("{{ " + condition + " }}", **own, **more):
            return
        for name, value in task["ansible.builtin.set_fact"].items():
            text = value if isinstance(value, str) else yaml.safe_dump(value)
            self.facts[name] = (
                self.evaluate(text, **own, **more) if isinstance(value, str) else value
            )

    def planned(self, row=None, **looked):
        row = row or {"findings": [], "evicted": [], "waiting": []}
        self.set("plan", "Store which node this host is")
        self.set(
            "plan", "Plan the node",
            __gpu_acceptance_looked={"programs": PROGRAMS, "users": [], **looked},
            __gpu_acceptance_tried={"nodes": {self.name: row}},
            __gpu_acceptance_answer={"nodes": {self.name: row}},
        )  # fmt: skip
        return self.facts["gpu_acceptance_plan"]

    def tested(self, findings=(), row=None, users=(), **cordoned):
        self.set("main", "Start the result")
        answer = {"nodes": {self.name: row or {"findings": [], "evicted": []}}, **cordoned}
        self.set(
            "take_out", "Publish what blocks", __gpu_acceptance_cordoned=answer,
            __gpu_acceptance_answer=answer, __gpu_acceptance_drained={"skipped": True},
        )  # fmt: skip
        self.set(
            "main", "Publish what uses the GPUs",
            __gpu_acceptance_seen={"programs": PROGRAMS, "users": list(users)},
        )  # fmt: skip
        if self.result["outcome"]:
            return
        test = {"test": "dcgm", "findings": list(findings), "measured": {}, "seconds": 1}
        rows = [{"node": self.name, "layers": [{"layer": "pci", "ok": True}]}]
        self.set(
            "test", "Judge the node", __gpu_acceptance_before=HEALTHY,
            __gpu_acceptance_after={**HEALTHY, "new": []}, gpu_verify_result={"rows": rows},
            __gpu_acceptance_tested={"results": [test]},
        )  # fmt: skip

    def released(self, **answer):
        given = {"nodes": {self.name: {"findings": []}}, **answer}
        self.set(
            "release", "Publish whether the node was released",
            __gpu_acceptance_released=given, __gpu_acceptance_answer=given,
        )  # fmt: skip

    def reported(self):
        report = report_hosts([self.name], {self.name: self.facts}, ended=AT, checked=False)
        return report["hosts"][self.name]

    @property
    def result(self):
        return self.facts["gpu_acceptance_result"]


IN_CLUSTER = {"kubegpu_kube": {"kubeconfig": "/dev/null"}}


@pytest.mark.parametrize("where", [IN_CLUSTER, {}])
def test_a_node_that_passes_is_released(where):
    host = Host(**where)
    assert host.planned()["action"] == "run"
    host.tested()
    assert host.result["outcome"] == "passed" and host.result["held"] is True
    record = host.evaluate(
        "{{ gpu_acceptance_result | kubegpu.nodes.rollout('acceptance_record') }}"
    )
    assert record["passed"] is True and record["driver"] == "580.126.09"
    host.released()
    assert host.result["released"] is True
    report = host.reported()
    assert (report["outcome"], report["kept"], report["level"]) == ("passed", False, "standard")


@pytest.mark.parametrize(("required", "kept"), [(True, False), (False, True)])
def test_a_node_that_fails_stays_out_of_work_unless_it_has_the_taint(required, kept):
    host = Host(**IN_CLUSTER, gpu_acceptance_required=required)
    host.planned()
    host.tested([LOW])
    host.released()
    report = host.reported()
    assert (report["outcome"], report["kept"]) == ("failed", kept)
    assert [one["error_id"] for one in report["findings"]] == [30]


def test_a_taint_does_not_help_a_host_without_a_cluster():
    host = Host(gpu_acceptance_required=True)
    host.planned()
    host.tested([LOW])
    host.released()
    assert host.reported()["kept"] is True


def test_what_blocks_is_told_and_nothing_is_tested():
    host = Host(**IN_CLUSTER)
    host.planned()
    blocked = {"findings": [{"code": "pdb_blocks", "cause": "The budget."}], "evicted": []}
    host.tested(row=blocked)
    assert host.result["outcome"] == "blocked" and host.result["at"] == ""
    host.released()
    report = host.reported()
    assert (report["outcome"], report["kept"]) == ("blocked", False)
    assert [one["code"] for one in report["findings"]] == ["pdb_blocks"]


def test_work_that_came_after_the_plan_fails_no_node():
    host = Host(**IN_CLUSTER)
    host.planned()
    host.tested(users=["python (pid 7)"])
    assert host.result["at"] == ""
    host.released()
    report = host.reported()
    assert (report["outcome"], report["kept"]) == ("blocked", False)
    assert [one["code"] for one in report["findings"]] == ["gpus_in_use"]


def test_with_a_drain_all_of_the_batch_is_drained():
    text = "{{ ansible_play_batch | kubegpu.nodes.rollout('acceptance_leaving', hostvars) }}"
    for drain in (True, False):
        host = Host(**IN_CLUSTER, gpu_acceptance_drain=drain)
        assert host.planned()["leave"] == []
        assert host.evaluate(text) == (["gpu1"] if drain else [])


def test_a_failed_node_without_its_taint_is_not_released():
    def back(**variables):
        host = Host(**IN_CLUSTER, gpu_acceptance_required=True, **variables)
        host.planned()
        host.tested([LOW])
        return host.evaluate("{{ __gpu_acceptance_back }}")

    assert back() == ["gpu1"]
    # Labelling failed.
    assert back(kubegpu_failure={"task": "Label", "message": "Forbidden"}) == []
    # The new result was not kept, so that the taint does not follow.
    old = {"passed": True, "at": AT, "level": "quick", "driver": "580.126.09",
           "gpus": ["GPU-a", "GPU-b"], "tests": [], "causes": []}  # fmt: skip
    assert back(ansible_facts={"gpu_node": facts(acceptance=old)}) == []


@pytest.mark.parametrize("code", ["held_by_other", "host_held_by_other"])
def test_what_another_run_holds_is_no_failure_of_a_node_without_anything_to_do(code):
    done = {"passed": True, "at": AT, "level": "standard", "driver": "580.126.09",
            "gpus": ["GPU-a", "GPU-b"], "tests": [], "causes": []}  # fmt: skip
    held = {"nodes": {"gpu1": {"findings": [{"code": code, "cause": "r2 holds it."}]}}}
    host = Host(**IN_CLUSTER, ansible_facts={"gpu_node": facts(acceptance=done)})
    assert host.planned()["action"] == "none"
    host.released(**held)
    assert host.reported()["outcome"] == "unchanged"
    host = Host(**IN_CLUSTER)
    host.planned()
    host.tested(row={"findings": [{"code": code, "cause": "r2 holds it."}], "evicted": []})
    host.released(**held)
    report = host.reported()
    assert (report["outcome"], report["kept"]) == ("blocked", False)
    assert [one["code"] for one in report["findings"]] == [code]


def test_the_runs_name_is_that_of_its_maintenance():
    host = Host(**IN_CLUSTER, gpu_acceptance_run="second")
    assert host.evaluate("{{ __gpu_acceptance_maintenance.run }}") == "second"


def test_a_release_that_fails_fails_the_node():
    host = Host(**IN_CLUSTER)
    host.planned()
    host.tested()
    host.released(nodes={"gpu1": {"findings": [{"code": "node_gone", "cause": "Gone."}]}})
    report = host.reported()
    assert (report["outcome"], report["kept"]) == ("failed", True)
    assert [one["code"] for one in report["findings"]] == ["node_gone"]


def test_a_cluster_that_does_not_answer_refuses_the_node():
    host = Host(**IN_CLUSTER)
    host.set("plan", "Store which node this host is")
    host.set(
        "plan", "Plan the node", __gpu_acceptance_looked={"programs": PROGRAMS, "users": []},
        __gpu_acceptance_tried={"failed": True, "msg": "No route to the API server."},
    )  # fmt: skip
    assert host.facts["gpu_acceptance_plan"]["action"] == "refuse"
    assert "No route to the API server." in host.reported()["findings"][0]["cause"]


def test_a_host_that_was_not_looked_at_is_refused():
    """The task has no failure: ``failed_when`` has taken it from the answer."""
    host = Host(**IN_CLUSTER)
    host.set("plan", "Store which node this host is")
    host.set(
        "plan", "Plan the node", __gpu_acceptance_looked={"failed": False, "msg": "No Python."},
        __gpu_acceptance_tried={"nodes": {"gpu1": {"findings": []}}},
    )  # fmt: skip
    report = host.reported()
    assert (report["outcome"], report["findings"][0]["cause"]) == ("refused", "No Python.")


@pytest.mark.parametrize("in_a_loop", [True, False])
def test_a_lost_node_is_unreachable(in_a_loop):
    host = Host(**IN_CLUSTER)
    host.planned()
    host.tested()
    host.facts["gpu_acceptance_result"] = {**host.result, "outcome": "", "at": "", "findings": []}
    lost = {"msg": "No route to host", "lost_connection": True, "failed": True}
    loop = {"msg": "One or more items failed", "results": [{"test": "dcgm"}, lost]}
    host.set(
        "test", "Store the failure", ansible_failed_task={"name": "Run the tests"},
        ansible_failed_result=loop if in_a_loop else lost,
    )  # fmt: skip
    host.released()
    report = host.reported()
    assert (report["outcome"], report["kept"]) == ("unreachable", True)
    assert report["findings"][0]["cause"] == "Run the tests: No route to host"


def test_the_node_is_marked_with_its_labels():
    def marked(gpu_node, **more):
        return host_row("gpu_node_labels", "gpu1", Node(gpu_node, more, Run(), {}, ()))

    plain = marked(facts())
    assert plain["taints"] == [] and plain["drop_taints"] == [] and plain["annotations"] == {}
    assert MARK not in plain["labels"] and plain["labels"]["kubegpu.nodes/gpu"] == "nvidia"
    new = marked(facts(), gpu_acceptance_required=True)
    assert [one["key"] for one in new["taints"]] == [MARK] and new["labels"] == plain["labels"]
    own = {"gpu_node_labels_taints": [{"key": MARK, "value": "own", "effect": "NoExecute"},
                                      {"key": "gpu", "effect": "NoSchedule"}]}  # fmt: skip
    both = marked(facts(), gpu_acceptance_required=True, **own)["taints"]
    assert [(one["key"], one.get("value")) for one in both] == [("gpu", None), (MARK, "pending")]
    done = {"passed": True, "at": AT, "level": "quick", "driver": "580.126.09",
            "gpus": ["GPU-a", "GPU-b"], "tests": [], "causes": []}  # fmt: skip
    passed = marked(facts(acceptance=done), gpu_acceptance_required=True)
    assert passed["labels"] == {**plain["labels"], MARK: "passed"}
    assert passed["taints"] == [] and passed["drop_taints"] == [MARK]
    assert [one["key"] for one in marked(facts(acceptance=done), **own)["taints"]] == ["gpu"]
