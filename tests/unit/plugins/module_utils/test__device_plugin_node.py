# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin_node import (
    check_sharing,
    expected,
)
from tests.unit.fixtures.device_plugin import A100, device, flags, mps, read, slicing, with_devices
from tests.unit.fixtures.node_facts import P4, node


@pytest.mark.parametrize(
    ("facts", "data", "shown"),
    [
        (node(gpus=[P4, P4, P4]), {}, {"nvidia.com/gpu": 3}),
        (node(gpus=[]), {}, {}),
        (node(gpus=[P4, {**P4, "vendor": "amd"}, {**P4, "kernel_driver": "vfio-pci"}]), {},
         {"nvidia.com/gpu": 1}),
        (node(gpus=[P4, P4]), slicing(10), {"nvidia.com/gpu": 20}),
        (node(gpus=[P4, P4]), slicing(10, renameByDefault=True), {"nvidia.com/gpu.shared": 20}),
        (node(gpus=[P4, P4]), mps(4), {"nvidia.com/gpu": 8}),
        # A GPU that fell off the bus is there for NVML no more, and missing.
        (node(gpus=[P4, P4], nvml={"devices": [device()]}), {}, {"nvidia.com/gpu": 2}),
        # Without a strategy a divided GPU is one GPU.
        (with_devices(device("enabled", "1g.5gb", "1g.5gb"), device()), {}, {"nvidia.com/gpu": 2}),
        (with_devices(*[device("enabled", *["1g.5gb"] * 7)] * 2), flags("single"),
         {"nvidia.com/gpu": 14}),
        (with_devices(*[device("enabled", *["1g.5gb"] * 7)] * 2), {**flags("single"), **slicing(2)},
         {"nvidia.com/gpu": 28}),
        (with_devices(device(), device()), flags("single"), {"nvidia.com/gpu": 2}),
        (with_devices(device("enabled", "1g.5gb+me", "1g.5gb", "3g.20gb", "1c.3g.20gb"), device()),
         flags("mixed"),
         {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 1, "nvidia.com/mig-1g.5gb.me": 1,
          "nvidia.com/mig-3g.20gb": 1}),
        (with_devices(device("enabled", "1g.5gb", "1g.5gb"), device()),
         {**flags("mixed"), **slicing(3, "nvidia.com/mig-1g.5gb", renameByDefault=True)},
         {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb.shared": 6}),
        # Before the driver runs nobody can tell.
        (node(gpus=[A100]), flags("mixed"), None),
        (node(gpus=[A100]), flags("single"), None),
        # nvidia-smi does not name the profile of a MIG device.
        (with_devices({"mig_mode": "enabled", "mig_devices": [{"name": None}]}), flags("mixed"),
         None),
        (with_devices({"mig_mode": "enabled", "mig_devices": [{"name": None}] * 2}),
         flags("single"), {"nvidia.com/gpu": 2}),
    ],
)  # fmt: skip
def test_what_a_node_has_to_show(facts, data, shown):
    assert expected(facts, read(data)) == shown


def test_builds_that_follow_patterns_show_their_names():
    data = {"resources": {"gpus": [{"pattern": "*A100*", "name": "a100"},
                                   {"pattern": "*", "name": "gpu"}]}}  # fmt: skip
    config = read(data, renaming=True)
    assert expected(node(gpus=[A100, P4]), config) == {"nvidia.com/a100": 1, "nvidia.com/gpu": 1}
    assert config.data["resources"] == data["resources"]


@given(st.integers(0, 16), st.integers(2, 48), st.booleans())
def test_allocatable_is_gpus_times_replicas(count, replicas, rename):
    facts = node(gpus=[P4] * count)
    shown = expected(facts, read(slicing(replicas, renameByDefault=rename))) or {}
    assert sum(shown.values()) == count * replicas
    assert all(name.endswith(".shared") == rename for name in shown)


@pytest.mark.parametrize(
    ("facts", "data", "words"),
    [
        (with_devices(device("enabled", "1g.5gb")), mps(), "MIG is enabled on this node"),
        (node(gpus=[P4]), mps(17), "generation pascal takes 16 clients"),
        (with_devices(device("enabled", "1g.5gb"), device()), flags("single"),
         "MIG on all GPUs of a node or on none"),
        (with_devices(device("enabled", "1g.5gb", "3g.20gb")), flags("single"),
         "MIG devices of one kind"),
        (with_devices(device("enabled")), flags("mixed"), "a GPU that is not divided"),
    ],
)  # fmt: skip
def test_impossible_on_this_node(facts, data, words):
    (refusal,) = check_sharing(facts, read(data))
    assert words in refusal.cause
    assert refusal.next_step


@pytest.mark.parametrize(
    ("facts", "data"),
    [
        (node(gpus=[P4]), mps(16)),
        (node(gpus=[A100]), mps(48)),
        (node(gpus=[A100]), flags("single")),
        (with_devices(device("enabled", "1g.5gb")), slicing()),
        (with_devices(device("enabled", "1g.5gb"), device("enabled", "1g.5gb")), flags("single")),
        (with_devices(device("enabled", "1g.5gb", "3g.20gb"), device()), flags("mixed")),
    ],
)
def test_possible_on_this_node(facts, data):
    assert check_sharing(facts, read(data)) == []
