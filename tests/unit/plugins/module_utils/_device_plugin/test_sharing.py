# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.settings import Reading
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.sharing import (
    check_cdi,
    check_sharing,
    expected,
    undivided,
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
        (with_devices(device("enabled", "1g.5gb+me", "1g.5gb", "3g.20gb"), device()),
         flags("mixed"),
         {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 1, "nvidia.com/mig-1g.5gb.me": 1,
          "nvidia.com/mig-3g.20gb": 1}),
        (with_devices(device("enabled", "1g.5gb", "1g.5gb"), device()),
         {**flags("mixed"), **slicing(3, "nvidia.com/mig-1g.5gb", renameByDefault=True)},
         {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb.shared": 6}),
        # Before the driver runs nobody can tell.
        (node(gpus=[A100]), flags("mixed"), None),
        (node(gpus=[A100]), flags("single"), None),
        # Names of an RTX PRO 6000; only the plus sign is another one in the resource's name (from
        # k8s-device-plugin v0.20 on, internal/rm/rm.go and api/config/v1/resources_test.go).
        (with_devices(device("enabled", "1g.24gb-me", "1g.24gb-me", "1g.24gb+me.all"),
                      device("enabled", "2g.48gb+gfx", "1g.24gb")),
         flags("mixed"),
         {"nvidia.com/mig-1g.24gb": 1, "nvidia.com/mig-1g.24gb-me": 2,
          "nvidia.com/mig-1g.24gb.me.all": 1, "nvidia.com/mig-2g.48gb.gfx": 1}),
        # A GPU with MIG and nothing on it is left out with mixed.
        (with_devices(device("enabled"), device()), flags("mixed"), {"nvidia.com/gpu": 1}),
        # Nobody named the profile of a MIG device.
        (with_devices({"mig_mode": "enabled", "mig_devices": [{"name": None}]}), flags("mixed"),
         None),
        (with_devices({"mig_mode": "enabled", "mig_devices": [{"name": None}] * 2}),
         flags("single"), {"nvidia.com/gpu": 2}),
    ],
)  # fmt: skip
def test_what_a_node_has_to_show(facts, data, shown):
    assert expected(facts, read(data)) == shown


@pytest.mark.parametrize(
    ("release", "shown"),
    [
        ((0, 20), {"nvidia.com/mig-1g.10gb": 1, "nvidia.com/mig-1g.10gb.me": 1}),
        # k8s-device-plugin #1462: no difference from the perspective of the plugin.
        ((0, 19), {"nvidia.com/mig-1g.10gb": 2}),
        (None, {"nvidia.com/mig-1g.10gb": 1, "nvidia.com/mig-1g.10gb.me": 1}),
    ],
)
def test_attributes_of_a_profile_count_from_v0_20_on(release, shown):
    facts = with_devices(device("enabled", "1g.10gb", "1g.10gb+me"))
    assert expected(facts, read(flags("mixed"), reading=Reading(release))) == shown


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
        (with_devices(device("enabled")), flags("single"), "a GPU that is not divided"),
        # internal/rm/device_map.go, buildMigDeviceMap: no pattern, so that it does not start.
        (with_devices(device("enabled", "1c.3g.20gb", "1g.5gb")), flags("mixed"),
         "the plugin stops (does not match any resource patterns)"),
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
        # A warning of the plugin, no more: internal/rm/device_map.go of v0.17.4 to v0.20.0.
        (with_devices(device("enabled"), device("enabled", "1g.5gb")), flags("mixed")),
        (with_devices(device("enabled", "1c.3g.20gb")), flags("single")),
    ],
)
def test_possible_on_this_node(facts, data):
    assert check_sharing(facts, read(data)) == []


def test_a_part_of_a_gpu_instance_was_its_whole_before_v0_20():
    facts = with_devices(device("enabled", "1c.3g.20gb"))
    older = read(flags("mixed"), reading=Reading((0, 19)))
    assert check_sharing(facts, older) == []
    assert expected(facts, older) == {"nvidia.com/mig-3g.20gb": 1}


def test_gpus_that_the_plugin_leaves_out_are_named():
    facts = with_devices(device("enabled"), device("enabled", "1g.5gb"), device())
    facts["nvml"]["devices"][0]["address"] = "0000:01:00.0"
    assert undivided(facts, read(flags("mixed"))) == ["0000:01:00.0"]
    assert undivided(facts, read(flags("none"))) == []


def by_cdi(*strategies):
    return read({"flags": {"plugin": {"deviceListStrategy": list(strategies)}}})


def containerd(version, cdi, **more):
    return node(
        runtimes__containerd__version=version, runtimes__containerd__cdi_enabled=cdi, **more
    )


@pytest.mark.parametrize(
    ("facts", "strategies", "asked_for", "words"),
    [
        # containerd 1.6 and 1.7 with the handler nvidia: the pod ran, and had no GPU.
        (containerd("1.6.20", None), ["cdi-annotations"], False, "has no CDI"),
        (containerd("1.6.20", None), ["cdi-annotations"], True, "has no CDI"),
        (containerd("1.7.24", False), ["cdi-annotations"], False, "has its CDI switched off"),
        (containerd("1.7.24", False), ["cdi-annotations", "cdi-cri"], False, "switched off"),
        (containerd("2.1.9", False), ["cdi-cri"], False, "switched off"),
        (containerd("1.7.24", False), ["cdi-annotations"], True, ""),
        (containerd("1.7.24", True), ["cdi-annotations"], False, ""),
        (containerd("2.1.9", True), ["cdi-cri"], False, ""),
        # Nobody could tell.
        (containerd("2.2.0", None), ["cdi-cri"], False, ""),
        (containerd(None, None), ["cdi-cri"], False, ""),
        # With the variable the nvidia runtime brings the GPU.
        (containerd("1.6.20", None), ["envvar", "cdi-annotations"], False, ""),
        # Not the engine of Kubernetes.
        (containerd("1.6.20", None, runtimes__containerd__cri_enabled=False), ["cdi-cri"], False,
         ""),
        (node(runtimes__containerd=None, runtimes__crio={"version": "1.30"}), ["cdi-cri"], False,
         ""),
    ],
)  # fmt: skip
def test_cdi_alone_needs_a_containerd_that_has_it(facts, strategies, asked_for, words):
    found = check_cdi(facts, by_cdi(*strategies), asked_for)
    assert [words in one.cause for one in found] == ([True] if words else [])
    for one in found:
        assert "envvar" in one.next_step and strategies[0] in one.evidence
