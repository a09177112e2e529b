# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rolling upgrade: order, failures, the rollback, and a second run after a killed one.

Playbook, roles and Ansible are the real ones; nodes and cluster are stand-ins (standin_cluster.py).
The drain itself is tested on a real API server (tests/integration/cluster/test_maintenance.py).
"""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.compatibility import minor
from tests.integration.controller.standin_cluster import NEW, OLD, Upgrades
from tests.unit.fixtures.mig_node import MigNode, card
from tests.unit.fixtures.node_facts import node

pytestmark = pytest.mark.full(why="the decisions are in unit tests; each run takes many seconds")

FOUR = {"gpu_upgrade_max_unavailable": 2, "gpu_upgrade_batch": 2}


@pytest.fixture
def nodes(tmp_path):
    made = Upgrades(tmp_path)
    made.cluster()
    return made


def hosts(count=3, **own):
    return {f"gpu{number}": own.get(f"gpu{number}", {}) for number in range(1, count + 1)}


def outcomes(report):
    return {name: one["outcome"] for name, one in report["hosts"].items()}


def changes(run):
    """Return the calls that change a node or the cluster."""
    looking = (
        "gpu_cluster_info", "gpu_node_facts", "gpu_node_health", "gpu_node_verify",
        "runtime_configuration",
    )  # fmt: skip
    return [
        (host, name, state)
        for host, name, state in run.calls
        if name not in looking and state != "available" and "check" not in (state or "")
    ]


def test_a_canary_and_then_batches(nodes):
    run, report = nodes.upgrade(hosts(4), **FOUR)
    assert run.status == 0, run.screen
    assert outcomes(report) == dict.fromkeys(hosts(4), "done") and report["ok"]
    assert [report["hosts"][name]["batch"] for name in hosts(4)] == [1, 2, 2, 3]
    assert report["hosts"]["gpu1"]["from"]["driver"] == OLD
    assert report["hosts"]["gpu1"]["to"]["driver"] == NEW
    assert report["hosts"]["gpu1"]["evicted"] == ["ml/web-gpu1"]
    # Nothing is left behind, in the cluster or on a node.
    assert nodes.held() == {} and nodes.records() == []
    of_first = [(name, state) for host, name, state in changes(run) if host == "gpu1"]
    names = [name for name, _state in of_first]
    assert of_first[:2] == [
        ("gpu_node_maintenance", "cordoned"), ("gpu_node_maintenance", "drained"),
    ]  # fmt: skip
    assert of_first[-1] == ("gpu_node_maintenance", "released")
    assert names.index("nvidia_driver") < names.index("gpu_test_pods")
    # The canary is finished before another node is touched.
    order = [(host, state) for host, _name, state in changes(run)]
    assert order.index(("gpu1", "released")) < order.index(("gpu2", "cordoned"))
    words = run.words()
    assert "Upgrade result" in words and f"{OLD} to {NEW}" in words


def test_a_trial_tells_all_and_changes_nothing(nodes):
    own = {"gpu2": {"standin_blocked": True}, "gpu3": {"standin_missing": ["nvidia-driver-550"]}}
    run, report = nodes.upgrade(hosts(**own), "--check")
    assert run.status == 0, run.screen
    assert changes(run) == [] and nodes.held() == {} and nodes.records() == []
    assert outcomes(report) == dict.fromkeys(hosts(), "planned")
    words = run.words()
    assert "gpu2: The budget web does not let the pod ml/web go. Next step: Give its" in words
    assert "ml/web-gpu1" in words
    assert "No repository of gpu3 has the installed versions of nvidia-driver-550" in words


def test_a_bad_canary_gets_its_driver_back_and_nobody_else_is_touched(nodes):
    run, report = nodes.upgrade(hosts(gpu1={"standin_sick": True}))
    assert run.status == 2, run.screen
    assert outcomes(report) == {
        "gpu1": "rolled_back", "gpu2": "not_started", "gpu3": "not_started",
    }  # fmt: skip
    assert report["hosts"]["gpu1"]["to"]["driver"] == OLD
    assert "A GPU does not answer." in report["hosts"]["gpu1"]["rolled_back_because"]
    assert "1 failed (gpu1), and gpu_upgrade_max_failed allows none" in report["stopped"]
    assert nodes.held() == {} and nodes.records() == []
    assert {host for host, _name, _state in changes(run)} == {"gpu1"}


def cuda(default, sources):
    """Return the fact of CUDA toolkits, by version where each is from."""
    toolkits = [
        {
            "version": version,
            "path": f"/usr/local/cuda-{minor(version)}",
            "default": version == default,
            "source": source,
            "uninstaller": None,
        }
        for version, source in sources.items()
    ]
    packages = {
        f"cuda-toolkit-{minor(version).replace('.', '-')}": f"{version}-1"
        for version, source in sources.items()
        if source == "package"
    }
    return {**node()["cuda"], "toolkits": toolkits, "packages": packages, "held": True}


def test_a_bad_canary_gets_its_cuda_toolkit_back(nodes, tmp_path):
    """Also if extra variables, which are the strongest, ask for the new one; that one stays."""
    first, second = "12.4.1", "12.6.3"
    both = {first: "package", second: "runfile"}
    for name in ("before", "after"):
        facts = json.loads((tmp_path / name).read_text(encoding="utf-8"))
        facts["cuda"] = cuda(first, {first: "package"})
        (tmp_path / name).write_text(json.dumps(facts), encoding="utf-8")
    # By the versions that the role was called with.
    later = {version: cuda(version, both) for version in both}
    own = {"gpu1": {"standin_sick": True, "standin_cuda": later}}
    runfile = {
        "url": f"https://x.example/cuda_{second}_linux.run",
        "checksum": f"sha256:{'a' * 64}",
    }
    wanted = {"cuda_toolkit_versions": [second], "cuda_toolkit_runfiles": {second: runfile}}
    run, report = nodes.upgrade(hosts(2, **own), "--extra-vars", json.dumps(wanted))
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "rolled_back", "gpu2": "not_started"}, run.screen
    one = report["hosts"]["gpu1"]
    assert one["from"]["cuda"] == [first] and one["to"]["cuda"] == [first, second]
    assert (one["from"]["driver"], one["to"]["driver"]) == (OLD, OLD) and one["findings"] == []
    assert "A GPU does not answer." in one["rolled_back_because"]
    parts = ("nvidia_driver", "cuda_toolkit")
    assert [name for _host, name, _state in changes(run) if name in parts] == [*parts, *parts]
    asked = json.loads((tmp_path / "done" / "gpu1.cuda").read_text(encoding="utf-8"))
    # Nothing of the new one is asked for.
    assert [asked[name] for name in ("versions", "default", "runfiles")] == [[first], "", {}]
    assert nodes.held() == {} and nodes.records() == []


def test_a_failure_that_is_allowed_does_not_stop_the_others(nodes):
    own = {"gpu2": {"standin_fails": "nvidia_driver", "gpu_upgrade_rollback": "never"}}
    run, report = nodes.upgrade(
        hosts(**own), gpu_upgrade_max_failed=1, gpu_upgrade_max_unavailable=2
    )
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "done", "gpu2": "failed", "gpu3": "done"}
    # It stays out, with its record, and is told how to go on.
    assert nodes.held() == {"gpu2": "gpu-upgrade"} and nodes.records() == ["gpu2"]
    assert "It did not build." in report["hosts"]["gpu2"]["findings"][0]["cause"]
    assert "continues with it first; or release it with" in run.words()


def test_a_lost_node_ends_neither_the_run_nor_the_report(nodes):
    own = {"gpu1": {"standin_lost_after": True}}
    run, report = nodes.upgrade(hosts(**own), gpu_upgrade_max_failed=1,
                                gpu_upgrade_max_unavailable=2)  # fmt: skip
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "unreachable", "gpu2": "done", "gpu3": "done"}
    assert nodes.held() == {"gpu1": "gpu-upgrade"}


def test_a_host_that_does_not_answer_at_the_begin_is_in_the_report(nodes):
    own = {"gpu1": {"standin_lost": "gpu_node_facts"}}
    run, report = nodes.upgrade(hosts(2, **own))
    assert run.status == 4, run.screen
    assert outcomes(report) == {"gpu1": "unreachable", "gpu2": "done"} and not report["ok"]
    assert [one["code"] for one in report["hosts"]["gpu1"]["findings"]] == ["not_read"]
    assert {host for host, _name, _state in changes(run)} == {"gpu2"}
    assert "gpu1 was unreachable, or could not be read, when the run began" in run.words()


def test_a_node_that_cannot_be_drained_is_released_unchanged(nodes):
    run, report = nodes.upgrade(hosts(gpu2={"standin_blocked": True}))
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "done", "gpu2": "blocked", "gpu3": "done"}
    assert nodes.held() == {} and nodes.records() == []
    assert not [call for call in run.calls if call[:2] == ("gpu2", "nvidia_driver")]


def test_all_refusals_come_before_anything_is_touched(nodes):
    nodes.cluster(gpu3={"unschedulable": True, "held_by": "r2", "was": False})
    own = {"gpu1": {"nvidia_driver_branch": "390"}}
    run, report = nodes.upgrade(hosts(**own))
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "refused", "gpu2": "not_started", "gpu3": "refused"}
    assert changes(run) == [] and nodes.held() == {"gpu3": "r2"}
    assert [one["code"] for one in report["hosts"]["gpu1"]["findings"]] == ["plan_refused"]
    assert [one["code"] for one in report["hosts"]["gpu3"]["findings"]] == ["held_by_other"]
    run, report = nodes.upgrade(
        hosts(**own), gpu_upgrade_on_refusal="skip", gpu_upgrade_max_unavailable=2
    )
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "refused", "gpu2": "done", "gpu3": "refused"}


def test_a_reboot_that_would_cost_the_quorum_is_refused(nodes):
    """Also if the member that is away is no host of the run."""
    member = {"unschedulable": False, "held_by": "", "was": False,
              "labels": {"node-role.kubernetes.io/control-plane": ""}}  # fmt: skip
    nodes.cluster(gpu1=member, gpu2=member, elsewhere={**member, "down": True})
    run, report = nodes.upgrade(hosts())
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "refused", "gpu2": "refused", "gpu3": "not_started"}
    assert changes(run) == []
    assert "2 of 3 members are ready, and 2 have to be" in run.words()


def test_a_package_manager_that_does_not_answer_is_told(nodes):
    run, report = nodes.upgrade(hosts(gpu2={"standin_fails": "package_set"}), "--check")
    assert run.status == 0, run.screen
    (found,) = report["hosts"]["gpu2"]["findings"]
    assert found["code"] == "rollback_unknown" and "It did not build." in found["cause"]
    assert outcomes(report) == dict.fromkeys(hosts(), "planned")


def test_a_layout_of_mig_is_changed_after_the_pods_left(nodes, tmp_path):
    """Pods that use the GPUs when it is planned are no reason against it, unless they may stay."""
    nodes.have(MigNode(tmp_path / "mig", card(0, "2330")).facts())
    pods = [{"namespace": "ml", "name": "web-gpu1", "count": 1}]
    resources = {"nvidia.com/gpu": {"capacity": 1, "allocatable": 1, "pods": pods}}
    nodes.cluster(
        gpu1={"unschedulable": False, "held_by": "", "was": False, "resources": resources}
    )
    given = {"nvidia_driver_enabled": False, "nvidia_mig_config": "all-3g.40gb"}
    run, report = nodes.upgrade(hosts(1), gpu_upgrade_pods="none", **given)
    assert run.status == 2, run.screen
    (found,) = report["hosts"]["gpu1"]["findings"]
    assert found["code"] == "plan_refused" and "ml/web-gpu1" in found["cause"]
    assert changes(run) == []

    run, report = nodes.upgrade(hosts(1), **given)
    assert run.status == 0, run.screen
    assert outcomes(report) == {"gpu1": "done"} and report["hosts"]["gpu1"]["disturbs"] == "gpu"
    assert report["hosts"]["gpu1"]["evicted"] == ["ml/web-gpu1"]
    order = [(name, state) for _host, name, state in changes(run)]
    steps = [("gpu_node_maintenance", "drained"), ("nvidia_mig", None)]
    steps.append(("gpu_node_maintenance", "released"))
    assert [order.index(step) for step in steps] == sorted(order.index(step) for step in steps)
    assert nodes.held() == {} and nodes.records() == []


def saves(folder, how=""):
    """Return the calls that save packages: the host and the options."""
    lines = (folder / "packages").read_text(encoding="utf-8").splitlines()
    calls = [json.loads(line) for line in lines]
    return [(host, args) for host, was, args in calls if args["state"] == "saved" and was == how]


def test_packages_are_saved_before_the_change_and_after_it(nodes, tmp_path):
    """Not on a node that an earlier run left: what is saved there is of the versions before."""
    nodes.cluster(gpu2={"unschedulable": True, "held_by": "gpu-upgrade", "was": False})
    for name in ("before", "after"):
        facts = json.loads((tmp_path / name).read_text(encoding="utf-8"))
        facts["driver"]["packages"]["libnvidia-gl:i386"] = "1-1"
        (tmp_path / name).write_text(json.dumps(facts), encoding="utf-8")
    proxies = {"http_proxy": "http://a.example:1", "https_proxy": "http://b.example:1"}
    given = {"gpu_upgrade_save_packages": True, "kubegpu_proxy": proxies}
    run, report = nodes.upgrade(hosts(2), **given, **FOUR)
    assert run.status == 0, run.screen
    assert outcomes(report) == dict.fromkeys(hosts(2), "done")
    saved = ("package_set", "saved")
    for host, count in (("gpu1", 2), ("gpu2", 1)):
        order = [call[1:] for call in run.calls if call[0] == host]
        assert order.count(saved) == count
        last = len(order) - 1 - order[::-1].index(saved)
        change = [one[0] for one in order].index("nvidia_driver")
        assert order.index(saved) < change or host == "gpu2"
        assert change < last < order.index(("gpu_node_maintenance", "released"))
    found = saves(tmp_path)
    for _host, args in found:
        # Without those of a second architecture, and through the proxies.
        assert args["packages"] and not [name for name in args["packages"] if ":" in name]
        assert {name: args[name] for name in proxies} == proxies and "no_proxy" not in args
    drivers = {version: f"{version}-1" for version in (OLD, NEW)}
    versions = [
        (host, [name for name, one in drivers.items() if one in args["packages"].values()])
        for host, args in found
    ]
    assert sorted(versions) == [("gpu1", [OLD]), ("gpu1", [NEW]), ("gpu2", [NEW])]


@pytest.mark.parametrize(
    ("rollback", "status", "outcome"), [("try", 0, "done"), ("require", 2, "blocked")]
)
def test_packages_that_cannot_be_saved(nodes, rollback, status, outcome):
    """A warning, or nothing is changed: no pod leaves."""
    own = {"gpu1": {"standin_fails": "package_set saved"}}
    given = {"gpu_upgrade_save_packages": True, "gpu_upgrade_rollback": rollback}
    run, report = nodes.upgrade(hosts(1, **own), **given)
    assert run.status == status, run.screen
    assert outcomes(report) == {"gpu1": outcome}
    (finding,) = report["hosts"]["gpu1"]["warnings" if outcome == "done" else "findings"]
    assert finding["code"] == "not_saved" and "It did not build." in finding["cause"]
    assert nodes.held() == {} and nodes.records() == []
    assert (("gpu1", "gpu_node_maintenance", "drained") in run.calls) is (outcome == "done")
    assert "The packages that a rollback would install are not all saved" in run.words()


def test_what_is_in_the_cache_of_the_package_manager_is_a_rollback(nodes, tmp_path):
    """Where it is saved before the change."""
    facts = json.loads((tmp_path / "before").read_text(encoding="utf-8"))
    name, *_others = sorted(facts["driver"]["packages"])
    own = {"standin_missing": [name]}
    nodes_of = hosts(2, gpu1={**own, "standin_cached": [name]}, gpu2=own)
    given = {"gpu_upgrade_rollback": "require", "gpu_upgrade_on_refusal": "skip"}
    run, report = nodes.upgrade(nodes_of, "--check", gpu_upgrade_save_packages=True, **given)
    assert outcomes(report) == {"gpu1": "planned", "gpu2": "refused"}, run.screen
    assert [one["code"] for one in report["hosts"]["gpu2"]["findings"]] == ["no_rollback"]
    # In check mode.
    assert {call[1:] for call in changes(run)} == {("package_set", "saved")}
    asked = saves(tmp_path, "check")
    assert saves(tmp_path) == [] and nodes.held() == {} and nodes.records() == []
    assert [(host, [*args["packages"]]) for host, args in asked] == [
        ("gpu1", [name]), ("gpu2", [name]),
    ]  # fmt: skip


def test_a_test_of_dcgm_that_fails_leads_to_the_rollback(nodes, tmp_path, monkeypatch):
    result = {"entity_group": "GPU", "entity_id": 0, "status": "STATUS", "warnings": []}
    tests = [{"category": "Hardware", "tests": [{"name": "memory", "results": [result]}]}]
    printed = json.dumps({"DCGM Diagnostic": {"test_categories": tests}})
    program = tmp_path / "programs" / "dcgmi"
    program.parent.mkdir()
    # It fails with the new driver.
    program.write_text(
        f"#!/bin/sh\necho \"$@\" >> '{tmp_path}/diags'\n"
        f"[ -e '{tmp_path}/done/gpu1' ] && status=Fail || status=Pass\n"
        f"echo '{printed}' | sed \"s/STATUS/$status/\"\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    run, report = nodes.upgrade(hosts(1), gpu_upgrade_gate=["layers", "dcgm"])
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "rolled_back"}
    because = report["hosts"]["gpu1"]["rolled_back_because"]
    assert "The test memory of DCGM failed for GPU 0." in because
    asked = (tmp_path / "diags").read_text(encoding="utf-8").splitlines()
    assert asked == ["diag --run 1 --json"] * 2


@pytest.mark.parametrize("state", ["cordoned", "drained", "released"])
def test_a_killed_run_is_finished_by_the_next_one(nodes, state):
    """The controller dies in the call for the node; gpu2 was cordoned by hand before."""
    nodes.cluster(gpu2={"unschedulable": True, "held_by": "", "was": False})
    run, report = nodes.upgrade(hosts(gpu1={"standin_kill": state}), gpu_upgrade_max_unavailable=2)
    assert run.status not in (0, 2) and report is None
    run, report = nodes.upgrade(hosts(), gpu_upgrade_max_unavailable=2)
    assert run.status == 0, run.screen
    assert outcomes(report) == dict.fromkeys(hosts(), "done")
    assert nodes.held() == {"gpu2": ""} and nodes.records() == []
    # What stood there first is what the record of the killed run says.
    assert report["hosts"]["gpu1"]["from"]["driver"] == OLD
    assert report["hosts"]["gpu1"]["batch"] == 1


def test_an_unfinished_node_that_cannot_be_drained_stays_as_it_is(nodes):
    """Its drain says nothing of the change: neither a second drain nor the earlier versions."""
    nodes.cluster(gpu1={"unschedulable": True, "held_by": "gpu-upgrade", "was": False})
    run, report = nodes.upgrade(hosts(gpu1={"standin_blocked": True}))
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "failed", "gpu2": "not_started", "gpu3": "not_started"}
    assert report["hosts"]["gpu1"]["rolled_back_because"] == ""
    assert [one["code"] for one in report["hosts"]["gpu1"]["findings"]] == ["pdb_blocks"]
    states = [state for host, _name, state in changes(run) if host == "gpu1"]
    assert states.count("drained") == 1
    assert not [call for call in run.calls if call[:2] == ("gpu1", "nvidia_driver")]
    assert nodes.held() == {"gpu1": "gpu-upgrade"} and nodes.records() == ["gpu1"]


def test_an_unfinished_node_whose_record_cannot_be_read_loses_no_pod(nodes):
    nodes.cluster(gpu1={"unschedulable": True, "held_by": "gpu-upgrade", "was": False})
    nodes.record("gpu1", "{")
    run, report = nodes.upgrade(hosts())
    assert run.status == 2, run.screen
    assert outcomes(report)["gpu1"] == "failed"
    (found,) = report["hosts"]["gpu1"]["findings"]
    assert found["code"] == "task_failed" and "Compute the record" in found["cause"]
    assert "drained" not in [state for _host, _name, state in changes(run)]


def test_an_error_after_the_change_is_seen_by_the_soak(nodes):
    own = {"gpu1": {"standin_sick_later": True}}
    run, report = nodes.upgrade(hosts(**own), gpu_upgrade_soak=1)
    assert run.status == 2, run.screen
    assert outcomes(report)["gpu1"] == "rolled_back"
    assert "A GPU does not answer." in report["hosts"]["gpu1"]["rolled_back_because"]
    assert report["hosts"]["gpu1"]["to"]["driver"] == OLD


def test_a_rollback_that_leads_elsewhere_is_not_taken_for_one(nodes):
    """A killed run changed the driver, and this one again: the driver's own record has moved on."""
    nodes.cluster(gpu1={"unschedulable": True, "held_by": "gpu-upgrade", "was": False})
    first = {"driver": "535.1", "toolkit": "", "cuda": [], "run": "gpu-upgrade", "since": "a",
             "health": {"findings": [], "gpus": [], "boot_id": "a"}}  # fmt: skip
    nodes.record("gpu1", json.dumps(first))
    run, report = nodes.upgrade(hosts(gpu1={"standin_sick": True}))
    assert run.status == 2, run.screen
    assert outcomes(report)["gpu1"] == "failed"
    (found,) = report["hosts"]["gpu1"]["findings"]
    assert found["code"] == "not_restored" and "535.1" in found["cause"]
    assert OLD in found["evidence"]
    assert nodes.held() == {"gpu1": "gpu-upgrade"} and nodes.records() == ["gpu1"]


def test_a_node_that_a_run_lost_uses_up_the_budget_of_the_next(nodes):
    """Also if it cannot be reached any more, so that it is no host of that run."""
    nodes.cluster(
        lost={"unschedulable": True, "held_by": "gpu-upgrade", "was": False, "down": True}
    )
    run, report = nodes.upgrade(hosts())
    assert run.status == 2, run.screen
    assert report["refused"] and report["elsewhere"] == ["lost"]
    assert [one["code"] for one in report["findings"]] == ["budget_used"]
    assert changes(run) == []


def test_the_report_of_an_earlier_run_stays_if_a_run_ends_before_its_plan(nodes, tmp_path):
    """When it began tells the two apart; nothing of the controller is deleted."""
    old = tmp_path / "old.json"
    report = '{"began": "2026-01-01", "ended": "2026-01-02", "hosts": {}}'
    old.write_text(report, encoding="utf-8")
    (tmp_path / "cluster.json").write_text("no JSON", encoding="utf-8")
    run, _report = nodes.upgrade(hosts(), gpu_upgrade_file=str(old))
    assert run.status == 2, run.screen
    assert old.read_text(encoding="utf-8") == report and changes(run) == []


def test_nodes_are_released_without_a_change(nodes):
    nodes.cluster(
        gpu1={"unschedulable": True, "held_by": "gpu-upgrade", "was": False},
        gpu2={"unschedulable": True, "held_by": "gpu-upgrade", "was": True},
        gpu3={"unschedulable": True, "held_by": "r2", "was": False},
    )
    run, report = nodes.upgrade(hosts(), gpu_upgrade_release=True)
    assert run.status == 0, run.screen
    assert outcomes(report) == {"gpu1": "released", "gpu2": "released", "gpu3": "unchanged"}
    assert nodes.held() == {"gpu2": "", "gpu3": "r2"}
    assert {name for _host, name, _state in changes(run)} == {"gpu_node_maintenance"}


def test_a_run_with_nothing_to_do_touches_nothing(nodes):
    own = {name: {"standin_done": True} for name in hosts()}
    run, report = nodes.upgrade(hosts(**own))
    assert run.status == 0, run.screen
    assert outcomes(report) == dict.fromkeys(hosts(), "unchanged")
    assert changes(run) == [] and nodes.held() == {}


def test_the_report_of_the_hosts_says_how_each_of_them_ended(nodes, tmp_path):
    folder = tmp_path / "report"
    own = {"gpu2": {"standin_fails": "nvidia_driver", "gpu_upgrade_rollback": "never"}}
    run, report = nodes.upgrade(hosts(**own), kubegpu_report_dir=str(folder))
    assert run.status == 2, run.screen
    assert outcomes(report) == {"gpu1": "done", "gpu2": "failed", "gpu3": "not_started"}
    told = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    found = {node["name"]: node for node in told["nodes"]}
    assert {name: (node["upgrade"], node["state"]) for name, node in found.items()} == {
        "gpu1": ("done", "ready"), "gpu2": ("failed", "failed"),
        "gpu3": ("not started", "attention"),
    }  # fmt: skip
    actions = {one["id"]: one for one in told["actions"]}
    assert actions["upgrade_not_started"]["nodes"][0]["evidence"] == report["stopped"]
    assert "It did not build." in found["gpu2"]["why"]
    # The plan of a node is applied only where its upgrade came to its end.
    assert [one["node"] for one in actions["plan_differs"]["nodes"]] == ["gpu2", "gpu3"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    markdown = (folder / "report.md").read_text(encoding="utf-8")
    assert "<b>Upgrade:</b> not started" in page and "- Upgrade: not started" in markdown
    assert "It did not build." in page and "It did not build." in markdown
    assert told["summary"]["sentence"] in run.words()
