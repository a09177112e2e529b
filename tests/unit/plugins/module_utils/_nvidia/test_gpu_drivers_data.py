# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan import gpu_support as rules
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.pci import (
    PciFunction,
    find_gpus,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.driver_branches import (
    driver_data,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.gpu_drivers_data import (
    PRODUCTS,
    UNLISTED,
)


def gpu(device, rows=None):
    facts = find_gpus([PciFunction("0000:01:00.0", "10de", device, "0302")])
    return rules.find_gpus({"gpus": facts}, driver_data(gpus=rows))[0]


# The first release tags of NVIDIA/open-gpu-kernel-modules whose README.md lists the id (the Vulkan
# beta tags left out), and the release tag before each. For 2909 and 31c3 supported-gpus.json of
# 580.178.04, 595.45.04 and 595.58.03.
FIRST = """
2342 535.104.12 535.129.03
2342 545.23.08  545.29.02
2348 560.35.03  565.57.01
2335 550.78     550.90.07
2335 555.42.02  555.42.06
233b 560.35.03  565.57.01
2329 535.154.05 535.161.07
232c 535.216.01 535.216.03
232c 550.127.05 550.127.08
232c 565.57.01  565.77
2321 535.98     535.104.05
233a 535.98     535.104.05
26b9 535.98     535.104.05
26ba 535.146.02 535.154.05
27b6 535.146.02 535.154.05
230e 580.76.05  580.82.07
3182 580.76.05  580.82.07
31c2 580.76.05  580.82.07
2bb9 580.76.05  580.82.07
2bb1 570.124.06 570.133.07
2bb3 570.148.08 570.153.02
2bb3 575.51.03  575.57.08
2bb4 570.124.06 570.133.07
2e12 580.105.08 580.119.02
2e12 590.44.01  590.48.01
2909 580.178.04 595.58.03
31c3 595.45.04  595.58.03
"""


@pytest.mark.parametrize(
    ("device", "before", "first"), [line.split() for line in FIRST.split("\n") if line]
)
def test_the_lowest_driver_is_the_first_that_lists_the_id(device, before, first):
    card = gpu(device)
    assert (
        card.problem(before.split(".")[0], before) == f"{card.name} needs driver {first} or newer"
    )
    assert card.problem(first.split(".")[0], first) is None


@pytest.mark.parametrize(
    ("branch", "version", "needed"),
    [
        ("535", None, None),
        ("545", None, "550.127.08"),
        ("545", "545.29.06", "550.127.08"),
        ("550", None, None),
        ("555", "555.58.02", "565.77"),
        ("570", "570.86.15", None),
        ("580", None, None),
    ],
)
def test_a_branch_between_two_lowest_drivers_does_not_serve(branch, version, needed):
    problem = gpu("232c").problem(branch, version)
    assert problem == (needed and f"H20-3e at 0000:01:00.0 needs driver {needed} or newer")


def test_every_row_has_one_lowest_driver_a_branch_in_order():
    for device in PRODUCTS:
        versions = [tuple(map(int, text.split("."))) for text in gpu(device).minimum]
        assert versions == sorted(versions), device
        assert len({version[0] for version in versions}) == len(versions), device


def test_rows_of_the_user_may_name_one_lowest_driver_or_several():
    assert gpu("232c", {"232c": {"minimum": "580.10"}}).minimum == ("580.10",)
    rows = {"232c": {"minimum": ["580.10", "595.20.01"]}}
    assert (
        gpu("232c", rows).problem("590") == "H20-3e at 0000:01:00.0 needs driver 595.20.01 or newer"
    )


@pytest.mark.parametrize("device", ["2342", "2348"])
def test_grace_hopper_takes_open_modules_only(device):
    assert gpu(device).modules == ("open",)


# supported-gpus.json (535.261.03 to 615.71.09): legacybranch 367.xx.
@pytest.mark.parametrize("device", ["0fef", "0ff2", "11bf"])
def test_the_grid_k_cards_end_with_branch_367(device):
    card = gpu(device)
    assert (card.generation, card.last, card.legacy) == ("kepler", "367", True)
    assert rules.serving((card,), driver_data()) == ()


@pytest.mark.parametrize("device", ["3000", "3021", "3040", "30c0"])
def test_rubin_begins_with_615(device):
    card = gpu(device)
    assert card.generation == "rubin" and card.known and card.modules == ("open",)
    assert rules.serving((card,), driver_data())[-1] == "615"


@pytest.mark.parametrize("device", sorted(UNLISTED))
def test_a_gpu_in_no_drivers_list_is_not_known_until_somebody_adds_it(device):
    card = gpu(device)
    assert card.generation == "blackwell" and not card.known
    assert gpu(device, {device: {"first": "620"}}).known
