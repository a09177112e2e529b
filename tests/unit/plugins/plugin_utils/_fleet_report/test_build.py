# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a report says of a fleet, and what has changed since another one."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubegpu.nodes.plugins.filter.rollout import rollout
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.build import (
    build,
    content,
    dump,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.sources import (
    host_sources,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.types import Request
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.words import inventory
from tests.unit.fixtures import fleet as made
from tests.unit.fixtures.plans import registered

FLEET = made.fleet()
SEVEN = "gpu_missing_in_nvml"
NOUVEAU = {
    "code": "nouveau_loaded", "cause": "nouveau has the GPU.", "evidence": "", "next_step": "",
}  # fmt: skip


def report(hostvars=None, previous=None, applied=False, **request):
    hostvars = FLEET if hostvars is None else hostvars
    hostvars = registered(hostvars)
    sources = host_sources([*hostvars], hostvars, applied=applied)
    return build(sources, Request(generated=made.TIME, **request), previous)


def node_of(found, name):
    return next(node for node in found["nodes"] if node["name"] == name)


def changed(**hosts):
    """Return the fleet with other variables of some hosts; None removes one."""
    found = {**copy.deepcopy(FLEET), **{name.replace("_", "-"): one for name, one in hosts.items()}}
    return {name: one for name, one in found.items() if one is not None}


def test_the_sentence_and_the_states():
    found = report()
    assert found["summary"]["sentence"] == (
        "7 of 10 nodes are ready for GPU containers; 2 are not: gpu-07 (A GPU does not answer "
        "on the bus any more), infer-01 (containerd has no handler nvidia); 1 could not be read; "
        "2 of the ready ones need attention."
    )
    models = found["summary"]["models"]
    assert sum(one["gpus"] for one in models) == found["summary"]["gpus"]
    assert models[0]["product"] == "H100 SXM5 80GB" and models[0]["gpus"] > models[-1]["gpus"]
    states = {node["name"]: node["state"] for node in found["nodes"]}
    assert states == {
        **{f"gpu-0{number}": "ready" for number in (1, 3, 4, 6)},
        "gpu-02": "attention", "gpu-05": "attention", "gpu-07": "failed", "infer-01": "failed",
        made.HOSTILE: "ready", "cpu-01": "no_gpu", "gone-01": "unknown",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("hosts", "sentence"),
    [
        ([], "The report has no nodes."),
        (["cpu-01"], "The only node has no GPU."),
        (["gpu-01"], "The only node is ready for GPU containers."),
        (["gpu-01", "gpu-03", "cpu-01"], "All 2 nodes are ready for GPU containers."),
        (["gone-01"], "0 of 1 node is ready for GPU containers; 1 could not be read."),
    ],
)
def test_the_sentence_of_small_fleets(hosts, sentence):
    found = report({name: FLEET[name] for name in hosts})
    assert found["summary"]["sentence"] == sentence


def test_equal_causes_are_one_action_and_what_follows_is_folded_in():
    found = {one["id"]: one for one in report()["actions"]}
    assert [*found] == [
        "gpu_lost", "handler_missing", "not_read", "row_remap_pending", "plan_differs",
    ]  # fmt: skip
    assert [node["node"] for node in found["row_remap_pending"]["nodes"]] == ["gpu-02", "gpu-05"]
    assert found["gpu_lost"]["follows"] == ["The driver sees 7 of 8 GPUs."]
    assert found["handler_missing"]["fix"] == (
        "ansible-playbook kubegpu.nodes.site --limit infer-01 --tags toolkit,runtime"
    )
    assert found["plan_differs"]["fix"] == "ansible-playbook kubegpu.nodes.site"


@pytest.mark.parametrize(
    ("code", "address", "gpus", "ids"),
    [
        ("gpu_lost", "0000:05:00.0", "0000:05:00.0", ["gpu_lost"]),
        ("gpu_lost", "0000:05:00.0", "", ["gpu_lost"]),
        ("gpu_lost", "0000:05:00.0", "0000:af:00.0", ["gpu_lost", SEVEN]),
        ("row_remap_failed", "0000:05:00.0", "", ["row_remap_failed", SEVEN]),
        ("driver_hangs", "", "", ["driver_hangs"]),
    ],
)
def test_a_failed_driver_follows_from_what_can_cause_it(code, address, gpus, ids):
    own = copy.deepcopy(FLEET["gpu-07"])
    (row,) = (one for one in own["gpu_verify_result"]["rows"] if one["node"] == "gpu-07")
    (layer,) = (one for one in row["layers"] if one["layer"] == "nvml")
    layer["names"] = {"gpus": gpus}
    health = own["gpu_report_plan"]["health"]
    health["findings"][0].update(code=code, address=address)
    found = report({"gpu-07": own})
    assert [one["id"] for one in node_of(found, "gpu-07")["causes"]] == ids


def test_drift_is_only_looked_for_among_like_nodes():
    found = report()
    values = {one["what"]: one["values"] for one in found["drift"]}
    # The nodes with an L4 have fewer GPUs, and are of another kind.
    assert {*values} == {"Driver", "Fabric manager"}
    assert [(one["value"], len(one["nodes"]), one["minority"]) for one in values["Driver"]] == [
        ("580.126.09", 6, False),
        ("570.195.03", 1, True),
    ]


def test_without_a_majority_no_node_is_the_odd_one():
    two = {name: FLEET[name] for name in ("gpu-01", "gpu-06")}
    (driver, *_rest) = report(two)["drift"]
    assert [one["minority"] for one in driver["values"]] == [False, False]


def test_what_was_decided_and_what_was_not_seen():
    found = report()
    assert node_of(found, "gpu-06")["decisions"][0] == {
        "change": "driver packages: upgrade 580.126.09",
        "why": "branch 580 is requested, and 570.195.03 is installed",
    }
    why = "branch 580 is the newest long-term branch that supports all GPUs"
    assert node_of(found, "gpu-01")["decisions"] == [{"change": "", "why": why}]
    unseen = {node["name"]: node["unseen"] for node in found["nodes"] if node["unseen"]}
    assert unseen == {
        "gone-01": [{"what": "the node", "why": "it could not be read"}],
        made.HOSTILE: [{"what": "kernel log", "why": "dmesg: not permitted"}],
    }
    assert node_of(found, "gpu-01")["place"]["resources"][0]["allocated"] == 3


def test_the_values_of_a_gpu():
    own = made.facts(1, gpus=3)
    own["nvml"]["devices"][1].update(mig_mode="enabled", mig_devices=[{}, {}])
    seen = made.health(own, events=[
        {"kind": "xid", "number": xid, "boot": boot, "address": "0000:11:00.0", "count": count}
        for xid, boot, count in ((31, 0, 2), (31, 0, 1), (79, 0, 1), (48, -1, 1))
    ])  # fmt: skip
    seen["gpus"][1].update(
        link={"width": 8, "width_max": 16},
        ecc={"volatile_dram_uncorrected": 2, "aggregate_dram_uncorrected": 9},
        remapped_rows={"corrected": 1, "uncorrected": 2, "pending": True},
        retired_pages={"double_bit": 4, "pending": False},
    )
    del seen["gpus"][2]
    first, second, third = node_of(report({"a": made.host(own, seen)}), "a")["gpus"]
    assert (first["errors"], first["link"], first["mig"], first["xids"]) == ("none", "x16", "", "")
    assert second["errors"] == (
        "2 uncorrected, 3 rows remapped, 4 pages retired, rows to be remapped"
    )
    assert (second["link"], second["mig"]) == ("x8 of x16", "2 devices")
    assert second["xids"] == "31 (3 times), 79"
    assert (third["errors"], third["link"], third["serial"]) == ("", "", "1650500010002")


def test_after_site_a_change_is_no_action_and_a_failure_is():
    failure = {
        "task": "Install", "refused": False,
        "message": "DKMS failed.\nSeen: gcc: error\nNext step: Install the headers.",
        "cause": "DKMS failed.", "evidence": "gcc: error", "next_step": "Install the headers.",
    }  # fmt: skip
    hosts = changed(gpu_04={**FLEET["gpu-04"], "kubegpu_failure": failure})
    found = {one["id"]: one for one in report(hosts, applied=True)["actions"]}
    assert "plan_differs" not in found
    failed = found["run_failed"]
    assert (failed["cause"], failed["next_step"]) == ("DKMS failed.", "Install the headers.")
    assert failed["nodes"][0]["evidence"] == "gcc: error"
    # A host whose Prometheus could not be changed is told of, too; what its node lacks comes first.
    other = {**failure, "cause": "promtool refused the rules."}
    for first, cause in (
        ({}, "promtool refused the rules."),
        ({"kubegpu_failure": failure}, "DKMS failed."),
    ):
        hosts = changed(gpu_04={**FLEET["gpu-04"], "kubegpu_prometheus_failure": other, **first})
        found = {one["id"]: one for one in report(hosts, applied=True)["actions"]}
        assert found["run_failed"]["cause"] == cause


@pytest.mark.parametrize("failed", [True, False])
def test_what_is_refused_keeps_its_parts(failed):
    refusals = [
        {
            "cause": "Seen: is the name of a GPU.",
            "evidence": "Next step: x",
            "next_step": "Buy it.",
        },
        {"cause": "It is locked.", "evidence": "", "next_step": ""},
    ]
    plan = {"action": "refuse", "reasons": ["a", "b"], "refusals": refusals, "steps": []}
    joined = "Seen: is the name of a GPU.\nSeen: Next step: x\nNext step: Buy it.\nIt is locked."
    failure = rollout({"name": "Stop", "action": "fail"}, "failure", result={"msg": joined})
    hosts = {"gpu-01": {**FLEET["gpu-01"], "nvidia_driver_plan": {**plan, "warnings": []}}}
    if failed:
        hosts["gpu-01"]["kubegpu_failure"] = failure
    (node,) = report(hosts, applied=failed)["nodes"]
    found = [
        (one["id"], one["subject"], one["cause"], one["evidence"], one["next_step"])
        for one in node["causes"]
    ]
    code, step = "refused" if failed else "plan_refused", "Change the variables of this part, then"
    assert found == [
        (code, "driver", "Seen: is the name of a GPU.", "Next step: x", "Buy it."),
        (code, "driver", "It is locked.", "", f"{step} plan again."),
    ]


def test_variables_that_are_refused_before_any_change_keep_their_parts():
    wrong = [{"variable": "nvidia_driver_branch", "part": "driver", "message": "x\nSeen: y",
              "cluster": False, "cause": "x", "evidence": "y", "next_step": "z"}]  # fmt: skip
    failure = rollout(wrong, "refusal", task="Check")
    assert (failure["cause"], failure["refused"]) == ("x", True)
    (node,) = report({"gpu-01": {**FLEET["gpu-01"], "kubegpu_failure": failure}})["nodes"]
    (cause,) = (one for one in node["causes"] if one["id"] == "refused")
    assert (cause["cause"], cause["evidence"], cause["next_step"]) == ("x", "y", "z")


def test_a_node_to_which_site_did_not_get_is_still_to_be_changed():
    waiting = {**FLEET["gpu-06"], "kubegpu_begun": False}
    begun = {**FLEET["gpu-06"], "kubegpu_begun": True}
    nothing = {**FLEET["gpu-01"], "kubegpu_begun": False}
    hosts = {"gpu-01": nothing, "gpu-06": waiting, "gpu-16": begun}
    (action,) = (one for one in report(hosts, applied=True)["actions"]
                 if one["id"] == "plan_differs")  # fmt: skip
    assert [one["node"] for one in action["nodes"]] == ["gpu-06"]


def test_a_reboot_that_is_left_needs_attention():
    result = {"changed": True, "reboot_required": True, "reboot_reason": "it is in use"}
    found = report({"gpu-01": {**FLEET["gpu-01"], "nvidia_driver_result": result}})
    (action,) = found["actions"]
    assert (action["id"], action["cause"]) == (
        "reboot_pending", "A reboot is pending: it is in use",
    )  # fmt: skip
    assert found["nodes"][0]["state"] == "attention"


def test_equal_inputs_give_equal_bytes_in_any_order_of_hosts():
    other = dict(reversed(FLEET.items()))
    assert dump(report()) == dump(report(copy.deepcopy(other)))
    later = {**report(previous=report()), "generated": "later"}
    assert later != report() and content(later) == content(report())


# What has changed.


def changes(before, after, **request):
    found = report(after, previous=report(before), **request)
    assert found["previous"]["compared"]
    return {(one["node"], one["kind"], one["text"]) for one in found["changes"]}


def test_nothing_has_changed():
    assert changes(FLEET, FLEET) == set()


def test_another_driver_is_the_only_change():
    node = made.facts(3, gpus=8, driver="580.200.01")
    after = changed(gpu_03={**FLEET["gpu-03"], "ansible_facts": {"gpu_node": node}})
    assert changes(FLEET, after) == {
        ("gpu-03", "version", "Driver: 580.126.09 → 580.200.01"),
        ("gpu-03", "version", "Fabric manager: 580.126.09 → 580.200.01"),
    }


def test_nodes_that_come_go_break_and_recover():
    after = changed(gpu_01=None, gpu_02={**FLEET["gpu-02"], "gpu_report_plan": {}}, gpu_03={})
    new = made.facts(20, gpus=2)
    after["gpu-20"] = made.host(new, made.health(new))
    found = changes(FLEET, after)
    assert found == {
        ("gpu-01", "gone", "is gone"),
        ("gpu-02", "recovered", "was ready, with attention needed, is ready"),
        ("gpu-02", "cause_gone",
         "no longer: Rows of the GPU's memory are to be replaced, which needs a reset."),
        ("gpu-03", "broke", "was ready, is not read"),
        ("gpu-20", "new", "is new: 2x H100 SXM5 80GB"),
    }  # fmt: skip
    back = {(node, kind) for node, kind, _text in changes(after, FLEET)}
    assert ("gpu-03", "recovered") in back and ("gpu-02", "cause_new") in back


def test_a_node_with_another_name_is_known_by_its_machine():
    after = {name.replace("gpu-04", "gpu-44"): one for name, one in FLEET.items()}
    assert changes(FLEET, after) >= {("gpu-44", "renamed", "was called gpu-04")}
    assert not {one for one in changes(FLEET, after) if one[1] in ("new", "gone")}


def test_clones_with_one_machine_id_are_known_by_their_names():
    clones = {name: made.host(made.facts(1, gpus=1)) for name in ("a", "b")}
    after = dict.fromkeys(("c", "d"), clones["a"])
    kinds = sorted((node, kind) for node, kind, _text in changes(clones, after))
    assert kinds == [("a", "gone"), ("b", "gone"), ("c", "new"), ("d", "new")]


def gpus(*places, **keys):
    """Return a host whose GPUs are those of the places, each with its address and UUID."""
    own = made.facts(1, gpus=4, **keys)
    for part in (own["gpus"], own["nvml"]["devices"]):
        part[:] = [part[place] for place in places]
    return {"gpu-01": made.host(own, made.health(own))}


def test_a_gpu_that_is_lost_and_one_that_moved():
    assert changes(gpus(0, 1, 2), gpus(0, 1)) == {
        ("gpu-01", "gpu_lost", "GPU H100 SXM5 80GB at 0000:12:00.0 is gone"),
    }
    moved = gpus(0, 1)
    own = moved["gpu-01"]["ansible_facts"]["gpu_node"]
    for part in (own["gpus"], own["nvml"]["devices"]):
        part[1]["address"] = "0000:99:00.0"
    assert changes(gpus(0, 1), moved) == {
        ("gpu-01", "gpu_moved", "GPU H100 SXM5 80GB at 0000:99:00.0 was at 0000:11:00.0"),
    }


def test_a_node_that_nothing_verified_is_judged_by_its_facts():
    bare = made.facts(1, gpus=1)
    bare["driver"] = {**bare["driver"], "loaded": None, "installed": None}
    found = report({"a": made.host(made.facts(2, gpus=1)), "b": made.host(bare)})
    assert [(node["state"], node["unseen"]) for node in found["nodes"]] == [
        (state, [{"what": "layers", "why": "nothing verified them in this run"}])
        for state in ("ready", "failed")
    ]
    assert [one["id"] for one in found["actions"]] == ["driver_missing"]


@pytest.mark.parametrize(
    ("gpus", "failed", "causes", "state"),
    [
        # The GPUs work all the same.
        (1, "", [("nouveau_loaded", "warning", [])], "attention"),
        (1, "module", [("nouveau_loaded", "error", ["No module."])], "failed"),
        # A layer that nothing else has a finding of.
        (1, "pod", [("nouveau_loaded", "error", ["No module."])], "failed"),
        (0, "", [], "no_gpu"),
    ],
)
def test_what_only_the_facts_say_counts_by_what_was_tested(gpus, failed, causes, state):
    facts = made.facts(1, gpus=gpus)
    facts["problems"] = [NOUVEAU]
    one = made.host(facts)
    layers = made.layers("a")
    if failed:
        code = "module_not_loaded" if failed == "module" else ""
        bad = {"layer": failed, "ok": False, "code": code, "cause": "No module."}
        layers.append({**layers[0], **bad})
    one["gpu_verify_result"] = {"rows": [{"node": "a", "layers": layers}]}
    (node,) = report({"a": one})["nodes"]
    found = [(cause["id"], cause["severity"], cause["follows"]) for cause in node["causes"]]
    assert (found, node["state"]) == (causes, state)


@pytest.mark.parametrize("vendor", ["nvidia", "amd"])
def test_layers_that_were_not_tried_do_not_make_a_node_without_a_driver_ready(vendor):
    facts = made.facts(1, gpus=1, kind={"vendor": vendor, "kernel_driver": None})
    facts["driver"] = {**facts["driver"], "loaded": None, "installed": None}
    layers = [{**one, "ok": None, "cause": "No GPU is on the bus."} for one in made.layers("a")]
    one = made.host(facts)
    one["gpu_verify_result"] = {"rows": [{"node": "a", "layers": layers}]}
    (node,) = report({"a": one})["nodes"]
    assert node["state"] == "failed"
    assert "error" in [cause["severity"] for cause in node["causes"]]


def test_a_node_of_another_vendor_without_a_driver_is_not_ready():
    facts = made.facts(1, gpus=1, kind={"vendor": "amd", "kernel_driver": None})
    facts["driver"] = {**facts["driver"], "loaded": None, "installed": None}
    (node,) = report({"a": made.host(facts)})["nodes"]
    assert [cause["id"] for cause in node["causes"]] == ["driver_not_loaded"]
    assert node["state"] == "failed"


@pytest.mark.parametrize(("value", "shown"), [(True, "on"), (False, "off"), (None, "unknown")])
def test_secure_boot_that_cannot_be_read_is_unknown_and_neither_a_drift_nor_a_change(value, shown):
    fleet = {}
    for number in range(1, 4):
        own = made.facts(number, gpus=1)
        own["secure_boot"] = value if number == 3 else False
        fleet[f"n{number}"] = made.host(own)
    found = report(fleet)
    assert node_of(found, "n3")["versions"]["Secure Boot"] == shown
    drifts = [one["what"] for one in found["drift"]]
    assert drifts == (["Secure Boot"] if value else [])
    before = copy.deepcopy(fleet)
    before["n3"]["ansible_facts"]["gpu_node"]["secure_boot"] = False
    found = {text for _node, _kind, text in changes(before, fleet)}
    assert found == ({"Secure Boot: off → on"} if value else set())


def test_gpus_that_nothing_tells_apart_are_counted():
    hide = {"hide": ("uuid", "serial", "address")}
    found = report(gpus(0, 1), previous=report(gpus(0, 1, 2), **hide), **hide)
    assert [(one["kind"], one["text"]) for one in found["changes"]] == [
        ("gpu_lost", "GPU H100 SXM5 80GB: 1 gone"),
    ]


@pytest.mark.parametrize("previous", [{"schema": "other/1"}, [], "x", {"nodes": 1}])
def test_a_report_that_is_not_understood_is_not_compared(previous):
    found = report(previous=previous)
    assert not found["previous"]["compared"] and found["changes"] == []


def test_a_broken_report_of_this_schema_is_compared_as_far_as_it_goes():
    broken = {"schema": "kubegpu.nodes/report/1", "nodes": [None, {"name": 7, "gpus": "x"}]}
    assert report(previous=broken)["previous"]["compared"]


def test_what_is_hidden_is_nowhere():
    plain = dump(report())
    shown = dump(report(hide=("serial", "uuid", "address", "machine_id")))
    for secret in ("1650500070003", "GPU-00000007", "0000:13:00", f"{7:032x}"):
        assert secret in plain and secret not in shown
    assert "(hidden)" in shown and "14:05" in shown


def test_secrets_and_control_characters_are_taken_out():
    failure = {"task": "x", "refused": False, "cause": "token=abcdef \x1b[2J\u202e"}
    found = report({"a": {**FLEET["gpu-01"], "kubegpu_failure": failure}})
    assert found["actions"][0]["cause"] == "token=*** \\x1b[2J\\u202e"


def test_an_acceptance_is_a_remark_and_a_failed_one_a_cause():
    done = {"passed": True, "at": "2026-11-24T02:00:00+00:00", "level": "burn_in", "driver": "580",
            "gpus": [], "tests": ["dcgm"], "causes": []}  # fmt: skip
    fleet = copy.deepcopy(FLEET)
    fleet["gpu-01"]["ansible_facts"]["gpu_node"]["acceptance"] = done
    fleet["gpu-03"]["ansible_facts"]["gpu_node"]["acceptance"] = {
        **done, "passed": False, "causes": ["The test pcie of DCGM failed."],
    }  # fmt: skip
    found = report(fleet)
    assert node_of(found, "gpu-01")["notes"][0] == (
        "accepted 2026-11-24T02:00:00+00:00 at the level burn_in, with driver 580"
    )
    assert node_of(found, "gpu-01")["state"] == "ready"
    failed = node_of(found, "gpu-03")
    assert failed["state"] == "failed" and failed["causes"][0]["id"] == "not_accepted"
    assert failed["causes"][0]["evidence"] == "The test pcie of DCGM failed."


@pytest.mark.parametrize(("managed", "state"), [(None, "ready"), (False, "failed")])
def test_what_only_root_can_ask_is_no_fault_without_root(managed, state):
    facts = copy.deepcopy(FLEET["gpu-01"]["ansible_facts"]["gpu_node"])
    facts["driver"]["managed"] = managed
    problem = {"code": "containerd_config_invalid", "cause": "It cannot be read."}
    facts["problems"] = [problem] if managed is None else []
    hosts = {"gpu-01": made.host(facts)}
    layers = made.layers("gpu-01", "runtime", cause="containerd denies the connection.")
    hosts["gpu-01"]["gpu_verify_result"] = {"rows": [{"node": "gpu-01", "layers": layers}]}
    (node,) = report(hosts)["nodes"]
    assert node["state"] == state
    (runtime,) = (one for one in node["layers"] if one["layer"] == "runtime")
    assert runtime["status"] == ("not tried" if managed is None else "failed")


@pytest.mark.parametrize("facts", [
    pytest.param({"gpus": [{}]}, id="an earlier release"),
    pytest.param({"gpus": "none"}, id="a text"),
    pytest.param([], id="no mapping"),
])  # fmt: skip
def test_facts_of_another_form_cost_their_own_host_its_rows_only(facts):
    other = {**copy.deepcopy(FLEET["gpu-01"]), "ansible_facts": {"gpu_node": facts}}
    found = report(changed(gpu_01=other))
    before = report()
    assert [one for one in found["nodes"] if one["name"] != "gpu-01"] == [
        one for one in before["nodes"] if one["name"] != "gpu-01"
    ]
    node = node_of(found, "gpu-01")
    assert node["state"] == "unknown" and node["causes"][0]["id"] == "not_read"
    if facts:
        assert "have an unexpected format" in node["causes"][0]["evidence"]
        assert "cache of facts" in node["causes"][0]["next_step"]


def test_a_cause_of_many_nodes_has_their_number():
    lost = node_of(report(), "gpu-07")
    hosts = {f"gpu-1{number}": FLEET["gpu-07"] for number in range(3)}
    assert f"3 are not: {lost['why'].rstrip('.')} (3)." in report(hosts)["summary"]["sentence"]


def test_a_column_that_says_nothing_is_left_out():
    nodes = report()["nodes"]
    two = [node for node in nodes if node["name"] in ("gpu-01", "gpu-03")]
    found = inventory(two)
    titles = [title for title, _cells in found.columns]
    assert "GPUs" in titles and found.common["System"] == "debian 12"
    assert not {*titles} & {*found.common}
    # One node is not compared, and a node that was not read is not like the others.
    assert inventory(two[:1]).common == {} and inventory([]).columns == ()
    assert "System" not in inventory(nodes).common
    assert all(len(cells) == len(nodes) for _title, cells in inventory(nodes).columns)
