# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel drivers, device nodes and firmware errors of AMD and Intel GPUs."""

from __future__ import annotations

import os
import stat

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.device_nodes import (
    read_device_nodes,
    read_errors,
    read_kernel_drivers,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.hardware import read_functions
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.pci import find_gpus
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from tests.unit.fixtures.machines import MACHINES
from tests.unit.fixtures.make_tree import make_machine, write

FIRST = "0000:06:00.0"
LOG = """\
[    4.1] amdgpu 0000:06:00.0: Direct firmware load for amdgpu/psp_13_0_6_sos.bin failed with \
error -2
[    4.2] amdgpu 0000:06:00.0: amdgpu: Fatal error during GPU init
[    4.3] nvidia 0000:07:00.0: Direct firmware load for other.bin failed with error -2
"""


@pytest.fixture
def tree(tmp_path):
    make_machine(tmp_path, MACHINES["mi300x8"])
    sysfs = "/sys/bus/pci/devices"
    write(tmp_path, "/sys/module/amdgpu/version", "6.14.14\n")
    write(tmp_path, f"{sysfs}/{FIRST}/drm/renderD128/dev", "226:128\n")
    write(tmp_path, f"{sysfs}/{FIRST}/drm/card1/dev", "226:1\n")
    write(tmp_path, f"{sysfs}/{FIRST}/current_compute_partition", "SPX\n")
    write(tmp_path, f"{sysfs}/{FIRST}/current_memory_partition", "NPS1\n")
    write(tmp_path, "/dev/kfd")
    (tmp_path / "dev/kfd").chmod(0o660)
    write(tmp_path, "/etc/group", f"root:x:0:\nrender:x:{os.getgid() or 0}:\n")
    return tmp_path


def read(root):
    reader = NodeReader(str(root))
    functions = read_functions(reader)
    return reader, functions, find_gpus(functions)


def test_what_a_container_is_given(tree):
    reader, functions, gpus = read(tree)
    kfd, render = read_device_nodes(reader, functions, gpus)
    assert (kfd["path"], kfd["driver"], kfd["address"]) == ("/dev/kfd", "amdgpu", None)
    assert (kfd["mode"], kfd["group"], kfd["character_device"]) == ("0660", "render", False)
    assert render == {
        "path": "/dev/dri/renderD128",
        "driver": "amdgpu",
        "address": FIRST,
        "device_id": "74a1",
        "partition": "spx_nps1",
        # The driver says that it is there, and /dev does not have it.
        "character_device": False,
        "group": None,
        "mode": None,
    }
    assert read_kernel_drivers(reader, gpus) == {"amdgpu": {"version": "6.14.14"}}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device nodes")
def test_a_real_device_node(tree):
    place = tree / "dev/dri/renderD128"
    place.parent.mkdir()
    # The numbers of /dev/null: a device that every kernel has.
    os.mknod(place, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    place.chmod(0o666)
    reader, functions, gpus = read(tree)
    render = read_device_nodes(reader, functions, gpus)[1]
    assert render["character_device"] and render["mode"] == "0666"


@pytest.mark.parametrize("name", ["none", "p4"])
def test_nothing_is_read_on_other_nodes(tmp_path, name):
    make_machine(tmp_path, MACHINES[name])
    write(tmp_path, "/sys/module/amdgpu/version", "6\n")
    reader, functions, gpus = read(tmp_path)
    assert read_device_nodes(reader, functions, gpus) == []
    assert read_kernel_drivers(reader, gpus) == {}
    assert read_errors(reader, gpus) == []


class Live(NodeReader):
    """A tree whose ``dmesg`` has a log."""

    log = LOG

    def run(self, argv, timeout=30):
        return Result(0, self.log, "")


def errors_of(tree, log):
    _reader, _functions, gpus = read(tree)
    reader = Live(str(tree))
    reader.log = log
    return read_errors(reader, gpus)


def test_firmware_that_is_missing_is_named_once_and_with_its_file(tree):
    _reader, _functions, gpus = read(tree)
    (finding, *others) = read_errors(Live(str(tree)), gpus)
    assert finding.code == "drm_firmware_missing"
    assert "amdgpu/psp_13_0_6_sos.bin" in finding.cause and FIRST in finding.cause
    assert [one.code for one in others] == ["drm_probe_failed"]


# github.com/ROCm/legacy-rocm-build, issue 912: AMD says that ROCm does not need this file.
OPTIONAL = """\
[ 3.353] amdgpu 0000:06:00.0: Direct firmware load for amdgpu/vega20_ta.bin failed with error -2
[ 3.353] amdgpu 0000:06:00.0: psp v11.0: Failed to load firmware "amdgpu/vega20_ta.bin"
[ 4.890] [drm] Initialized amdgpu 3.35.0 20150101 for 0000:06:00.0 on minor 1
"""


def test_a_card_that_starts_without_a_firmware_file_is_no_failure(tree):
    (finding,) = errors_of(tree, OPTIONAL)
    assert finding.code == "drm_firmware_optional"
    assert "amdgpu/vega20_ta.bin" in finding.cause and FIRST in finding.cause
    # Another card started.
    (finding,) = errors_of(tree, OPTIONAL.replace("for 0000:06", "for 0000:26"))
    assert finding.code == "drm_firmware_missing"
    # Linux 6.14 and later write the line of the start so.
    newer = OPTIONAL.replace(
        "[drm] Initialized amdgpu 3.35.0 20150101",
        "amdgpu 0000:06:00.0: [drm] Initialized amdgpu 3.61.0",
    )
    assert [one.code for one in errors_of(tree, newer)] == ["drm_firmware_optional"]


def test_a_start_that_failed_before_another_one_is_over(tree):
    failed = "[4.2] amdgpu 0000:06:00.0: probe with driver amdgpu failed with error -22\n"
    start = "[9.0] [drm] Initialized amdgpu 3.57.0 20150101 for 0000:06:00.0 on minor 1\n"
    assert errors_of(tree, failed + start) == []
    assert [one.code for one in errors_of(tree, start + failed)] == ["drm_probe_failed"]


def test_firmware_for_video_and_power_saving_is_not_needed_to_compute(tree):
    log = (
        "[4.1] i915 0000:06:00.0: [drm] *ERROR* GT0: {} firmware i915/dg2_{}.bin: fetch failed "
        "-ENOENT\n[4.2] [drm] Initialized i915 1.6.0 20230929 for 0000:06:00.0 on minor 1\n"
    )
    (finding,) = errors_of(tree, log.format("HuC", "huc_gsc"))
    assert finding.code == "drm_firmware_optional" and "HuC firmware" in finding.cause
    # Without GuC i915 says that it started, and submits nothing.
    assert [one.code for one in errors_of(tree, log.format("GuC", "guc_70"))] == [
        "drm_firmware_missing"
    ]
    failed = log.replace(
        "{} firmware i915/dg2_{}.bin: fetch failed -ENOENT", "GuC initialization failed -ENXIO"
    )
    assert [one.code for one in errors_of(tree, failed)] == ["drm_firmware_failed"]


def test_the_first_card_of_many_is_not_lost_in_what_the_driver_says_later(tree):
    later = "[5.0] amdgpu 0000:26:00.0: amdgpu: ring comp_1.0.0 uses VM inv eng 4 on hub 0\n"
    assert [one.code for one in errors_of(tree, LOG + later * 400)] == [
        "drm_firmware_missing",
        "drm_probe_failed",
    ]
