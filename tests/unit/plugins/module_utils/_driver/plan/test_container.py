# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A driver that a container brings is left to it; one whose packages are gone is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import Finding
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.switches import with_switch
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.options import read_options
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.plan import plan_driver
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.gather import gather
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.runtimes import RuntimePaths
from tests.unit.fixtures.driver_cases import facts, request
from tests.unit.fixtures.machines import DEBIAN_12, SERVER, Machine, nvidia
from tests.unit.fixtures.make_tree import make_machine, write
from tests.unit.plugins.module_utils._facts.test_gather import Node

SMI = "/run/nvidia/driver/usr/bin/nvidia-smi"
STATE = "/run/nvidia/nvidia-driver.state"
FOLDER = "/run/nvidia/driver"
GPU = nvidia("0000:3b:00.0", "1eb8", "12a2", driver="nvidia")


def machine(place: Path, *files: str, loaded: bool = True) -> Path:
    """Return the tree of a machine whose modules a container has loaded (or not yet)."""
    made = make_machine(place, Machine((*SERVER, GPU), DEBIAN_12))
    if loaded:
        text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.105.08  Release\n"
        write(made, "/proc/driver/nvidia/version", text)
    for path in files:
        write(made, path)
    return made


def plan(place, **options):
    node = gather(Node(place), RuntimePaths())
    found = plan_driver(node, *read_options({**request("-"), **options}))
    return node["driver"]["container"], found


@pytest.mark.parametrize(
    "files",
    [
        [SMI],
        # EL, and a precompiled driver, whose modules are in the container as well.
        ["/run/nvidia/driver/usr/lib64/libnvidia-ml.so.1"],
        # It builds its modules.
        ["/run/nvidia/nvidia-driver.pid"],
    ],
)
@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize("options", [{}, {"branch": "580"}, {"version": "580.126.09"}])
def test_the_driver_of_a_container_is_left_to_it(tmp_path, files, loaded, options):
    sign, found = plan(machine(tmp_path, *files, loaded=loaded), **options)
    assert sign == files[0] and found.action == "refuse" and not found.change
    text = "\n".join(found.reasons)
    assert "The driver is managed by the GPU operator's container" in text
    assert f"Seen: {files[0]}" in text
    assert "nvidia_driver_enabled: false" in text and "driver.enabled=false" in text
    assert ("driver 580.105.08 is loaded" in text) is loaded


def test_modules_that_a_container_keeps_for_its_next_start_are_its_own(tmp_path):
    sign, found = plan(machine(tmp_path / "loaded", STATE))
    assert (sign, found.action) == (STATE, "refuse")
    # The operator is gone, and what it kept with it.
    assert plan(machine(tmp_path / "unloaded", STATE, loaded=False))[1].action == "install"


def test_an_empty_folder_of_the_operator_leaves_both_open(tmp_path):
    place = machine(tmp_path / "loaded")
    (place / FOLDER[1:]).mkdir(parents=True)
    sign, found = plan(place)
    assert (sign, found.action) == (FOLDER, "refuse")
    text = "\n".join(found.reasons)
    assert "a driver container has ended" in text and "packages were removed" in text
    assert "nvidia_driver_enabled: false" in text and "reboot" in text
    # The operator makes the folder for a driver of the host, too.
    place = machine(tmp_path / "unloaded", loaded=False)
    (place / FOLDER[1:]).mkdir(parents=True)
    assert plan(place)[1].action == "install"


def test_a_removed_package_whose_module_is_loaded_is_installed(tmp_path):
    sign, found = plan(machine(tmp_path))
    assert (sign, found.action) == (None, "install")


def test_a_driver_of_the_host_is_kept_beside_the_folder_of_the_operator(tmp_path):
    place = machine(tmp_path, SMI)
    library = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so"
    write(place, f"{library}.580.105.08")
    (place / f"{library[1:]}.1").symlink_to("libnvidia-ml.so.580.105.08")
    sign, found = plan(place)
    assert (sign, found.action) == (None, "none")


def test_a_removal_finds_nothing_to_remove(tmp_path):
    assert plan(machine(tmp_path, SMI), state="absent")[1].action == "none"


def test_a_fix_does_not_lead_to_the_refusal():
    node = facts("T4", "d12")
    fix = "nvidia_driver_branch, then: ansible-playbook kubegpu.nodes.site --limit a --tags driver"
    step = "Install the driver's utilities; the role nvidia_driver does it."
    found = Finding("nvidia_smi_missing", "It is.", "", step, fix=fix)
    assert with_switch(found, node, {}) == found
    node["driver"]["container"] = SMI
    told = with_switch(found, node, {})
    assert told.fix == "" and told.next_step.startswith("A driver container manages the driver")
    assert SMI in told.next_step and with_switch(told, node, {}) == told
    other = Finding("gpu_lost", "It is.", "", "Reboot.", fix="a reboot")
    assert with_switch(other, node, {}) == other
