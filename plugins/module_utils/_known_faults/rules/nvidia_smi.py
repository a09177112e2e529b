# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nvidia-smi and sysfs tell of a GPU's health, and from which value on it is a finding.

Data, not code. ``documents/nvidia_smi.py`` reads the values, ``nvidia_smi_judge.py`` judges them.
Names of elements were read 2026-11-23 in public records of ``nvidia-smi -q -x`` of 513.46,
515.105.01, 535.54.03 and 590.44.01 (influxdata/telegraf, plugins/inputs/nvidia_smi/testdata). Where
elements have two names, one is of older drivers or cards.
"""

from __future__ import annotations

from dataclasses import dataclass

from .xids_data import ERROR, INFO, RESET_STEP, WARNING

READ = "2026-11-23"

COUNT = "count"
YES_NO = "yes or no"
TEXT = "text"
DEGREES = "degrees"

_AZURE = "Azure/azurehpc-health-checks 0e0a1ac, conf/*.conf"
_META = "facebookresearch/gcm 1b7bde9, health checks"
_OWN = "a choice of this collection"
_RMA = (
    "Drain the node, run dcgmi diag or NVIDIA's field diagnostics, and ask the maker of the "
    "machine to replace the card."
)
_PENDING_STEP = "Reset the GPU or reboot when the node is free; work may continue until then."
_WATCH_STEP = (
    "Compare again in some days. If it grows: check seat, riser and power of the card, then the "
    "slot, then the card."
)


@dataclass(frozen=True)
class Field:
    """A value of a GPU, by its group and name in the result.

    :param paths: elements below ``gpu``. Numbers of several elements are added.
    """

    group: str
    name: str
    kind: str
    paths: tuple[str, ...]


def _ecc(scope: str) -> tuple[Field, ...]:
    below = f"ecc_errors/{scope}"
    unlike = (
        "sram_uncorrectable",
        "sram_uncorrectable_parity",
        "sram_uncorrectable_secded",
    )
    return (
        Field("ecc", f"{scope}_sram_corrected", COUNT, (f"{below}/sram_correctable",)),
        Field(
            "ecc",
            f"{scope}_sram_uncorrected",
            COUNT,
            tuple(f"{below}/{name}" for name in unlike),
        ),
        # Before Turing all memories of the GPU are counted together.
        Field(
            "ecc",
            f"{scope}_dram_corrected",
            COUNT,
            (f"{below}/dram_correctable", f"{below}/single_bit/total"),
        ),
        Field(
            "ecc",
            f"{scope}_dram_uncorrected",
            COUNT,
            (f"{below}/dram_uncorrectable", f"{below}/double_bit/total"),
        ),
    )


_REMAPPED = "remapped_rows"
_BANKS = f"{_REMAPPED}/row_remapper_histogram/row_remapper_histogram_"
_FABRIC = "fabric/health"

FIELDS: tuple[Field, ...] = (
    Field("recovery", "action", TEXT, ("gpu_recovery_action",)),
    Field("recovery", "reset_required", YES_NO, ("gpu_reset_status/reset_required",)),
    Field(
        "recovery",
        "drain_and_reset_recommended",
        YES_NO,
        ("gpu_reset_status/drain_and_reset_recommended",),
    ),
    Field("ecc", "mode", TEXT, ("ecc_mode/current_ecc",)),
    Field("ecc", "mode_pending", TEXT, ("ecc_mode/pending_ecc",)),
    *_ecc("volatile"),
    *_ecc("aggregate"),
    Field(
        "ecc",
        "sram_threshold_exceeded",
        YES_NO,
        ("ecc_errors/aggregate/sram_threshold_exceeded",),
    ),
    Field("ecc", "channel_repair_pending", YES_NO, ("ecc_errors/channel_repair_pending",)),
    Field("ecc", "tpc_repair_pending", YES_NO, ("ecc_errors/tpc_repair_pending",)),
    Field("ecc", "unrepairable_memory", YES_NO, ("ecc_errors/unrepairable_memory",)),
    Field("remapped_rows", "corrected", COUNT, (f"{_REMAPPED}/remapped_row_corr",)),
    Field("remapped_rows", "uncorrected", COUNT, (f"{_REMAPPED}/remapped_row_unc",)),
    Field("remapped_rows", "pending", YES_NO, (f"{_REMAPPED}/remapped_row_pending",)),
    Field("remapped_rows", "failed", YES_NO, (f"{_REMAPPED}/remapped_row_failure",)),
    Field("remapped_rows", "banks_without_spares", COUNT, (f"{_BANKS}none",)),
    Field(
        "retired_pages",
        "count",
        COUNT,
        (
            "retired_pages/multiple_single_bit_retirement/retired_count",
            "retired_pages/double_bit_retirement/retired_count",
        ),
    ),
    Field("retired_pages", "pending", YES_NO, ("retired_pages/pending_retirement",)),
    Field("temperature", "gpu", DEGREES, ("temperature/gpu_temp",)),
    Field("temperature", "memory", DEGREES, ("temperature/memory_temp",)),
    Field("temperature", "slowdown", DEGREES, ("temperature/gpu_temp_slow_threshold",)),
    # Newer drivers tell the distance to a limit, and at which distance the GPU slows down.
    Field("temperature", "distance", DEGREES, ("temperature/gpu_temp_tlimit",)),
    Field(
        "temperature",
        "slowdown_distance",
        DEGREES,
        ("temperature/gpu_temp_slow_tlimit_threshold",),
    ),
    Field("mig", "mode", TEXT, ("mig_mode/current_mig",)),
    Field("mig", "mode_pending", TEXT, ("mig_mode/pending_mig",)),
    Field("fabric", "state", TEXT, ("fabric/state",)),
    Field("fabric", "status", TEXT, ("fabric/status",)),
    Field("fabric", "health", TEXT, (f"{_FABRIC}/summary",)),
    Field("fabric", "bandwidth", TEXT, (f"{_FABRIC}/bandwidth",)),
    Field("fabric", "route_unhealthy", YES_NO, (f"{_FABRIC}/route_unhealthy",)),
    Field("fabric", "route_recovery", YES_NO, (f"{_FABRIC}/route_recovery_in_progress",)),
    Field("fabric", "access_timeout_recovery", YES_NO, (f"{_FABRIC}/access_timeout_recovery",)),
)
#: Names in the report for people (``nvidia-smi -q``) that do not follow from those of the document,
#: as paths in both. Read 2026-11-28 in public reports, as of 510.73.08 (stas00/ml-engineering,
#: compute/accelerator/nvidia/debug.md); those of the MIG mode are unverified (u).
NAMES = {
    "ecc_mode/current": "ecc_mode/current_ecc",
    "ecc_mode/pending": "ecc_mode/pending_ecc",
    "mig_mode/current": "mig_mode/current_mig",
    "mig_mode/pending": "mig_mode/pending_mig",
    f"{_REMAPPED}/correctable_error": f"{_REMAPPED}/remapped_row_corr",
    f"{_REMAPPED}/uncorrectable_error": f"{_REMAPPED}/remapped_row_unc",
    f"{_REMAPPED}/pending": f"{_REMAPPED}/remapped_row_pending",
    f"{_REMAPPED}/remapping_failure_occurred": f"{_REMAPPED}/remapped_row_failure",
    f"{_REMAPPED}/bank_remap_availability_histogram": f"{_REMAPPED}/row_remapper_histogram",
    f"{_REMAPPED}/bank_remap_availability_histogram/none": f"{_BANKS}none",
    "retired_pages/pending_page_blacklist": "retired_pages/pending_retirement",
    "temperature/gpu_current_temp": "temperature/gpu_temp",
    "temperature/memory_current_temp": "temperature/memory_temp",
    "temperature/gpu_slowdown_temp": "temperature/gpu_temp_slow_threshold",
    "temperature/gpu_t_limit_temp": "temperature/gpu_temp_tlimit",
    "temperature/gpu_slowdown_t_limit_temp": "temperature/gpu_temp_slow_tlimit_threshold",
    "vgpu_software_licensed_product/product_name": (
        "vgpu_software_licensed_product/licensed_product_name"
    ),
}
#: The words of values that are yes or no; those of the fabric are True and False (580.126,
#: NVIDIA/k8s-test-infra, testdata/hardware, read 2026-11-27).
YES_OR_NO = {"yes": True, "true": True, "no": False, "false": False}
#: The values of a guest's licence; all are null for a whole GPU.
LICENCE = ("product", "status", "state", "expiry")

#: Reasons for lower clocks, as they end the names of elements. Those of idle GPUs, of settings and
#: of the power limit are no faults.
CLOCK_GROUPS = ("clocks_event_reasons", "clocks_throttle_reasons")
SLOWDOWNS = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")

#: Texts in the place of a value that tell nothing.
NO_VALUE = frozenset(
    {
        "",
        "N/A",
        "[N/A]",
        "Not Supported",
        "[Not Supported]",
        "Not Found",
        "Requested functionality has been deprecated",
        "[Insufficient Permissions]",
        "Insufficient Permissions",
    }
)
#: Texts in the place of a value that show a fault: code of the finding.
RESET_TEXT = "GPU requires reset"
LOST_TEXT = "GPU is lost"
ERROR_TEXT = "ERR!"
UNKNOWN_TEXT = "Unknown Error"
FAULT_TEXTS = (RESET_TEXT, LOST_TEXT, ERROR_TEXT, UNKNOWN_TEXT)


@dataclass(frozen=True)
class Threshold:
    """A number from which on a value is a finding.

    :param values: groups and names of the values that are added.
    :param limit: the highest number that is no finding; with ``least``, the lowest. None: the
        value is returned and not judged.
    :param since_boot: whether the value counts from 0 after a reboot.
    """

    name: str
    code: str
    cause: str
    next_step: str
    values: tuple[tuple[str, str], ...]
    limit: float | None
    severity: str
    source: str
    since_boot: bool = False
    least: bool = False
    read: str = READ


THRESHOLDS: tuple[Threshold, ...] = (
    Threshold(
        "ecc_uncorrected",
        "gpu_memory_error",
        "GPU {gpu} had {value} memory errors since its last reset that it could not correct.",
        f"{RESET_STEP} Then check nvidia-smi -q -d ECC,ROW_REMAPPER.",
        (
            ("ecc", "volatile_sram_uncorrected"),
            ("ecc", "volatile_dram_uncorrected"),
            ("ras", "uncorrected"),
        ),
        0,
        ERROR,
        f"NVIDIA's memory error management; {_META}",
        since_boot=True,
    ),
    Threshold(
        "ecc_dram_corrected",
        "gpu_memory_wear",
        "GPU {gpu} has corrected {value} errors of its memory in its life, more than {limit}.",
        _WATCH_STEP,
        (("ecc", "aggregate_dram_corrected"),),
        20_000_000,
        WARNING,
        _AZURE,
    ),
    Threshold(
        "ecc_sram_corrected",
        "gpu_sram_wear",
        "GPU {gpu} has corrected {value} errors of its caches in its life, more than {limit}.",
        _WATCH_STEP,
        (("ecc", "aggregate_sram_corrected"),),
        10_000,
        WARNING,
        _AZURE,
    ),
    Threshold(
        "remapped_rows",
        "row_remap_many",
        "GPU {gpu} has taken {value} rows of its memory out of use because of errors that could "
        "not be corrected, more than {limit}.",
        _RMA,
        (("remapped_rows", "uncorrected"),),
        512,
        ERROR,
        _AZURE,
    ),
    Threshold(
        "banks_without_spares",
        "row_remap_exhausted",
        "{value} banks of the memory of GPU {gpu} have no spare rows left: the next bad row there "
        "cannot be taken out of use.",
        "Plan to replace the card; until then look for Xid 64 and for failed remaps.",
        (("remapped_rows", "banks_without_spares"),),
        0,
        WARNING,
        "NVIDIA's memory error management",
    ),
    Threshold(
        "retired_pages",
        "retired_pages_many",
        "GPU {gpu} has taken {value} pages of its memory out of use, more than {limit}.",
        _RMA,
        (("retired_pages", "count"),),
        9,
        WARNING,
        _META,
    ),
    Threshold(
        "temperature_margin",
        "gpu_hot",
        "GPU {gpu} is {value} degrees below the temperature at which it slows down.",
        "Check fans, air flow and inlet temperature of the machine, and the coolers of the cards.",
        (("temperature", "margin"),),
        1,
        WARNING,
        _OWN,
        least=True,
    ),
    Threshold(
        "pcie_fatal",
        "pcie_errors",
        "The PCI Express link of GPU {gpu} had {value} fatal errors since boot.",
        _WATCH_STEP,
        (("aer", "fatal"),),
        0,
        WARNING,
        _OWN,
        since_boot=True,
    ),
    Threshold(
        "pcie_nonfatal",
        "pcie_errors_nonfatal",
        "The PCI Express link of GPU {gpu} had {value} uncorrected errors since boot.",
        _WATCH_STEP,
        (("aer", "nonfatal"),),
        0,
        WARNING,
        _OWN,
        since_boot=True,
    ),
    Threshold(
        "pcie_correctable",
        "pcie_errors_corrected",
        "The PCI Express link of GPU {gpu} had {value} corrected errors since boot, more than "
        "{limit}.",
        _WATCH_STEP,
        (("aer", "correctable"),),
        None,
        WARNING,
        "no public limit was found",
        since_boot=True,
    ),
)


@dataclass(frozen=True)
class Flag:
    """A value whose "yes" is a finding."""

    group: str
    name: str
    code: str
    cause: str
    next_step: str
    severity: str


FLAGS: tuple[Flag, ...] = (
    Flag(
        "remapped_rows",
        "pending",
        "row_remap_pending",
        "GPU {gpu} takes a row of its memory out of use at its next reset.",
        _PENDING_STEP,
        WARNING,
    ),
    Flag(
        "remapped_rows",
        "failed",
        "row_remap_failed",
        "GPU {gpu} could not take a bad row of its memory out of use.",
        _RMA,
        ERROR,
    ),
    Flag(
        "retired_pages",
        "pending",
        "page_retirement_pending",
        "GPU {gpu} takes a page of its memory out of use at its next reset.",
        _PENDING_STEP,
        WARNING,
    ),
    Flag(
        "ecc",
        "sram_threshold_exceeded",
        "sram_threshold",
        "GPU {gpu} had more errors in its caches than NVIDIA's limit for them.",
        _RMA,
        ERROR,
    ),
    Flag(
        "ecc",
        "channel_repair_pending",
        "channel_repair_pending",
        "GPU {gpu} repairs a channel of its memory at its next reset.",
        _PENDING_STEP,
        WARNING,
    ),
    Flag(
        "ecc",
        "tpc_repair_pending",
        "tpc_repair_pending",
        "GPU {gpu} repairs a group of its processors (TPC) at its next reset.",
        _PENDING_STEP,
        WARNING,
    ),
    Flag(
        "ecc",
        "unrepairable_memory",
        "memory_unrepairable",
        "GPU {gpu} has memory that it cannot repair.",
        _RMA,
        ERROR,
    ),
    Flag(
        "recovery",
        "reset_required",
        "recovery_action",
        "The driver says that GPU {gpu} needs a reset.",
        RESET_STEP,
        ERROR,
    ),
    Flag(
        "recovery",
        "drain_and_reset_recommended",
        "recovery_action",
        "The driver says that GPU {gpu} needs a reset once its programs have ended.",
        RESET_STEP,
        WARNING,
    ),
)


@dataclass(frozen=True)
class PendingMode:
    """A mode that changes with the next reset."""

    group: str
    code: str
    cause: str
    next_step: str


PENDING_MODES: tuple[PendingMode, ...] = (
    PendingMode(
        "ecc",
        "ecc_pending",
        "ECC of GPU {gpu} is {now}, and {pending} after its next reset.",
        "Reset the GPU or reboot when the node is free.",
    ),
    PendingMode(
        "mig",
        "mig_pending",
        "MIG of GPU {gpu} is {now}, and {pending} after its next reset.",
        "Reset the GPU or reboot when the node is free.",
    ),
)

#: What the driver says that a GPU needs, in lower case: severity. Other words are an error.
#: nvidia-smi has the short forms, the line of Xid 154 the long ones (open-gpu-kernel-modules
#: 595.45.04, kernel_rc.c; go-nvml 2f9e261, nvml.h).
RECOVERY_ACTIONS = {
    "none": INFO,
    "reset": ERROR,
    "gpu reset required": ERROR,
    "reboot": ERROR,
    "node reboot required": ERROR,
    "drain p2p": WARNING,
    "drain and reset": ERROR,
    "recover imex domain": ERROR,
}
