# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Levels, limits and texts of the acceptance; DCGM's errors by severity. Pure.

Severities and names: github.com/NVIDIA/DCGM at 72fa3fe, dcgmlib/dcgm_errors.h and
dcgmlib/src/dcgm_errors.c (DCGM 4.6). Bandwidths: github.com/Azure/azurehpc-health-checks,
conf/*.conf, measured on such machines. Both read 2026-11-22.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

LEVELS = ("quick", "standard", "burn_in", "full")
DCGM, NVBANDWIDTH, GPU_BURN = "dcgm", "nvbandwidth", "gpu_burn"
#: The programs, and the level from which on each is run.
FROM_LEVEL: Mapping[str, str] = {DCGM: "quick", NVBANDWIDTH: "standard", GPU_BURN: "burn_in"}
TOOLS = tuple(FROM_LEVEL)
#: How each is started: a name for the search path, then other places.
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    DCGM: ("dcgmi",),
    NVBANDWIDTH: ("nvbandwidth", "/opt/nvbandwidth/nvbandwidth"),
    GPU_BURN: ("gpu_burn", "/opt/gpu-burn/gpu_burn"),
}
TITLES: Mapping[str, str] = {
    DCGM: "dcgmi diag",
    NVBANDWIDTH: "nvbandwidth",
    GPU_BURN: "gpu_burn",
}
#: The level of ``dcgmi diag`` for each level.
DIAG_LEVELS: Mapping[str, int] = {"quick": 1, "standard": 2, "burn_in": 3, "full": 4}
#: Seconds for ``dcgmi diag`` by its level, about ten times what its documentation tells.
DIAG_SECONDS: Mapping[int, int] = {1: 600, 2: 1800, 3: 10800, 4: 43200}
BANDWIDTH_SECONDS = 900
#: Seconds that gpu_burn may take beside the minutes that it burns.
BURN_SECONDS = 300
#: The tests of nvbandwidth, by the name of their limit.
BANDWIDTH_TESTS: Mapping[str, str] = {
    "h2d": "host_to_device_memcpy_ce",
    "d2h": "device_to_host_memcpy_ce",
    "p2p": "device_to_device_memcpy_read_ce",
}
#: The one that is measured between GPUs.
PAIRS = "p2p"
#: Share below the median of its kind from which on a GPU is told.
BELOW_TWINS = 0.1
#: Fewer GPUs of a kind have no median that tells which of them is slow.
FEWEST_TWINS = 3


@dataclass(frozen=True)
class Minima:
    """The least bandwidths in GB/s of a product, by the name that the driver gives it."""

    product: str
    limits: Mapping[str, float]


MINIMA = (
    Minima(r"\bH200(?! ?NVL)", {"h2d": 48, "d2h": 48, "p2p": 335}),
    Minima(r"H100 80GB HBM3", {"h2d": 52, "d2h": 52}),
    Minima(r"A100-SXM4", {"h2d": 23, "d2h": 23}),
)


def minima(product: str) -> Mapping[str, float]:
    """Return the least bandwidths of a product; empty for one that is not known."""
    return next((one.limits for one in MINIMA if re.search(one.product, product)), {})


NONE, MONITOR, ISOLATE, UNKNOWN, TRIAGE, CONFIG, RESET = (
    *("none", "monitor", "isolate", "unknown", "triage", "config", "reset"),
)
#: By the number of ``error_severity``.
SEVERITIES = (NONE, MONITOR, ISOLATE, UNKNOWN, TRIAGE, CONFIG, RESET)

_ERRORS: Mapping[str, str] = {
    ISOLATE: """
        3 PCI_REPLAY_RATE 4 VOLATILE_DBE_DETECTED 7 RETIRED_PAGES_LIMIT 8 RETIRED_PAGES_DBE_LIMIT
        13 NVLINK_ERROR_THRESHOLD 15 NVSWITCH_FATAL_ERROR 24 NVML_LIB_BAD 33 FIELD_VIOLATION
        35 FIELD_VIOLATION_DBL 36 FIELD_THRESHOLD_DBL 38 FIELD_THRESHOLD_TS
        39 FIELD_THRESHOLD_TS_DBL 52 FAULTY_MEMORY 57 CUDA_DBE 58 MEMORY_MISMATCH
        70 NVLINK_CRC_ERROR_THRESHOLD 71 NVLINK_ERROR_CRITICAL 79 L1TAG_MISCOMPARE
        81 UNCONTAINED_ERROR 86 BROKEN_P2P_MEMORY_DEVICE 87 BROKEN_P2P_WRITER_DEVICE
        88 NVSWITCH_NVLINK_DOWN 95 EUD_TEST_FAILED 98 PCIE_H_REPLAY_VIOLATION 102 SBE_VIOLATION
        103 DBE_VIOLATION 104 PCIE_REPLAY_VIOLATION 105 SBE_THRESHOLD_VIOLATION
        106 DBE_THRESHOLD_VIOLATION 107 PCIE_REPLAY_THRESHOLD_VIOLATION 109 SXID_ERROR 111 NAN_VALUE
        113 BROKEN_P2P_PCIE_MEMORY_DEVICE 114 BROKEN_P2P_PCIE_WRITER_DEVICE
        115 BROKEN_P2P_NVLINK_MEMORY_DEVICE 116 BROKEN_P2P_NVLINK_WRITER_DEVICE 118 SRAM_THRESHOLD
        119 NVLINK_EFFECTIVE_BER_THRESHOLD 120 FALLEN_OFF_BUS 121 NVLINK_SYMBOL_BER_THRESHOLD
        122 IMEX_UNHEALTHY 126 GPU_RECOVERY_REBOOT""",
    RESET: """
        6 PENDING_PAGE_RETIREMENTS 25 GRAPHICS_PROCESSES 80 ROW_REMAP_FAILURE
        83 DBE_PENDING_PAGE_RETIREMENTS 84 UNCORRECTABLE_ROW_REMAP 85 PENDING_ROW_REMAP
        125 GPU_RECOVERY_RESET 127 GPU_RECOVERY_DRAIN_P2P 128 GPU_RECOVERY_DRAIN_RESET
        129 NCCL_ERROR""",
    TRIAGE: """
        9 CORRUPT_INFOROM 14 NVLINK_DOWN 22 CANNOT_OPEN_LIB 30 LOW_BANDWIDTH 31 HIGH_LATENCY
        37 UNSUPPORTED_FIELD_TYPE 44 INTERNAL 45 PCIE_GENERATION 49 CANNOT_GET_STAT 50 STRESS_LEVEL
        54 CUDA_UNBOUND 56 MEMORY_ALLOC 59 CUDA_DEVICE 62 MEMORY_BANDWIDTH 63 TARGET_POWER
        64 API_FAIL 65 API_FAIL_GPU 66 CUDA_CONTEXT 67 DCGM_API 73 MEMORY_ALLOC_HOST
        77 HAD_TO_RESTORE_STATE 89 EUD_BINARY_PERMISSIONS 90 EUD_NON_ROOT_USER 91 EUD_SPAWN_FAILURE
        92 EUD_TIMEOUT 93 EUD_ZOMBIE 94 EUD_NON_ZERO_EXIT_CODE 97 PAUSE_RESUME_FAILED
        99 GPU_EXPECTED_NVLINKS_UP 100 NVSWITCH_EXPECTED_NVLINKS_UP 101 XID_ERROR
        110 GFLOPS_THRESHOLD_VIOLATION 124 BINARY_PERMISSIONS 130 RETEST_REQUESTED
        132 UNCORRECTABLE_ROW_REMAP_LIMIT""",
    CONFIG: """
        18 NO_ACCESS_TO_FILE 20 DEVICE_COUNT_MISMATCH 23 DENYLISTED_DRIVER 28 BAD_CUDA_ENV
        29 PERSISTENCE_MODE 46 PCIE_WIDTH 47 ABORTED 48 TEST_DISABLED 55 ECC_DISABLED
        60 ECC_UNSUPPORTED 68 CONCURRENT_GPUS 72 ENFORCED_POWER_LIMIT 78 L1TAG_UNSUPPORTED
        82 EMPTY_GPU_LIST 96 FILE_CREATE_PERMISSIONS 112 FABRIC_MANAGER_TRAINING_ERROR
        117 TEST_SKIPPED""",
    MONITOR: """
        5 VOLATILE_SBE_DETECTED 10 CLOCKS_EVENT_THERMAL 11 POWER_UNREADABLE 12 CLOCKS_EVENT_POWER
        16 NVSWITCH_NON_FATAL_ERROR 17 NVSWITCH_DOWN 19 NVML_API 26 HOSTENGINE_CONN 27 FIELD_QUERY
        32 CANNOT_GET_FIELD_TAG 34 FIELD_THRESHOLD 40 THERMAL_VIOLATIONS 41 THERMAL_VIOLATIONS_TS
        42 TEMP_VIOLATION 43 CLOCKS_EVENT_VIOLATION 51 CUDA_API 53 CANNOT_SET_WATCHES 61 ECC_PENDING
        69 TOO_MANY_ERRORS 74 GPU_OP_MODE 75 NO_MEMORY_CLOCKS 76 NO_GRAPHICS_CLOCKS
        108 CUDA_FM_NOT_INITIALIZED 123 FABRIC_PROBE_STATE 131 CONTAINED_ERROR""",
    UNKNOWN: "0 OK 1 UNKNOWN 2 UNRECOGNIZED 21 BAD_PARAMETER",
}


def _by_number() -> dict[int, tuple[str, str]]:
    found = {}
    for severity, text in _ERRORS.items():
        words = text.split()
        for number, name in zip(words[::2], words[1::2]):
            found[int(number)] = (name, severity)
    return found


#: Name and severity of each error, by its number.
DCGM_ERRORS: Mapping[int, tuple[str, str]] = _by_number()

#: What to do, by the severity that DCGM gives to an error.
NEXT_STEPS: Mapping[str, str] = {
    ISOLATE: "Keep work off this GPU: power the node off and on and accept it again; if the test "
    "fails again, return the card to its vendor with this output (RMA).",
    RESET: "Reset the GPU (nvidia-smi --gpu-reset) or reboot the node, then accept it again.",
    TRIAGE: "Run NVIDIA's field diagnostics, or nvidia-bug-report.sh and a case with the vendor; "
    "see the known causes of this error in NVIDIA's documentation of DCGM.",
    CONFIG: "Correct the setting that the message names (driver, ECC, persistence, the card's "
    "slot), then accept the node again.",
    MONITOR: "Watch this GPU; it may continue to work.",
    UNKNOWN: "Read the message of DCGM, and accept the node again.",
    NONE: "Read the message of DCGM, and accept the node again.",
}
