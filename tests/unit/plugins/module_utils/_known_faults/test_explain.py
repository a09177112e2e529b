# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every text that is known, alone and inside of what other tools wrap around it."""

from __future__ import annotations

import datetime
import json
import re
import time

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import Finding
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.explain import (
    explain,
    explain_one,
    successes,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.rules.tables import (
    FAILURES,
    SUCCESSES,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.rules.xids_data import (
    MEMORY,
    NVLINK,
    REBOOT,
    RESET,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.xids import XIDS

# Word for word from the list that this project began with, and the code that each has to give.
LISTED = {
    "Unable to load the kernel module 'nvidia.ko'": "module_not_loaded",
    'docker: Error response from daemon: could not select device driver "" with capabilities: '
    "[[gpu]].": "docker_no_gpu_driver",
    "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.3, please update "
    "your driver to a newer version, or use an earlier cuda container": "unmet_requirement",
    'exec: "nvidia-smi": executable file not found in $PATH': "nvidia_smi_missing",
    "Detected non-NVML platform: could not load NVML library: libnvidia-ml.so.1: cannot open "
    "shared object file": "could_not_reach_nvml",
    "Incompatible platform detected": "could_not_reach_nvml",
    "No devices found. Waiting indefinitely.": "no_plugin_devices",
    "Failed to initialize NVML: could not load NVML library. If this is a GPU node, did you set "
    "the docker default runtime to `nvidia`?": "could_not_reach_nvml",
    "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.": "insufficient_gpu",
    "Failed to initialize NVML: Unknown Error": "nvml_unknown_error",
    "Failed to initialize NVML: Driver/library version mismatch": "driver_library_mismatch",
    "No devices were found": "no_devices",
    "Required key not available": "secure_boot",
}
# How runc, containerd, docker and kubelet wrap the words of what they called.
HOOK = (
    "docker: Error response from daemon: failed to create shim task: OCI runtime create failed: "
    "runc create failed: unable to start container process: error during container init: error "
    "running hook #0: error running hook: exit status 1, stdout: , stderr: Auto-detected mode as "
    "'legacy'\n{}: unknown."
)


def codes(text, **known):
    return [finding.code for finding in explain(text, **known)]


@pytest.mark.parametrize(("text", "code"), LISTED.items())
def test_each_text_of_the_list_alone_and_wrapped(text, code):
    assert codes(text) == [code]
    assert codes(text.upper().replace("$PATH", "$path")) == [code]
    assert codes(HOOK.format(text)) == [code]
    # As a pod's event in JSON, and as an error in an error in an error.
    assert code in codes(json.dumps({"message": HOOK.format(text)}))
    assert code in codes(json.dumps(json.dumps(HOOK.format(text))))
    assert code in codes(f"a line before\n{'x' * 5000} {text} {'y' * 5000}\na line after")


@pytest.mark.parametrize("row", [*FAILURES, *SUCCESSES], ids=lambda row: row.code)
def test_each_row_knows_its_own_example_and_has_a_source(row):
    known = explain if row in FAILURES else successes
    if "nvidia_known_loaded" in row.when:
        # Only facts make another cause of this message of it.
        assert row.code not in [one.code for one in explain(row.example)]
        findings = explain(row.example, {"driver": {"loaded": "595.58.03"}})
    else:
        findings = known(row.example)
    finding = findings[0]
    if row in FAILURES and row.family:
        # Without facts the rules of a family are possible causes of one finding.
        assert len(findings) == 1 and row.code in (finding.code, *finding.alternatives)
    else:
        assert [one.code for one in findings] == [row.code]
    assert finding.cause.endswith(".") and not re.search(r"[{}]| {2}", finding.cause)
    assert finding.evidence in re.sub(r"\s+", " ", row.example)
    assert datetime.date.fromisoformat(row.date) and row.source and row.where
    if row in FAILURES:
        assert finding.next_step.endswith(".")
        # Braces are those of Kubernetes, not of ours that nobody filled.
        assert not re.search(r"\{(?:\w+)\}", finding.next_step)


def test_codes_are_unique_and_what_a_row_covers_is_there():
    names = [row.code for row in FAILURES]
    # A code may have several rows: other words, or another cause by the facts.
    rows = [(row.code, row.pattern, row.when) for row in FAILURES]
    assert len(set(rows)) == len(rows)
    assert {code for row in FAILURES for code in row.covers} <= set(names)


@pytest.mark.parametrize(
    "text",
    ["", "all is well\n", "GPU 0: Tesla T4 (UUID: GPU-1)", "Test PASSED", "cuda>=12.3 satisfied",
     "Registered device plugin for 'nvidia.com/gpu' with Kubelet", "0/3 nodes: Insufficient cpu."],
)  # fmt: skip
def test_what_is_no_failure_is_none(text):
    assert explain(text) == []


def test_success_is_seen_between_other_lines():
    log = (
        "[Vector addition of 50000 elements]\nCopy output data from the CUDA device to the host "
        "memory\nTest PASSED\nDone\n"
    )
    assert [finding.code for finding in successes(log)] == ["test_passed"]
    log = "I1121 main.go] Registered device plugin for 'nvidia.com/mig-1g.5gb' with Kubelet"
    assert successes(log)[0].details == {"resource": "nvidia.com/mig-1g.5gb"}
    assert successes("Test FAILED") == []


# -- an image with a newer CUDA ---------------------------------------------------------------

TOO_NEW = next(row.example for row in FAILURES if row.code == "unmet_requirement")


def test_s9_too_new_an_image_names_the_driver_that_would_do_and_the_newest_cuda():
    (finding,) = explain(HOOK.format(TOO_NEW), {"driver": {"loaded": "535.104.05"}})
    assert finding.details == {
        "condition": "cuda>=12.3", "cuda": "12.3", "driver_needed": "545.23.06",
        "newest_cuda": "12.2",
    }  # fmt: skip
    assert "CUDA 12.3" in finding.cause and "535.104.05" in finding.cause
    assert "driver 545.23.06 or newer" in finding.next_step
    assert "CUDA 12.2 or older" in finding.next_step
    # 535 runs all of CUDA 12 by minor-version compatibility.
    assert "NVIDIA_DISABLE_REQUIRE=true" in finding.next_step


def test_too_old_a_driver_is_not_told_to_turn_the_demand_off():
    (finding,) = explain(TOO_NEW, {"driver": {"loaded": "470.57.02"}})
    assert "NVIDIA_DISABLE_REQUIRE" not in finding.next_step
    assert "CUDA 11.4 or older" in finding.next_step


def test_without_a_driver_the_demand_is_still_told():
    (finding,) = explain(TOO_NEW)
    assert finding.details["driver_needed"] == "545.23.06"
    assert "driver is" not in finding.cause


@pytest.mark.parametrize(
    ("said", "condition", "cuda"),
    [
        ("unsatisfied condition: cuda >= 9.0\\\\\\\\n\\\\\\\"\\\"\": unknown.", "cuda>=9.0", "9.0"),
        ("unsatisfied condition: cuda>=11.0, please update your driver", "cuda>=11.0", "11.0"),
        ("unsatisfied condition: cuda>=12.6 (cuda=12.4)", "cuda>=12.6", "12.6"),
        ("--require=cuda>=10.0 brand=tesla,driver>=384,driver<385 --pid=1 x]\\\\n"
         "requirement error: unsatisfied condition: brand = tesla\\\\n", "brand=tesla", "10.0"),
        ("unsatisfied condition: brand = tesla\\\\n", "brand=tesla", None),
        ("unsatisfied condition: driver>=470", "driver>=470", None),
        ("unsatisfied condition: cuda>=99.1", "cuda>=99.1", "99.1"),
    ],
)  # fmt: skip
def test_conditions_as_they_were_said(said, condition, cuda):
    (finding,) = explain(said, {"driver": {"loaded": "550.54.15"}})
    assert finding.code == "unmet_requirement"
    assert finding.details["condition"] == condition
    assert finding.details.get("cuda") == cuda
    assert (cuda or condition) in finding.cause


# -- what belongs together --------------------------------------------------------------------


def test_s12_s13_the_device_plugins_log_is_one_finding():
    log = "\n".join(
        (
            "I1121 1 main.go:356] Retrieving plugins.",
            "E1121 1 factory.go:87] Detected non-NVML platform: could not load NVML library: "
            "libnvidia-ml.so.1: cannot open shared object file: No such file or directory",
            "E1121 1 factory.go:112] Incompatible strategy detected auto",
            "E1121 1 main.go:173] error starting plugins: error getting plugins: unable to create "
            "plugins: failed to construct resource managers: invalid device discovery strategy",
            "I1121 1 main.go:287] No devices found. Waiting indefinitely.",
        )
    )
    (finding,) = explain(log)
    assert finding.code == "could_not_reach_nvml"
    assert finding.evidence.startswith("E1121 1 factory.go:87] Detected non-NVML platform")
    assert "runtimeClassName: nvidia" in finding.next_step


def test_last_resorts_step_back():
    text = "nvidia-container-cli: initialization error: nvml error: driver not loaded"
    assert codes(text) == ["driver_not_loaded"]
    assert codes("nvidia-container-cli: some new words") == ["container_cli"]
    assert codes(f"nvidia-container-cli: some new words\n{TOO_NEW}") == ["unmet_requirement"]


def test_two_causes_are_two_findings_and_the_first_is_the_one():
    text = f"{TOO_NEW}\n0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
    assert codes(text) == ["unmet_requirement", "insufficient_gpu"]
    otherwise = Finding("other", "Nothing is known.")
    assert explain_one(text, otherwise).code == "unmet_requirement"
    assert explain_one("nothing", otherwise) is otherwise


def test_s14_the_resource_that_is_short_is_named():
    text = (
        "0/7 nodes are available: 3 Insufficient nvidia.com/mig-1g.5gb, 4 node(s) didn't match "
        "Pod's node affinity/selector. preemption: 0/7 nodes are available"
    )
    (finding,) = explain(text)
    assert finding.details == {"count": "3", "resource": "nvidia.com/mig-1g.5gb"}
    assert "nvidia.com/mig-1g.5gb" in finding.cause
    assert explain("1 Insufficient amd.com/gpu")[0].details["resource"] == "amd.com/gpu"


@pytest.mark.parametrize(
    "text",
    [
        'no runtime for "nvidia" is configured',
        'RuntimeHandler \\"nvidia\\" not supported',
        "docker: Error response from daemon: unknown or invalid runtime name: nvidia.",
    ],
)
def test_a_missing_handler_is_named_as_each_runtime_says_it(text):
    (finding,) = explain(text)
    assert finding.code == "handler_missing"
    assert "no handler nvidia" in finding.cause


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        # CRI-O, internal/oci/oci.go:115.
        ("failed to find runtime handler nvidia from runtime list map[crun:0xc0001 runc:0xc0002]",
         "handler_missing", "no handler nvidia"),
        ("failed to get device handle from UUID: Not Found", "cdi_uuid_unknown", "(Not Found)"),
        ("IMEX channel 0 not found at /dev/nvidia-caps-imex-channels/channel0: stat",
         "imex_channel_missing", "IMEX channel 0"),
        ("'nvidia.com/gpu' device marked unhealthy: GPU-1", "gpu_unhealthy", "GPU GPU-1"),
        ("Error waiting for event: Unknown; Marking all devices as unhealthy", "gpu_unhealthy",
         "unhealthy"),
        ("previously allocated devices are no longer healthy; cannot allocate unhealthy devices "
         "nvidia.com/gpu", "no_healthy_devices", "nvidia.com/gpu"),
        ("Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: "
         "1, capacity: 1", "taken_at_admission", "no nvidia.com/gpu left"),
        ("NVRM: GPU 0000:01:00.0: rm_init_adapter failed, device minor number 0",
         "gpu_init_failed", "0000:01:00.0"),
        ("NVRM: None of the NVIDIA devices were initialized.", "gpu_probe_failed", "module"),
        ("NVRM: Xid (0000:03:00): 48, pid=1, name=x", "gpu_memory_error", "GPU 0000:03:00"),
        ("NVRM: Xid (PCI:0000:03:00): 95, pid=1, name=x, Uncontained", "gpu_memory_error",
         "(Xid 95)"),
        ("NVRM: Xid (PCI:0000:03:00): 120, pid=1, name=x", "gsp_timeout", "(Xid 120)"),
        ("NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', GPU has fallen off the bus.",
         "gpu_lost", "bus"),
        ("Unable to determine the device handle for GPU0000:05:00.0: GPU is lost.  Reboot the "
         "system to recover this GPU", "gpu_lost", "bus"),
    ],
)  # fmt: skip
def test_other_words_for_the_same(text, code, words):
    finding = explain(text)[0]
    assert finding.code == code and words in finding.cause
    assert codes(f"[12345.678] {text}")[0] == code


@pytest.mark.parametrize(
    "text",
    [
        # A program's own faults, and a recovery that is over.
        "NVRM: Xid (PCI:0000:03:00): 31, pid=7, name=python, Ch 00000008",
        "NVRM: Xid (PCI:0000:03:00): 13, pid=7, name=python, Graphics Exception",
        "NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x4 (Drain and Reset) "
        "to 0x0 (None)",
        "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 22013, Non-fatal, Link 44 Minion Link DLREQ",
    ],
)
def test_what_calls_for_nothing_is_no_error(text):
    (finding,) = explain(text)
    assert finding.severity == "info" and "replace" not in finding.next_step


def test_an_xid_that_no_table_has_is_a_warning():
    (finding,) = explain("NVRM: Xid (PCI:0000:03:00): 480, pid=7")
    assert (finding.code, finding.severity) == ("xid", "warning")


def test_the_worst_xid_of_a_text_is_told():
    lines = [f"NVRM: Xid (PCI:0000:03:00): {number}, pid=7" for number in (31, 480, 13)]
    (finding,) = explain("\n".join(lines))
    assert "Xid 480" in finding.cause


@pytest.mark.parametrize(
    "number",
    [n for n, xid in XIDS.items() if xid.action in (RESET, REBOOT, MEMORY, NVLINK) and n < 162],
)
def test_what_to_do_after_an_xid_comes_from_the_table(number):
    """A GPU that has to be reset or rebooted has a finding, with the table's next step."""
    (finding,) = explain(f"XidCriticalError: Xid={number} on Device=GPU-1")
    # An NVLink has two ends: after 155, too, all GPUs of the board are reset.
    meant = XIDS[74] if finding.code == "nvlink_error" else XIDS[number]
    assert finding.next_step.startswith(meant.next_step)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("144, SAW Fatal XC1 i0 Link 02", ["nvlink_error"]),
        ("149, NETIR_LINK_EVT Fatal   XC0 i0 Link 08", ["nvlink_error"]),
        ("143, Fatal", ["gpu_needs_reset"]),
    ],
)
def test_an_error_of_nvlink_5_is_one_where_its_line_says_fatal(text, code):
    (finding,) = explain(f"NVRM: Xid (PCI:0000:9b:00): {text}")
    assert ([finding.code], finding.severity or "error") == (code, "error")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("150, MSE Non-fatal XC0 i0 Link 08", "nvlink_error"),
        ("145, RLW_RXPIPE Nonfatal XC0 i0 Link 13", "nvlink_error"),
        ("147, cut off", "xid"),
    ],
)
def test_another_error_of_nvlink_5_is_a_warning(text, code):
    (finding,) = explain(f"NVRM: Xid (PCI:0000:9b:00): {text}")
    assert (finding.code, finding.severity) == (code, "warning")


def test_an_event_of_a_link_that_is_called_fatal_may_be_none():
    """Subcodes 38 and 40 of NETIR_LINK_EVT are ignored; 37 is looked for at the peer."""
    lines = {
        37: "149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x00000000)",
        38: "149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x026001c6 0x00000000)",
        40: "149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x028001c6 0x00000000)",
    }
    shown = {
        subcode: (found[0].code, found[0].severity)
        for subcode, line in lines.items()
        for found in [explain(f"NVRM: Xid (PCI:0000:04:00): {line}")]
    }
    assert shown == {37: ("nvlink_error", "error"), 38: ("xid", "info"), 40: ("xid", "info")}


def test_an_xid_of_the_device_plugins_log_names_the_device():
    """internal/rm/health.go:169 of k8s-device-plugin v0.20.0."""
    log = "XidCriticalError: Xid=48 on Device=GPU-5ca1; marking device as unhealthy."
    assert codes(log) == ["gpu_unhealthy", "gpu_memory_error"]
    assert "GPU GPU-5ca1 had a memory error" in explain(log)[1].cause


def test_the_error_is_told_before_what_follows_from_it():
    """operations.md: a later Xid 154 says what to do, 63 and 64 belong to the one before."""
    log = (
        "NVRM: Xid (PCI:0000:3b:00): 48, pid='<unknown>', name=<unknown>, DBE\n"
        "NVRM: Xid (PCI:0000:3b:00): 63, pid='<unknown>', name=<unknown>, Row remapper\n"
        "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU "
        "Reset Required)\n"
    )
    assert codes(log) == ["gpu_memory_error", "row_remap_pending", "recovery_action"]
    assert "GPU Reset Required" in explain(log)[-1].cause
    # Why a GPU does not start is worth more than that it did not.
    log = (
        "NVRM: GPU0 RmInitAdapter: Cannot initialize GSP firmware RM\n"
        "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0x40:1860)\n"
        "NVRM: The NVIDIA probe routine failed for 1 device(s).\nNo devices were found\n"
    )
    assert codes(log) == ["gsp_firmware_failed"]


@pytest.mark.parametrize(
    ("text", "who"),
    [
        (
            "Detected non-NVML platform: could not load NVML library",
            "the device plugin up to v0.15",
        ),
        ("Incompatible platform detected", "the device plugin up to v0.15"),
        ("Incompatible strategy detected auto", None),
        ('RuntimeHandler "nvidia" not supported', "dockershim"),
        ("Unknown runtime specified nvidia", "Docker up to 20.10"),
        ('no runtime for "nvidia" is configured', None),
    ],
)
def test_words_of_older_releases_are_told_to_be_such(text, who):
    (finding,) = explain(text)
    assert ("These are words of" in finding.cause) == bool(who)
    assert (who or "") in finding.cause


# -- a GPU that the driver refuses: vGPU and a GPU that is too old, told apart by PCI id -------


def refused(device, version):
    return (
        f"[   12.3] NVRM: The NVIDIA GPU 0000:00:07.0 (PCI ID: 10de:{device})\n"
        "[   12.3] NVRM: installed in this system is not supported by the\n"
        f"[   12.3] NVRM: NVIDIA {version} driver release.\n"
        "[   12.3] NVRM: Please see 'Appendix A - Supported NVIDIA GPU Products'\n"
        "No devices were found\n"
    )


def test_s2_a_gpu_that_the_branch_serves_is_most_likely_a_virtual_one():
    (finding,) = explain(refused("2236", "535.129.03"))
    assert finding.code == "gpu_unsupported"
    assert "A10 (10de:2236, ampere)" in finding.cause and "GRID driver" in finding.cause
    assert finding.details["address"] == "0000:00:07.0"


def test_a_gpu_that_has_fallen_off_the_bus_is_not_one_that_the_driver_does_not_support():
    """osapi.c of the open kernel modules says both with the same beginning."""
    (finding,) = explain(
        "[  912.3] NVRM: The NVIDIA GPU 0000:3b:00.0\n"
        "[  912.3] NVRM: (PCI ID: 10de:2330) installed in this system has\n"
        "[  912.3] NVRM: fallen off the bus and is not responding to commands.\n"
    )
    assert finding.code == "gpu_lost"


@pytest.mark.parametrize(
    ("gpu", "place", "rest", "cause", "step", "code"),
    [
        ("vGPU", "system", "by open\nNVRM: nvidia.ko.\n", "a virtual GPU of this guest",
         "GRID driver", "vgpu_guest_without_grid_driver"),
        ("GPU", "vGPU host system", "by\nNVRM: open nvidia.ko.\n", "a host of virtual GPUs",
         "vGPU manager", "wrong_kernel_modules"),
        ("GPU", "system", "by open\nNVRM: nvidia.ko because it does not include the required GPU\n"
         "NVRM: System Processor (GSP).\n", "has no GSP", "nvidia_driver_kernel_module",
         "wrong_kernel_modules"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("stamp", ["", "[   12.3] "])
def test_what_the_open_modules_do_not_support(stamp, gpu, place, rest, cause, step, code):
    """The three texts of osapi.c, lines 3699 to 3740 of open-gpu-kernel-modules 595.45.04."""
    text = (
        f"NVRM: The NVIDIA {gpu} 0000:00:07.0 (PCI ID: 10de:1b38)\n"
        f"NVRM: installed in this {place} is not supported {rest}"
    )
    (finding,) = explain("\n".join(f"{stamp}{line}" for line in text.splitlines()))
    assert finding.code == code
    assert cause in finding.cause and "P40 (10de:1b38, pascal)" in finding.cause
    assert step in finding.next_step


def test_a_gpu_whose_last_branch_is_older():
    (finding,) = explain(refused("1db1", "595.58.03"))
    assert "580 is the last branch" in finding.cause
    assert "nvidia_driver_branch: 580" in finding.next_step


def test_a_gpu_whose_first_branch_is_newer():
    (finding,) = explain(refused("2901", "550.54.15"))
    assert "570 is the first branch" in finding.cause


def test_with_the_nodes_facts_the_diagnosis_of_the_driver_says_it():
    gpu = {
        "vendor": "nvidia", "address": "0000:00:07.0", "device_id": "2236", "product": "A10-8Q",
        "generation": "ampere",
        "vgpu": {"guest": True, "host_driver_version": "535.129.03", "host_driver_branch": "r535"},
    }  # fmt: skip
    (finding,) = explain(refused("2236", "535.129.03"), {"gpus": [gpu]})
    assert finding.code == "vgpu_guest_without_grid_driver"
    assert "535.129.03" in finding.evidence


def test_a_guest_whose_driver_the_host_refuses():
    """Recorded on Azure (skypilot-org/skypilot#10468): nothing is wrong with the card."""
    (finding,) = explain(
        "NVRM: Xid (PCI:0002:00:00): 78, pid='<unknown>', name=<unknown>, Guest driver is "
        "incompatible with host driver\n"
        "NVRM: GPU 0002:00:00.0: RmInitAdapter failed! (0x22:0x65:797)\n"
        "NVRM: GPU 0002:00:00.0: rm_init_adapter failed, device minor number 0\n"
        "No devices were found"
    )
    assert finding.code == "vgpu_driver_incompatible" and "0002:00:00" in finding.cause
    assert "GRID guest driver of the host's branch" in finding.next_step


def test_installers_words_are_told_by_what_stands_around_them():
    (finding,) = explain(
        "ERROR: Unable to load the kernel module 'nvidia.ko'.\n"
        "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service"
    )
    assert finding.code == "secure_boot"
    (finding,) = explain("ERROR: Unable to load the kernel module 'nvidia.ko'.")
    assert finding.code == "module_not_loaded"
    for word in ("vGPU", "Secure Boot", "kernel", "nouveau"):
        assert word in finding.cause


def test_a_very_long_log_is_read_from_its_end_and_in_time():
    text = "nothing of interest happens in this line of the log\n" * 40_000 + TOO_NEW
    assert codes(text) == ["unmet_requirement"]


def test_evidence_is_short_whatever_the_line():
    (finding,) = explain(f"{'a' * 9000} {TOO_NEW} {'b' * 9000}")
    assert len(finding.evidence) < 500
    assert "unsatisfied condition: cuda>=12.3" in finding.evidence


# What can stand in the log of anybody's pod. 20 kB of the first took more than 20 s: the steps grew
# with the square or the cube of the length. In linear time it is well below a second.
NOT_LOADED = "\nUnable to load the kernel module 'nvidia.ko'"
NOT_BUILT = f"\nBad return status for module build on kernel: 6.1{NOT_LOADED}"
HOSTILE = {
    "digits before Insufficient": "0" * 100_000,
    "a path to the runtime": "/a" * 50_000,
    "the runtime again and again": "nvidia-container-runtime" * 5_000,
    "dots after the runtime": "nvidia-container-runtime" + "." * 100_000,
    "exec and no path": "exec: " + "-" * 100_000,
    "exec and a path": "exec: " + "/" * 100_000 + "nvidia-container-cli",
    "many exec": "exec: ////////nvidia-container-cli////" * 3_000,
    "a socket": "dial " + "/" * 100_000,
    "a socket of containerd": "stat " + "/containerd" * 10_000,
    "a device driver": "could not select device driver " + '"' * 100_000,
    "API mismatch": "API mismatch: the client has the version 1.2, but\n" * 4_000 + NOT_LOADED,
    "a DKMS log": "/var/lib/dkms/a/b/" * 8_000 + NOT_BUILT,
    "compilers": "compiler differs from the one used to build the kernel\n" * 4_000 + NOT_BUILT,
    "no compiler": "Unable to find a suitable " * 8_000 + NOT_BUILT,
    "a vGPU": "The NVIDIA vGPU " * 8_000,
    "a quota": "exceeded quota: a, requested: " + ", used: " * 20_000,
    "images": "image " + "-" * 100_000,
    "unsatisfied": "unsatisfied condition: " + "cuda " * 20_000,
    "a resource": "Insufficient " + "a." * 60_000,
    "an Xid": "Xid (PCI:" + "0" * 100_000,
}


_BRIEF = {
    *("digits before Insufficient", "a path to the runtime", "a socket"),
    *("API mismatch", "a DKMS log"),
}


@pytest.mark.full(*sorted(set(HOSTILE) - _BRIEF), why="other patterns")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_log_is_read_in_time(name):
    """L4: a pod of anybody's may say it, and the run waits for the answer."""
    start = time.process_time()
    explain(HOSTILE[name], {"driver": {"loaded": "580.95.05"}})
    assert time.process_time() - start < 10


def test_what_stands_around_a_word_has_a_bound():
    """Quotes and backslashes are \\W, and so are the marks of a path that follows them."""
    loose = re.compile(r"\\W[*+]")
    assert [row.code for row in FAILURES if loose.search(row.pattern)] == []


@pytest.mark.parametrize(("setting", "code"), [
    (True, "container_no_cgroups"), (False, "container_devices_denied"),
])  # fmt: skip
def test_a_container_that_has_just_started_lost_nothing(setting, code):
    config = {"nvidia-container-cli.no-cgroups": setting}
    facts = {"container_toolkit": {"config": config}}

    found = explain("Failed to initialize NVML: Unknown Error", facts, seen={"just_started": True})

    assert [one.code for one in found] == [code]


@pytest.mark.parametrize(
    ("taint", "said"),
    [
        ("untolerated taint {nvidia.com/gpu: }", True),
        ("untolerated taint {amd.com/gpu: true}", True),
        ("taint {nvidia.com/gpu: present}, that the pod didn't tolerate", True),
        ("untolerated taint {node-role.kubernetes.io/control-plane: }", False),
        ("untolerated taint {node.kubernetes.io/not-ready: }", False),
    ],
)
def test_only_a_taint_of_nodes_with_gpus_is_said(taint, said):
    found = codes(f"0/2 nodes are available: 1 node(s) had {taint}, 1 node(s) were cordoned.")
    assert ("taint_not_tolerated" in found) is said


def test_facts_decide_what_an_nvidia_smi_without_an_answer_means():
    text = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    loaded = {"driver": {"loaded": "595.58.03", "installed": "595.58.03"}}
    for facts, code in (
        (None, "driver_not_loaded"),
        ({"driver": {"loaded": None, "installed": "595.58.03"}}, "driver_not_loaded"),
        (loaded, "container_without_devices"),
    ):
        (one,) = explain(text, facts)
        assert one.code == code, facts
    assert one.confidence == "possible" and one.fix == ""
