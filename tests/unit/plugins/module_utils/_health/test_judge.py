# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._health.judge import judge
from ansible_collections.kubegpu.nodes.plugins.module_utils._health.kernel_log import KernelLog
from ansible_collections.kubegpu.nodes.plugins.module_utils._health.types import (
    Narrow,
    Node,
    PciGpu,
    Request,
    Smi,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.bounded import Hang
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.documents import (
    nvidia_smi as smi_output,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.rules import (
    nvidia_smi as data,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.rules.tables import (
    FAILURES,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.xids import xid_table
from tests.unit.fixtures.health_node import (
    A100,
    A100_MIG,
    OTHER,
    P4,
    T4,
    journal,
    recovery,
    smi_document,
    smi_gpu,
    xid,
)

GPU = PciGpu(A100, "nvidia", "A100", "nvidia")
FALLEN = "GPU has fallen off the bus."


def events(*lines, boot=0):
    log = KernelLog(boot)
    log.feed(journal(*lines).encode())
    log.close()
    return log.events()


def smi(*gpus, rc=0, text=""):
    version, found = smi_output.read_document(smi_document(*gpus))
    return Smi("answered", rc, version, found, text)


def node(*lines, gpus=(GPU,), answer=None, past=(), more=()):
    return Node(
        tuple(gpus),
        answer or smi(*(smi_gpu(gpu.address) for gpu in gpus if gpu.vendor == "nvidia")),
        (*events(*lines), *events(*past, boot=-1), *more),
    )


@pytest.mark.parametrize(
    ("vendor", "module", "driver", "bound", "expected"),
    [
        ("amd", "amdgpu", None, None, True),
        ("intel", "xe", None, None, True),
        ("nvidia", "nvidia", None, None, True),
        ("nvidia", "nvidia", None, "nouveau", True),
        ("amd", "amdgpu", None, "vfio-pci", False),
        ("amd", "amdgpu", None, "amdgpu", False),
    ],
)
def test_a_driver_that_is_not_loaded_and_blocked(vendor, module, driver, bound, expected):
    setting = {"place": "/etc/modprobe.d/a.conf", "setting": f"blacklist {module}"}
    seen = Node(
        (PciGpu(A100, vendor, "card", bound),), Smi("not_asked", None, driver),
        blocked={module: [setting]},
    )  # fmt: skip
    found = judge(seen, Request())
    assert [one.code for one in found] == (["module_blocked"] if expected else [])
    assert all(f"/etc/modprobe.d/a.conf: blacklist {module}" in one.evidence for one in found)


def test_a_card_for_the_screen_whose_driver_is_blocked_is_no_fault_of_a_node_with_nvidia_gpus():
    setting = {"place": "kernel command line", "setting": "nomodeset"}
    screen = PciGpu(OTHER, "amd", "Radeon Pro WX", None)
    seen = replace(node(gpus=(GPU, screen)), blocked={"amdgpu": [setting]})
    assert judge(seen, Request()) == []


def found(one, **options):
    """Return severity and code of each finding, by address."""
    return [
        (finding.severity, finding.code, finding.subject.gpu, finding.seen.xids)
        for finding in judge(one, Request(**options))
    ]


def only(one, **options):
    (finding,) = judge(one, Request(**options))
    return finding


def test_a_fine_node_has_no_finding():
    assert found(node()) == []
    for recorded in (T4, A100_MIG, P4):
        assert found(node(answer=smi(smi_gpu(values=recorded)))) == []


# What nvidia-smi says instead, and the finding.
VALUES = [
    ({"remapped_row_pending": "Yes"}, "warning", "row_remap_pending"),
    ({"remapped_row_failure": "Yes"}, "error", "row_remap_failed"),
    ({"histogram_none": "1 bank(s)"}, "warning", "row_remap_exhausted"),
    ({"remapped_row_unc": "513"}, "error", "row_remap_many"),
    ({"volatile/dram_uncorrectable": "1"}, "error", "gpu_memory_error"),
    ({"volatile/sram_uncorrectable_secded": "2"}, "error", "gpu_memory_error"),
    ({"aggregate/dram_correctable": "20000001"}, "warning", "gpu_memory_wear"),
    ({"aggregate/sram_correctable": "10001"}, "warning", "gpu_sram_wear"),
    ({"sram_threshold_exceeded": "Yes"}, "error", "sram_threshold"),
    ({"channel_repair_pending": "Yes"}, "warning", "channel_repair_pending"),
    ({"tpc_repair_pending": "Yes"}, "warning", "tpc_repair_pending"),
    ({"unrepairable_memory": "Yes"}, "error", "memory_unrepairable"),
    ({"double_bit_retirement/retired_count": "10"}, "warning", "retired_pages_many"),
    ({"pending_retirement": "Yes"}, "warning", "page_retirement_pending"),
    ({"gpu_recovery_action": "Reset"}, "error", "recovery_action"),
    ({"gpu_recovery_action": "Drain P2P"}, "warning", "recovery_action"),
    ({"gpu_recovery_action": "Something new"}, "error", "recovery_action"),
    ({"reset_required": "Yes"}, "error", "recovery_action"),
    ({"pending_ecc": "Disabled"}, "warning", "ecc_pending"),
    ({"pending_mig": "Enabled"}, "warning", "mig_pending"),
    ({"hw_slowdown": "Active"}, "warning", "hw_slowdown"),
    ({"temperature/gpu_temp_tlimit": "-2 C"}, "warning", "gpu_hot"),
    ({"fabric/state": "In Progress"}, "error", "fabric_not_ready"),
    ({"fabric/state": "Completed", "fabric/status": "Failure"}, "error", "fabric_not_ready"),
    ({"fabric/health/summary": "Unhealthy"}, "warning", "fabric_degraded"),
    ({"fan_speed": "[GPU requires reset]"}, "error", "recovery_action"),
    ({"fan_speed": "GPU is lost"}, "error", "gpu_lost"),
    ({"fan_speed": "ERR!"}, "warning", "gpu_values_unreadable"),
    ({"fan_speed": "Unknown Error"}, "info", "gpu_values_unreadable"),
]


@pytest.mark.parametrize(("changed", "severity", "code"), VALUES)
def test_each_value(changed, severity, code):
    finding = only(node(answer=smi(smi_gpu(**changed))))
    assert (finding.severity, finding.code, finding.subject.gpu) == (severity, code, A100)
    assert finding.cause and finding.evidence and finding.next_step
    assert "{" not in finding.cause


@pytest.mark.parametrize(
    "fine",
    [
        {"remapped_row_unc": "512"},
        {"fabric/state": "Completed", "fabric/status": "Success"},
        {"fabric/health/summary": "Healthy"},
        {"temperature/gpu_temp_tlimit": "-1 C"},
    ],
)
def test_the_last_value_that_is_fine(fine):
    assert found(node(answer=smi(smi_gpu(**fine)))) == []


def test_each_flag_and_threshold_is_judged():
    codes = {code for _changed, _severity, code in VALUES}
    pci = {"pcie_errors", "pcie_errors_nonfatal", "pcie_errors_corrected"}
    assert {row.code for row in (*data.FLAGS, *data.THRESHOLDS)} <= codes | pci


def test_thresholds_of_the_user():
    one = node(answer=smi(smi_gpu(remapped_row_unc="20", **{"volatile/dram_uncorrectable": "1"})))
    limits = {"remapped_rows": 10, "ecc_uncorrected": None}
    assert found(one, thresholds=limits) == [("error", "row_remap_many", A100, ())]
    assert "more than 10" in only(one, thresholds=limits).cause


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"aer": {"fatal": 1}}, "pcie_errors"),
        ({"aer": {"nonfatal": 1}}, "pcie_errors_nonfatal"),
        ({"ras": {"uncorrected": 1}}, "gpu_memory_error"),
        ({"temperature": {"margin": 0}}, "gpu_hot"),
    ],
)
@pytest.mark.parametrize("vendor", ["amd", "intel"])
def test_values_of_sysfs_of_any_vendor(values, code, vendor):
    card = PciGpu(OTHER, vendor, None, "x", values=values)
    finding = only(Node((card,), Smi("not_asked")))
    assert (finding.code, finding.subject.gpu) == (code, OTHER)


def test_corrected_errors_on_the_bus_are_judged_only_if_asked_for():
    card = PciGpu(OTHER, "amd", None, "x", values={"aer": {"correctable": 900}})
    one = Node((card,), Smi("not_asked"))
    assert found(one) == []
    assert found(one, thresholds={"pcie_correctable": 100})[0][1] == "pcie_errors_corrected"


def test_a_narrow_link_and_a_card_off_the_bus():
    narrow = PciGpu(A100, "nvidia", None, "nvidia", narrow=(Narrow(A100, 8, 16),))
    assert found(node(gpus=[narrow])) == [("warning", "pcie_width", A100, ())]
    lost = PciGpu(A100, "nvidia", None, "nvidia", lost=True)
    assert found(node(gpus=[lost])) == [("error", "gpu_lost", A100, ())]


def test_a_card_that_the_driver_does_not_count():
    other = PciGpu(OTHER, "nvidia", None, "nvidia")
    one = node(gpus=[GPU, other], answer=smi(smi_gpu()))
    assert found(one) == [("error", "gpu_missing_in_nvml", OTHER, ())]
    passed = PciGpu(OTHER, "nvidia", None, "vfio-pci")
    assert found(node(gpus=[GPU, passed], answer=smi(smi_gpu()))) == []


HANG = Hang("nvidia-smi", 42, 60.0, "D", "os_acquire_rwlock", True)


def test_a_driver_that_hangs():
    finding = only(node(answer=Smi("hung", driver="590.44.01", hang=HANG)))
    assert (finding.severity, finding.code) == ("error", "driver_hangs")
    assert finding.evidence == (
        "nvidia-smi (pid 42): no answer in 60 s, state D, waits in os_acquire_rwlock, is still "
        "there after SIGKILL"
    )
    with_xids = node((1, xid(119)), answer=Smi("hung", driver="590.44.01", hang=HANG))
    first, second = judge(with_xids, Request())
    assert "Xids since boot: 119" in first.evidence
    assert second.code == "gsp_timeout"


@pytest.mark.parametrize(
    ("answer", "code", "severity"),
    [
        (Smi("not_asked"), "driver_not_loaded", "error"),
        (Smi("missing", driver="590"), "nvidia_smi_missing", "error"),
        (Smi("failed", 6, "590", text="No devices were found"), "no_devices", "error"),
        (Smi("failed", 15, "590"), "gpu_lost", "error"),
        (Smi("failed", 8, "590"), "power_cable", "error"),
        (Smi("failed", 16, "590"), "recovery_action", "error"),
        (Smi("failed", 17, "590"), "gpu_access_blocked", "error"),
        (
            Smi("failed", 18, "590", text="NVML: Driver/library version mismatch"),
            "driver_library_mismatch",
            "error",
        ),
        (Smi("failed", -11, "590", error="no document"), "driver_not_answering", "error"),
        (smi(smi_gpu(), rc=14), "inforom_corrupt", "error"),
        (
            smi(smi_gpu(), rc=14, text="WARNING: infoROM is corrupted at gpu 0000:3B:00.0"),
            "inforom_corrupt",
            "error",
        ),
    ],
)  # fmt: skip
def test_what_nvidia_smi_as_a_whole_shows(answer, code, severity):
    finding = only(node(answer=answer))
    assert (finding.code, finding.severity) == (code, severity)
    assert finding.next_step


# ---- Xids


@pytest.mark.parametrize(
    ("number", "severity", "code"),
    [
        (31, "info", "xid"),
        (13, "info", "xid"),
        (43, "info", "xid"),
        (48, "error", "gpu_memory_error"),
        (62, "error", "gpu_needs_reset"),
        (63, "info", "row_remap_pending"),
        (64, "error", "row_remap_failed"),
        (74, "error", "nvlink_error"),
        (94, "info", "gpu_memory_contained"),
        (95, "error", "gpu_memory_error"),
        (109, "error", "gpu_needs_reset"),
        (119, "error", "gsp_timeout"),
        (54, "error", "power_cable"),
        (155, "error", "nvlink_error"),
        (65, "warning", "xid"),
    ],
)
def test_the_table_of_xids_decides(number, severity, code):
    finding = only(node((1, xid(number))))
    assert (finding.severity, finding.code) == (severity, code)
    assert (finding.subject.gpu, finding.seen.xids, finding.seen.count) == (A100, (number,), 1)
    assert finding.next_step and xid(number) in finding.evidence


def test_the_vocabulary_is_that_of_the_known_errors():
    known = {row.code for row in FAILURES}
    used = {"gpu_lost", "gpu_memory_error", "row_remap_failed", "row_remap_pending"}
    used |= {"recovery_action", "driver_hangs", "inforom_corrupt", "driver_library_mismatch"}
    assert used <= known


def test_an_entry_of_the_user_counts():
    table = xid_table({63: "error", 31: {"severity": "warning", "action": "reset"}})
    one = node((1, xid(63)), (500, xid(31)))
    first, second = judge(one, Request(xids=table))
    assert (first.severity, first.code) == ("error", "row_remap_pending")
    assert second.severity == "warning" and "reset the GPU" in second.next_step


def test_a_fault_of_a_program_from_several_programs_points_to_the_gpu():
    one = node((1, xid(31, name="python")), (900, xid(31, name="train")))
    finding = only(one)
    assert finding.severity == "warning" and "python, train" in finding.cause
    assert "dcgmi diag" in finding.next_step
    assert only(node((1, xid(31, name="a")), (2, xid(31, name="a")))).severity == "info"


def test_what_follows_another_xid_belongs_to_it():
    assert found(node((10, xid(48)), (11, xid(45)), (12, xid(63)))) == [
        ("error", "gpu_memory_error", A100, (48,))
    ]
    # A fault of its own is told; so is what came much later, or on another GPU.
    assert {row[3] for row in found(node((10, xid(48)), (11, xid(64))))} == {(48,), (64,)}
    assert {row[3] for row in found(node((10, xid(48)), (500, xid(63))))} == {(48,), (63,)}
    other = PciGpu(OTHER, "nvidia", None, "nvidia")
    two = node((10, xid(48)), (11, xid(63, gpu=OTHER)), gpus=[GPU, other])
    assert {row[2] for row in found(two)} == {A100, OTHER}


def test_what_the_driver_says_later_overrides_the_next_step():
    finding = only(node((10, xid(119)), (11, recovery("Node Reboot Required"))))
    assert finding.seen.xids == (119, 154) and "node reboot required" in finding.next_step
    assert "Node Reboot Required" in finding.evidence
    earlier = judge(node((10, recovery("GPU Reset Required")), (5000, xid(119))), Request())
    assert {one.seen.xids for one in earlier} == {(154,), (119,)}


def test_the_driver_raises_what_is_no_error_by_itself():
    finding = only(node((10, xid(31)), (11, recovery("GPU Reset Required"))))
    assert (finding.severity, finding.seen.xids) == ("error", (31, 154))
    two = judge(node((10, xid(31)), (10, xid(95)), (11, recovery("GPU Reset Required"))), Request())
    assert [(one.severity, one.seen.xids) for one in two] == [("error", (95, 154)), ("info", (31,))]


def test_the_driver_alone():
    assert found(node((10, recovery("GPU Reset Required")))) == [
        ("error", "recovery_action", A100, (154,))
    ]
    assert found(node((10, recovery("Drain P2P")))) == [
        ("warning", "recovery_action", A100, (154,))
    ]


def test_what_was_before_a_reset_is_history():
    one = node((10, xid(95)), (20, recovery("None")))
    assert found(one) == [("info", "xid_history", A100, (95,))]
    assert found(node((10, xid(95)), (20, recovery("None")), (30, xid(95)))) == [
        ("error", "gpu_memory_error", A100, (95,))
    ]


def test_what_was_before_a_reset_stays_history_when_the_gpu_fails_again():
    again = (10, xid(95)), (20, recovery("None")), (40, xid(119))
    wanted = recovery("GPU Reset Required")
    assert found(node(*again, (41, wanted))) == [
        ("error", "gsp_timeout", A100, (119, 154)),
        ("info", "xid_history", A100, (95,)),
    ]


def test_earlier_boots_are_history_and_repetition_is_told():
    assert found(node(past=[(-50, xid(79, FALLEN))])) == [("info", "xid_history", A100, (79,))]
    assert found(node(past=[(-50, xid(31))])) == []
    twice = node(past=[(-50, xid(79, FALLEN))], more=events((-90, xid(79, FALLEN)), boot=-2))
    assert found(twice) == [("warning", "xid_again", A100, (79,))]
    assert "in 2 boots" in only(twice).cause
    now = node((1, xid(79, FALLEN)), past=[(-50, xid(79, FALLEN))])
    assert [row[:2] for row in found(now)] == [("error", "gpu_lost"), ("warning", "xid_again")]


def test_state_and_event_of_one_code_are_one_finding():
    one = node((10, xid(63)), answer=smi(smi_gpu(remapped_row_pending="Yes")))
    finding = only(one)
    assert (finding.severity, finding.seen.xids, finding.seen.count) == ("warning", (63,), 1)
    assert "remapped_rows.pending is yes" in finding.evidence
    assert xid(63) in finding.evidence


@pytest.mark.parametrize(
    ("line", "severity", "code"),
    [
        ("20034, Fatal, Link 30 LTSSM Fault Up", "error", "nvswitch_error"),
        ("12028, Non-fatal, Link 32 egress non-posted PRIV error", "error", "nvswitch_error"),
        ("22013, Non-fatal, Link 44 Minion Link DLREQ interrupt", "info", "nvswitch_event"),
        ("10004, Non-fatal, Host_thermal_event", "warning", "nvswitch_event"),
    ],
)
def test_switches(line, severity, code):
    one = node((1, f"nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): {line}"))
    assert found(one) == [(severity, code, "0000:c1:00.0", ())]


INIT = f"NVRM: GPU {A100}: RmInitAdapter failed! (0x26:0xffff:1482)"
PROBE = "NVRM: The NVIDIA probe routine was not called for 1 device(s)."


@pytest.mark.parametrize(("line", "code"), [(INIT, "gpu_init_failed"), (PROBE, "gpu_probe_failed")])
def test_messages_of_the_driver_are_over_if_the_gpu_answers(line, code):
    assert [row[:2] for row in found(node((1, line)))] == [("info", code)]
    silent = node((1, line), answer=Smi("failed", 6, "590", text="No devices were found"))
    assert ("error", code) in [row[:2] for row in found(silent)]


def guest(status, mode="VGPU"):
    more = {
        "gpu_virtualization_mode/virtualization_mode": mode,
        "vgpu_software_licensed_product/licensed_product_name": "NVIDIA RTX Virtual Workstation",
        "vgpu_software_licensed_product/license_status": status,
    }
    return node(answer=smi(smi_gpu(values={**P4, **more})))


@pytest.mark.parametrize(
    ("status", "finding"),
    [
        ("Unlicensed (Restricted)", [("error", "vgpu_unlicensed", A100, ())]),
        ("Unlicensed", [("error", "vgpu_unlicensed", A100, ())]),
        ("Unlicensed (Unrestricted)", [("warning", "vgpu_unlicensed", A100, ())]),
        ("Licensed (Expiry: 2026-7-7 16:1:44 GMT)", []),
        ("Licensed (Expiry: Permanent)", []),
        ("N/A", []),
        ("Unknown", []),
    ],
)
def test_the_licence_of_a_guest(status, finding):
    assert found(guest(status)) == finding
    # A whole GPU needs none, whatever is printed for it.
    assert found(guest(status, mode="None")) == []
    assert found(guest(status, mode="Pass-Through")) == []


def test_a_licence_that_ended_and_was_not_renewed():
    one = guest("Licensed (Expiry: 2026-7-7 16:1:44 GMT)")
    assert found(replace(one, now=1_783_440_000)) == []
    late = replace(one, now=1_783_500_000)
    assert found(late) == [("warning", "vgpu_licence_expired", A100, ())]


def test_values_of_a_licence_are_always_there():
    none = dict.fromkeys(("product", "status", "state", "expiry"))
    assert smi(smi_gpu()).gpus[0].values["licence"] == none
    assert guest("Unlicensed").smi.gpus[0].values["licence"] == {
        "product": "NVIDIA RTX Virtual Workstation",
        "status": "Unlicensed",
        "state": "unlicensed",
        "expiry": None,
    }


REFUSED = "pid='<unknown>', name=<unknown>, Guest driver is incompatible with host driver"


def test_a_guest_whose_driver_the_host_refuses():
    """The GPU does not start because of it: nothing is wrong with its power or its seat."""
    lines = (
        (1, f"NVRM: Xid (PCI:{A100[:-2]}): 78, {REFUSED}"),
        (2, INIT),
        (3, f"NVRM: GPU {A100}: rm_init_adapter failed, device minor number 0"),
    )
    one = node(*lines, answer=Smi("failed", 6, "535", text="No devices were found"))
    rows = {row[1]: row for row in found(one)}
    assert set(rows) == {"vgpu_driver_incompatible", "no_devices"}
    assert rows["vgpu_driver_incompatible"] == ("error", "vgpu_driver_incompatible", A100, (78,))
    step = next(
        row.next_step for row in judge(one, Request()) if row.code == "vgpu_driver_incompatible"
    )
    assert "GRID guest driver of the host's branch" in step and "seat" not in step
    # Another GPU that does not start has another cause.
    other = node(
        *lines, (4, INIT.replace(A100, OTHER)), answer=Smi("failed", 6, "535", text="No devices")
    )
    assert ("gpu_init_failed", OTHER) in [row[1:3] for row in found(other)]


def test_another_text_of_xid_78():
    finding = only(node((1, f"NVRM: Xid (PCI:{A100[:-2]}): 78, pid=1, vGPU start failed")))
    assert finding.code == "xid"
    assert "compare its driver with the host's" in finding.next_step


@pytest.mark.parametrize("text", ["GPU requires reset", "GPU is lost", "ERR!", "[GPU is lost]"])
def test_a_text_that_shows_a_fault_is_no_value(text):
    names = ("current_ecc", "pending_ecc", "current_mig", "fabric/state", "fabric/status")
    fault = only(node(answer=smi(smi_gpu(**dict.fromkeys(names[:-1], text)))))
    assert fault.code in ("recovery_action", "gpu_lost", "gpu_values_unreadable")
    values = smi(smi_gpu(**dict.fromkeys(names, text), gpu_recovery_action=text)).gpus[0].values
    assert values["ecc"]["mode"] is values["mig"]["mode"] is values["fabric"]["state"] is None
    assert values["recovery"]["action"] is None


@pytest.mark.parametrize(
    ("name", "bad", "words"),
    [
        ("route_unhealthy", True, "route_unhealthy is yes"),
        ("access_timeout_recovery", True, "access_timeout_recovery is yes"),
        ("route_recovery_in_progress", True, "route_recovery is yes"),
        ("route_unhealthy", False, ""),
        ("access_timeout_recovery", False, ""),
    ],
)
@pytest.mark.parametrize("named", [("Yes", "No"), ("True", "False")])
def test_flags_of_the_fabric_without_a_summary(name, bad, words, named):
    values = {**T4, "fabric/state": "Completed", "fabric/status": "Success"}
    text = named[0] if bad else named[1]
    one = node(answer=smi(smi_gpu(values={**values, f"fabric/health/{name}": text})))
    assert [row[:2] for row in found(one)] == ([("warning", "fabric_degraded")] if bad else [])
    assert words in "".join(row.evidence for row in judge(one, Request()))


def test_libraries_of_another_version():
    lines = [
        (1, "NVRM: API mismatch: the client 'train' (pid 7)"),
        (1, "NVRM: has the version 580.95.05, but"),
        (1, "NVRM: this kernel module has the version 580.82.07."),
    ]
    finding = only(node(*lines))
    assert (finding.severity, finding.code) == ("info", "driver_library_mismatch")
    assert "train" in finding.cause and "580.95.05" in finding.cause


def test_messages_of_other_drivers_and_hung_tasks():
    amd = PciGpu(OTHER, "amd", None, "amdgpu")
    line = f"amdgpu {OTHER}: amdgpu: GPU reset begin!"
    one = Node((amd,), Smi("not_asked"), events((1, line), (2, line.replace("af:", "b0:"))))
    assert found(one) == [("warning", "kernel_driver_errors", OTHER, ())]
    firmware = f"amdgpu {OTHER}: Direct firmware load for amdgpu/gc.bin failed with error -2"
    lines = events((1, line), (2, firmware), (3, line))
    assert found(Node((amd,), Smi("not_asked"), lines)) == [
        ("warning", "drm_firmware_missing", OTHER, ()),
    ]
    hung = node((1, "INFO: task nvidia-smi:7 blocked for more than 120 seconds."))
    assert found(hung) == [("warning", "driver_hangs", "", ())]


REPORTS = Path(__file__).parents[4] / "reports" / "inputs" / "health"


@pytest.mark.parametrize(
    ("name", "driver", "serves", "severity", "code"),
    [
        ("rocm1886-mi50.log", "amdgpu", True, "error", "amd_ras_uncorrected"),
        ("therock8232-lost.log", "amdgpu", True, "error", "gpu_lost"),
        ("bazzite4464-ring.log", "amdgpu", True, "error", "drm_ring_reset_failed"),
        ("rocm2747-mi210.log", "amdgpu", False, "error", "drm_probe_failed"),
        ("backports199-pvc.log", "i915", False, "error", "drm_firmware_missing"),
        ("cachyos892-xe-wedged.log", "xe", True, "error", "drm_wedged"),
        ("backports172-flex140.log", "i915", True, "error", "drm_reset_failed"),
    ],
)
def test_what_people_had_with_other_drivers(name, driver, serves, severity, code):
    """Each was no finding or a warning with a generic text: the severity is that of the rule."""
    text = (REPORTS / name).read_text(encoding="utf-8")
    address = re.search(rf"{driver} (\S+): ", text)[1]
    vendor = "amd" if driver == "amdgpu" else "intel"
    gpu = PciGpu(address, vendor, None, driver if serves else None)
    log = KernelLog(0, 1.0)
    log.feed(text.encode())
    log.close()
    judged = judge(Node((gpu,), Smi("not_asked"), log.events()), Request())

    told = [(one.severity, one.code) for one in judged]
    assert (severity, code) in told
    assert not {"kernel_driver_errors", "drm_ring_timeout"} & {one for _severity, one in told}


def test_an_xid_of_several_jobs_on_one_part_of_a_gpu_points_to_the_gpu():
    """All jobs are python3: the name alone did not tell them apart."""
    text = (REPORTS.parent / "xids" / "nvs270-13-repeat.txt").read_text(encoding="utf-8")
    lines = [(number, line.partition("] ")[2]) for number, line in enumerate(text.splitlines(), 1)]
    finding = only(node(*lines))
    assert (finding.severity, finding.seen.xids) == ("warning", (13,))
    assert "processes or more had it, all of them in GPC 3, TPC 1" in finding.cause
    assert "dcgmi diag" in finding.next_step

    one_job = [(number, re.sub(r"pid=\d+", "pid=7", line)) for number, line in lines]
    assert only(node(*one_job)).severity == "info"


def test_an_xid_that_names_its_cause_belongs_to_it_however_late():
    cause = "NVRM: Xid (PCI:0000:3b:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 03"
    late = "NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=python3, Ch 1, caused by previous Xid 149"
    other = late.replace("149", "94")
    assert [one[3] for one in found(node((1, cause), (900, late)))] == [(149,)]
    assert [one[3] for one in found(node((1, cause), (900, other)))] == [(149,), (45,)]


def test_lines_of_one_message_are_judged_together():
    """Each line for itself says nothing of a GPU that the driver does not support."""
    first = "NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:2331)"
    rest = (
        "               NVRM: installed in this system is not supported by the\n"
        "               NVRM: NVIDIA 550.90.07 driver release.\n"
    )
    log = KernelLog(0, 1.0)
    log.feed(f"[    5.1] {first}\n{rest}".encode())
    log.close()
    (event,) = log.events()
    assert event.variant == "gpu_unsupported" and "550.90.07" in event.sample
