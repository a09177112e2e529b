# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from plugins.module_utils._known_faults.evidence_types import DeviceUser
from plugins.module_utils._mig.apply import present
from plugins.module_utils._mig.plan import plan_mig
from plugins.module_utils._mig.state import Usage
from plugins.module_utils._mig.types import Request
from tests.unit.fixtures.mig_node import MigNode, card


def plan(node, config, facts=None, usage=None, cluster=None, **options):
    request = Request(config=config, at_boot=False, **options)
    return plan_mig(facts or node.facts(), request, usage, cluster)


def mixed(**counts):
    names = {f"{name[1:].replace('_', '.')}": count for name, count in counts.items()}
    return {"mixed": [{"devices": "all", "mig-enabled": True, "mig-devices": names}]}


def test_without_a_configuration_mig_stays(tmp_path):
    node = MigNode(tmp_path, card(0, "2330"))
    assert plan(node, "").action == "none"


def test_layout_before_and_after_are_told_for_each_gpu(tmp_path):
    node = MigNode(tmp_path, card(0, "2330"), card(1, "2330"))
    result = plan(node, "all-3g.40gb")
    assert result.action == "change"
    assert [(step.action, step.detail, step.reason) for step in result.steps] == [
        (
            "partition",
            f"GPU {index}: 2x 3g.40gb at 0 and 4",
            "now MIG disabled (configuration all-3g.40gb)",
        )
        for index in (0, 1)
    ]
    assert result.to_json()["devices"][0] == {
        "index": 0,
        "address": "0000:01:00.0",
        "uuid": "GPU-0",
        "mode": "enable",
        "destroy": [],
        "create": ["3g.40gb:0", "3g.40gb:4"],
        "keep": [],
        "before": "MIG disabled",
        "after": "2x 3g.40gb at 0 and 4",
        "reboot_reason": "",
        "mig_mode": "enabled",
        "mig_devices": ["3g.40gb", "3g.40gb"],
    }


def test_before_the_driver_is_there_the_table_predicts(tmp_path):
    node = MigNode(tmp_path, card(0, "2330"))
    facts = {**node.facts(), "nvml": None}
    result = plan(node, "all-1g.10gb", facts)
    assert result.action == "change"
    assert "predicted; the card's own list decides" in result.steps[0].reason
    assert plan(node, "all-disabled", facts).action == "none"


def test_cards_without_mig_are_skipped_but_not_if_named(tmp_path):
    node = MigNode(tmp_path, card(0, "1eb8"), card(1, "2330"))
    assert [one.gpu.index for one in plan(node, "all-1g.10gb").gpus] == [1]
    entry = {"devices": [0], "mig-enabled": True, "mig-devices": {}}
    refused = plan(node, "t4", configs={"t4": [entry]})
    assert refused.action == "refuse"
    assert "GPU 0 (Tesla T4, turing) cannot do MIG" in refused.reasons[0]


def numbered(*numbers):
    entry = {"mig-enabled": True, "mig-devices": {"3g.40gb": 2}}
    return {"some": [{**entry, "devices": [0]}, {**entry, "devices": list(numbers)}]}


@pytest.mark.parametrize(
    ("numbers", "named"), [((1,), ""), ((2,), "GPU 2,"), ((7, 0, 2), "GPU 2, 7,")]
)
def test_numbers_that_the_node_does_not_have_are_noted_and_refuse_nothing(tmp_path, numbers, named):
    node = MigNode(tmp_path, card(0, "2330"), card(1, "2330"))
    result = plan(node, "some", configs=numbered(*numbers))
    assert result.action == "change" and result.warnings == ()
    notes = result.to_json()["notes"]
    assert [named in note and "numbers below 2" in note for note in notes] == [True] * bool(named)
    # Also where nothing else is done, or something else is refused.
    alone = {"some": numbered(7)["some"][1:]}
    nothing = plan(node, "some", configs=alone)
    assert nothing.action == "none" and "names GPU 7," in nothing.notes[0]
    facts = {**node.facts(), "mig": {**node.facts()["mig"], "manager": True}}
    refused = plan(node, "some", facts, configs=numbered(7))
    assert refused.action == "refuse" and "names GPU 7," in refused.notes[0]
    assert plan(node, "all-3g.40gb").notes == ()


def test_a_node_without_mig_is_refused_and_disabled_is_fine(tmp_path):
    node = MigNode(tmp_path, card(0, "1eb8"))
    refused = plan(node, "all-1g.10gb")
    assert refused.action == "refuse"
    assert "is for no GPU of this node" in refused.reasons[0]
    assert plan(node, "all-disabled").action == "none"


def test_a_filter_that_matches_no_gpu_is_nothing_to_do(tmp_path):
    node = MigNode(tmp_path, card(0, "2330"))
    entry = {
        "devices": "all",
        "device-filter": "0x20B010DE",
        "mig-enabled": True,
        "mig-devices": {},
    }
    assert plan(node, "a100", configs={"a100": [entry]}).action == "none"


@pytest.mark.parametrize(
    ("board", "action"), [("11D810DE", "change"), ("147F10DE", "none"), ("", "change")]
)
def test_a_filter_with_a_board_is_for_that_board(tmp_path, board, action):
    node = MigNode(tmp_path, card(0, "2330"))
    facts = node.facts()
    facts["gpus"][0].update(subsystem_vendor_id="10de", subsystem_device_id="11d8")
    entry = {
        "devices": "all",
        "device-filter": [f"0x233010DE{':0x' if board else ''}{board}"],
        "mig-enabled": True,
        "mig-devices": {"1g.10gb": 7},
    }
    assert plan(node, "board", facts, configs={"board": [entry]}).action == action


def changed(facts, **gpu):
    facts["gpus"][0].update(gpu)
    return facts


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda facts: changed(facts, kernel_driver="vfio-pci"), "bound to vfio-pci"),
        (lambda facts: changed(facts, vgpu={"guest": True}), "is a virtual GPU"),
        (lambda facts: {**facts, "driver": {"loaded": "525.60.13"}}, "525.60.13 is too old"),
        (
            lambda facts: {**facts, "mig": {**facts["mig"], "manager": True}},
            "NVIDIA's MIG manager is enabled",
        ),
    ],
)
def test_what_prevents_it_is_told(tmp_path, change, words):
    node = MigNode(tmp_path, card(0, "2330"))
    result = plan(node, "all-1g.10gb", change(node.facts()))
    assert result.action == "refuse"
    assert words in "\n".join(result.reasons)


def test_the_workstation_board_in_graphics_mode(tmp_path):
    board = card(0, "2bb5", profiles=[])
    result = plan(MigNode(tmp_path, board), "all-1g.24gb")
    assert "displaymodeselector --gpumode=compute" in result.reasons[0]


def test_an_unknown_profile_and_the_card_s_list(tmp_path):
    node = MigNode(tmp_path, card(0, "20b0"))
    result = plan(node, "all-1g.6gb")
    assert "has no MIG profile 1g.6gb" in result.reasons[0]
    assert "1g.5gb, 1g.5gb+me, 1g.10gb" in result.reasons[0]


def test_what_does_not_fit_and_the_nearest_layout(tmp_path):
    node = MigNode(tmp_path, card(0, "2330"))
    result = plan(node, "mixed", configs=mixed(_3g_40gb=2, _1g_10gb=1))
    assert "2x 3g.40gb, 1x 1g.10gb does not fit on GPU 0" in result.reasons[0]
    assert "the nearest layout that fits: 2x 3g.40gb at 0 and 4" in result.reasons[0]


def test_profiles_that_the_driver_does_not_list(tmp_path):
    node = MigNode(tmp_path, card(0, "2330"))
    facts = node.facts()
    facts["gpus"][0]["device_id"] = "ffff"
    facts["nvml"]["devices"][0]["mig_profiles"] = None
    assert "Set nvidia_mig_config: all-enabled" in plan(node, "all-1g.10gb", facts).reasons[0]
    assert plan(node, "all-enabled", facts).action == "change"


def test_instances_that_only_root_may_read(tmp_path):
    node = MigNode(tmp_path, card(0, "2330"))
    present(Request("all-1g.10gb", at_boot=False), node.dependencies(), False)
    facts = node.facts()
    facts["nvml"]["devices"][0]["gpu_instances"] = None
    assert "as root" in plan(node, "all-1g.10gb", facts).reasons[0]


PYTHON = DeviceUser(4711, "python", ("/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap11"), None)
DCGM = DeviceUser(800, "nv-hostengine", ("/dev/nvidia0",), "nvidia-dcgm.service")
CAPABILITIES = {"/dev/nvidia-caps/nvidia-cap11": (0, 1)}


def test_a_busy_gpu_is_refused_with_the_process(tmp_path):
    node = MigNode(tmp_path, card(0, "2330"), card(1, "2330"))
    result = plan(node, "all-1g.10gb", usage=Usage((PYTHON, DCGM), {}))
    assert result.action == "refuse"
    assert len(result.reasons) == 1
    assert "GPU 0 (0000:01:00.0) is in use" in result.reasons[0]
    assert "used by python (pid 4711)" in result.reasons[0]


def test_without_its_number_each_user_of_a_gpu_counts(tmp_path):
    node = MigNode(tmp_path, card(0, "2330"))
    facts = node.facts()
    facts["nvml"]["devices"][0]["minor_number"] = None
    result = plan(node, "all-1g.10gb", facts, usage=Usage((PYTHON,), {}))
    assert "used by python (pid 4711)" in result.reasons[0]
    control = DeviceUser(900, "watch", ("/dev/nvidiactl",), None)
    assert plan(node, "all-1g.10gb", facts, usage=Usage((control,), {})).action == "change"


def test_services_that_hold_it_are_stopped(tmp_path):
    node = MigNode(tmp_path, card(0, "2330"))
    assert plan(node, "all-1g.10gb", usage=Usage((DCGM,), {})).stop == ("nvidia-dcgm",)
    result = plan(node, "all-1g.10gb", usage=Usage((DCGM,), {}), services=())
    assert result.action == "refuse"


def test_the_fabric_manager_runs_on(tmp_path):
    node = MigNode(tmp_path, card(0, "2330"))
    manager = DeviceUser(900, "nv-fabricmanage", ("/dev/nvidia0",), "nvidia-fabricmanager.service")
    result = plan(node, "all-1g.10gb", usage=Usage((manager,), {}))
    assert result.action == "change" and result.stop == ()


def test_an_instance_in_use_stays_and_others_change(tmp_path):
    node = MigNode(tmp_path, card(0, "2330"))
    request = Request("mixed", mixed(_1g_10gb=1, _2g_20gb=1), at_boot=False)
    present(request, node.dependencies(), False)
    # 2g.20gb has the ID 1.
    usage = Usage((PYTHON,), CAPABILITIES)
    keeps = plan(node, "mixed", usage=usage, configs=mixed(_2g_20gb=1, _3g_40gb=1))
    assert keeps.action == "change"
    assert keeps.gpus[0].to_json()["keep"] == ["2g.20gb:0"]
    assert keeps.gpus[0].to_json()["destroy"] == ["1g.10gb:2"]
    refused = plan(node, "mixed", usage=usage, configs=mixed(_3g_40gb=2))
    assert "2g.20gb at 0 cannot be changed" in "\n".join(refused.reasons)
    # Without the kernel module's list each user of the GPU counts.
    unknown = Usage((PYTHON,), None)
    assert (
        plan(node, "mixed", usage=unknown, configs=mixed(_2g_20gb=1, _3g_40gb=1)).action == "refuse"
    )


def in_cluster(*pods, **labels):
    held = [{"namespace": "team", "name": name, "count": 1} for name in pods]
    resources = {"nvidia.com/gpu": {"pods": held}, "nvidia.com/mig-1g.10gb": {"pods": held[:1]}}
    return {"name": "gpu1", "labels": labels, "resources": resources}


def test_pods_that_the_change_would_interrupt_are_named(tmp_path):
    node = MigNode(tmp_path, card(0, "2330"))
    assert plan(node, "all-1g.10gb", cluster=in_cluster()).action == "change"
    refused = plan(node, "all-1g.10gb", cluster=in_cluster("train-1", "train-0"))
    assert refused.action == "refuse" and not refused.partitions
    assert "Pods use GPUs of the node gpu1, whose layout would change." in refused.reasons[0]
    assert "pods: team/train-0, team/train-1" in refused.reasons[0]
    request = Request("mixed", mixed(_3g_40gb=1), at_boot=False)
    present(request, node.dependencies(), False)
    # What is only added interrupts nobody, and without a change there is nothing to refuse.
    busy = in_cluster("train-0")
    added = plan(node, "mixed", cluster=busy, configs=mixed(_3g_40gb=2))
    assert added.action == "change" and added.partitions and not added.interrupts
    assert plan(node, "mixed", cluster=busy, configs=mixed(_3g_40gb=1)).action == "none"
    moved = plan(node, "mixed", cluster=busy, configs=mixed(_2g_20gb=1))
    assert moved.action == "refuse"


def test_a_cluster_that_does_not_answer_is_a_reason_to_refuse(tmp_path):
    node = MigNode(tmp_path, card(0, "2330"))
    refused = plan(node, "all-1g.10gb", cluster={"error": "https://kube: connection refused"})
    assert refused.action == "refuse"
    assert "does not report which pods" in refused.reasons[0]
    assert "connection refused" in refused.reasons[0]
    assert plan(node, "all-disabled", cluster={"error": "no"}).action == "none"


def test_the_manager_of_the_gpu_operator_is_found_by_its_label(tmp_path):
    node = MigNode(tmp_path, card(0, "2330"))
    cluster = in_cluster(**{"nvidia.com/mig.config": "all-disabled"})
    refused = plan(node, "all-1g.10gb", cluster=cluster)
    assert "NVIDIA's MIG manager is enabled" in refused.reasons[0]
    assert "nvidia.com/mig.config=all-disabled" in refused.reasons[0]
    beside = plan(node, "all-1g.10gb", cluster=cluster, beside_others=True)
    assert beside.action == "change"
