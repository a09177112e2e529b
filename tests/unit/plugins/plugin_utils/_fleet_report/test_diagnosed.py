# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a report says after a diagnosis, which the real filter makes of the hosts."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._diagnose import diagnose_hosts
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report import html, markdown
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.build import build
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.sources import (
    host_sources,
    others,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.types import Request
from tests.unit.fixtures import fleet as made

WAITS = {
    "namespace": "ml", "name": "train-1", "phase": "Pending", "node": None, "asks": {}, "nodes": [],
    "findings": [{"code": "quota_exceeded", "cause": "The quota of ml has no GPU left.",
                  "evidence": "8 of 8", "next_step": "Raise it, or end the pod ml/train-1."}],
}  # fmt: skip


def host(number, *findings, gpus=2, root=True, failed="", code="cri_not_ready", bare=False, **more):
    """Return the variables of a host after the playbook diagnose has read it."""
    own = made.facts(number, gpus=gpus)
    if bare:
        own["driver"] = {**own["driver"], "loaded": None, "installed": None}
    name = f"n{number}"
    layers = made.layers(name, failed, code=code, cause="It does not answer.")
    return {
        "ansible_facts": {"gpu_node": own},
        "gpu_diagnose_plan": {"health": made.health(own, *findings, **more), "root": root},
        "__layers": layers,
    }


def reported(*hosts, pods=(), nodes=None, previous=None):
    """Return the diagnosis of hosts n1, n2 ... and the report that diagnose writes."""
    hostvars = {f"n{number}": one for number, one in enumerate(hosts, 1)}
    rows = [{"node": name, "layers": one.get("__layers", [])} for name, one in hostvars.items()]
    cluster = {"layers": [], "pods": list(pods), "node_of": nodes} if nodes is not None else {}
    for one in hostvars.values():
        one["gpu_verify_result"] = {"rows": rows, "cluster": {}}
    diagnosis = diagnose_hosts([*hostvars], hostvars, rows, cluster)
    sources = host_sources([*hostvars], hostvars, diagnosis)
    request = Request(generated=made.TIME)
    return diagnosis, build(sources, request, previous, others([*hostvars], diagnosis))


def states(report):
    return {node["name"]: node["state"] for node in report["nodes"]}


def test_one_cause_on_three_nodes_is_one_action_with_one_command():
    _known_faults, report = reported(*(host(number, bare=True) for number in (1, 2, 3)))
    (action,) = report["actions"]
    assert (action["id"], [one["node"] for one in action["nodes"]]) == (
        "driver_missing", ["n1", "n2", "n3"],
    )  # fmt: skip
    assert action["fix"] == "ansible-playbook kubegpu.nodes.site --limit n1,n2,n3 --tags driver"
    assert {one["subject"] for one in action["nodes"]} == {""}
    page = html.render(report)
    assert "--limit n1,n2,n3 --tags driver" in page and "--limit n2 --tags driver" in page
    assert "--limit n1,n2,n3 --tags driver" in markdown.render(report).replace("\\", "")


def test_gpus_of_several_nodes_of_a_cluster_are_one_action():
    hosts = [host(number, made.remap()) for number in (1, 2)]
    _known_faults, report = reported(*hosts, nodes={"n1": "k1", "n2": "k2"})
    (action,) = report["actions"]
    assert action["id"] == "row_remap_pending"
    assert action["fix"].startswith("for each NODE and HOST, one after the other: kubectl drain ")
    assert [(one["node"], one["subject"]) for one in action["nodes"]] == [
        ("n1", "0000:11:00.0"), ("n2", "0000:11:00.0"),
    ]  # fmt: skip
    assert states(report) == {"n1": "attention", "n2": "attention"}


def test_a_pod_without_a_node_is_an_action_of_no_node_and_counted_in_the_sentence():
    diagnosis, report = reported(host(1), pods=[WAITS], nodes={"n1": "k1"})
    assert [one["host"] for one in diagnosis["findings"]] == [""]
    assert report["summary"]["sentence"] == (
        "The only node is ready for GPU containers; 1 finding is about pods or the cluster: The "
        "quota of ml has no GPU left."
    )
    (action,) = report["actions"]
    assert [(one["node"], one["subject"]) for one in action["nodes"]] == [("", "pod ml/train-1")]
    assert "<b>No node:</b> pod ml/train-1" in html.render(report)
    assert "| pod ml/train-1 |" in markdown.render(report)


def test_pods_with_one_cause_are_one_action():
    pods = [{**WAITS, "name": name, "findings": [
        {**WAITS["findings"][0], "next_step": f"Raise it, or end the pod ml/{name}.",
         "names": {"pod": f"ml/{name}"}, "template": "Raise it, or end the pod {pod}."},
    ]} for name in ("train-1", "train-2")]  # fmt: skip
    _known_faults, report = reported(host(1), pods=pods, nodes={"n1": "k1"})
    (action,) = report["actions"]
    assert action["next_step"] == "Raise it, or end the pod POD."
    assert "2 findings are about pods or the cluster" in report["summary"]["sentence"]


def test_a_pod_of_a_user_on_a_node_is_no_fault_of_the_node():
    pod = {**WAITS, "phase": "Failed", "node": "k1"}
    diagnosis, report = reported(host(1), pods=[pod], nodes={"n1": "k1"})
    assert diagnosis["hosts"]["n1"]["verdict"] == "ok" and not diagnosis["ok"]
    assert states(report) == {"n1": "ready"}
    ((affected,),) = (one["nodes"] for one in report["actions"])
    assert (affected["node"], affected["subject"]) == ("n1", "pod ml/train-1")


def test_what_a_diagnosis_without_root_leaves_out_does_not_come_back():
    diagnosis, report = reported(host(1, failed="runtime", root=False))
    assert diagnosis["ok"] and diagnosis["hosts"]["n1"]["verdict"] == "ok"
    assert states(report) == {"n1": "ready"} and report["actions"] == []
    assert report["summary"]["sentence"] == "The only node is ready for GPU containers."
    (node,) = report["nodes"]
    (runtime,) = (one for one in node["layers"] if one["layer"] == "runtime")
    assert (runtime["status"], runtime["text"]) == ("not tried", "only root can read it (become)")
    # As root it is a fault.
    assert states(reported(host(1, failed="runtime"))[1]) == {"n1": "failed"}


def test_what_follows_from_a_root_cause_is_no_cause_of_its_own():
    lost = made.finding("gpu_lost", "error", "0000:10:00.0", "A GPU is off the bus.")
    diagnosis, report = reported(host(1, lost, failed="nvml", code="nvml_failed"))
    (node,) = report["nodes"]
    assert [one["id"] for one in node["causes"]] == [one["id"] for one in diagnosis["findings"]]
    assert (node["causes"][0]["id"], node["causes"][0]["follows"]) == ("gpu_lost", ["nvml_failed"])


def test_the_values_of_gpus_are_those_of_the_health_that_the_diagnosis_read():
    events = [{"kind": "xid", "number": 31, "boot": 0, "address": "0000:10:00.0", "count": 2}]
    _known_faults, report = reported(host(1, events=events))
    first, second = report["nodes"][0]["gpus"]
    assert (first["errors"], first["xids"], second["xids"]) == ("none", "31 (2 times)", "")


def test_what_could_not_be_seen_is_what_the_diagnosis_says():
    unseen = [{"what": "kernel log", "why": "dmesg: not permitted"}]
    _known_faults, report = reported(host(1, unseen=unseen), {})
    seen = {node["name"]: node["unseen"] for node in report["nodes"]}
    assert seen == {
        "n1": [{"what": "kernel log", "why": "dmesg: not permitted"}],
        "n2": [{"what": "the node", "why": "its facts could not be read"}],
    }
    # The row of the cluster belongs to no node.
    assert report["unseen"] == [
        {"what": "the cluster", "why": "kubegpu_kube has neither kubeconfig nor host"}
    ]
    assert states(report) == {"n1": "ready", "n2": "unknown"}
    assert (
        "<li><b>the cluster</b>: kubegpu_kube has neither kubeconfig nor host</li>"
        in html.render(report)
    )
    assert (
        "| - | the cluster | kubegpu\\_kube has neither kubeconfig nor host |"
        in markdown.render(report)
    )


@pytest.mark.parametrize("failure", [{}, {"task": "Look", "cause": "No answer."}])
def test_a_node_that_was_read_in_part_is_neither_ready_nor_failed(failure):
    one = {**host(1), "kubegpu_failure": failure}
    diagnosis, report = reported(one, host(2), nodes={"n2": "k2"})
    assert diagnosis["hosts"]["n1"]["verdict"] == "partly read"
    assert states(report) == {"n1": "partly", "n2": "ready"}
    assert report["summary"]["sentence"] == (
        "1 of 2 nodes is ready for GPU containers; 1 could be read in part only."
    )
    (action,) = report["actions"]
    assert (action["id"], action["severity"]) == (
        "run_failed" if failure else "partly_read", "warning",
    )  # fmt: skip
    assert failure or "its node in Kubernetes" in action["nodes"][0]["evidence"]
    assert '<span class="state partly">Read in part</span>' in html.render(report)
    assert "### n1: Read in part" in markdown.render(report)


def test_what_was_not_seen_of_a_node_is_not_said_to_be_gone():
    _known_faults, before = reported(host(1, made.remap()), nodes={"n1": "k1"})
    _known_faults, after = reported(host(1), nodes={}, previous=before)
    assert [(one["kind"], one["text"]) for one in after["changes"]] == [
        ("state", "was ready, with attention needed, is read in part"),
        ("cause_new", "new: A part of the node could not be read, so that it is unknown whether it "
         "is ready."),
    ]  # fmt: skip


def test_a_report_of_a_diagnosis_is_equal_to_the_byte():
    first, again = (
        reported(host(1, bare=True), host(2, made.remap()), pods=[WAITS], nodes={})[1]
        for _time in range(2)
    )
    assert html.render(first) == html.render(again)
    assert markdown.render(first) == markdown.render(again)
