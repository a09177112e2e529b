# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report that the playbooks write: report itself, site and verify.

The playbooks and roles are the real ones; what runs on nodes is a stand-in (standin_nodes.py).
"""

from __future__ import annotations

import json

import pytest

from tests.integration.controller.standin_nodes import Nodes

pytestmark = pytest.mark.full(why="the report itself is in unit tests; each run takes many seconds")

HOSTILE = "<script>alert(1)</script>"
CLUSTER = {"kubegpu_kube": {"kubeconfig": "/dev/null"}}
LOOKING = {"gpu_cluster_info", "gpu_node_facts", "gpu_node_health", "gpu_node_verify"}


@pytest.fixture
def nodes(tmp_path):
    return Nodes(tmp_path)


def written(folder):
    assert sorted(path.name for path in folder.iterdir()) == [
        "report.html", "report.json", "report.md",
    ]  # fmt: skip
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return report, {node["name"]: node for node in report["nodes"]}


def test_a_report_of_all_hosts_and_a_second_one(nodes, tmp_path):
    hosts = {
        "gpu1": {"standin_done": True},
        "gpu2": {},
        "gpu3": {"standin_done": True, "standin_fails": "gpu_node_verify"},
        "gone1": {"standin_lost": "gpu_node_facts"},
        HOSTILE: {"standin_done": True},
    }
    folder = tmp_path / "out" / "report"
    everywhere = {**CLUSTER, "kubegpu_report_dir": str(folder)}
    run = nodes.play("report", hosts, everywhere=everywhere)
    assert run.status == 0, run.screen
    assert {name for _host, name, _state in run.calls} <= LOOKING
    report, found = written(folder)
    assert {name: node["state"] for name, node in found.items()} == {
        "gpu1": "ready", "gpu2": "attention", "gpu3": "ready", "gone1": "unknown", HOSTILE: "ready",
    }  # fmt: skip
    # The stand-in of the verification finds nothing wrong with the node that has no driver.
    (cause,) = (one for one in found["gpu2"]["causes"] if one["severity"] != "info")
    assert (cause["id"], cause["severity"]) == ("driver_missing", "warning")
    # A template in a message is text.
    log = {"what": "kernel log", "why": "{{ 7*7 }} is not a number"}
    assert log in found["gpu1"]["unseen"]
    assert {"what": "layers", "why": "It did not build.\nSeen: gcc"} in found["gpu3"]["unseen"]
    assert found["gone1"]["unseen"] == [{"what": "the node", "why": "No route to host"}]
    assert any(one["change"].startswith("driver") for one in found["gpu2"]["decisions"])
    assert report["summary"]["sentence"] in run.words()
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page and HOSTILE not in page
    assert "{{ 7*7 }}" in page
    again = nodes.play("report", hosts, everywhere=everywhere)
    assert again.status == 0 and "changed=1" not in again.screen, again.screen
    later, _found = written(folder)
    assert later["previous"]["compared"] and later["changes"] == []


def test_a_fleet_of_which_no_node_is_reached(nodes, tmp_path):
    hosts = {name: {"standin_lost": "gpu_node_facts"} for name in ("gpu1", "gpu2")}
    run = nodes.play("report", hosts, kubegpu_report_dir=str(tmp_path / "report"))
    assert run.status == 0, run.screen
    report, _found = written(tmp_path / "report")
    assert report["summary"]["states"]["unknown"] == 2


def test_site_and_verify_write_what_they_know(nodes, tmp_path):
    folder = tmp_path / "report"
    hosts = {"gpu1": {}, "gpu2": {"standin_fails": "nvidia_driver"}}
    driver = ("--tags", "driver")
    run = nodes.play("site", hosts, *driver, "--check", kubegpu_report_dir=str(folder))
    assert not folder.exists(), run.screen
    run = nodes.play("site", hosts, *driver, kubegpu_report_dir=str(folder))
    assert run.status == 2, run.screen
    report, found = written(folder)
    assert found["gpu2"]["state"] == "failed" and found["gpu1"]["decisions"]
    actions = {one["id"]: one for one in report["actions"]}
    assert actions["run_failed"]["cause"] == "It did not build."
    assert "plan_differs" not in actions
    own = {"gpu1": {"standin_done": True}}
    run = nodes.play("verify", own, kubegpu_report_dir=str(tmp_path / "verified"))
    assert run.status == 0, run.screen
    _report, found = written(tmp_path / "verified")
    assert [one["layer"] for one in found["gpu1"]["layers"]] == ["pci"]
    assert found["gpu1"]["decisions"] == []
    # Without the folder there is none.
    run = nodes.play("verify", own)
    assert run.status == 0 and not (tmp_path / "kubegpu-report").exists()


def test_diagnose_writes_the_root_causes_that_it_found(nodes, tmp_path):
    folder = tmp_path / "report"
    hosts = {"gpu1": {"standin_done": True}, "gpu2": {"standin_fails": "gpu_node_verify"}}
    own = {"kubegpu_report_dir": str(folder), "gpu_diagnose_file": str(tmp_path / "found.json")}
    run = nodes.play("diagnose", hosts, **own)
    assert run.status == 2, run.screen
    assert not json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["ok"]
    report, found = written(folder)
    assert {name: node["state"] for name, node in found.items()} == {
        "gpu1": "ready", "gpu2": "failed",
    }  # fmt: skip
    (cause,) = (one for one in found["gpu2"]["causes"] if one["id"] == "driver_missing")
    assert cause["confidence"] == "proven"
    assert cause["fix"].endswith("kubegpu.nodes.site --limit gpu2 --tags driver")
    # For people, with the inventory of this run.
    pasted = "ansible-playbook kubegpu.nodes.site -i inventory --limit gpu2 --tags driver"
    assert any(line.strip() == f"Fix: {pasted}" for line in run.screen.splitlines()), run.screen
    for name in ("report.md", "report.html"):
        assert pasted in (folder / name).read_text(encoding="utf-8")
    assert report["unseen"] == [
        {"what": "the cluster", "why": "kubegpu_kube has neither kubeconfig nor host"}
    ]
    assert [one["id"] for one in report["actions"]] == ["driver_missing", "run_failed"]
