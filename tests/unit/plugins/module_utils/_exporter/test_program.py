# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program that nodes run. The rows of nvidia-smi have its documented form."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils._exporter import program
from plugins.module_utils._exporter.files import output_path
from plugins.module_utils._monitoring.metrics import TEXTFILE, TEXTFILE_METRICS

# As --format=csv,noheader,nounits prints them.
V100 = (
    "0, GPU-5c1b3a7e-2f64-4d0e-9a51-0c8f6e1d2b3a, 00000000:15:00.0, 580.95.05, 41, 97, 15360, "
    "16384, 231.42, 250.00, 1380, 877, [N/A], 3, 16, 0, 0, No, No, Not Active, Not Active, "
    "Active, Tesla V100-PCIE-16GB"
)
GEFORCE = (
    "1, GPU-00000000-0000-0000-0000-000000000001, 00000000:65:00.0, 580.95.05, 55, [N/A], 812, "
    "24564, 31.07, 450.00, 210, 405, 30, 1, 16, [N/A], [N/A], [N/A], [N/A], Not Active, "
    "[N/A], Not Active, NVIDIA GeForce RTX 4090"
)
LOST = (
    "Unable to determine the device handle for GPU0000:65:00.0: GPU is lost.  Reboot the system "
    "to recover this GPU"
)
UNKNOWN_FIELD = 'Field "remapped_rows.failure" is not a valid field to query.'
LINE = re.compile(
    r'(?P<name>[a-z_]+)(?:\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\])*"(?:,(?!\})|(?=\})))+\})? '
    r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?\Z"
)


@pytest.fixture
def node(tmp_path):
    """A folder with a PCI bus, a program nvidia-smi and a log of the kernel."""
    for address in ("0000:15:00.0", "0000:65:00.0"):
        place = tmp_path / "sys/bus/pci/devices" / address
        place.mkdir(parents=True)
        (place / "vendor").write_text("0x10de\n")
    (tmp_path / "kmsg").write_text("6,1,100,-;Linux version 6.8\n")
    smi(tmp_path, f"cat <<'END'\n{V100}\n{GEFORCE}\nEND")
    return tmp_path


def smi(node, script):
    path = node / "nvidia-smi"
    path.write_text(f"#!/bin/sh\necho run >> {node}/runs\n{script}\n")
    path.chmod(0o755)


def run(node, *arguments):
    status = program.main(
        [
            *("--output", f"{node}/gpu.prom", "--state", f"{node}/state.json"),
            *("--sysfs", f"{node}/sys", "--kernel-log", f"{node}/kmsg", "--release", "1.0"),
            *("--nvidia-smi", f"{node}/nvidia-smi", "--timeout", "0.5"),
            *("--gpu", "0000:15:00.0", "--gpu", "0000:65:00.0", *arguments),
        ]
    )
    assert status == 0
    return read(node)


def read(node):
    """Return the samples by metric with labels; the file is valid as a whole."""
    text = (node / "gpu.prom").read_text(encoding="utf-8")
    assert text.endswith("\n")
    samples = {}
    declared = []
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            declared.append(line.split()[2])
        elif not line.startswith("# HELP "):
            assert LINE.match(line), line
            name, _blank, value = line.rpartition(" ")
            assert name not in samples
            assert name.partition("{")[0] == declared[-1]
            samples[name] = float(value)
    assert len(declared) == len(set(declared))
    return samples


def labels(number, more=""):
    uuid, address = (
        ("GPU-5c1b3a7e-2f64-4d0e-9a51-0c8f6e1d2b3a", "0000:15:00.0")
        if number == 0
        else ("GPU-00000000-0000-0000-0000-000000000001", "0000:65:00.0")
    )
    return f'{{gpu="{number}",uuid="{uuid}",pci_bus_id="{address}"{more}}}'


def source(name):
    return f'kubegpu_textfile_source_up{{source="{name}"}}'


def test_cards_of_nvidia(node):
    found = run(node)
    assert found["kubegpu_gpus_expected"] == 2
    assert found['kubegpu_gpu_present{pci_bus_id="0000:15:00.0"}'] == 1
    assert found[f"kubegpu_gpu_temperature_celsius{labels(0)}"] == 41
    assert found[f"kubegpu_gpu_utilization_ratio{labels(0)}"] == 0.97
    assert found[f"kubegpu_gpu_memory_total_bytes{labels(0)}"] == 16384 * 1024 * 1024
    assert found[f"kubegpu_gpu_clock_hertz{labels(0)}"] == 1.38e9
    slowdown = ',reason="sw_thermal"'
    assert found[f"kubegpu_gpu_clock_slowdown{labels(0, slowdown)}"] == 1
    assert found[f"kubegpu_gpu_row_remap_failure{labels(0)}"] == 0
    # What a card does not have has no sample.
    assert f"kubegpu_gpu_fan_ratio{labels(0)}" not in found
    assert f"kubegpu_gpu_utilization_ratio{labels(1)}" not in found
    assert found[source("nvidia-smi")] == 1
    assert oct((node / "gpu.prom").stat().st_mode)[-3:] == "644"
    assert sorted(path.name for path in node.iterdir()) == [
        "gpu.prom", "kmsg", "nvidia-smi", "runs", "state.json", "sys",
    ]  # fmt: skip


def test_card_that_left_the_bus(node):
    for file in (node / "sys/bus/pci/devices/0000:65:00.0").iterdir():
        file.unlink()
    smi(node, f"echo '{V100}'; echo '{LOST}'; exit 15")
    found = run(node)
    assert found['kubegpu_gpu_present{pci_bus_id="0000:65:00.0"}'] == 0
    assert found["kubegpu_gpus_expected"] == 2
    assert found[f"kubegpu_gpu_temperature_celsius{labels(0)}"] == 41
    assert found[source("nvidia-smi")] == 0


def test_older_driver_does_not_know_all_fields(node):
    plain = V100.split(", ")
    plain = ", ".join([*plain[:17], plain[-1]])
    smi(node, f"case $1 in *remapped*) echo '{UNKNOWN_FIELD}'; exit 2;; esac; echo '{plain}'")
    found = run(node)
    assert found[f"kubegpu_gpu_temperature_celsius{labels(0)}"] == 41
    assert found[source("nvidia-smi")] == 1
    assert not [name for name in found if "remap" in name or "slowdown" in name]


@pytest.mark.parametrize(
    "script",
    [
        "exit 9",
        "echo NVIDIA-SMI has failed because it could not communicate; exit 9",
        "echo 'No devices were found'; exit 6",
        "head -c 3000000 /dev/zero",
        "printf '\\377\\376 0, 1\\n'",
        "kill -9 $$",
    ],
)
def test_nvidia_smi_that_fails_costs_only_its_own_metrics(node, script):
    smi(node, script)
    found = run(node)
    assert found[source("nvidia-smi")] == 0
    assert found[source("kernel-log")] == 1
    assert found["kubegpu_gpus_expected"] == 2
    assert not [name for name in found if "temperature" in name]


def test_program_that_is_missing(node):
    (node / "nvidia-smi").unlink()
    assert run(node)[source("nvidia-smi")] == 0


def test_program_that_hangs_is_ended(node):
    smi(node, "exec sleep 60")
    begun = time.monotonic()
    found = run(node)
    assert time.monotonic() - begun < 10
    assert found[source("nvidia-smi")] == 0
    assert found["kubegpu_gpus_expected"] == 2


def test_no_second_process_beside_one_that_cannot_be_killed(node, monkeypatch):
    smi(node, "exec sleep 60")
    # As of a process in the kernel: it takes no signal.
    monkeypatch.setattr(subprocess.Popen, "kill", lambda process: None)
    monkeypatch.setattr(program, "_KILL_SECONDS", 0.1)
    run(node)
    hung = json.loads((node / "state.json").read_text())["hung"]
    try:
        for _time in range(2):
            assert run(node)[source("nvidia-smi")] == 0
        assert (node / "runs").read_text() == "run\n"
    finally:
        os.kill(hung[0], 9)
        os.waitpid(hung[0], 0)
    smi(node, f"echo '{V100}'")
    assert run(node)[source("nvidia-smi")] == 1


def test_hostile_names_stay_in_their_labels(node):
    name = 'A"} 1\\ \t\x1b[31m, B' + "x" * 300
    smi(node, f"cat <<'END'\n{V100.rpartition(', ')[0]}, {name}\nEND")
    text = next(key for key in run(node) if "kubegpu_gpu_info" in key)
    assert 'name="A\\"} 1\\\\' in text
    assert "\x1b" not in text
    assert len(text) < 400


@given(st.text(max_size=300))
def test_any_output_gives_a_valid_file(output):
    samples = program.parse_rows(output, program.QUERY)
    for line in program.render(samples).splitlines():
        assert line.startswith("# ") or LINE.match(line), line


@given(st.lists(st.text(max_size=20), min_size=len(program.QUERY), max_size=len(program.QUERY)))
def test_any_field_gives_a_valid_file(fields):
    fields[0], fields[2] = "0", "00000000:15:00.0"
    samples = program.parse_rows(", ".join(fields), program.QUERY)
    for line in program.render(samples).splitlines():
        assert line.startswith("# ") or LINE.match(line), line


def xid(number, code, address="0000:15:00"):
    return f"3,{number},5000,-;NVRM: Xid (PCI:{address}): {code}, pid=1, name=python, text\n"


def counted(found):
    return {
        tuple(re.findall('"([^"]*)"', name)): value
        for name, value in found.items()
        if "xid" in name
    }


def test_xids_are_counted_over_runs_and_lost_lines(node):
    log = node / "kmsg"
    log.write_text(xid(5, 79) + " SUBSYSTEM=pci\n" + xid(6, 13) + xid(7, 13))
    assert counted(run(node)) == {("0000:15:00.0", "13"): 2, ("0000:15:00.0", "79"): 1}
    assert counted(run(node)) == {("0000:15:00.0", "13"): 2, ("0000:15:00.0", "79"): 1}
    # The log forgot its first lines.
    log.write_text(xid(7, 13) + xid(8, 13) + xid(9, 48, "0000:65:00"))
    assert counted(run(node)) == {
        ("0000:15:00.0", "13"): 3,
        ("0000:15:00.0", "79"): 1,
        ("0000:65:00.0", "48"): 1,
    }


def test_lines_that_only_quote_an_xid_are_not_counted(node):
    (node / "kmsg").write_text(
        "6,1,1,-;audit: msg='NVRM: Xid (PCI:0000:15:00): 79, text'\n"
        "6,2,1,-;NVRM: Xid (PCI:$(id)): 79, text\n"
        "no number;NVRM: Xid (PCI:0000:15:00): 79, text\n"
        "6,3,1,-;NVRM: Xid (PCI:0000:15:00): 99999999, text\n"
        # Written by a program into /dev/kmsg, whatever it pretends.
        "12,4,1,-;NVRM: Xid (PCI:0000:15:00): 79, text\n"
        "3,5,1,-;NVRM: Xid (PCI:0000:15:00 x): 79, text\n"
    )
    assert counted(run(node)) == {}


def test_an_xid_of_an_instance_of_mig_counts_for_its_gpu(node):
    (node / "kmsg").write_text(xid(5, 94, "0000:01:00 GPU-I:05"))
    assert counted(run(node)) == {("0000:01:00.0", "94"): 1}


@pytest.mark.parametrize(
    "state", ["", "[]", "{", '{"sequence": "x", "xids": {"a": "b"}, "hung": 7}']
)
def test_state_that_is_broken(node, state):
    (node / "state.json").write_text(state)
    (node / "kmsg").write_text(xid(5, 79))
    assert counted(run(node)) == {("0000:15:00.0", "79"): 1}


def test_kernel_log_that_cannot_be_read(node):
    (node / "kmsg").unlink()
    assert run(node)[source("kernel-log")] == 0


def card(node, name, address, vendor, driver, files):
    device = node / "sys/devices/pci0000:00" / address
    for path, text in {"vendor": vendor, **files}.items():
        (device / path).parent.mkdir(parents=True, exist_ok=True)
        (device / path).write_text(f"{text}\n")
    (node / f"sys/bus/pci/drivers/{driver}").mkdir(parents=True, exist_ok=True)
    (device / "driver").symlink_to(node / f"sys/bus/pci/drivers/{driver}")
    place = node / "sys/class/drm" / name
    place.mkdir(parents=True)
    (place / "device").symlink_to(device)
    return place


def test_cards_of_amd_and_intel(node):
    amd = {
        "gpu_busy_percent": "40",
        "mem_info_vram_total": "206141652992",
        "mem_info_vram_used": "1073741824",
        "unique_id": "0x1234",
        "ras/umc_err_count": "ue: 1\nce: 7",
        "hwmon/hwmon4/temp1_input": "61000",
        "hwmon/hwmon4/power1_input": "141000000",
        "hwmon/hwmon4/power1_average": "140000000",
        "hwmon/hwmon4/power1_cap": "750000000",
    }
    card(node, "card1", "0000:c1:00.0", "0x1002", "amdgpu", amd)
    intel = {"hwmon/hwmon2/energy1_input": "5000000", "hwmon/hwmon2/power1_max": "150000000"}
    place = card(node, "card0", "0000:03:00.0", "0x8086", "i915", intel)
    (place / "gt_act_freq_mhz").write_text("1950\n")
    (node / "sys/class/drm/card0-DP-1").mkdir()
    card(node, "card2", "0000:15:00.1", "0x10de", "nvidia", {})
    found = run(node)

    def value(metric, address, more=""):
        return next(
            found[name]
            for name in found
            if name.startswith(f"{metric}{{") and address in name and more in name
        )

    assert value("kubegpu_gpu_utilization_ratio", "0000:c1:00.0") == 0.4
    assert value("kubegpu_gpu_temperature_celsius", "0000:c1:00.0") == 61
    assert value("kubegpu_gpu_power_watts", "0000:c1:00.0") == 140
    assert value("kubegpu_gpu_ecc_errors_total", "0000:c1:00.0", '"uncorrected"') == 1
    assert value("kubegpu_gpu_info", "0000:c1:00.0", 'driver="amdgpu"') == 1
    assert value("kubegpu_gpu_energy_joules_total", "0000:03:00.0") == 5
    assert value("kubegpu_gpu_power_limit_watts", "0000:03:00.0") == 150
    assert value("kubegpu_gpu_clock_hertz", "0000:03:00.0") == 1.95e9
    assert not [name for name in found if 'driver="nvidia"' in name and "15:00.1" in name]


def test_file_is_replaced_as_a_whole_or_stays(node, monkeypatch):
    run(node)
    before = (node / "gpu.prom").read_bytes()

    def fails(*_paths):
        raise OSError("no space")

    monkeypatch.setattr(os, "rename", fails)
    with pytest.raises(OSError, match="no space"):
        run(node)
    monkeypatch.undo()
    assert (node / "gpu.prom").read_bytes() == before
    assert not list(node.glob(".*"))


@pytest.mark.skipif(sys.version_info < (3, 10), reason="older ones have no list of their modules")
def test_it_needs_only_an_old_python():
    text = Path(program.__file__).read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 6))
    names = {
        name.split(".")[0]
        for one in ast.walk(tree)
        if isinstance(one, (ast.Import, ast.ImportFrom))
        for name in (
            [one.module] if isinstance(one, ast.ImportFrom) else [a.name for a in one.names]
        )
    }
    assert names <= sys.stdlib_module_names
    assert "dataclasses" not in names
    assert "__future__" not in names


def test_rules_and_dashboard_know_all_metrics():
    declared = {one.name: (one.kind, one.help) for one in TEXTFILE_METRICS}
    assert declared == program.METRICS
    assert f"/{TEXTFILE}" == output_path("")
