# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The metrics of the exporters, and the file of counters of DCGM's. Data, and pure functions.

Sources, read 2026-11-23: github.com/NVIDIA/dcgm-exporter 4.5.3-4.8.2 and 4.6.0-4.8.3
(etc/default-counters.csv, internal/pkg/collector, internal/pkg/rendermetrics), go-dcgm b7fa315
(pkg/dcgm/const_fields.go). The metrics ``kubegpu_*`` are those of this collection's own program for
hosts without DCGM (``_exporter/program.py``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._core.errors import InputError
from .._exporter.data import OUTPUT
from .._exporter.program import METRICS

# The label ``job`` of the targets, wherever this collection decides it: a ServiceMonitor, a
# PodMonitor and the files of file_sd set it.
JOB = "kubegpu-dcgm"
# The file that the program for hosts without DCGM writes for node_exporter.
TEXTFILE = OUTPUT

GAUGE = "gauge"
COUNTER = "counter"
LABEL = "label"
# The exporter also takes histogram and summary, and then answers no scrape.
_KINDS = (GAUGE, COUNTER, LABEL)
_PROFILING = "DCGM_FI_PROF_"
_NAME = re.compile(r"DCGM_(?:FI|EXP)_[A-Z0-9_]+\Z")


@dataclass(frozen=True)
class Metric:
    """A metric, or with the kind ``label`` a label of all others."""

    name: str
    kind: str
    help: str


# What the exporter collects by this collection's default. NVIDIA's default has no count of Xids by
# number, clock events, health and ECC errors.
DCGM: tuple[Metric, ...] = (
    Metric("DCGM_FI_DEV_SM_CLOCK", GAUGE, "Clock of the streaming multiprocessors (MHz)."),
    Metric("DCGM_FI_DEV_MEM_CLOCK", GAUGE, "Clock of the memory (MHz)."),
    Metric("DCGM_FI_DEV_GPU_TEMP", GAUGE, "Temperature of the GPU (Celsius)."),
    Metric("DCGM_FI_DEV_MEMORY_TEMP", GAUGE, "Temperature of the memory (Celsius)."),
    Metric("DCGM_FI_DEV_POWER_USAGE", GAUGE, "Power draw (W)."),
    Metric(
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", COUNTER, "Energy since the driver's start (mJ)."
    ),
    Metric("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", COUNTER, "Retries on PCI Express."),
    Metric("DCGM_FI_DEV_GPU_UTIL", GAUGE, "Share of time in which the GPU worked (%)."),
    Metric("DCGM_FI_DEV_MEM_COPY_UTIL", GAUGE, "Share of time in which the memory worked (%)."),
    Metric("DCGM_FI_DEV_ENC_UTIL", GAUGE, "Utilization of the video encoder (%)."),
    Metric("DCGM_FI_DEV_DEC_UTIL", GAUGE, "Utilization of the video decoder (%)."),
    Metric("DCGM_FI_DEV_FB_USED", GAUGE, "Memory in use (MiB)."),
    Metric("DCGM_FI_DEV_FB_FREE", GAUGE, "Free memory (MiB)."),
    Metric("DCGM_FI_DEV_FB_RESERVED", GAUGE, "Memory that the driver reserves (MiB)."),
    Metric("DCGM_FI_DEV_XID_ERRORS", GAUGE, "Number of the last Xid."),
    Metric("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", COUNTER, "Corrected memory errors since the reset."),
    Metric("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", COUNTER, "Uncorrected memory errors since the reset."),
    Metric("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", COUNTER, "Rows remapped for corrected errors."),
    Metric(
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", COUNTER, "Rows remapped for uncorrected errors."
    ),
    Metric("DCGM_FI_DEV_ROW_REMAP_FAILURE", GAUGE, "Whether a row could not be remapped."),
    Metric("DCGM_FI_DEV_ROW_REMAP_PENDING", GAUGE, "Whether a row waits for a reset."),
    Metric("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", GAUGE, "NVLink traffic of all links."),
    Metric("DCGM_FI_DEV_VGPU_LICENSE_STATUS", GAUGE, "Whether the virtual GPU has a licence."),
    Metric("DCGM_EXP_XID_ERRORS_COUNT", GAUGE, "Xids by number in the last minutes."),
    Metric("DCGM_EXP_CLOCK_EVENTS_COUNT", GAUGE, "Reasons for slower clocks in the last minutes."),
    Metric("DCGM_EXP_GPU_HEALTH_STATUS", GAUGE, "Health by watch: 0 pass; 10 warning; 20 failure."),
    Metric("DCGM_FI_DRIVER_VERSION", LABEL, "Version of the driver."),
    Metric("DCGM_FI_PROF_GR_ENGINE_ACTIVE", GAUGE, "Share of time in which the engines worked."),
    Metric("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", GAUGE, "Share of cycles of the tensor pipe."),
    Metric("DCGM_FI_PROF_DRAM_ACTIVE", GAUGE, "Share of cycles of the memory interface."),
    Metric("DCGM_FI_PROF_PCIE_TX_BYTES", GAUGE, "Bytes sent on PCI Express in a second."),
    Metric("DCGM_FI_PROF_PCIE_RX_BYTES", GAUGE, "Bytes received on PCI Express in a second."),
)

# The metrics of hosts without DCGM. Labels of a GPU: gpu, uuid, pci_bus_id. Further ones: type
# (corrected, uncorrected), reason (of a slowdown), xid, source, vendor.
TEXTFILE_METRICS: tuple[Metric, ...] = tuple(
    Metric(name, kind, text) for name, (kind, text) in METRICS.items()
)


def read_counters(value: Any, profiling: bool = True, name: str = "counters") -> tuple[Metric, ...]:
    """Return the counters of DCGM's exporter.

    :param value: ``default``, or a list of lines of the exporter's file: field, kind, help.
    :param profiling: without it, the profiling counters are left out.
    :raises InputError: a line is not valid.
    """
    if value == "default":
        found = DCGM
    elif isinstance(value, (list, tuple)) and value:
        found = tuple(_counter(line, name) for line in value)
    else:
        raise InputError(
            f"{name} is {value!r}, and has to be default or a list of counters.", next_step=_EXAMPLE
        )
    names = [metric.name for metric in found]
    twice = sorted({one for one in names if names.count(one) > 1})
    if twice:
        raise InputError(f"{name}: {', '.join(twice)} occurs twice.")
    return tuple(one for one in found if profiling or not one.name.startswith(_PROFILING))


_EXAMPLE = "Write each as: 'DCGM_FI_DEV_GPU_TEMP, gauge, Temperature of the GPU (Celsius).'"


def _counter(line: Any, name: str) -> Metric:
    parts = [part.strip() for part in str(line).split(",", 2)]
    good = (
        isinstance(line, str)
        and len(parts) == 3
        and _NAME.match(parts[0])
        and parts[1] in _KINDS
        and parts[2].isprintable()
        # A quote or a comma would make it another number of fields.
        and parts[2]
        and not set(parts[2]) & set(',"')
    )
    if not good:
        raise InputError(f"{name}: {line!r} is not a counter.", next_step=_EXAMPLE)
    return Metric(*parts)


def counters_file(counters: Sequence[Metric]) -> str:
    """Return the exporter's file of counters."""
    return "".join(f"{one.name}, {one.kind}, {one.help}\n" for one in counters)


def metric_names(counters: Sequence[Metric]) -> frozenset[str]:
    """Return the names of the metrics that are collected, of both kinds of exporters."""
    return frozenset(one.name for one in (*counters, *TEXTFILE_METRICS) if one.kind != LABEL)


def with_profiling(counters: Sequence[Metric]) -> bool:
    """Return whether a counter needs the right to profile (SYS_ADMIN)."""
    return any(one.name.startswith(_PROFILING) for one in counters)
