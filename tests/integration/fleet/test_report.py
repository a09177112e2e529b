# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reports of report, site, verify and diagnose over ssh, of nodes that a run has converged.

The PCI tree and NVIDIA's programs are stand-ins; containerd, dockerd, systemd and the kernel's log
are real.
"""

from __future__ import annotations

import contextlib
import json

import pytest
import yaml

from tests.integration.fleet.playbooks import on_nodes, play
from tests.testbed.paths import INVENTORY

pytestmark = pytest.mark.full(why="reads nodes of test_site.py; the report itself is unit tests")

# Without a driver; with one; without a GPU.
BARE, WHOLE, WITHOUT = "gpu1", "gpu3", "cpu1"
HOSTS = f"{BARE}:{WHOLE}:{WITHOUT}"
RUNTIME = "/usr/bin/nvidia-container-runtime"
FILES = ("report.html", "report.json", "report.md")


def report(folder, name="report", limit=HOSTS, arguments=(), **variables):
    """Run a playbook that writes a report; return the run, the report and its nodes by name."""
    variables = {"kubegpu_report_dir": str(folder), **variables}
    run = play(name, "--limit", limit, *arguments, variables=variables)
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES), run.output
    found = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return run, found, {node["name"]: node for node in found["nodes"]}


def changed(run):
    return {host: one["changed"] for host, one in run.stats.items() if one["changed"]}


def kinds(found):
    return [(one["node"], one["kind"]) for one in found["changes"]]


@contextlib.contextmanager
def without_toolkit():
    try:
        on_nodes(f"mv {RUNTIME} {RUNTIME}.away", WHOLE)
        yield
    finally:
        on_nodes(f"mv {RUNTIME}.away {RUNTIME}", WHOLE)


def test_site_and_verify_report_what_they_read(converged, tmp_path):
    run, found, nodes = report(tmp_path / "site", "site")
    # The hosts are as they are to be: only the report is written.
    assert run.status == 0 and set(changed(run)) <= {BARE}, run.output
    assert set(nodes) == {BARE, WHOLE, WITHOUT} and nodes[WITHOUT]["state"] == "no_gpu"
    assert nodes[WHOLE]["versions"]["Container toolkit"] and not found["previous"]["compared"]
    run, found, nodes = report(tmp_path / "verify", "verify")
    # What has no driver fails.
    assert run.status != 0 and nodes[BARE]["state"] == "failed", run.output
    layers = {one["layer"]: one["status"] for one in nodes[WHOLE]["layers"]}
    assert nodes[WHOLE]["state"] == "ready" and layers["nvml"] == layers["toolkit"] == "ok"
    assert [one["decisions"] for one in nodes.values()] == [[], [], []]
    assert found["summary"]["sentence"].startswith("1 of 2 nodes is ready for GPU containers")


def test_two_reports_of_the_same_nodes_are_the_same_bytes(converged, tmp_path):
    same = {"gpu_report_generated": "2026-01-01 00:00 UTC"}
    first, found, nodes = report(tmp_path / "a", **same)
    assert first.status == 0 and sum(changed(first).values()) == 1, first.output
    assert nodes[WHOLE]["gpus"][0]["uuid"] and nodes[WHOLE]["layers"]
    assert found["summary"]["states"]["no_gpu"] == 1
    second, _found, _nodes = report(tmp_path / "b", **same)
    assert second.status == 0, second.output
    for name in FILES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    # In the same folder it is compared with the one before.
    again, found, _nodes = report(tmp_path / "a")
    assert again.status == 0 and changed(again) == {}, again.output
    assert found["previous"]["compared"] and found["changes"] == []
    before = {name: (tmp_path / "a" / name).read_bytes() for name in FILES}
    checked, _found, _nodes = report(tmp_path / "a", arguments=("--check",))
    assert checked.status == 0 and changed(checked) == {}, checked.output
    assert {name: (tmp_path / "a" / name).read_bytes() for name in FILES} == before


def test_what_has_changed_since_the_last_report(converged, tmp_path):
    folder = tmp_path / "report"
    report(folder)
    with without_toolkit():
        run, found, nodes = report(folder)
        assert sum(changed(run).values()) == 1, run.output
        assert nodes[WHOLE]["state"] == "failed"
        assert {(WHOLE, "broke"), (WHOLE, "cause_new")} <= set(kinds(found)), found["changes"]
        assert {node for node, _kind in kinds(found)} == {WHOLE}
    _run, found, nodes = report(folder)
    assert nodes[WHOLE]["state"] == "ready"
    assert {(WHOLE, "recovered"), (WHOLE, "cause_gone")} <= set(kinds(found)), found["changes"]
    # A host that is not in the next report is gone, and one that is in it again is new.
    _run, found, _nodes = report(folder, limit=f"{WHOLE}:{WITHOUT}")
    assert kinds(found) == [(BARE, "gone")]
    _run, found, _nodes = report(folder)
    assert kinds(found) == [(BARE, "new")]


def test_drift_between_nodes_that_should_be_alike(converged, tmp_path):
    """The second node is the first one under another name, and its toolkit's version is made up."""
    twin = "standin-twin"
    hosts = yaml.safe_load(INVENTORY.read_text(encoding="utf-8"))["all"]["hosts"]
    inventory = tmp_path / "twin.yml"
    inventory.write_text(yaml.safe_dump({"all": {"hosts": {twin: hosts[WHOLE]}}}))
    facts = "ansible_facts['gpu_node'] | combine({'container_toolkit': {'version': '1.0.0'}}, "
    made_up = {"gpu_node": f"{{{{ {facts}recursive=true) }}}}", "cacheable": True}
    both = {"hosts": f"{WHOLE}:{twin}", "gather_facts": False, "become": True}
    tasks = [
        {"kubegpu.nodes.gpu_node_facts": None},
        {"ansible.builtin.set_fact": made_up, "when": f"inventory_hostname == '{twin}'"},
        {"ansible.builtin.import_role": {"name": "kubegpu.nodes.gpu_report"}},
    ]
    playbook = tmp_path / "drift.yml"
    playbook.write_text(yaml.safe_dump([{**both, "tasks": tasks}]))
    folder = tmp_path / "report"
    # The layers come with facts of their own.
    run, found, nodes = report(
        folder,
        str(playbook),
        f"{WHOLE}:{twin}",
        ("-i", str(inventory)),
        gpu_report_parts=["health"],
    )
    assert run.status == 0, run.output
    (drift,) = found["drift"]
    toolkit = nodes[WHOLE]["versions"]["Container toolkit"]
    values = {one["value"]: one["nodes"] for one in drift["values"]}
    assert drift["what"] == "Container toolkit"
    assert values == {toolkit: [WHOLE], "1.0.0": [twin]}
    assert "1.0.0" in (folder / "report.html").read_text(encoding="utf-8")


def test_diagnose_reports_the_causes_that_it_found(converged, tmp_path):
    folder = tmp_path / "report"
    with without_toolkit():
        run, found, nodes = report(
            folder, "diagnose", gpu_diagnose_file=str(tmp_path / "diagnosis.json")
        )
    assert run.status != 0, run.output
    result = json.loads((tmp_path / "diagnosis.json").read_text(encoding="utf-8"))
    errors = {
        host: {one["id"] for one in result["findings"]
               if one["host"] == host and one["severity"] == "error"}
        for host in (BARE, WHOLE)
    }  # fmt: skip
    assert errors[WHOLE] == {"toolkit_missing"} and "driver_missing" in errors[BARE]
    for host in (BARE, WHOLE):
        causes = {one["id"] for one in nodes[host]["causes"] if one["severity"] == "error"}
        assert causes == errors[host], nodes[host]["causes"]
    (action,) = (one for one in found["actions"] if one["id"] == "toolkit_missing")
    assert [one["node"] for one in action["nodes"]] == [WHOLE] and action["next_step"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert action["cause"].partition("'")[0] in page
