# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who manages the memory of GPUs on a board with a Grace CPU, by plan."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.options import read_options
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan import config_files
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.memory_mode import (
    COHERENT_GPUS,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.plan import plan_driver
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.pci_data import (
    NVIDIA_PRODUCTS,
)
from tests.unit.fixtures.driver_cases import facts, request
from tests.unit.plugins.module_utils._driver.plan.test_plan import made_so

LINE = "options nvidia NVreg_CoherentGPUMemoryMode={}\n"
THERE = "distro 580.126.09 open held ours services"


def plan_of(cards, on="u24 arm", stands="-", requested="-", mode=None, **options):
    given = facts(cards, on, stands)
    if mode is not None:
        given["driver"]["coherent_memory"] = mode
    return plan_driver(given, *read_options({**request(requested), **options}))


def test_the_table_names_grace_boards():
    for device, product in COHERENT_GPUS.items():
        assert NVIDIA_PRODUCTS[device].startswith(product)


@pytest.mark.parametrize("cards", ["GH200", "GB200", "GB200+GB200"])
@pytest.mark.parametrize("mode", ["driver", "numa"])
def test_the_option_is_written_on_grace_boards(cards, mode):
    plan = plan_of(cards, coherent_memory=mode)
    assert plan.action == "install" and LINE.format(mode) in plan.files[config_files.OPTIONS]
    assert config_files.OPTIONS not in plan_of(cards).files


@pytest.mark.parametrize(
    ("cards", "on"), [("T4", "u24"), ("H200", "u24"), ("B200", "u24"), ("GB10", "u24 arm")]
)
def test_other_nodes_are_left_alone(cards, on):
    asked, plain = plan_of(cards, on, coherent_memory="driver"), plan_of(cards, on)
    assert asked == plain and config_files.OPTIONS not in asked.files


def test_off_by_default_a_converged_node_stays_converged():
    given = facts("GH200", "u24 arm", THERE)
    options = read_options({})
    node = made_so(given, plan_driver(given, *options))
    node["driver"]["coherent_memory"] = ""
    plan = plan_driver(node, *options)
    assert not plan.change and not plan.reboot["required"]


def test_beside_the_users_own_options_and_debians_names():
    plan = plan_of(
        "GB200", coherent_memory="driver", module_options={"NVreg_CreateImexChannel0": 1}
    )
    assert plan.files[config_files.OPTIONS].splitlines()[1:] == [
        "options nvidia NVreg_CoherentGPUMemoryMode=driver",
        "options nvidia NVreg_CreateImexChannel0=1",
    ]


def test_a_loaded_module_with_another_mode_has_to_be_loaded_again():
    given = facts("GH200", "u24 arm", THERE)
    options = read_options({"coherent_memory": "driver"})
    given["driver"]["coherent_memory"] = ""
    first = plan_driver(given, *options)
    assert first.change and first.initramfs
    node = made_so(given, first)
    node["driver"]["coherent_memory"] = ""
    plan = plan_driver(node, *options)
    # Nothing is left to write; the mode comes with the next load of the module.
    assert not plan.change and plan.reboot["required"]
    assert (
        "GH200 is managed by the kernel; nvidia_driver_coherent_memory requests the driver"
        in plan.reboot["reason"]
    )
    node["driver"]["coherent_memory"] = "driver"
    assert not plan_driver(node, *options).reboot["required"]


@pytest.mark.parametrize(
    ("loaded", "wanted", "reload"),
    [
        # From 615 on the driver's own default is the driver (NVIDIA HPC SDK 26.11, release notes).
        ("580.126.09", "numa", False),
        ("580.126.09", "driver", True),
        ("615.71.09", "driver", False),
        ("615.71.09", "numa", True),
    ],
)
def test_the_default_depends_on_the_branch(loaded, wanted, reload):
    stands = f"distro {loaded} open held ours services"
    plan = plan_of("GH200", stands=stands, mode="", coherent_memory=wanted)
    assert plan.reboot["required"] == reload
    # A module that does not say is not judged.
    plan = plan_of("GH200", stands=stands, coherent_memory=wanted)
    assert not plan.reboot["required"]


def test_a_branch_without_the_option_is_told():
    stands = "nvidia 570.133.20 open held ours services"
    plan = plan_of("GH200", stands=stands, coherent_memory="driver")
    assert config_files.OPTIONS not in plan.files
    (warning,) = (text for text in plan.warnings if "coherent" in text)
    assert "branch 570 has no such mode for the GH200" in warning and "580 or newer" in warning
    # The one that comes has it.
    plan = plan_of("GH200", stands=stands, requested="580 replace", coherent_memory="driver")
    assert LINE.format("driver") in plan.files[config_files.OPTIONS]
    assert not [text for text in plan.warnings if "coherent" in text]


def test_a_driver_that_is_not_managed_keeps_its_mode_and_says_so():
    plan = plan_of("GH200", stands="distro 580.126.09 open held", mode="", coherent_memory="driver")
    assert not plan.change and not plan.files and not plan.reboot["required"]
    assert any("is not managed here" in text for text in plan.warnings)
    plan = plan_of(
        "GH200", stands="distro 580.126.09 open held", mode="driver", coherent_memory="driver"
    )
    assert not [text for text in plan.warnings if "coherent" in text]
