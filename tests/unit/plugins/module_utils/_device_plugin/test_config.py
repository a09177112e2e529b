# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.config import (
    Flags,
    read_configs,
)
from tests.unit.fixtures.device_plugin import flags, mps, read, slicing


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
         "nvidia.com/gpu occurs twice"),
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


def test_as_many_clients_as_an_mps_server_takes():
    read_configs({"one": mps(48)}, Flags(), default="one")


@pytest.mark.parametrize("name", ["", "-a", "a b", "a" * 64, "..data", "a/b"])
def test_a_name_has_to_be_a_labels_value(name):
    with pytest.raises(InputError, match="becomes a node label's value"):
        read_configs({name: {}, "default": {}}, Flags())


def test_the_default_config_has_to_be_there():
    with pytest.raises(InputError, match=r"unknown config 'x' .* there are: a"):
        read_configs({"a": {}}, Flags(), default="x")
    with pytest.raises(InputError, match="there are: none"):
        read_configs({}, Flags(), default="x")


def test_paths_of_all_nodes_may_be_repeated_in_a_config():
    # NVIDIA's own example has nvidiaDriverRoot.
    read({"flags": {"nvidiaDriverRoot": "/", "plugin": {"containerDriverRoot": "/driver-root"}}})
