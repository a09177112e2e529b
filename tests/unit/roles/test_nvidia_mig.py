# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What check mode and the playbook plan predict after a MIG layout that is not made."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from ansible_collections.kubegpu.nodes.plugins.filter.gpu_node_labels import gpu_node_labels
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
        nvidia_mig_plan=PLAN,
        nvidia_mig_result={"changed": False},
        __nvidia_mig_module={"changed": True, "reboot_required": False, "reboot_reason": ""},
    )
    assert result["next_devices"] == (PLAN["devices"] if check else [])


def test_the_playbook_plan_predicts_with_the_layout_of_the_plan():
    predict = task("playbooks/tasks/plan_kubernetes.yml", "Predict with the MIG layout")
    known = {"nvidia_mig_plan": PLAN, "nvidia_mig_result": {"changed": False, "next_devices": []}}
    assert runs(predict, **known)
    made = template(predict["ansible.builtin.set_fact"]["nvidia_mig_result"], **known)
    assert made == {"changed": False, "next_devices": PLAN["devices"]}
    # A refused plan, and a host without one.
    assert not runs(predict, nvidia_mig_plan={**PLAN, "change": False})
    assert not runs(predict)


@pytest.mark.parametrize(("devices", "mode"), [([], "disabled"), (PLAN["devices"], "enabled")])
def test_labels_and_device_plugin_take_them(devices, mode):
    known = {"nvidia_mig_result": {"next_devices": devices}}
    # The filter of a collection is not found here: its argument is, and the filter by Python.
    written = load("roles/gpu_node_labels/vars/main.yml")["__gpu_node_labels_labels"]
    (argument,) = re.findall(r"\bmig=(.+)\)\s*}}", written)
    mig = template(trust_as_template(f"{{{{ {argument} }}}}"), "gpu_node_labels", **known)
    labels = gpu_node_labels(FACTS, mig=mig)
    assert labels["kubegpu.nodes/mig"] == mode
    assert labels.get("kubegpu.nodes/mig.devices") == ("7" if devices else None)
    text = trust_as_template("{{ __nvidia_device_plugin_this.mig }}")
    assert template(text, "nvidia_device_plugin", **known) == devices


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


@pytest.mark.parametrize(("drains", "kept"), [(True, False), ("False", True), (None, True)])
def test_pods_that_an_upgrade_drains_are_no_reason_against_a_layout(drains, kept):
    row = {"name": "node1", "labels": {"a": "b"}, "resources": {"nvidia.com/gpu": {"pods": []}}}
    answer = {"nodes": {"node1": row}, "node_of": {"gpu1": "node1"}}
    more = {} if drains is None else {"__kubegpu_drains": drains}
    cluster = template(
        trust_as_template("{{ __nvidia_mig_cluster }}"), __nvidia_mig_pods=answer, **more
    )
    assert ("resources" in cluster) is kept
    # Another manager of MIG is seen in any case.
    assert cluster["labels"] == row["labels"] and cluster["name"] == "node1"


def test_an_upgrade_says_that_it_drains_in_the_plan_and_in_the_change():
    (read, *_plays) = load("playbooks/upgrade.yml")
    given = read["vars"]["__kubegpu_drains"]
    assert template(given) is True and template(given, gpu_upgrade_pods="none") is False
    mig = task("roles/gpu_upgrade/tasks/change.yml", "MIG")["vars"]["__kubegpu_drains"]
    plan = {"hosts": {"gpu1": {"pods": "gpu"}, "gpu2": {"pods": "none"}}}
    assert template(mig, gpu_upgrade_plan=plan) is True
    assert template(mig, gpu_upgrade_plan=plan, inventory_hostname="gpu2") is False


@pytest.mark.parametrize(("path", "name"), [
    ("partition.yml", "Partition"), ("teardown.yml", "Restore the MIG layout that was found"),
])  # fmt: skip
def test_the_module_learns_which_containers_leave(path, name):
    given = task(f"roles/nvidia_mig/tasks/{path}", name)["kubegpu.nodes.nvidia_mig"]["leaving"]
    paused = {"nodes": {"gpu1": {"left": LEFT, "containers": ["ab12"]}}}
    assert template(given, __nvidia_mig_paused=paused) == ["ab12"]
    # A node that is not paused: nothing is registered, or a task that was skipped.
    assert template(given) == template(given, __nvidia_mig_paused={"skipped": True}) == []


def test_a_teardown_asks_for_them_in_check_mode_on_a_node_that_has_a_record():
    read = task("roles/nvidia_mig/tasks/teardown.yml", "Read which containers leave the node")
    kube = {"kubegpu_kube": {"kubeconfig": "/k"}}
    facts = {"ansible_facts": {"gpu_node": {**FACTS, "mig": {"managed": True}}}}
    assert runs(read, ansible_check_mode=True, **kube, **facts)
    assert not runs(read, ansible_check_mode=False, **kube, **facts)
    assert not runs(read, ansible_check_mode=True, **facts)
    assert not runs(read, ansible_check_mode=True, **kube)
    assert not runs(read, ansible_check_mode=True, ansible_facts={}, **kube)


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
    roles = [
        one["ansible.builtin.include_role"]["name"]
        for play in load("playbooks/site.yml")
        for top in play.get("tasks", ())
        for one in top.get("block", ())
        if "ansible.builtin.include_role" in one
    ]
    assert roles.index("kubegpu.nodes.nvidia_mig") < roles.index(
        "kubegpu.nodes.nvidia_container_toolkit"
    )


WAITS = {"change": False, "action": "none", "reboot_reason": "MIG of GPU 0 waits"}


@pytest.mark.parametrize(("reboot", "works"), [(True, True), (False, False)])
def test_a_later_run_reboots_for_a_mode_that_is_pending(reboot, works):
    (planned,) = load("roles/nvidia_mig/tasks/plan.yml")
    made = planned["ansible.builtin.set_fact"]
    # The filter of a collection is not found here.
    work = trust_as_template(made["nvidia_mig_plan"].partition("'work':")[2].partition(",\n")[0])
    known = {"__nvidia_mig_decision": WAITS, "nvidia_mig_reboot": reboot}
    assert template(trust_as_template(f"{{{{ {work} }}}}"), **known) is works
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
        "nvidia_mig_plan": {"interrupts": False, **plan},
        **more,
    }
    made = template(stored["ansible.builtin.set_fact"]["__nvidia_mig_pauses"], **known)
    # Where the driver waits for a reboot itself, nothing is partitioned.
    assert made is (pauses and (answers or check))
    pause = task("roles/nvidia_mig/tasks/pause.yml", "Pause the node in its cluster")
    allows = template(pause["kubegpu.nodes.node_pause"]["allow_pods"], **known)
    assert allows is not bool(plan["reboot_reason"] and more)
