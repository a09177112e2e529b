# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When each alert fires, and when it does not: made samples, as the exporters have them."""

from __future__ import annotations

from dataclasses import dataclass

# As the exporter and the scrape label it.
DCGM_GPU = {
    "hostname": "gpu1", "UUID": "GPU-1", "gpu": "0", "pci_bus_id": "00000000:01:00.0",
    "modelName": "L4", "job": "kubegpu-dcgm", "instance": "10.0.0.7:9400",
}  # fmt: skip
# What an alert that is about the GPU keeps.
OF_GPU = {name: DCGM_GPU[name] for name in ("hostname", "UUID", "gpu", "pci_bus_id", "modelName")}
TEXTFILE_GPU = {
    "instance": "gpu2:9100", "gpu": "0", "uuid": "GPU-2", "pci_bus_id": "0000:01:00.0"
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """Samples of each minute, when the alert is looked at, and what it then says; None: nothing."""

    alert: str
    samples: tuple[tuple[str, dict[str, str], str], ...]
    at: str
    labels: dict[str, str] | None
    summary: str = ""
    action: str = ""


def gpu(**more: str) -> dict[str, str]:
    return {**DCGM_GPU, **more}


def card(**more: str) -> dict[str, str]:
    return {**TEXTFILE_GPU, **more}


OTHER = gpu(UUID="GPU-9", gpu="1")
TARGET = {"job": "kubegpu-dcgm", "instance": "10.0.0.7:9400"}
ON_HOST = {"instance": TARGET["instance"]}
USED, LATER = {"pod": "train-0", "namespace": "a"}, {"pod": "train-1", "namespace": "a"}
# Of an Xid in the kernel's log.
LOGGED = {"instance": "gpu2:9100", "pci_bus_id": "0000:01:00.0"}
FILE = {"file": "/var/lib/prometheus/node-exporter/kubegpu.prom", "instance": "gpu2:9100"}
NODE = {"instance": "gpu2:9100"}
OF_1, OF_2, OF_LOGGED = "GPU 0 of gpu1", "GPU 0 of gpu2:9100", "GPU 0000:01:00.0 of gpu2:9100"
ERROR_WORDS = "an error of the GPU or its links."

CASES = {
    "an exporter that is down": Case(
        "KubegpuExporterDown", (("up", TARGET, "0x9"),), "6m", TARGET,
        "The metrics of the GPUs of 10.0.0.7:9400 are missing.",
    ),
    "an exporter that was down for a moment": Case(
        "KubegpuExporterDown", (("up", TARGET, "1 0 0 1x9"),), "6m", None
    ),
    "an exporter of somebody else": Case(
        "KubegpuExporterDown", (("up", {**TARGET, "job": "other"}, "0x9"),), "6m", None
    ),
    "a text file that nobody writes any more": Case(
        "KubegpuExporterDown", (("node_textfile_mtime_seconds", FILE, "0x20"),), "11m", FILE,
        "The metrics of the GPUs of gpu2:9100 are missing.",
    ),
    "a text file of somebody else": Case(
        "KubegpuExporterDown",
        (("node_textfile_mtime_seconds", {**FILE, "file": "/x/smart.prom"}, "0x20"),), "11m", None,
    ),
    "nvidia-smi does not answer": Case(
        "KubegpuExporterDown",
        (("kubegpu_textfile_source_up", {**NODE, "source": "nvidia-smi"}, "0x9"),), "6m",
        {**NODE, "source": "nvidia-smi"}, "The metrics of the GPUs of gpu2:9100 are missing.",
    ),
    "one GPU of two has gone": Case(
        "KubegpuGpuLost",
        (("DCGM_FI_DEV_GPU_TEMP", gpu(), "40x60"),
         ("DCGM_FI_DEV_GPU_TEMP", OTHER, "40x10 stale")),
        "17m", {"hostname": "gpu1"}, "gpu1 has lost 1 of its GPUs.",
    ),
    "one GPU has gone on one of two nodes": Case(
        "KubegpuGpuLost",
        (("DCGM_FI_DEV_GPU_TEMP", gpu(), "40x60"),
         ("DCGM_FI_DEV_GPU_TEMP", OTHER, "40x10 stale"),
         ("DCGM_FI_DEV_GPU_TEMP", gpu(hostname="gpu9", UUID="GPU-7", instance="b:1"), "_x9 40x50")),
        "17m", {"hostname": "gpu1"}, "gpu1 has lost 1 of its GPUs.",
    ),
    "the only GPU has gone, and the exporter answers": Case(
        "KubegpuGpuLost",
        (("up", TARGET, "1x60"), ("DCGM_FI_DEV_GPU_TEMP", gpu(), "40x10 stale")),
        "17m", {"hostname": "gpu1"}, "gpu1 has lost 1 of its GPUs.",
    ),
    "a node has left the cluster": Case(
        "KubegpuGpuLost",
        (("up", TARGET, "1x10 stale"), ("DCGM_FI_DEV_GPU_TEMP", gpu(), "40x10 stale")),
        "17m", None,
    ),
    "its address is that of another node": Case(
        "KubegpuGpuLost",
        (("up", TARGET, "1x60"), ("DCGM_FI_DEV_GPU_TEMP", gpu(), "40x10 stale"),
         ("DCGM_FI_DEV_GPU_TEMP", gpu(hostname="gpu9", UUID="GPU-7"), "_x10 40x50")),
        "17m", None,
    ),
    "a host with DCGM shows fewer GPUs than it has to": Case(
        "KubegpuGpuLost",
        (("up", TARGET, "1x30"), ("kubegpu_gpus_expected", ON_HOST, "2x30"),
         ("DCGM_FI_DEV_GPU_TEMP", gpu(), "40x30")),
        "6m", ON_HOST, "10.0.0.7:9400 has lost 1 of its GPUs.",
    ),
    "it loses one, which is one alert": Case(
        "KubegpuGpuLost",
        (("up", TARGET, "1x30"), ("kubegpu_gpus_expected", ON_HOST, "2x30"),
         ("DCGM_FI_DEV_GPU_TEMP", gpu(), "40x30"), ("DCGM_FI_DEV_GPU_TEMP", OTHER, "40x5 stale")),
        "17m", ON_HOST, "10.0.0.7:9400 has lost 1 of its GPUs.",
    ),
    "a host with DCGM shows none": Case(
        "KubegpuGpuLost",
        (("up", TARGET, "1x30"), ("kubegpu_gpus_expected", ON_HOST, "2x30")),
        "6m", ON_HOST, "10.0.0.7:9400 has lost 2 of its GPUs.",
    ),
    "a host with DCGM that does not answer": Case(
        "KubegpuGpuLost",
        (("up", TARGET, "0x30"), ("kubegpu_gpus_expected", ON_HOST, "2x30")), "6m", None,
    ),
    "a host with DCGM shows all": Case(
        "KubegpuGpuLost",
        (("up", TARGET, "1x30"), ("kubegpu_gpus_expected", ON_HOST, "2x30"),
         ("DCGM_FI_DEV_GPU_TEMP", gpu(), "40x30"), ("DCGM_FI_DEV_GPU_TEMP", OTHER, "40x30")),
        "17m", None,
    ),
    "MIG makes several samples of one GPU": Case(
        "KubegpuGpuLost",
        (("DCGM_FI_DEV_GPU_TEMP", gpu(), "40x60"),
         ("DCGM_FI_DEV_GPU_TEMP", gpu(GPU_I_ID="1"), "40x10 stale")),
        "17m", None,
    ),
    "a card has left the PCI bus": Case(
        "KubegpuGpuLost",
        (("kubegpu_gpus_expected", NODE, "2x20"), ("kubegpu_gpu_present", card(), "1x20"),
         ("kubegpu_gpu_present", card(gpu="1", pci_bus_id="0000:02:00.0"), "1x5 0x15")),
        "12m", NODE, "gpu2:9100 has lost 1 of its GPUs.",
    ),
    "two jobs read the same node_exporter": Case(
        "KubegpuGpuLost",
        (("kubegpu_gpus_expected", {**NODE, "job": "a"}, "2x20"),
         ("kubegpu_gpus_expected", {**NODE, "job": "b"}, "2x20"),
         ("kubegpu_gpu_present", card(job="a"), "1x20"),
         ("kubegpu_gpu_present", card(job="b"), "1x20")),
        "12m", NODE, "gpu2:9100 has lost 1 of its GPUs.",
    ),
    "all cards are there": Case(
        "KubegpuGpuLost",
        (("kubegpu_gpus_expected", NODE, "1x20"), ("kubegpu_gpu_present", card(), "1x20")),
        "12m", None,
    ),
    "an Xid for a reboot, which the exporter forgets": Case(
        "KubegpuXidError",
        (("DCGM_EXP_XID_ERRORS_COUNT", gpu(xid="79"), "0 1 1 1 1 1 0x90"),), "50m",
        gpu(xid="79"), f"{OF_1} had Xid 79, {ERROR_WORDS}", "reboot",
    ),
    "the same, an hour later": Case(
        "KubegpuXidError",
        (("DCGM_EXP_XID_ERRORS_COUNT", gpu(xid="79"), "0 1 1 1 1 1 0x90"),), "80m", None,
    ),
    "an Xid for a reset, the first in the kernel's log": Case(
        "KubegpuXidError",
        (("kubegpu_gpu_xid_errors_total", {**LOGGED, "xid": "119"}, "_x4 1x90"),), "30m",
        {**LOGGED, "xid": "119"}, f"{OF_LOGGED} had Xid 119, {ERROR_WORDS}", "reset",
    ),
    "an Xid that was there two hours ago": Case(
        "KubegpuXidError",
        (("kubegpu_gpu_xid_errors_total", {**LOGGED, "xid": "119"}, "1x200"),), "150m", None,
    ),
    "the same, and nobody read it for a while": Case(
        "KubegpuXidError",
        (("kubegpu_gpu_xid_errors_total", {**LOGGED, "xid": "119"}, "1x80 _x20 1x100"),),
        "155m", None,
    ),
    "an Xid that is not an error": Case(
        "KubegpuXidError", (("DCGM_EXP_XID_ERRORS_COUNT", gpu(xid="13"), "1x9"),), "5m", None
    ),
    "an Xid of a program": Case(
        "KubegpuXidOfProgram", (("DCGM_EXP_XID_ERRORS_COUNT", gpu(xid="13"), "1x9"),), "5m",
        gpu(xid="13"), f"{OF_1} had Xid 13, usually caused by a program.",
    ),
    "an Xid that nobody knows": Case(
        "KubegpuXidWarning", (("DCGM_EXP_XID_ERRORS_COUNT", gpu(xid="480"), "1x9"),), "5m",
        gpu(xid="480"), f"{OF_1} had Xid 480.",
    ),
    "no Xid": Case(
        "KubegpuXidWarning", (("DCGM_EXP_XID_ERRORS_COUNT", gpu(xid="0"), "1x9"),), "5m", None
    ),
    "a memory error": Case(
        "KubegpuMemoryError", (("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", gpu(), "0 0 1x9"),), "5m",
        OF_GPU, f"{OF_1} had a memory error that could not be corrected.",
    ),
    "a memory error that ends the pod": Case(
        "KubegpuMemoryError",
        (("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", gpu(**USED), "0 0 0 stale"),
         ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", gpu(), "_ _ _ 1x9")), "6m",
        OF_GPU, f"{OF_1} had a memory error that could not be corrected.",
    ),
    "an old memory error, and another pod": Case(
        "KubegpuMemoryError",
        (("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", gpu(**USED), "3 3 3 stale"),
         ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", gpu(**LATER), "_ _ _ 3x9")), "6m", None,
    ),
    "a counter that a card does not have": Case(
        "KubegpuMemoryError",
        (("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", gpu(), "0 0 9223372036854775794x9"),), "5m", None,
    ),
    "memory errors that were corrected": Case(
        "KubegpuMemoryError",
        (("kubegpu_gpu_ecc_errors_total", card(type="corrected"), "0 5 9x9"),), "5m", None,
    ),
    "a memory error of a host without DCGM": Case(
        "KubegpuMemoryError",
        (("kubegpu_gpu_ecc_errors_total", card(type="uncorrected"), "0 0 2x9"),), "5m",
        card(type="uncorrected"), f"{OF_2} had a memory error that could not be corrected.",
    ),
    "a row that could not be remapped": Case(
        "KubegpuRowRemapFailed", (("DCGM_FI_DEV_ROW_REMAP_FAILURE", gpu(), "1x9"),), "1m",
        OF_GPU, f"{OF_1} could not take a bad row of its memory out of use.",
    ),
    "a card without remapping": Case(
        "KubegpuRowRemapFailed",
        (("DCGM_FI_DEV_ROW_REMAP_FAILURE", gpu(), "9223372036854775794x9"),), "1m", None,
    ),
    "a row that waits for a reset": Case(
        "KubegpuRowRemapPending", (("kubegpu_gpu_row_remap_pending", card(), "1x90"),), "61m",
        card(), f"{OF_2} takes a bad row of its memory out of use with the next reset.",
    ),
    "the same with DCGM": Case(
        "KubegpuRowRemapPending", (("DCGM_FI_DEV_ROW_REMAP_PENDING", gpu(), "1x90"),), "61m",
        OF_GPU, f"{OF_1} takes a bad row of its memory out of use with the next reset.",
    ),
    "a hot GPU, and one pod after the other": Case(
        "KubegpuHot",
        (("DCGM_FI_DEV_GPU_TEMP", gpu(**USED), "95x3 stale"),
         ("DCGM_FI_DEV_GPU_TEMP", gpu(**LATER), "_x4 95x9")), "6m",
        OF_GPU, f"{OF_1} has 95 degrees Celsius.",
    ),
    "a hot GPU with two instances of MIG": Case(
        "KubegpuHot",
        (("DCGM_FI_DEV_GPU_TEMP", gpu(GPU_I_ID="1"), "95x9"),
         ("DCGM_FI_DEV_GPU_TEMP", gpu(GPU_I_ID="2"), "95x9")), "6m",
        OF_GPU, f"{OF_1} has 95 degrees Celsius.",
    ),
    "a GPU at the limit": Case(
        "KubegpuHot", (("DCGM_FI_DEV_GPU_TEMP", gpu(), "90x9"),), "6m", None
    ),
    "a GPU without a thermometer": Case(
        "KubegpuHot", (("DCGM_FI_DEV_GPU_TEMP", gpu(), "9223372036854775794x9"),), "6m", None
    ),
    "a GPU that is slowed down": Case(
        "KubegpuSlowedDown",
        (("DCGM_EXP_CLOCK_EVENTS_COUNT", gpu(clock_event="hw_power_brake"), "3x20"),), "11m",
        {**OF_GPU, "clock_event": "hw_power_brake"},
        f"{OF_1} runs slower because of hw_power_brake.",
    ),
    "an idle GPU": Case(
        "KubegpuSlowedDown",
        (("DCGM_EXP_CLOCK_EVENTS_COUNT", gpu(clock_event="gpu_idle"), "9x20"),), "11m", None,
    ),
    "a hot card without DCGM": Case(
        "KubegpuSlowedDown",
        (("kubegpu_gpu_clock_slowdown", card(reason="sw_thermal"), "1x20"),), "11m",
        card(reason="sw_thermal"), f"{OF_2} runs slower because of sw_thermal.",
    ),
    "a GPU that DCGM calls ill": Case(
        "KubegpuUnhealthy",
        (("DCGM_EXP_GPU_HEALTH_STATUS",
          gpu(health_watch="MEM", health_error_code="DCGM_FR_ROW_REMAP_FAILURE"), "20x9"),), "6m",
        {**OF_GPU, "health_watch": "MEM", "health_error_code": "DCGM_FR_ROW_REMAP_FAILURE"},
        f"{OF_1} is not healthy according to DCGM: MEM DCGM_FR_ROW_REMAP_FAILURE.",
    ),
    "a GPU with a warning of DCGM": Case(
        "KubegpuUnhealthy",
        (("DCGM_EXP_GPU_HEALTH_STATUS", gpu(health_watch="MEM"), "10x9"),), "6m", None,
    ),
}  # fmt: skip
