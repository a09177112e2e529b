# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rolling upgrade from the variables of its hosts, and the stages of a host."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.kubegpu.nodes.plugins.filter.rollout import rollout
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._upgrade.result import plan_rows, rows
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._stage_results import RESULTS
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._upgrade import report_hosts
from tests.unit.fixtures.node_facts import installed, node
from tests.unit.fixtures.plans import registered

STEP = {"step": "load", "action": "load", "detail": "580.1", "reason": "requested"}
WORK = {"nvidia_driver_plan": {"work": True, "change": True, "steps": [STEP]}}
HOSTS = ["gpu1", "gpu2", "gpu3"]


def row(name, **more):
    return {"node": f"node-{name}", "ready": True, "unschedulable": False, "held_by": "",
            "findings": [], **more}  # fmt: skip


def cluster(**rows):
    return {"nodes": {name: rows.get(name) or row(name) for name in HOSTS}}


def planned(hostvars=None, options=None, rollbacks=None, savable=None, **more):
    variables = {name: {**WORK} for name in HOSTS}
    for name, own in (hostvars or {}).items():
        variables[name].update(own)
    # What the tasks of each host registered.
    for fact, found in (("asked", rollbacks), ("saved", savable)):
        for name, answer in (found or {}).items():
            variables[name][fact] = answer
    registers = {"rollbacks": "asked", "savable": "saved", "drains": "tried"}
    given = {"cluster": cluster(), "registered": registers, **more}
    variables = registered(variables)
    plan = RESULTS["upgrade_plan"](HOSTS, variables, options=options or {}, **given)
    return plan, {name: {**own, "gpu_upgrade_plan": plan} for name, own in variables.items()}


def test_the_order_of_the_play_is_that_of_the_batches():
    plan, hostvars = planned(options={"canary": ["gpu3"], "max_unavailable": 2, "batch": 2})
    assert plan["batches"] == [["gpu3"], ["gpu1", "gpu2"]]
    assert rollout(HOSTS, "upgrade_hosts", hostvars) == ["gpu3", "gpu1", "gpu2"]
    assert rollout(HOSTS, "upgrade_serial", hostvars) == [1, 2]
    # --syntax-check has no hostvars, and a refused run no batches.
    assert rollout(HOSTS, "upgrade_hosts", {}) == [] and rollout(HOSTS, "upgrade_serial", {}) == [1]


def test_a_node_that_check_mode_would_cordon_is_neither_held_nor_out():
    found = {"held_by": None, "unschedulable": False}
    would = {
        name: row(name, held_by="gpu-upgrade", unschedulable=True, found=found) for name in HOSTS
    }
    options = {"max_unavailable": 1}
    plan, hostvars = planned(options=options, cluster=cluster(**would))
    assert plan["batches"] == [["gpu1"], ["gpu2"], ["gpu3"]]
    assert {one["action"] for one in plan["hosts"].values()} == {"change"}
    would["gpu3"] = row("gpu3", found={"held_by": "r2", "unschedulable": True})
    now = cluster(**would)
    assert "gpu3 are out" in RESULTS["upgrade_stop"](
        ["gpu1"], hostvars, options=options, cluster=now
    )


def test_what_the_plan_is_made_from():
    failed = {"gpu1": {"kubegpu_failure": {"cause": "No route to host"}}}
    labels = {"nvidia.com/gpu.deploy.driver": "true"}
    nodes = {"node-gpu2": {"labels": labels, "ready": True}}
    bare = {"code": "unmanaged_pod", "cause": "bare", "evidence": "", "next_step": ""}
    drains = [{"nodes": {"gpu3": {"findings": [bare], "evicted": [], "waiting": []}}}]
    plan, _hostvars = planned(failed, nodes=nodes, drains=drains)
    codes = {name: [one["code"] for one in own["findings"]] for name, own in plan["hosts"].items()}
    assert codes == {
        "gpu1": ["host_failed"], "gpu2": ["operator_driver"], "gpu3": ["unmanaged_pod"],
    }  # fmt: skip
    assert plan["refused"] and plan_rows(plan)[2]["notes"] == ["bare"]


def test_hosts_that_were_not_read_are_unreachable_in_the_report():
    plan, hostvars = planned(not_read=["lost"])
    assert "lost" not in plan["hosts"] and not plan["refused"]
    report = report_hosts(HOSTS, hostvars, ended="b", checked=True)
    assert report["hosts"]["lost"]["outcome"] == "unreachable" and not report["ok"]
    assert rows(report)[-1]["node"] == "lost"


def test_a_node_of_a_cluster_that_is_not_named_is_no_host_without_one():
    kubelet = {"directory": "/var/lib/kubelet", "plugin_folders": ["plugins_registry"]}
    unused = {**kubelet, "plugin_folders": []}
    facts = {
        name: {"ansible_facts": {"gpu_node": node(gpus=[], kubelet=found)}}
        for name, found in (("gpu1", kubelet), ("gpu2", unused), ("gpu3", None))
    }
    plan, _hostvars = planned(facts, cluster={**cluster(), "without_cluster": True})
    codes = {name: [one["code"] for one in own["findings"]] for name, own in plan["hosts"].items()}
    assert codes == {"gpu1": ["no_cluster"], "gpu2": [], "gpu3": []}
    # With its cluster it is as any other.
    plan, _hostvars = planned(facts)
    assert not plan["refused"]


@pytest.mark.parametrize(("rollback", "refused"), [("try", False), ("require", True)])
def test_packages_that_no_repository_has_are_told_before(rollback, refused):
    asked = {
        "gpu1": {"not_available": ["nvidia-driver-550"]},
        "gpu2": {"not_available": []},
        "gpu3": {"skipped": True},
    }
    locked = {"failed": False, "msg": "apt: it is locked.", "cause": "It is locked."}
    installed = {"ansible_facts": {"gpu_node": node(gpus=[], driver__installed="550.1")}}
    own = dict.fromkeys(HOSTS, installed)
    plan, _hostvars = planned(own, options={"rollback": rollback}, rollbacks=asked)
    notes = {one["node"]: one["notes"] for one in plan_rows(plan)}
    assert (
        "No repository of gpu1 has the installed versions of nvidia-driver-550" in notes["gpu1"][0]
    )
    assert notes["gpu2"] == [] and notes["gpu3"] == []
    assert plan["refused"] is refused
    assert plan["hosts"]["gpu1"]["action"] == ("refuse" if refused else "change")
    # Nor is it passed over that the package manager did not answer.
    plan, _hostvars = planned(own, options={"rollback": rollback}, rollbacks={"gpu2": locked})
    (note,) = plan_rows(plan)[1]["notes"]
    assert "its package manager did not answer. It is locked." in note
    assert plan["refused"] is refused


def test_packages_that_can_be_saved_are_no_refusal():
    """On a node that an earlier run left nothing is saved."""
    missing = {"not_available": ["nvidia-driver-550", "cuda-toolkit-12-4"]}
    had = {"not_available": [], "packages": {"nvidia-driver-550": {"version": "550.1-1"}}}
    installed = {"ansible_facts": {"gpu_node": node(gpus=[], driver__installed="550.1")}}
    plan, _hostvars = planned(
        dict.fromkeys(HOSTS, installed),
        options={"rollback": "require"},
        cluster=cluster(gpu3=row("gpu3", held_by="gpu-upgrade", unschedulable=True)),
        rollbacks={
            "gpu1": {"not_available": ["nvidia-driver-550"]}, "gpu2": missing,
            "gpu3": {"not_available": ["nvidia-driver-550"]},
        },
        savable={"gpu1": had, "gpu2": had, "gpu3": had},
    )  # fmt: skip
    codes = {name: [one["code"] for one in own["findings"]] for name, own in plan["hosts"].items()}
    assert codes == {"gpu1": [], "gpu2": ["no_rollback"], "gpu3": ["no_rollback"]}
    assert "versions of cuda-toolkit-12-4:" in plan["hosts"]["gpu2"]["findings"][0]["cause"]


def test_hosts_are_selected_by_their_outcome_and_their_pods():
    _plan, hostvars = planned({"gpu3": {"nvidia_driver_plan": {"work": True}}})
    outcomes = {"gpu1": "", "gpu2": "failed", "gpu3": ""}
    for name, outcome in outcomes.items():
        hostvars[name]["gpu_upgrade_result"] = {"outcome": outcome}
    assert rollout(HOSTS, "upgrading", hostvars) == ["gpu1", "gpu3"]
    assert rollout(HOSTS, "upgrading", hostvars, pods="all") == ["gpu1"]
    assert rollout(HOSTS, "upgrade_ended", hostvars) == []
    hostvars["gpu2"]["gpu_upgrade_result"] = {"outcome": "blocked"}
    assert rollout(HOSTS, "upgrade_ended", hostvars) == ["gpu2"]
    del hostvars["gpu1"]["gpu_upgrade_result"]
    assert rollout(HOSTS, "upgrading", hostvars) == ["gpu3"]


def test_a_batch_is_started_if_there_is_room_and_nobody_failed():
    _plan, hostvars = planned(options={"max_unavailable": 1})

    def stop(batch, now, **options):
        return RESULTS["upgrade_stop"](batch, hostvars, options=options, cluster=now)

    assert stop(["gpu1"], cluster()) == ""
    assert "gpu3 are out" in stop(["gpu1"], cluster(gpu3=row("gpu3", ready=False)))
    assert "gpu3 are out" in stop(["gpu1"], cluster(gpu3=row("gpu3", unschedulable=True)))
    hostvars["gpu2"]["gpu_upgrade_result"] = {"outcome": "rolled_back"}
    assert "gpu2" in stop(["gpu1"], cluster())
    assert stop(["gpu1"], cluster(), max_failed=1) == ""
    assert stop(["gpu1"], {"msg": "No route"}) == "the cluster did not answer: No route"


def test_a_control_plane_is_found_among_the_nodes_of_the_cluster():
    """Also of those that are no hosts of the run, and again before each batch."""
    label = {"node-role.kubernetes.io/control-plane": ""}
    nodes = {
        name: {"labels": label, "ready": True} for name in ("node-gpu1", "node-gpu2", "elsewhere")
    }
    down = {**nodes, "elsewhere": {"labels": label, "ready": False}}
    plan, _hostvars = planned(nodes=down)
    assert [one["action"] for one in plan["hosts"].values()] == ["refuse", "refuse", "change"]
    assert plan["hosts"]["gpu1"]["findings"][0]["code"] == "quorum_lost"
    plan, _hostvars = planned(nodes=down, options={"keep_quorum": False})
    assert not plan["refused"]
    options = {"batch": 3, "canary": 0, "max_unavailable": 3, "max_failed": 3}
    plan, hostvars = planned(nodes=nodes, options=options)
    assert plan["batches"] == [["gpu1"], ["gpu2", "gpu3"]]
    why = {
        name: RESULTS["upgrade_stop"](
            ["gpu2", "gpu3"], hostvars, options=options, cluster=cluster(), nodes=now
        )
        for name, now in (("ready", nodes), ("down", down))
    }
    assert why["ready"] == ""
    assert "elsewhere of the control plane are not ready" in why["down"]
    # The server of k3s restarts with its containerd.
    server = node(gpus=[], runtimes__containerd__control_plane=True)
    toolkit = {"containerd": True, "steps": [STEP]}
    own = {
        "nvidia_driver_plan": {}, "nvidia_container_toolkit_plan": toolkit,
        "ansible_facts": {"gpu_node": server},
    }  # fmt: skip
    plan, _hostvars = planned({"gpu1": own}, nodes=nodes, options=options)
    assert plan["hosts"]["gpu1"]["disturbs"] == "runtime" and plan["hosts"]["gpu1"]["member"]


def test_the_report_has_the_plan_and_the_results():
    _plan, hostvars = planned(began="a")
    hostvars["gpu1"]["gpu_upgrade_result"] = {"outcome": "done", "to": {"driver": "580.1"}}
    data = report_hosts(HOSTS, hostvars, ended="b", checked=False)
    assert (data["began"], data["ended"], data["ok"]) == ("a", "b", False)
    assert data["hosts"]["gpu1"]["to"] == {"driver": "580.1"}
    assert [one["outcome"] for one in rows(data)] == ["done", "not started", "not started"]
    assert report_hosts(HOSTS, hostvars, ended="", checked=True)["ok"]


def test_a_host_that_the_upgrade_leaves_as_it_is_has_its_versions_in_the_report():
    same = {
        "ansible_facts": {"gpu_node": installed("1.20.1-1", driver__installed="550.1")},
        "nvidia_driver_plan": {}, "nvidia_container_toolkit_plan": {},
    }  # fmt: skip
    _plan, hostvars = planned(dict.fromkeys(HOSTS, same))
    hostvars["gpu2"]["gpu_upgrade_result"] = {"from": {"driver": "535.1", "toolkit": None}}
    hostvars["gpu3"] = {**hostvars["gpu3"], "ansible_facts": {}}
    data = report_hosts(HOSTS, hostvars, ended="b", checked=False)
    shown = {row["node"]: row for row in rows(data)}
    assert [(row["driver"], row["toolkit"]) for row in shown.values()] == [
        ("550.1", "1.20.1-1"), ("535.1", "-"), ("-", "-"),
    ]  # fmt: skip
    assert {row["outcome"] for row in shown.values()} == {"unchanged"}


def test_nodes_that_are_no_hosts_of_the_run_count_before_each_batch():
    _plan, hostvars = planned(options={"max_unavailable": 1})
    lost = {"labels": {}, "ready": True, "held": "gpu-upgrade", "resources": {}}
    ours = {"labels": {}, "ready": True, "held": "gpu-upgrade", "resources": {}}
    options = {"max_unavailable": 1}

    def stop(**nodes):
        return RESULTS["upgrade_stop"](
            ["gpu1"], hostvars, options=options, cluster=cluster(), nodes=nodes
        )

    assert stop(**{"node-gpu2": ours}) == ""
    assert "lost are out already" in stop(**{"node-gpu2": ours, "lost": lost})


def test_a_mig_mode_that_may_reboot_the_node_takes_all_pods_off_it():
    mig = {"nvidia_mig_plan": {"interrupts": True, "steps": [STEP]}, "nvidia_driver_plan": {}}
    plan, _hostvars = planned({"gpu1": mig, "gpu2": {**mig, "nvidia_mig_reboot": "yes"}})
    assert [plan["hosts"][name]["pods"] for name in ("gpu1", "gpu2")] == ["gpu", "all"]


def test_what_the_rollback_did_not_restore():
    record = {"driver": "550.1", "toolkit": "", "cuda": []}
    assert rollout(record, "upgrade_restored", row=record) == []
    (found,) = rollout(record, "upgrade_restored", row={**record, "driver": "565.1"})
    assert found["code"] == "not_restored"


RESULT = {"outcome": "", "began": False, "evicted": ["a/b"], "findings": [], "stay": {}}


def judged(layers=(), result=RESULT, **seen):
    found = [{"node": "gpu1", "layers": [*layers]}, {"node": "gpu2", "layers": [BAD]}]
    seen = {"gates": ["layers"], "row": {"ready": True}, "rows": found, **seen}
    return rollout(
        result, "upgrade_judged", host="gpu1", good="done", to={"driver": "1"}, seen=seen
    )


GOOD = {"layer": "nvml", "ok": True}
BAD = {"layer": "nvml", "ok": False, "code": "", "cause": "it does not answer"}


def codes(result):
    return [one["code"] for one in result["findings"]]


def test_the_gate_and_the_rollback():
    good = judged([GOOD])
    assert good == {**RESULT, "outcome": "done", "passed": True, "to": {"driver": "1"}}
    found = judged([BAD])
    assert (found["outcome"], found["passed"], codes(found)) == ("failed", False, ["nvml_failed"])
    assert rollout(found["findings"], "upgrade_rollback") is True
    waits = [{}, {"reboot_required": True, "reboot_reason": "in use"}]
    found = judged([GOOD], changes=waits)
    assert "in use" in str(found["findings"]) and found["outcome"] == "failed"
    assert rollout(found["findings"], "upgrade_rollback") is False
    assert "the driver asks for it" in str(
        judged([GOOD], changes=[{"reboot_required": True}])["findings"]
    )
    # What the cluster says of a node that was rebooted may be from before.
    before = judged(gates=[], row={"ready": True, "boot_id": "old"}, boot="new")
    assert codes(before) == ["boot_not_reported"]
    assert rollout(before["findings"], "upgrade_rollback") is True
    for seen in ("new", None):
        assert codes(judged(gates=[], row={"ready": True, "boot_id": seen}, boot="new")) == []
    # A comparison that was skipped is none.
    assert codes(judged(gates=["health"], health=[{"skipped": True}, {"new": []}])) == []


@pytest.mark.parametrize(("began", "bad"), [(True, "failed"), (False, "blocked")])
def test_the_drain_of_a_node(began, bad):
    result = {**RESULT, "began": began, "outcome": "failed"}
    pod = {"namespace": "x", "name": "y"}
    good = {"nodes": {"gpu1": {"evicted": [pod], "without_request": [pod]}}}
    found = rollout(result, "upgrade_drained", host="gpu1", answers=[good, {"skipped": True}])
    assert (found["outcome"], found["evicted"]) == ("", ["a/b", "x/y"])
    assert found["stay"] == {"without_request": [pod], "containers": {}}
    lost = {"msg": "No route", "lost_connection": True}
    found = rollout(result, "upgrade_drained", host="gpu1", answers=[lost])
    assert (found["outcome"], codes(found)) == (bad, ["cluster_not_asked"])
    # The host itself.
    options = {"host": "gpu1", "without_cluster": True}
    found = rollout(result, "upgrade_drained", answers=[lost], **options)
    assert found["outcome"] == "unreachable"
    found = rollout(result, "upgrade_drained", answers=[good], **options)
    assert found["outcome"] == "" and found["stay"] == {}


def test_a_host_that_did_not_answer_is_not_ready():
    here = {"node": "gpu1", "ready": True}
    assert rollout({"nodes": {"gpu1": here}}, "upgrade_row", host="gpu1") == here
    lost = rollout({"msg": "No route"}, "upgrade_row", host="gpu1")
    assert lost["ready"] is False and lost["findings"][0]["cause"] == "No route"


def test_a_node_that_is_not_released_has_failed():
    done = {**RESULT, "outcome": "done", "findings": [{"code": "x"}]}
    good = {"nodes": {"gpu1": {"ok": True, "findings": []}}}
    assert rollout(done, "upgrade_released", host="gpu1", answer=good) == done
    gone = {"nodes": {"gpu1": {"findings": [{"code": "node_gone"}]}}}
    found = rollout(done, "upgrade_released", host="gpu1", answer=gone)
    assert (found["outcome"], codes(found)) == ("failed", ["x", "node_gone"])
    found = rollout(done, "upgrade_released", host="gpu1", answer={"msg": "No route"})
    assert codes(found) == ["x", "cluster_not_asked"]


def test_what_a_rollback_left_of_the_runtimes():
    result = {**RESULT, "rolled_back_because": "It failed."}
    left = {"left": [{"path": "/etc/a"}], "restart_required": ["docker"]}
    found = rollout(result, "upgrade_not_restored", runtimes=left)["rolled_back_because"]
    assert found == "It failed. Not restored: /etc/a To be restarted: docker"


def test_a_failed_task_is_a_finding():
    task, answer = {"name": "Driver", "action": "x"}, {"failed": True, "msg": "It broke."}
    found = rollout(RESULT, "upgrade_failed", task=task, answer=answer, code="gate_failed")
    (finding,) = found["findings"]
    assert (found["outcome"], finding["code"]) == ("failed", "gate_failed")
    assert finding["cause"].startswith("Driver: It broke")
    assert "gpu_upgrade_release=true" in finding["next_step"]
    lost = {**answer, "lost_connection": True}
    assert (
        rollout(RESULT, "upgrade_failed", task=task, answer=lost, code="x")["outcome"]
        == "unreachable"
    )
    # Ansible has neither if a file of tasks could not be loaded.
    (finding,) = rollout(RESULT, "upgrade_failed", task={}, answer={}, code="task_failed")[
        "findings"
    ]
    assert finding["code"] == "task_failed" and "A file of tasks" in finding["cause"]


def test_the_result_at_the_end_has_what_the_plan_found():
    own = {"outcome": "refused", "findings": [{"code": "x"}]}
    report = {"hosts": {"gpu1": own}, "stopped": "", "findings": [{"cause": "A."}, {"cause": "B."}]}
    found = rollout({}, "upgrade_end", host="gpu1", report=report)
    assert found == {**own, "stopped": "A. B."}
    report["stopped"] = "one failed"
    assert rollout({}, "upgrade_end", host="gpu1", report=report)["stopped"] == "one failed"


@pytest.mark.parametrize("manager", ["apt", "dnf5"])
def test_packages_of_a_rollback_are_those_of_changed_parts(manager):
    driver, toolkit = {"nvidia-driver": "550", "libx:i386": "550"}, {"toolkit": "1.17"}
    kits = [{"version": "11.8", "source": "distro"}, {"version": "12.4", "source": "package"}]
    found = installed(
        os__package_manager=manager, driver__packages=driver, container_toolkit__packages=toolkit,
        cuda__packages={"cuda": "12.4"}, cuda__toolkits=kits,
    )  # fmt: skip
    plans = {"nvidia_driver": {"change": True}, "cuda_toolkit": {"change": False}}
    made = rollout(found, "upgrade_software", plans=plans)
    assert made["rollback"] == (driver if manager == "apt" else {})
    assert made["saved"] == {"nvidia-driver": "550", **toolkit}
    assert made["distro_cuda"] == ["11.8"]
    plans = {"nvidia_container_toolkit": {"change_packages": True}, "cuda_toolkit": {"change": 1}}
    made = rollout(found, "upgrade_software", plans=plans)
    assert made["rollback"] == {**toolkit, "cuda": "12.4"}


def test_a_wrong_value_is_named():
    with pytest.raises(InputError, match="gpu_upgrade_batch"):
        planned(options={"batch": 0})
    with pytest.raises(AnsibleFilterError, match="'order' is none of serial, stop"):
        rollout(HOSTS, "order")
