# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layers of nodes with AMD and Intel GPUs."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import Finding
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.judge import (
    any_failed,
    judge_node,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import Request
from tests.unit.fixtures.kernel_gpus import amd_node, device_node, gpu, intel_node
from tests.unit.fixtures.verified_node import state, working


def results_of(facts, **options):
    return {one.layer: one for one in judge_node(facts, None, Request(**options))}


def test_amd_that_works():
    results = results_of(amd_node())
    assert list(results) == ["pci", "module", "devices"]
    assert not any_failed(results.values())
    assert results["pci"].proof == "2 GPUs bound to the driver amdgpu"
    assert results["module"].proof == "amdgpu of the kernel is loaded"
    assert results["devices"].proof == (
        "/dev/kfd, /dev/dri/renderD128, /dev/dri/renderD129 (group render, mode 0660)"
    )


def test_intel_with_two_drivers_that_work():
    results = results_of(intel_node("i915", "xe"))
    assert not any_failed(results.values())
    assert results["pci"].proof == "2 GPUs bound to the driver i915 and xe"
    assert "kfd" not in results["devices"].proof


def test_no_driver_says_that_it_is_not_installed_and_what_to_do():
    facts = amd_node(kernel_drivers={}, device_nodes=[])
    for one in facts["gpus"]:
        one["kernel_driver"] = None
    results = results_of(facts)
    assert (results["pci"].code, results["module"].code) == (
        "gpu_not_bound",
        "drm_driver_not_loaded",
    )
    assert "amd_driver_enabled: true" in results["module"].next_step
    assert "amdgpu-dkms" in results["module"].next_step
    assert results["devices"].ok is None and results["devices"].code == "waits"


@pytest.mark.parametrize(
    ("facts", "module"), [(amd_node, "amdgpu"), (intel_node, "i915"), (intel_node, "xe")]
)
@pytest.mark.parametrize(
    ("place", "setting", "step"),
    [
        ("/etc/modprobe.d/blacklist-gpu.conf", "blacklist {}", "out of /etc/modprobe.d/"),
        ("/usr/lib/modprobe.d/a.conf", "install {} /bin/true", "out of /usr/lib/modprobe.d/"),
        ("kernel command line", "modprobe.blacklist={}", "off the kernel command line"),
        ("kernel command line", "module_blacklist={}", "off the kernel command line"),
        ("kernel command line", "nomodeset", "off the kernel command line"),
    ],
)
def test_a_driver_that_is_blocked_is_named_by_file_or_word(facts, module, place, setting, step):
    text = setting.format(module)
    node = facts("i915") if facts is intel_node else facts()
    node.update(kernel_drivers={}, device_nodes=[])
    node["blocked_modules"] = {module: [{"place": place, "setting": text}]}
    for one in node["gpus"]:
        one["kernel_driver"] = None
    results = results_of(node)
    assert results["pci"].code == "gpu_not_bound"
    assert f"{place}: {text}" in results["pci"].cause
    assert results["module"].code == "module_blocked"
    assert results["module"].evidence == f"{place}: {text}"
    for layer in ("pci", "module"):
        assert step in results[layer].next_step and "newer kernel" not in results[layer].next_step
    by_name = not setting.startswith(("blacklist", "modprobe."))
    assert (f"modprobe {module}" in results["module"].next_step) != by_name


def test_what_blocks_in_the_initial_ram_disk_only_is_evidence():
    node = amd_node(kernel_drivers={}, device_nodes=[])
    node["blocked_modules"] = {
        "amdgpu": [{"place": "kernel command line", "setting": "rd.driver.blacklist=amdgpu"}]
    }
    result = results_of(node)["module"]
    assert result.code == "drm_driver_not_loaded" and "rd.driver.blacklist" in result.evidence


@pytest.mark.parametrize("driver", ["vfio-pci", "radeon"])
def test_bound_to_another_driver(driver):
    facts = amd_node()
    facts["gpus"][1]["kernel_driver"] = driver
    result = results_of(facts)["pci"]
    assert result.code == "gpu_not_bound" and driver in result.cause


def test_firmware_that_is_missing_fails_the_module_that_is_loaded():
    cause = "The driver amdgpu does not find the firmware x.bin for the GPU 0000:06:00.0."
    facts = amd_node()
    facts["problems"] = [Finding("drm_firmware_missing", cause, "line", "Install it.").as_problem()]
    results = results_of(facts)
    assert results["pci"].ok and results["module"].cause == cause
    # An error of another vendor's driver is not its own.
    facts["problems"][0]["cause"] = cause.replace("amdgpu", "i915")
    assert results_of(facts)["module"].ok


def test_firmware_of_the_graphics_of_a_processor_does_not_fail_the_cards():
    facts = amd_node()
    line = "amdgpu 0000:c4:00.0: amdgpu: Fatal error during GPU init"
    cause = "The driver amdgpu could not start a GPU: Fatal error during GPU init."
    facts["problems"] = [Finding("drm_probe_failed", cause, line, "Look.").as_problem()]
    assert results_of(facts)["module"].ok
    facts["problems"][0]["evidence"] = line.replace("c4", "26")
    assert results_of(facts)["module"].code == "drm_probe_failed"
    # Lines of old kernels name no card.
    facts["problems"][0]["evidence"] = "amdgpu: probe failed"
    assert results_of(facts)["module"].code == "drm_probe_failed"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"mode": None, "group": None, "character_device": False}, "device_node_missing"),
        ({"character_device": False}, "device_node_wrong"),
        ({"mode": "0600", "group": "root"}, "device_node_rights"),
        ({"mode": "0640"}, "device_node_rights"),
    ],
)
@pytest.mark.parametrize("number", [0, 1])
def test_device_nodes_that_no_container_can_use(changes, code, number):
    facts = amd_node()
    facts["device_nodes"][number].update(changes)
    result = results_of(facts)["devices"]
    assert result.code == code and facts["device_nodes"][number]["path"] in result.cause
    assert result.next_step


def test_a_card_without_a_render_node_is_named():
    facts = amd_node()
    del facts["device_nodes"][2]
    result = results_of(facts)["devices"]
    assert result.code == "device_node_missing" and facts["gpus"][1]["address"] in result.cause


def test_graphics_of_the_processor_do_not_count():
    facts = amd_node()
    facts["device_nodes"].append(
        device_node("/dev/dri/renderD130", "amdgpu", "0000:0a:00.0", mode="0600")
    )
    assert results_of(facts)["devices"].ok


def test_how_many_are_expected():
    assert results_of(amd_node(), gpus=8)["pci"].code == "gpu_count"
    assert results_of(amd_node(), gpus=2)["pci"].ok


def test_two_vendors_each_with_its_layers():
    facts = working()
    amd = amd_node()
    facts["gpus"] = [*facts["gpus"], gpu("amd", "74a1", "0000:06:00.0", "amdgpu")]
    facts["kernel_drivers"] = {}
    facts["device_nodes"] = amd["device_nodes"]
    results = judge_node(facts, state(), Request())
    pci = {one.subject.part: one for one in results if one.layer == "pci"}
    assert pci[""].proof == "1 GPU bound to the driver nvidia"
    assert pci["AMD"].proof == "1 GPU bound to the driver amdgpu"
    module = {one.subject.part: one.ok for one in results if one.layer == "module"}
    assert module == {"": True, "AMD": False}


def test_the_cdi_specification_of_amds_toolkit_where_it_is():
    facts = amd_node()
    assert "toolkit" not in results_of(facts)
    toolkit = facts["amd_container_toolkit"]
    nodes = toolkit["render_nodes"]
    toolkit.update(
        version="1.3.0~24.04",
        cdi_spec={"path": "/etc/cdi/amd.json", "devices": ["0"], "nodes": nodes, "made_for": nodes},
    )
    assert "fits the devices" in results_of(facts)["toolkit"].proof
    toolkit["render_nodes"] = nodes[:1]
    result = results_of(facts)["toolkit"]
    assert (result.ok, result.code) == (False, "amd_cdi_outdated")
    assert "renderD129, which is not there" in result.cause
