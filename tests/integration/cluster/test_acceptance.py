# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node of the real cluster that takes pods only after its acceptance.

API server, scheduler, kubelet, Ansible and the connection to the node are real. GPUs, dcgmi,
nvbandwidth and gpu_burn are stand-ins. The tests of this file are one story, in their order.
"""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._acceptance.marks import MARK
from tests.integration.cluster import accepting
from tests.integration.cluster.diagnosing import diagnose, errors
from tests.integration.fleet.playbooks import on_nodes, play
from tests.integration.printed import report_of
from tests.testbed.cluster_images import BUSYBOX
from tests.testbed.fleet import chosen
from tests.testbed.paths import BUILD

HOST, GPU, POD = "kube-a10", "nvidia.com/gpu", "waits-for-acceptance"
REPORT = BUILD / "acceptance.json"
SEEN = BUILD / "seen"
pytestmark = pytest.mark.full(why="a node of the cluster joins, fails, passes, and leaves again")


class Bed:
    """The node that joins, by its host and by its name in Kubernetes."""

    def __init__(self, kube):
        self.kube = kube
        self.machine = next(one for one in chosen() if one.name == HOST)
        self.name = self.machine.kubernetes

    def scenario(self, **how):
        accepting.scenario(self.machine, **how)

    def play(self, name, *arguments, **variables):
        given = {"gpu_acceptance_required": True, "gpu_acceptance_file": str(REPORT), **variables}
        return play(name, "--limit", HOST, *arguments, variables=given)

    def accept(self, name, *arguments, **variables):
        """Run the playbook; return the run and the host's part of the report."""
        REPORT.unlink(missing_ok=True)
        run = self.play("accept", *arguments, **variables)
        SEEN.mkdir(exist_ok=True)
        shown = run.screen.strip()
        (SEEN / f"accept-{name}.txt").write_text(f"{shown}\n", encoding="utf-8")
        return run, report_of(run.output, "__gpu_acceptance_report", REPORT)["hosts"][HOST]

    def node(self):
        return json.loads(self.kube.kubectl("get", "node", self.name, "-o", "json"))

    def taints(self):
        found = self.node()["spec"].get("taints") or ()
        return [f"{one['key']}={one.get('value', '')}:{one['effect']}" for one in found]

    def label(self):
        return self.node()["metadata"]["labels"].get(MARK)

    def annotation(self):
        return json.loads(self.node()["metadata"]["annotations"].get(MARK, "null"))

    def pod(self):
        found = json.loads(self.kube.kubectl("get", "pod", POD, "-o", "json"))["status"]
        why = [one.get("message", "") for one in found.get("conditions", ())]
        return found["phase"], " ".join(why)

    def pod_is(self, phase, seconds):
        deadline = time.monotonic() + seconds
        while self.pod()[0] != phase and time.monotonic() < deadline:
            time.sleep(1)
        return self.pod()[0] == phase

    def end_pod(self):
        self.kube.kubectl("delete", "pod", POD, "--ignore-not-found", "--timeout=120s")

    def calls(self):
        text = on_nodes(f"cat {accepting.SCENARIO}.calls 2>/dev/null || true", HOST)[HOST]
        return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def bed(cluster):
    made = Bed(cluster)
    accepting.install(made.machine)
    run = made.play("site")
    assert run.status == 0, run.output
    yield made
    made.end_pod()
    made.play("teardown")
    accepting.remove(made.machine)


def test_a_new_node_takes_no_pod_with_a_gpu(bed):
    assert bed.taints() == [f"{MARK}=pending:NoSchedule"] and bed.label() is None
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POD},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {"kubernetes.io/hostname": bed.name},
            "tolerations": [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}],
            "containers": [
                {
                    "name": "main",
                    "image": BUSYBOX,
                    "command": ["sleep", "3600"],
                    "resources": {"limits": {GPU: 1}},
                }
            ],
        },
    }
    bed.kube.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    deadline = time.monotonic() + 60
    while MARK not in bed.pod()[1] and time.monotonic() < deadline:
        time.sleep(1)
    phase, why = bed.pod()
    assert phase == "Pending" and MARK in why


def test_a_diagnosis_says_that_the_acceptance_keeps_the_pod_off(bed):
    asked = f"default/{POD}"
    _run, result = diagnose("not-accepted", "--limit", HOST, gpu_diagnose_pods=[asked])
    assert errors(result) == {asked: ["node_not_accepted"]}, result["findings"]
    # As a run of it holds the node while it tests.
    held = json.dumps({"run": "gpu-acceptance"})
    bed.kube.kubectl("annotate", "node", bed.name, f"kubegpu.nodes/maintenance={held}")
    try:
        bed.kube.kubectl("cordon", bed.name)
        _run, result = diagnose("in-acceptance", "--limit", HOST, gpu_diagnose_pods=[asked])
    finally:
        bed.kube.kubectl("uncordon", bed.name)
        bed.kube.kubectl("annotate", "node", bed.name, "kubegpu.nodes/maintenance-")
    assert errors(result) == {asked: ["held_by_acceptance"]}, result["findings"]
    (one,) = (one for one in result["findings"] if one["severity"] == "error")
    assert one["fix"] == "ansible-playbook kubegpu.nodes.accept"


def test_a_trial_runs_no_test(bed):
    run, host = bed.accept("check", "--check")
    assert run.status == 0, run.output
    assert host["outcome"] == "planned" and bed.calls() == []
    assert bed.taints() == [f"{MARK}=pending:NoSchedule"] and bed.label() is None


def test_a_node_that_fails_keeps_the_taint_and_says_why(bed):
    bed.scenario(dcgmi="fail 30 4")
    run, host = bed.accept("failed")
    assert run.status == 2, run.output
    (found,) = [one for one in host["findings"] if one["severity"] == "error"]
    assert (found["code"], found["error_id"], found["error"]) == (
        "dcgm_failed",
        30,
        "LOW_BANDWIDTH",
    )
    assert "LOW_BANDWIDTH (error 30, triage)" in " ".join(run.output.split())
    assert host["outcome"] == "failed" and not host["kept"]
    assert bed.taints() == [f"{MARK}=pending:NoSchedule"] and bed.label() == "failed"
    assert "unschedulable" not in bed.node()["spec"] and bed.pod()[0] == "Pending"
    assert bed.calls()[0] == ["dcgmi", "diag", "--run", "2", "--json"]


def test_a_test_that_hangs_ends_with_all_that_it_started(bed):
    bed.scenario(dcgmi="hangs")
    run, host = bed.accept("hangs", gpu_acceptance_level="quick", gpu_acceptance_timeout=2)
    assert run.status == 2, run.output
    assert [one["code"] for one in host["findings"]] == ["test_timed_out"]
    left = on_nodes("grep -lsa '[d]cgmi' /proc/[0-9]*/cmdline | wc -l", HOST)
    assert left[HOST].strip() == "0", on_nodes("ps -ef", HOST)
    assert bed.taints() == [f"{MARK}=pending:NoSchedule"]


def test_a_node_that_passes_takes_the_pod(bed):
    bed.scenario()
    run, host = bed.accept("passed", gpu_acceptance_expect={"gpus": 2, "product": "A10"})
    assert run.status == 0, run.output
    assert host["outcome"] == "passed", host
    assert [one["test"] for one in host["tests"]] == ["dcgm", "nvbandwidth"]
    assert bed.taints() == [] and bed.label() == "passed"
    assert bed.annotation() == {name: host[name] for name in ("at", "level", "driver")}
    assert bed.pod_is("Running", 180), bed.pod()


def test_a_second_run_has_nothing_to_do(bed):
    before = bed.calls()
    run, host = bed.accept("again")
    assert run.status == 0, run.output
    assert host["outcome"] == "unchanged" and bed.calls() == before
    assert run.stats[HOST]["changed"] == 0, run.changed()
    assert bed.play("site").stats[HOST]["changed"] == 0


def test_a_node_in_use_is_refused_by_the_name_of_the_pod(bed):
    run, host = bed.accept("in-use", gpu_acceptance_again=True)
    assert run.status == 2, run.output
    (found,) = host["findings"]
    assert found["code"] == "gpus_in_use" and f"default/{POD}" in found["evidence"]
    assert bed.pod()[0] == "Running" and "unschedulable" not in bed.node()["spec"]


def test_the_report_of_the_fleet_has_date_and_level(bed, tmp_path):
    run = bed.play("report", gpu_report_dir=str(tmp_path))
    assert run.status == 0, run.output
    (node,) = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["nodes"]
    at = bed.annotation()["at"]
    assert any(f"accepted {at} at the level standard" in note for note in node["notes"])


def test_a_taint_of_the_kubelet_goes_with_a_pass_too(bed):
    bed.kube.kubectl("taint", "node", bed.name, f"{MARK}=registered:NoSchedule")
    run, host = bed.accept("foreign-taint")
    assert run.status == 0 and host["outcome"] == "unchanged" and bed.taints() == []


def test_a_teardown_takes_all_of_it_away(bed):
    bed.end_pod()
    run = bed.play("teardown")
    assert run.status == 0, run.output
    found = bed.node()["metadata"]
    assert MARK not in found["labels"] and MARK not in found["annotations"] and not bed.taints()
    record = on_nodes("cat /var/lib/kubegpu/state.json 2>/dev/null || echo none", HOST)[HOST]
    assert '"acceptance"' not in record
