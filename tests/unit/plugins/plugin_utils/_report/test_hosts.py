# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables of a play from what its hosts have: facts, plans, results, failures."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.plan import plan_mig
from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.types import Request
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._reading import endings
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report import hosts as tables
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.hosts import (
    cluster_rows,
    verification_rows,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.steps import stop_containers
from tests.unit.fixtures.mig_node import MigNode, card
from tests.unit.fixtures.node_facts import installed, node
from tests.unit.fixtures.plans import registered

PLAN = {"action": "none", "steps": [], "reasons": [], "warnings": [], "work": False}
TOOLKIT = {**PLAN, "version": "1.20.1-1"}
BEFORE = "its row shows what was read before; the run may have changed the node since"


def plan_rows(hosts, hostvars):
    return tables.plan_rows(hosts, registered(hostvars))


def result_rows(hosts, hostvars, *more, **options):
    return tables.result_rows(hosts, registered(hostvars), *more, **options)


def host(facts=None, **variables):
    return {"ansible_facts": {"gpu_node": facts or node()}, **variables}


def planned(**variables):
    plans = {"nvidia_driver_plan": {}, "nvidia_mig_plan": {}, "cuda_toolkit_plan": PLAN}
    return host(**{**plans, "nvidia_container_toolkit_plan": TOOLKIT, **variables})


def changed(**result):
    """A host with a runtime that this run configured."""
    runtimes = {"docker": {"changed": True, **result}}
    return planned(
        nvidia_container_toolkit_result={"changed": True, "runtimes": runtimes},
        inventory_hostname="a",
    )


WAITS = {"restart_required": True, "restart_reason": "--gpus needs it"}
REBOOTS = {"changed": True, "reboot_required": True, "reboot_reason": "nouveau is in use"}


@pytest.mark.parametrize(
    ("variables", "why", "step"),
    [
        (changed(**WAITS), "It needs a restart of Docker.", "Restart Docker on it"),
        ({**changed(), "nvidia_driver_result": REBOOTS}, "It needs a reboot.", "Reboot it"),
        ({**changed(**WAITS), "nvidia_driver_result": REBOOTS}, "It needs a reboot.", "Reboot it"),
    ],
)
def test_a_changed_node_that_waits_is_named_with_the_next_step(variables, why, step):
    hostvars = {"a": variables}
    assert tables.unverified_hosts(["a"], hostvars) == ["a"]
    row = {"node": "a", "why": why, "next_step": f"{step}, then run site again, which verifies it."}
    assert tables.unverified_rows(["a"], hostvars) == [row]


def test_containers_that_delay_the_restart_are_named_with_what_to_do():
    variables = changed(**WAITS, waiting_containers=2)
    (row,) = tables.unverified_rows(["a"], {"a": variables})
    assert row["why"] == "It needs a restart of Docker, which waits for running containers."
    assert row["next_step"] == stop_containers(
        2
    ) and "(2; docker ps lists them)" in stop_containers(2)
    # A reboot stops them.
    rebooting = {**variables, "nvidia_driver_result": REBOOTS}
    assert tables.unverified_rows(["a"], {"a": rebooting})[0]["why"] == "It needs a reboot."


def due(variables):
    """The host, whose record has the mark of a run before this one."""
    variables["ansible_facts"]["gpu_node"]["verification_due"] = True
    return variables


def test_a_node_that_no_verification_passed_is_verified_again_though_nothing_changed():
    hostvars = {
        "due": due(planned()),
        "marked now": planned(kubegpu_due={"changed": True}),
        "passed": planned(kubegpu_due={"changed": False, "skipped": True}),
        "switched off": due(planned(gpu_verify_enabled=False)),
        "failed": due(planned(kubegpu_failure={"refused": False})),
    }
    for name, variables in hostvars.items():
        variables["ansible_facts"]["gpu_node"]["driver"]["loaded"] = "580.126.09"
        variables["inventory_hostname"] = name
    assert tables.changed_hosts([*hostvars], hostvars) == ["due", "marked now"]
    assert tables.unverified_hosts([*hostvars], hostvars) == []


def test_a_node_that_still_waits_is_named_again_and_not_verified():
    waits = due(changed(**WAITS))
    waits["nvidia_container_toolkit_result"]["changed"] = False
    waits["ansible_facts"]["gpu_node"]["driver"]["loaded"] = "580.126.09"
    assert tables.changed_hosts(["a"], {"a": waits}) == []
    assert tables.unverified_hosts(["a"], {"a": waits}) == ["a"]


def test_what_a_plan_warns_of_keeps_no_changed_node_from_its_verification():
    """It was neither verified nor named, and the run ended with 0."""
    warned = changed()
    warned["nvidia_container_toolkit_plan"] = {**TOOLKIT, "warnings": ["The branch ends soon."]}
    warned["ansible_facts"]["gpu_node"]["driver"]["loaded"] = "580.126.09"
    assert tables.changed_hosts(["a"], {"a": warned}) == ["a"]


@pytest.mark.parametrize(
    "variables",
    [
        changed(),
        planned(),
        {**planned(), "nvidia_driver_result": {**REBOOTS, "changed": False}},
        {**changed(**WAITS), "gpu_verify_enabled": False},
        {**changed(**WAITS), "kubegpu_failure": {"refused": False}},
        {},
    ],
)
def test_others_are_verified_unchanged_or_have_failed(variables):
    assert tables.unverified_hosts(["a"], {"a": variables}) == []


def test_the_plan_of_each_host_or_why_there_is_none():
    wrong = {"variable": "nvidia_driver_branch", "part": "driver", "message": "x", "cluster": False}
    hostvars = {
        "planned": planned(),
        "the plan failed": host(nvidia_driver_plan=PLAN),
        "no mig": host(nvidia_driver_plan=PLAN, nvidia_container_toolkit_plan=TOOLKIT),
        "the plan of mig failed": planned(nvidia_mig_config="all-balanced"),
        "the plan of cuda failed": planned(cuda_toolkit_versions=["12.9"]),
        "cpu": host(node(gpus=[])),
        "unreachable": {},
        "refused": host(__kubegpu_variables={"wrong": {"refused": [wrong]}}),
    }
    del hostvars["the plan of mig failed"]["nvidia_mig_plan"]
    del hostvars["the plan of cuda failed"]["cuda_toolkit_plan"]
    rows = {row["node"]: row for row in plan_rows([*hostvars], hostvars)}
    assert {name: row["action"] for name, row in rows.items()} == {
        "planned": "none",
        "the plan failed": "unknown",
        "no mig": "none",
        "the plan of mig failed": "unknown",
        "the plan of cuda failed": "unknown",
        "cpu": "none",
        "unreachable": "unknown",
        "refused": "refuse",
    }
    assert rows["planned"]["toolkit"] == TOOLKIT and "driver" not in rows["planned"]
    assert rows["the plan failed"]["why"] == [
        "the plan stopped at this node; its failed task says why"
    ]
    assert rows["unreachable"]["why"] == ["the node could not be read"]
    assert rows["cpu"]["why"] == ["no GPU: nothing to do"]


@pytest.mark.parametrize("key", ["changed", "would_change"])
def test_what_a_runtime_said_in_check_mode_is_in_the_plan(key):
    runtimes = {"docker": {"changed": False, key: True, "reasons": ["no entry"]}}
    hostvars = {"a": planned(__kubegpu_runtimes=runtimes)}
    (row,) = plan_rows(["a"], hostvars)
    assert row["changes"] == ["docker: change its configuration"]
    assert row["why"] == ["no entry", "driver: not managed (nvidia_driver_enabled: false)"]


def test_a_driver_that_is_not_managed_is_said_to_be_so():
    (row,) = plan_rows(["a"], {"a": planned()})
    assert row["why"] == ["driver: not managed (nvidia_driver_enabled: false)"]
    (row,) = plan_rows(["a"], {"a": planned(nvidia_driver_plan=PLAN)})
    assert row["why"] == ["up to date"]


STEP = "Run kubegpu.nodes.site for this node: role nvidia_driver installs and loads it."


@pytest.mark.parametrize(
    ("variables", "installed", "expected"),
    [
        ({}, None, ""),
        ({"nvidia_driver_enabled": True}, None, ""),
        ({"nvidia_driver_enabled": False}, None, "nvidia_driver_enabled: false"),
        ({"nvidia_driver_enabled": "no"}, "580.95.05", "nvidia_driver_enabled: false"),
        ({"nvidia_driver_load": False}, None, ""),
        ({"nvidia_driver_load": False}, "580.95.05", "nvidia_driver_load is false"),
    ],
)
def test_a_verification_names_the_variable_that_has_to_change(variables, installed, expected):
    entry = {"layer": "module", "ok": False, "code": "driver_not_loaded", "cause": "Not loaded.",
             "next_step": STEP}  # fmt: skip
    other = {**entry, "layer": "toolkit", "code": "toolkit_missing", "next_step": "Install it."}
    hostvars = {"a": host(node(driver__installed=installed), layers=[entry, other], **variables)}
    (row,) = verification_rows(["a"], hostvars, "layers")
    first, second = row["layers"]
    assert first["next_step"].endswith(STEP) and second["next_step"] == "Install it."
    assert (first["next_step"] == STEP) == (not expected) and expected in first["next_step"]
    assert any(expected in text for text in row["causes"])


def test_results_of_a_batch_and_of_all_that_failed_or_wait():
    failure = {
        "task": "Install", "message": "It did not build.\nSeen: gcc", "refused": False,
        "changed": False, "cause": "It did not build.",
    }  # fmt: skip
    hostvars = {
        "lost": planned(kubegpu_begun=True),
        "done before": planned(kubegpu_begun=True),
        "failed": planned(kubegpu_begun=True, kubegpu_failure=failure),
        "done": planned(kubegpu_begun=True, nvidia_driver_result={"changed": True}),
        "waits": planned(kubegpu_begun=False),
    }
    alive = [name for name in hostvars if name != "lost"]
    rows = result_rows([*hostvars], hostvars, ["done"], alive, stop="not started: 1 failed")
    assert [row["node"] for row in rows] == ["done", "failed", "lost", "waits"]
    assert [row["open"] for row in rows] == [
        [],
        ["the run stopped at this node, in the task 'Install': It did not build."],
        ["the run stopped at this node; its failed task says why", BEFORE],
        ["not started: 1 failed"],
    ]
    assert rows[0]["toolkit"] == ["1.20.1-1", "unchanged"]
    # Nothing is stopped: who waits has no row.
    assert [row["node"] for row in result_rows(alive, hostvars)] == ["failed"]


@pytest.mark.parametrize("why", ["refused", "failed", "changed", "lost", "waits"])
def test_a_node_that_is_not_as_planned_keeps_what_is_known_of_it(why):
    facts = installed(
        driver__loaded="580.126.09", driver__installed="580.126.09",
        cuda__toolkits=[{"version": "12.8.1", "path": "/x", "default": True, "source": None,
                         "uninstaller": None}],
    )  # fmt: skip
    failure = {
        "task": "Install", "cause": "nvidia_driver_branch has to be newer.",
        "refused": why == "refused", "changed": why == "changed",
    }  # fmt: skip
    failed = {"kubegpu_failure": failure} if why in ("refused", "failed", "changed") else {}
    hostvars = {"a": host(facts, kubegpu_begun=why != "waits", **failed)}
    alive, stop = ([] if why == "lost" else ["a"]), ("not started" if why == "waits" else "")
    batch = ["a"] if failed else []
    (row,) = result_rows(["a"], hostvars, batch, alive, stop=stop)
    assert (row["driver"], row["cuda"]) == (["580.126.09"], ["12.8.1 (default)"])
    assert row["toolkit"] == ["1.20.1-1"]
    assert row["containerd"] == ["nvidia, runc (default)"] == row["docker"]
    told = "nvidia_driver_branch" if failed else "stopped" if why == "lost" else "not started"
    assert told in row["open"][0]
    # Nothing is claimed of a node that was changed or lost after it was read.
    assert (BEFORE in row["open"]) is (why in ("changed", "lost"))


def test_a_node_that_was_not_read_says_why():
    read = {"failed": True, "msg": "sudo: no tty is there\x1b[2J\nx"}
    hostvars = {
        "failed": {"__kubegpu_read": read, "inventory_hostname": "failed"},
        "cached": host({"gpus": []}),
        "no facts": {"__kubegpu_read": {}},
    }
    rows = plan_rows([*hostvars], hostvars)
    assert [row["why"] for row in rows] == [
        ["the node could not be read, see below"],
        ["the node could not be read: Its facts have an unexpected format: this release of "
         "the collection writes another one."],
        ["the node could not be read"],
    ]  # fmt: skip
    # After the first play one variable has them for all hosts.
    kept = {"endings": endings([*hostvars], hostvars)}
    assert [*kept["endings"]] == ["failed"]
    later = {"failed": {"inventory_hostname": "failed", "__kubegpu_read": kept}}
    assert plan_rows(["failed"], later) == plan_rows(["failed"], hostvars)
    found = verification_rows([*hostvars], hostvars, "layers", missing="it stopped")
    assert [row["causes"] for row in found] == [
        ["the node could not be read: sudo: no tty is there\\x1b[2J"],
        rows[1]["why"], ["it stopped"],
    ]  # fmt: skip
    assert rows[0]["warnings"][0].startswith("sudo: no tty is there\\x1b[2J\nSeen: x\n")


def test_a_host_without_a_gpu_is_a_row_of_a_verification():
    hostvars = {"cpu": host(node(gpus=[])), "gpu": host(), "plugin": host(node(gpus=[]))}
    more = [{
        "node": "plugin", "layer": "allocatable", "ok": False, "cause": "It offers a GPU.",
        "evidence": "", "next_step": "", "code": "x",
    }]  # fmt: skip
    rows = {
        row["node"]: row for row in verification_rows([*hostvars], hostvars, "layers", more=more)
    }
    cpu = rows["cpu"]
    seen = (cpu["pci"], cpu["module"], cpu["result"], cpu["failed"])
    assert seen == ("no GPU", None, "no GPU", False)
    assert cpu["causes"] == cpu["notes"] == []
    assert rows["gpu"]["failed"] and rows["gpu"]["pci"] is None
    plugin = rows["plugin"]
    assert (plugin["pci"], plugin["allocatable"], plugin["result"]) == (
        "no GPU",
        "failed",
        "failed",
    )


def test_a_reboot_that_the_driver_needs_is_left_to_be_done():
    result = {"changed": True, "reboot_required": True, "reboot_reason": "it is in use"}
    hostvars = {"a": planned(nvidia_driver_result=result)}
    (row,) = result_rows(["a"], hostvars, ["a"])
    assert row["open"] == ["reboot: it is in use"]


def test_the_toolkits_version_is_that_of_the_facts_where_its_part_did_not_run():
    hostvars = {"a": planned()}
    (row,) = result_rows(["a"], hostvars, ["a"], run_tags=["driver"])
    assert row["toolkit"] == []
    (row,) = result_rows(["a"], hostvars, ["a"], run_tags=["all"], skip_tags=["toolkit"])
    assert row["toolkit"] == []


@pytest.mark.parametrize(
    "result",
    [
        {"nvidia_container_toolkit_result": {"changed": True, "toolkit_changed": True}},
        {"amd_container_toolkit_result": {"changed": True, "toolkit_changed": True}},
    ],
)
def test_a_toolkit_that_was_installed_was_changed(result):
    (row,) = result_rows(["a"], {"a": planned(**result)}, ["a"])
    assert row["toolkit"] == ["1.20.1-1", "changed"]


def test_a_runtime_that_was_changed_is_no_change_of_the_toolkit():
    docker = {"changed": True, "runtimes": {"nvidia": {}}, "default_runtime": "runc"}
    result = {"changed": True, "toolkit_changed": False, "runtimes": {"docker": docker}}
    (row,) = result_rows(["a"], {"a": planned(nvidia_container_toolkit_result=result)}, ["a"])
    assert row["toolkit"] == ["1.20.1-1", "unchanged"]
    # As containerd's: the default too, which is in no file of Docker's.
    assert row["docker"] == ["nvidia, runc (default)", "changed"]


def test_what_would_change_in_the_cluster():
    variables = {
        "gpu_node_labels_result": {"nodes": {"a": {"node": "n1", "changed": False}}},
        "nvidia_device_plugin_plan": {"action": "apply", "objects": [{"kind": "DaemonSet"}]},
        "nvidia_device_plugin_result": {"changed": True},
    }
    rows = cluster_rows(["a"], {"a": variables})
    assert [row["changes"] for row in rows] == [["none"], ["apply DaemonSet"]]


MIG = {"index": 0, "before": "MIG disabled", "after": "2x 3g.40gb at 0 and 4", "reboot_reason": ""}


def mig_rows(facts, plan, predicted=False, **result):
    variables = {"nvidia_mig_plan": {"devices": [plan], "warnings": []}}
    hostvars = {
        "a": planned(facts=facts, nvidia_mig_result={"changed": True, **result}, **variables),
        "b": planned(),
    }
    return result_rows(["a", "b"], hostvars, ["a", "b"], predicted=predicted)


def test_the_mig_layout_is_a_column_where_one_is_asked_for(tmp_path):
    made = MigNode(tmp_path, card(0, "2330"))
    reboot = {"reboot_required": True, "reboot_reason": "the mode is pending"}
    # What is there, also where it is not what was planned.
    rows = mig_rows(made.facts(), MIG, **reboot)
    assert [row["mig"] for row in rows] == [["0: MIG disabled", "changed"], []]
    assert rows[0]["open"] == ["reboot: the mode is pending"]
    made._smi.cards()[0].set_modes(True, True)
    made.run(["nvidia-smi", "mig", "-i", "GPU-0", "-cgi", "3g.40gb:0,3g.40gb:4", "-C"])
    assert mig_rows(made.facts(), MIG)[0]["mig"] == ["0: 2x 3g.40gb at 0 and 4", "changed"]
    facts = made.facts()
    facts["nvml"]["devices"][0]["gpu_instances"] = None
    assert mig_rows(facts, MIG)[0]["mig"][0] == "0: MIG enabled, instances not known"
    # The driver does not answer.
    assert mig_rows({**facts, "nvml": None}, MIG)[0]["mig"][0] == "0: not known"


def test_a_number_of_a_gpu_that_is_not_there_is_a_note_of_the_plan_and_nothing_open(tmp_path):
    made = MigNode(tmp_path, card(0, "2330"))
    entry = {"devices": [7], "mig-enabled": True, "mig-devices": {}}
    plan = plan_mig(made.facts(), Request("some", {"some": [entry]})).to_json()
    hostvars = {"a": planned(facts=made.facts(), nvidia_mig_plan=plan)}
    (row,) = plan_rows(["a"], hostvars)
    assert [one for one in row["warnings"] if "names GPU 7, which this node does not have" in one]
    (result,) = result_rows(["a"], hostvars, ["a"])
    assert result["open"] == []


def test_check_mode_shows_the_mig_layout_that_the_run_will_make(tmp_path):
    facts = MigNode(tmp_path, card(0, "2330")).facts()
    rows = mig_rows(facts, MIG, predicted=True)
    assert rows[0]["mig"] == ["0: 2x 3g.40gb at 0 and 4", "changed"]
    # A mode that waits for a reboot is not made by the run.
    rows = mig_rows(facts, {**MIG, "reboot_reason": "GPU 0 waits"}, predicted=True)
    assert rows[0]["mig"][0] == "0: MIG disabled"


@pytest.mark.parametrize("rebooted", [True, False])
def test_a_reboot_for_mig_is_open_once_and_not_after_it(tmp_path, rebooted):
    facts = MigNode(tmp_path, card(0, "2330")).facts()
    reason = "" if rebooted else "GPU 0 waits"
    result = {"reboot_required": not rebooted, "reboot_reason": reason}
    plan = {**MIG, "reboot_reason": "GPU 0 waits"}
    variables = {"nvidia_mig_plan": {"devices": [plan], "warnings": ["GPU 0 waits", "other"]}}
    hostvars = {"a": planned(facts=facts, nvidia_mig_result=result, **variables)}
    (row,) = result_rows(["a"], hostvars, ["a"])
    assert row["open"] == ([] if rebooted else ["reboot: GPU 0 waits"]) + ["other"]
