# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Scenarios that a plan is enough for: work that people did by hand, by its number."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from ansible_collections.kubegpu.nodes.plugins.filter import cuda_supported_by, driver_required_by
from tests.integration.plans.machines import by_runfile
from tests.unit.fixtures.machines import MACHINES, SERVER, Function, nvidia


def cuda(machine, version):
    """Return the machine with a CUDA toolkit by runfile."""
    short = ".".join(version.split(".")[:2])
    text = f'{{"cuda": {{"name": "CUDA SDK", "version": "{version}"}}}}'
    files = {
        f"/usr/local/cuda-{short}/version.json": text,
        f"/usr/local/cuda-{short}/bin/nvcc": "",
    }
    return replace(machine, files={**machine.files, **files})


def test_s1_gpus_are_found_without_lspci_and_driver(thirteen):
    assert thirteen.rows["p4"]["gpus"] == ["1x Tesla P4 (pascal)"]
    assert thirteen.rows["a10-2q"]["gpus"] == ["1x A10 (ampere, vGPU guest)"]
    assert thirteen.rows["v100x4"]["gpus"] == ["4x Tesla V100-SXM2-32GB (volta)"]


def test_s2_vgpu_guest_is_refused_until_its_grid_file_is_given(thirteen, plan, tmp_path):
    assert thirteen.rows["a10-2q"]["action"] == "refuse"
    runfile = tmp_path / "NVIDIA-Linux-x86_64-535.129.03-grid.run"
    runfile.touch()
    rows = plan(
        {"a10-2q": MACHINES["a10-2q"]},
        nvidia_driver_runfile={
            "path": str(runfile),
            "checksum": f"sha256:{hashlib.sha256(b'').hexdigest()}",
        },
        nvidia_driver_licence={"server": "licence.example.com", "feature_type": 1},
    )
    driver = rows["a10-2q"]["driver"]
    assert (driver["action"], driver["source"], driver["version"]) == (
        "install",
        "runfile",
        "535.129.03",
    )
    assert "licence.example.com" in driver["files"]["/etc/nvidia/gridd.conf"]


def test_s9_image_newer_than_the_driver():
    supported = cuda_supported_by.FilterModule().filters()["cuda_supported_by"]
    required = driver_required_by.FilterModule().filters()["driver_required_by"]
    have = supported("535.129.03")
    assert have["native"] == "12.2"
    need = required("12.3")
    assert need["paired"] == "545.23.06"


def test_s21_mixed_fleet_is_decided_node_by_node(plan):
    old = by_runfile(MACHINES["v100x4"], "535.129.03")
    rows = plan(
        {
            "gpu1": by_runfile(MACHINES["v100x4"], "580.95.05"),
            "gpu2": by_runfile(MACHINES["p4"], "580.95.05"),
            "gpu3": old,
            "gpu4": MACHINES["v100x4"],
            "web1": MACHINES["none"],
            "web2": MACHINES["none-but-screens"],
        }
    )
    drivers = {name: row["driver"] for name, row in rows.items() if "driver" in row}
    # Each keeps what works; the one that is past its support is told so, and the bare one gets one.
    assert {name: driver["action"] for name, driver in drivers.items()} == {
        "gpu1": "none",
        "gpu2": "none",
        "gpu3": "none",
        "gpu4": "install",
    }
    assert any("535" in text and "2026-06-30" in text for text in drivers["gpu3"]["warnings"])
    assert all("driver 535" in text or "toolkit" not in text for text in rows["gpu3"]["present"])
    assert rows["web1"]["action"] == rows["web2"]["action"] == "none"


@pytest.mark.full(why="other machines than test_s21_mixed_fleet")
def test_s15_s17_each_of_five_nodes_gets_exactly_its_own(plan):
    """H100 with MIG, T4, MI300X, Flex 170 and none in one inventory."""
    own = {
        "h100": MACHINES["h100x8"],
        "t4": replace(MACHINES["p4"], functions=(nvidia("0000:3b:00.0", "1eb8", "12a2"), *SERVER)),
        "mi300x": MACHINES["mi300x8"],
        "flex": replace(
            MACHINES["intel-flex"],
            functions=(
                *SERVER,
                Function("0000:4d:00.0", "8086", "56c0", "038000", "8086", "4905", "i915"),
            ),
        ),
        "none": MACHINES["none"],
    }
    request = {"nvidia_mig_config": "all-1g.10gb"}
    rows = plan(own, {"h100": request, "mi300x": request, "none": request})
    parts = {name: {step["part"] for step in row["steps"]} for name, row in rows.items()}
    assert {"driver", "mig", "toolkit"} <= parts["h100"]
    assert "mig" not in parts["t4"] and {"driver", "toolkit"} <= parts["t4"]
    for name in ("mi300x", "flex", "none"):
        assert not parts[name] & {"driver", "mig", "cuda", "toolkit"}
        assert rows[name]["action"] != "refuse"
    layouts = [step for step in rows["h100"]["steps"] if step["part"] == "mig"]
    assert len(layouts) == 8
    assert layouts[0]["detail"] == "GPU 0: 7x 1g.10gb at 0, 1, 2, 3, 4, 5 and 6"
    assert "predicted; the card's own list decides" in layouts[0]["reason"]
    assert rows["none"]["why"] == ["no GPU: nothing to do"]
    assert "Instinct MI300X" in rows["mi300x"]["gpus"][0]
    assert "Flex 170" in rows["flex"]["gpus"][0]


@pytest.mark.full(why="test_s21_... with more vendors, which the unit tests of the table have")
def test_s17_a_fleet_of_three_vendors_is_planned_in_one_table(plan):
    unserved = replace(
        MACHINES["mi300x8"],
        functions=tuple(
            replace(one, driver=None) if one.vendor == "1002" else one
            for one in MACHINES["mi300x8"].functions
        ),
    )
    rows = plan(
        {
            "t4": by_runfile(MACHINES["p4"], "580.95.05"),
            "mi300": MACHINES["mi300x8"],
            "mi300-bare": unserved,
            "flex": MACHINES["intel-flex"],
            "web1": MACHINES["none"],
        }
    )
    assert {name: row["action"] for name, row in rows.items() if name != "t4"} == {
        "mi300": "none",
        "mi300-bare": "none",
        "flex": "none",
        "web1": "none",
    }
    assert {name for name, row in rows.items() if "driver" in row} == {"t4"}
    assert rows["mi300"]["gpus"] == ["8x Instinct MI300X (CDNA 3)"]
    assert rows["mi300"]["why"] == ["AMD: the kernel's driver amdgpu serves it, nothing to do here"]
    assert "i915 serves it" in rows["flex"]["why"][0]
    # Where no driver serves the cards, the plan says what to do, and why.
    assert "amd_driver_enabled: true" in rows["mi300-bare"]["why"][0]
    assert any("bound to no driver" in text for text in rows["mi300-bare"]["warnings"])
    assert rows["web1"]["why"] == ["no GPU: nothing to do"]


@pytest.mark.full(why="an option of one vendor's hosts")
def test_s17_amds_container_toolkit_only_where_it_is_asked_for_and_possible(plan):
    loaded = {"/sys/module/amdgpu/version": "6.14.14\n", "/dev/dri/renderD128": ""}
    mi300 = replace(MACHINES["mi300x8"], files={**MACHINES["mi300x8"].files, **loaded})
    request = {"amd_container_toolkit_enabled": True}
    rows = plan(
        {
            "mi300": mi300,
            "mi300-bare": MACHINES["mi300x8"],
            "mi300-plain": mi300,
            "mi300-wrong": mi300,
            "flex": MACHINES["intel-flex"],
            "web1": MACHINES["none"],
        },
        {
            "mi300": request,
            "mi300-bare": request,
            "mi300-wrong": {**request, "amd_container_toolkit_docker": "perhaps"},
            "flex": request,
            "web1": request,
        },
    )
    assert rows["mi300"]["changes"] == [
        "AMD toolkit repository: add",
        "AMD toolkit packages: install toolkit 1.3.0",
        "cdi: refresh amd.com/gpu",
    ]
    assert {name: row["action"] for name, row in rows.items()} == {
        "mi300": "change",
        # The package does not install without its driver.
        "mi300-bare": "refuse",
        "mi300-plain": "none",
        "mi300-wrong": "refuse",
        "flex": "none",
        "web1": "none",
    }
    assert "amdgpu is not loaded" in rows["mi300-bare"]["why"][0]
    assert any("amd_container_toolkit_docker" in text for text in rows["mi300-wrong"]["warnings"])
    assert "nothing to do here" in rows["mi300-plain"]["why"][0]


@pytest.mark.full(why="an option of one vendor's hosts")
def test_s17_amds_driver_is_planned_before_its_toolkit(plan):
    bare = MACHINES["mi300x8"]
    request = {"amd_driver_enabled": True}
    both = {**request, "amd_container_toolkit_enabled": True}
    rows = plan(
        {"mi300": bare, "mi300-both": bare, "mi300-wrong": bare, "flex": MACHINES["intel-flex"]},
        {
            "mi300": request,
            "mi300-both": both,
            "mi300-wrong": {**both, "amd_driver_release": "latest"},
            "flex": both,
        },
    )
    driver = [
        "AMD driver repository: add",
        "AMD driver packages: install amdgpu 30.30",
        "AMD driver module: load amdgpu",
    ]
    assert rows["mi300"]["changes"] == driver
    # Without the driver of the same run it would be a refusal.
    assert rows["mi300-both"]["changes"] == [
        *driver,
        "AMD toolkit repository: add",
        "AMD toolkit packages: install toolkit 1.3.0",
        "cdi: refresh amd.com/gpu",
    ]
    assert rows["mi300-wrong"]["action"] == "refuse"
    assert any("amd_driver_release" in text for text in rows["mi300-wrong"]["warnings"])
    assert rows["flex"]["action"] == "none"


@pytest.mark.full(why="another variable than test_s21_mixed_fleet")
def test_s21_one_branch_for_all_is_a_wish(plan):
    own = {
        "gpu1": by_runfile(MACHINES["v100x4"], "580.95.05"),
        "gpu3": by_runfile(MACHINES["v100x4"], "535.129.03"),
    }
    rows = plan(own, nvidia_driver_branch="580")
    assert rows["gpu1"]["driver"]["action"] == "none"
    # A driver by hand is not replaced unless that is allowed.
    assert rows["gpu3"]["driver"]["action"] == "refuse"
    assert "nvidia_driver_replace_source" in " ".join(rows["gpu3"]["driver"]["reasons"])
    rows = plan(own, nvidia_driver_branch="580", nvidia_driver_replace_source=True)
    assert rows["gpu1"]["driver"]["action"] == "none"
    assert rows["gpu3"]["driver"]["action"] == "upgrade"
    assert rows["gpu3"]["driver"]["uninstall"] == "runfile"


def test_s24_cloud_image_with_driver_and_cuda_is_left_alone(plan):
    image = cuda(by_runfile(MACHINES["a100x8"], "580.95.05", "open"), "12.9.1")
    row = plan({"cloud1": image})["cloud1"]
    driver = row["driver"]
    assert (driver["action"], driver["change"], driver["files"]) == ("none", False, {})
    assert not [step for step in row["steps"] if step["part"] in ("driver", "cuda")]
    assert {"driver 580.95.05 open", "CUDA 12.9.1"} <= set(row["present"])
