# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin_config import (
    Flags,
    check_sharing,
    expected,
    read_configs,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._errors import InputError
from tests.unit.fixtures.node_facts import P4, node

A100 = {**P4, "product": "A100 PCIe 40GB", "generation": "ampere"}


def slicing(replicas=4, name="nvidia.com/gpu", **more):
    row = {"name": name, "replicas": replicas}
    return {"sharing": {"timeSlicing": {"resources": [row], **more}}}


def mps(replicas=4, **more):
    row = {"name": "nvidia.com/gpu", "replicas": replicas}
    return {"sharing": {"mps": {"resources": [row], **more}}}


def flags(strategy):
    return {"flags": {"migStrategy": strategy}}


def read(data, name="one", **more):
    return read_configs({name: data}, Flags(), **more)[name]


def device(mig="disabled", *profiles, name="NVIDIA A100-PCIE-40GB"):
    return {
        "address": None,
        "name": name,
        "mig_mode": mig,
        "mig_devices": [{"name": f"{name} MIG {profile}"} for profile in profiles],
    }


def with_devices(*devices):
    return node(gpus=[A100] * len(devices), nvml={"devices": list(devices)})


def test_nodes_that_choose_nothing_get_a_config_of_the_plain_flags():
    configs = read_configs({"shared": slicing()}, Flags(mig_strategy="mixed"))
    assert sorted(configs) == ["default", "shared"]
    assert configs["default"].sharing == "none"
    assert configs["default"].data["flags"]["migStrategy"] == "mixed"
    assert read_configs({}, Flags()) == {}


def test_a_config_has_all_flags_and_says_only_what_differs():
    flags = Flags(pass_device_specs=True, device_list_strategy=("envvar", "cdi-cri"))
    config = read_configs({"a": {"flags": {"plugin": {"deviceIDStrategy": "index"}}}}, flags)["a"]
    assert config.data == {
        "version": "v1",
        "flags": {
            "migStrategy": "none",
            "failOnInitError": True,
            "gdsEnabled": False,
            "mofedEnabled": False,
            "plugin": {
                "passDeviceSpecs": True,
                "deviceListStrategy": ["envvar", "cdi-cri"],
                "deviceIDStrategy": "index",
            },
        },
    }


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({**mps(), **flags("single")}, "MPS is not possible with MIG, and migStrategy is single"),
        ({**mps(), **flags("mixed")}, "MPS is not possible with MIG"),
        ({"sharing": {"mps": mps()["sharing"]["mps"],
                      "timeSlicing": slicing()["sharing"]["timeSlicing"]}},
         "by time-slicing or by MPS, not by both"),
        (slicing(1), "replicas of nvidia.com/gpu is 1: sharing begins with 2"),
        (slicing(0), "sharing begins with 2"),
        (slicing("4"), "replicas of nvidia.com/gpu is '4'"),
        (slicing(True), "replicas of nvidia.com/gpu is True"),
        ({"sharing": {"timeSlicing": {"resources": [
            {"name": "gpu", "replicas": 2, "devices": [0]}]}}},
         "sharing cannot differ between the GPUs of a node"),
        ({"sharing": {"timeSlicing": {"resources": [
            {"name": "gpu", "replicas": 2, "rename": "nvidia.com/x"}]}}}, "ignores rename"),
        ({"sharing": {"timeSlicing": {"resources": []}}}, "nothing would be shared"),
        ({"sharing": {"timeSlicing": {"replicas": 3}}}, "does not know replicas"),
        (slicing(2, "nvidia.com/mig-1g.5gb"), "exists with migStrategy mixed only"),
        (mps(49), "an MPS server takes 48 clients at most"),
        ({"sharing": {"timeSlicing": {"resources": [
            {"name": "gpu", "replicas": 2}, {"name": "nvidia.com/gpu", "replicas": 3}]}}},
         "nvidia.com/gpu is there twice"),
        (flags("both"), "has to be one of none, single, mixed"),
        ({"flags": {"failOnInitError": "yes"}}, "has to be a boolean"),
        ({"flags": {"plugin": {"deviceListStrategy": "cdi"}}}, "has to be one of envvar"),
        ({"flags": {"migstrategy": "none"}}, "does not know migstrategy"),
        ({"flags": {"nvidiaDriverRoot": "/run/nvidia/driver"}}, "is the same on all nodes"),
        ({"resources": {"gpus": [{"pattern": "*", "name": "a"}]}}, "ignores it (its log: "),
        ({"version": "v2"}, "the plugin knows v1 only"),
        ({"imex": {"channelIDs": [1]}}, "takes [] and [0] only"),
        ([], "has to be a mapping"),
    ],
)  # fmt: skip
def test_impossible_configs_are_refused_with_the_reason(data, words):
    with pytest.raises(InputError) as error:
        read_configs({"one": data}, Flags(), default="one")
    assert words in str(error.value)
    assert str(error.value).startswith("nvidia_device_plugin_configs[one]")


@pytest.mark.parametrize("name", ["", "-a", "a b", "a" * 64, "..data", "a/b"])
def test_a_name_has_to_be_a_labels_value(name):
    with pytest.raises(InputError, match="becomes a node label's value"):
        read_configs({name: {}, "default": {}}, Flags())


def test_the_default_config_has_to_be_there():
    with pytest.raises(InputError, match=r"there is no config 'x' .* there are: a"):
        read_configs({"a": {}}, Flags(), default="x")
    with pytest.raises(InputError, match="there are: none"):
        read_configs({}, Flags(), default="x")


def test_paths_of_all_nodes_may_be_repeated_in_a_config():
    # NVIDIA's own example has nvidiaDriverRoot.
    read({"flags": {"nvidiaDriverRoot": "/", "plugin": {"containerDriverRoot": "/driver-root"}}})


# What a node shows.


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
