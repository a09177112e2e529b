# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What check mode and the playbook plan predict after a MIG layout that is not made."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.cluster import host_row
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.types import Node, Run
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._rollout import roles_to_run
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._variables_data import NODE_ROLES
from tests.unit.fixtures.node_facts import P4, node

ROOT = Path(__file__).parents[3]
LOADER = DataLoader()
DEVICE = {
    "address": P4["address"],
    "name": "NVIDIA A100-SXM4-40GB",
    "memory_total": 40960,
    "mig_mode": "disabled",
    "mig_devices": [],
}
FACTS = node(nvml={"driver_version": "580.95.05", "cuda_version": "13.0", "devices": [DEVICE]})
PLAN = {
    "change": True,
    "devices": [
        {"address": P4["address"], "mig_mode": "enabled", "mig_devices": ["1g.5gb"] * 7},
    ],
}
LEFT = ["kubegpu/kubegpu-nvidia-device-plugin"]


def load(path):
    return LOADER.load_from_file(str(ROOT / path), trusted_as_template=True)


def task(path, name):
    """Return a task of a file, also of a block in it."""
    tasks = [one for top in load(path) for one in (top, *top.get("block", ()))]
    (found,) = [one for one in tasks if one["name"] == name]
    return found


def template(text, role="nvidia_mig", **variables):
    known = {
        **load(f"roles/{role}/defaults/main.yml"),
        **load(f"roles/{role}/vars/main.yml"),
        "inventory_hostname": "gpu1",
        "ansible_facts": {"gpu_node": FACTS},
        **variables,
    }
    own = {name: known[name] for name in ("inventory_hostname", "ansible_facts")}
    known = {"hostvars": {"gpu1": own}, **known}
    return Templar(LOADER, variables=known).template(text)


def runs(one, **variables):
    """Return whether the conditions of a task are met."""
    conditions = one.get("when", [])
    listed = conditions if isinstance(conditions, list) else [conditions]
    return all(template(trust_as_template(f"{{{{ {text} }}}}"), **variables) for text in listed)


@pytest.mark.parametrize("check", [True, False])
def test_only_check_mode_tells_the_next_roles_the_planned_devices(check):
    published = task("roles/nvidia_mig/tasks/partition.yml", "Publish the result")
    result = template(
        published["ansible.builtin.set_fact"]["nvidia_mig_result"],
        ansible_check_mode=check,
        __nvidia_mig_plan=PLAN,
        nvidia_mig_result={"changed": False},
        __nvidia_mig_module={"changed": True, "reboot_required": False, "reboot_reason": ""},
    )
    assert result["next_devices"] == (PLAN["devices"] if check else [])


def test_the_playbook_plan_predicts_with_the_layout_of_the_plan():
    predict = task("playbooks/tasks/plan_kubernetes.yml", "Predict with the MIG layout")

    def mig(**registered):
        return template(predict["vars"]["__kubegpu_mig"], inventory_hostname="gpu1", **registered)

    def plans(plan):
        return {"plans": {"gpu1": {"nvidia_mig": plan}}}

    result = {"nvidia_mig_result": {"changed": False, "next_devices": []}}
    planned = mig(kubegpu_plans=plans(PLAN), nvidia_mig_plan={})
    assert runs(predict, __kubegpu_mig=planned)
    made = template(
        predict["ansible.builtin.set_fact"]["nvidia_mig_result"], __kubegpu_mig=planned, **result
    )
    assert made == {"changed": False, "next_devices": PLAN["devices"]}
    # A plan that the cluster's pods refuse, which is made after the first one, and a host without.
    refused = {**PLAN, "change": False}
    later = mig(kubegpu_plans=plans(PLAN), nvidia_mig_plan=plans(refused))
    assert not runs(predict, __kubegpu_mig=later)
    assert not runs(predict, __kubegpu_mig=mig())


@pytest.mark.parametrize(("devices", "mode"), [([], "disabled"), (PLAN["devices"], "enabled")])
def test_labels_and_device_plugin_take_them(devices, mode):
    known = {"nvidia_mig_result": {"next_devices": devices}}
    node = Node(FACTS, known, Run(), {}, ())
    labels = host_row("gpu_node_labels", "gpu1", node)["labels"]
    assert labels["kubegpu.nodes/mig"] == mode
    assert labels.get("kubegpu.nodes/mig.devices") == ("7" if devices else None)
    assert host_row("nvidia_device_plugin", "gpu1", node)["mig"] == devices


@pytest.mark.parametrize("check", [True, False])
def test_the_plugins_pods_that_left_are_told_in_check_mode_too(check):
    known = {
        "ansible_check_mode": check,
        "__nvidia_mig_pauses": True,
        "__nvidia_mig_paused": {"nodes": {"gpu1": {"left": LEFT}}},
        "nvidia_mig_result": {"restarted": []},
    }
    assert runs(task("roles/nvidia_mig/tasks/change.yml", "Wait for the new resources"), **known)
    publish = task("roles/nvidia_mig/tasks/offered.yml", "Publish which pods are made again")
    assert runs(publish, **known)
    made = template(publish["ansible.builtin.set_fact"]["nvidia_mig_result"], **known)
    assert made["restarted"] == LEFT
    wait = task("roles/nvidia_mig/tasks/offered.yml", "Wait until the node offers its instances")
    assert runs(wait, **known) is not check


def test_an_upgrade_says_that_it_drains_in_the_plan_and_in_the_change():
    (read, *_plays) = load("playbooks/upgrade.yml")
    given = read["vars"]["__kubegpu_drains"]
    assert template(given) is True and template(given, gpu_upgrade_pods="none") is False
    mig = task("roles/gpu_upgrade/tasks/change.yml", "MIG")["vars"]["__kubegpu_drains"]
    plan = {"hosts": {"gpu1": {"pods": "gpu"}, "gpu2": {"pods": "none"}}}
    assert template(mig, gpu_upgrade_plan=plan) is True
    assert template(mig, gpu_upgrade_plan=plan, inventory_hostname="gpu2") is False


PARTITION = ("partition.yml", "Partition")
ASK = ("ask.yml", "Check whether a program prevents the change")
RESTORE = ("teardown.yml", "Restore the MIG layout that was found")
ASK_RESTORE = ("teardown_plan.yml", "Check whether the MIG layout can be restored")


def module(path, name):
    """Return the arguments of the module in a task."""
    return task(f"roles/nvidia_mig/tasks/{path}", name)["kubegpu.nodes.nvidia_mig"]


@pytest.mark.parametrize(("path", "name"), [PARTITION, ASK, RESTORE, ASK_RESTORE])
def test_the_module_learns_which_containers_leave(path, name):
    given = module(path, name)["leaving"]
    paused = {"nodes": {"gpu1": {"left": LEFT, "containers": ["ab12"]}}}
    assert template(given, __nvidia_mig_paused=paused) == ["ab12"]
    # A node that is not paused: nothing is registered, or a task that was skipped.
    assert template(given) == template(given, __nvidia_mig_paused={"skipped": True}) == []


@pytest.mark.parametrize(("path", "name"), [RESTORE, ASK_RESTORE])
def test_a_teardown_tells_the_module_which_pods_use_gpus_of_which_node(path, name):
    given = module(path, name)
    paused = {"nodes": {"gpu1": {"node": "node1", "pods": ["default/train"], "containers": []}}}
    known = {"__nvidia_mig_paused": paused}
    assert template(given["pods"], **known) == ["default/train"]
    assert template(given["node_name"], **known) == "node1"
    for nothing in ({}, {"__nvidia_mig_paused": {"skipped": True}}):
        assert template(given["pods"], **nothing) == []
        assert template(given["node_name"], **nothing) == ""
    # A host that is no node of the cluster.
    known = {"__nvidia_mig_paused": {"nodes": {"gpu1": {"node": None, "pods": []}}}}
    assert template(given["node_name"], **known) == ""


def test_what_is_asked_is_what_is_done():
    assert module(*ASK) == module(*PARTITION)
    asked, done = module(*ASK_RESTORE), module(*RESTORE)
    assert {**asked, "services": done["services"]} == done
    # The exporter of this collection is removed before the layout is restored.
    services = template(asked["services"], nvidia_mig_services=["nvsm"])
    assert services == ["nvsm", "kubegpu-dcgm-exporter"]
    asking = [
        *load("roles/nvidia_mig/tasks/ask.yml"),
        load("roles/nvidia_mig/tasks/teardown_plan.yml")[-1],
        load("roles/nvidia_mig/tasks/ask_cluster.yml")[-1],
    ]
    assert [(one["check_mode"], one["changed_when"]) for one in asking] == [(True, False)] * 4


def test_a_run_asks_before_it_pauses_the_node():
    names = [one["name"] for one in load("roles/nvidia_mig/tasks/change.yml")]
    assert names.index("Check what prevents the change") < names.index("Change the layout")
    ask = task("roles/nvidia_mig/tasks/change.yml", "Check what prevents the change")
    assert runs(ask, __nvidia_mig_pauses=True, ansible_check_mode=False)
    assert not runs(ask, __nvidia_mig_pauses=False, ansible_check_mode=False)
    # The pause and the change of check mode are questions themselves.
    assert not runs(ask, __nvidia_mig_pauses=True, ansible_check_mode=True)
    pause = task("roles/nvidia_mig/tasks/pause.yml", "Pause the node in its cluster")
    (asked, _module) = load("roles/nvidia_mig/tasks/ask.yml")
    given, done = (one["kubegpu.nodes.node_pause"] for one in (asked, pause))
    assert given == {name: value for name, value in done.items() if name != "timeout"}
    assert asked["register"] == pause["register"]


def asks_cluster():
    name = "Read which pods use the GPUs, and which containers leave the node"
    return task("roles/nvidia_mig/tasks/ask_cluster.yml", name)


def test_a_teardown_asks_the_cluster_on_a_node_that_has_a_record():
    kube = {"kubegpu_kube": {"kubeconfig": "/k"}}
    facts = {"ansible_facts": {"gpu_node": {**FACTS, "mig": {"managed": True}}}}
    for check in (True, False):
        assert runs(asks_cluster(), ansible_check_mode=check, **kube, **facts)
        assert not runs(asks_cluster(), ansible_check_mode=check, **facts)
        assert not runs(asks_cluster(), ansible_check_mode=check, **kube)
    read = task("roles/nvidia_mig/tasks/ask_cluster.yml", "Read the node")
    assert runs(read, ansible_facts={}, **kube) and not runs(read, **facts, **kube)
    for path in ("teardown.yml", "teardown_plan.yml"):
        first, *_module = load(f"roles/nvidia_mig/tasks/{path}")
        assert first["ansible.builtin.import_tasks"] == "ask_cluster.yml"


@pytest.mark.parametrize(
    ("answer", "fails"),
    [
        ({"nodes": {}}, False),
        # Its pods are removed before, and it has told which pods use GPUs.
        ({"nodes": {}, "cause": "x", "code": "pause_unknown"}, False),
        # Which pods use GPUs is not known.
        ({"nodes": {"gpu1": {"node": "node1"}}, "cause": "403 Forbidden"}, True),
        ({"cause": "connection refused"}, True),
    ],
)
def test_a_cluster_that_does_not_tell_its_pods_refuses_the_teardown(answer, fails):
    condition = trust_as_template(f"{{{{ {asks_cluster()['failed_when']} }}}}")
    assert template(condition, __nvidia_mig_paused=answer) is fails


def test_a_teardown_asks_before_anything_is_taken_away():
    plays = load("playbooks/teardown.yml")
    names = [play["name"] for play in plays]
    at = names.index("MIG layouts that cannot be restored")
    # Test pods have GPUs, and are no reason to refuse.
    assert names[at - 1] == "Test pods of an earlier verification"
    assert names[at + 1] == "Teardown in Kubernetes"
    # All after it leave out the nodes that stay as they are.
    after = [play for play in plays[at + 1 :] if "hosts" in play]
    assert len(after) == 6
    assert all("'not_kept'" in f"{play['hosts']} {play.get('vars')}" for play in after)


ETC, RUN = "/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml"


@pytest.mark.parametrize(
    ("service", "path"),
    [
        # A toolkit before 1.18, and a node where nothing is known of units.
        ("not-found", ETC),
        ("not-found", None),
        (None, ETC),
        # A toolkit of 1.18 or later left it.
        ("not-found", RUN),
        # With Debian's open kernel modules the service does not start; what it made before stays.
        ("inactive", RUN),
        ("inactive", ETC),
        ("inactive", None),
    ],
)
def test_the_cdi_specification_follows_the_layout_in_the_same_run(service, path):
    generate = task(
        "roles/nvidia_mig/tasks/partition.yml", "Generate the CDI specification for the instances"
    )
    spec = {"path": path, "driver_version": "580.95.05"} if path else None
    facts = node(
        driver__services={"nvidia-cdi-refresh": service},
        driver__loaded="580.95.05",
        container_toolkit__version="1.17.8",
        container_toolkit__cdi_spec=spec,
    )
    known = {
        "ansible_facts": {"gpu_node": facts},
        "__nvidia_mig_module": {"changed": True},
    }
    assert runs(generate, **known)
    assert not runs(generate, **{**known, "__nvidia_mig_module": {"changed": False}})
    assert not runs(generate, nvidia_container_toolkit_cdi=False, **known)
    bare = {"gpu_node": {**facts, "container_toolkit": {"version": None, "cdi_spec": None}}}
    assert not runs(generate, **{**known, "ansible_facts": bare})
    given = generate["kubegpu.nodes.cdi_specification"]
    assert template(given["driver_version"], **known) == "580.95.05"
    if path:
        assert template(given["path"], **known) == path


def test_the_layout_is_changed_before_the_toolkit_makes_a_specification():
    work = {role: {"work": True} for role in NODE_ROLES}
    node = {"gpus": [{"vendor": "nvidia"}]}
    variables = {
        "inventory_hostname": "gpu1",
        "ansible_facts": {"gpu_node": node},
        "kubegpu_plans": {"plans": {"gpu1": work}},
    }
    assert roles_to_run(variables, ["all"], []) == list(NODE_ROLES)
    assert NODE_ROLES.index("nvidia_mig") < NODE_ROLES.index("nvidia_container_toolkit")


WAITS = {"change": False, "action": "none", "reboot_reason": "MIG of GPU 0 waits"}


@pytest.mark.parametrize(("reboot", "works"), [(True, True), (False, False)])
def test_a_later_run_reboots_for_a_mode_that_is_pending(reboot, works):
    (_planned, reset) = load("roles/nvidia_mig/tasks/plan.yml")
    made = reset["ansible.builtin.set_fact"]
    known = {"__nvidia_mig_plan": WAITS, "nvidia_mig_reboot": reboot}
    result = template(made["nvidia_mig_result"], **known)
    assert result["reboot_required"] is True and result["reboot_reason"] == "MIG of GPU 0 waits"
    restarts = task("roles/nvidia_mig/tasks/change.yml", "Reboot for the MIG mode")
    assert runs(restarts, nvidia_mig_result=result, **known) is works


@pytest.mark.parametrize(
    ("plan", "more", "pauses"),
    [
        ({"partitions": True, "reboot_reason": ""}, {}, True),
        ({"partitions": False, "reboot_reason": ""}, {}, False),
        ({"partitions": True, "reboot_reason": ""}, {"kubegpu_kube": {}}, False),
        # A reboot stops the pods of the node.
        ({"partitions": False, "reboot_reason": "GPU 0"}, {"nvidia_mig_reboot": True}, True),
        ({"partitions": False, "reboot_reason": "GPU 0"}, {}, False),
    ],
)
@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize("check", [True, False])
def test_when_a_node_is_paused(plan, more, pauses, answers, check):
    stored = task("roles/nvidia_mig/tasks/change.yml", "Store whether the node is paused")
    known = {
        "ansible_check_mode": check,
        "ansible_facts": {"gpu_node": FACTS if answers else {**FACTS, "nvml": None}},
        "kubegpu_kube": {"kubeconfig": "/k"},
        "__nvidia_mig_plan": {"interrupts": False, **plan},
        **more,
    }
    made = template(stored["ansible.builtin.set_fact"]["__nvidia_mig_pauses"], **known)
    # Where the driver waits for a reboot itself, nothing is partitioned.
    assert made is (pauses and (answers or check))
    pause = task("roles/nvidia_mig/tasks/pause.yml", "Pause the node in its cluster")
    allows = template(pause["kubegpu.nodes.node_pause"]["allow_pods"], **known)
    assert allows is not bool(plan["reboot_reason"] and more)
