# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The dashboard for Grafana, for both kinds of exporters. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .names import NAME

TITLE = "GPUs (kubegpu.nodes)"
UID = "kubegpu-nodes-gpus"
# Grafana 10's; newer ones convert it when they load it.
_SCHEMA = 39
_WIDTH, _HEIGHT = 12, 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_METRIC = re.compile(r"\b(?:DCGM|kubegpu)_\w+")
# The variables of the dashboard, by which kind of exporter they choose. The nodes of DCGM's have
# names; those of the other kind are known by node_exporter's address.
_DCGM_HOSTS = 'hostname=~"$host"'
_TEXTFILE_HOSTS = 'instance=~"$instance"'


@dataclass(frozen=True)
class Line:
    """One expression of a panel, and its legend."""

    expression: str
    legend: str

    @property
    def metrics(self) -> frozenset[str]:
        return frozenset(_METRIC.findall(self.expression))


@dataclass(frozen=True)
class Panel:
    title: str
    unit: str
    lines: tuple[Line, ...]


def _dcgm(expression: str, legend: str = "") -> Line:
    """Return a line of DCGM's exporter; ``%`` stands for the chosen hosts."""
    return Line(expression.replace("%", _DCGM_HOSTS), "{{hostname}} {{gpu}} {{GPU_I_ID}} " + legend)


def _textfile(expression: str, legend: str = "") -> Line:
    return Line(expression.replace("%", _TEXTFILE_HOSTS), "{{instance}} {{gpu}} " + legend)


# The upper bounds leave out what a card does not have: DCGM gives numbers around 2^63 for it.
PANELS = (
    Panel(
        "GPUs",
        "none",
        (
            Line(
                "count by (hostname) (max by (hostname, UUID) "
                f"(DCGM_FI_DEV_GPU_TEMP{{{_DCGM_HOSTS}}}))",
                "{{hostname}}",
            ),
            Line(
                f"sum by (instance) (kubegpu_gpu_present{{{_TEXTFILE_HOSTS}}})",
                "{{instance}}",
            ),
        ),
    ),
    Panel(
        "Utilization",
        "percentunit",
        (
            _dcgm("(DCGM_FI_DEV_GPU_UTIL{%} <= 100) / 100"),
            _textfile("kubegpu_gpu_utilization_ratio{%}"),
        ),
    ),
    Panel(
        "Memory in use",
        "bytes",
        (
            _dcgm("(DCGM_FI_DEV_FB_USED{%} < 1e9) * 1048576"),
            _textfile("kubegpu_gpu_memory_used_bytes{%}"),
        ),
    ),
    Panel(
        "Memory in use, share",
        "percentunit",
        (
            _dcgm(
                "DCGM_FI_DEV_FB_USED{%} / (DCGM_FI_DEV_FB_USED{%} + DCGM_FI_DEV_FB_FREE{%} "
                "+ DCGM_FI_DEV_FB_RESERVED{%})"
            ),
            _textfile("kubegpu_gpu_memory_used_bytes{%} / kubegpu_gpu_memory_total_bytes{%}"),
        ),
    ),
    Panel(
        "Temperature",
        "celsius",
        (
            _dcgm("DCGM_FI_DEV_GPU_TEMP{%} < 1000"),
            _textfile("kubegpu_gpu_temperature_celsius{%}"),
        ),
    ),
    Panel(
        "Power",
        "watt",
        (
            _dcgm("DCGM_FI_DEV_POWER_USAGE{%} < 1e6"),
            _textfile("kubegpu_gpu_power_watts{%}"),
        ),
    ),
    Panel(
        "Clock",
        "hertz",
        (
            _dcgm("(DCGM_FI_DEV_SM_CLOCK{%} < 1e6) * 1e6"),
            _textfile("kubegpu_gpu_clock_hertz{%}"),
        ),
    ),
    Panel(
        # DCGM has no utilization of MIG devices (GPU_UTIL).
        "Engines in use, MIG devices too",
        "percentunit",
        (_dcgm("DCGM_FI_PROF_GR_ENGINE_ACTIVE{%} <= 1"),),
    ),
    Panel(
        "Tensor cores",
        "percentunit",
        (_dcgm("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{%}"),),
    ),
    Panel(
        "Memory interface",
        "percentunit",
        (_dcgm("DCGM_FI_PROF_DRAM_ACTIVE{%}"),),
    ),
    Panel(
        "PCI Express",
        "Bps",
        (
            _dcgm("DCGM_FI_PROF_PCIE_TX_BYTES{%}", "sent"),
            _dcgm("DCGM_FI_PROF_PCIE_RX_BYTES{%}", "received"),
        ),
    ),
    Panel(
        "Memory in use, by pod",
        "bytes",
        (
            Line(
                # A scrape configuration of the user's own may give idle GPUs the exporter's pod.
                f"sum by (namespace, pod) (DCGM_FI_DEV_FB_USED{{{_DCGM_HOSTS}, "
                f'pod!~"|{NAME}-.+"}} < 1e9) * 1048576',
                "{{namespace}}/{{pod}}",
            ),
        ),
    ),
    Panel(
        "Xids",
        "none",
        (
            _dcgm("DCGM_EXP_XID_ERRORS_COUNT{%} > 0", "Xid {{xid}}"),
            _textfile(
                # The first one has no increase.
                "increase(kubegpu_gpu_xid_errors_total{%}[$__rate_interval]) > 0 or "
                "(kubegpu_gpu_xid_errors_total{%} unless kubegpu_gpu_xid_errors_total{%} "
                "offset $__rate_interval)",
                "{{pci_bus_id}} Xid {{xid}}",
            ),
        ),
    ),
    Panel(
        "Memory errors, not corrected",
        "none",
        (
            _dcgm("increase(DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{%}[$__rate_interval])"),
            _textfile(
                'increase(kubegpu_gpu_ecc_errors_total{type="uncorrected", %}[$__rate_interval])'
            ),
        ),
    ),
    Panel(
        "Reasons for slower clocks",
        "none",
        (
            _dcgm('DCGM_EXP_CLOCK_EVENTS_COUNT{clock_event!="gpu_idle", %} > 0', "{{clock_event}}"),
            _textfile("kubegpu_gpu_clock_slowdown{%} > 0", "{{reason}}"),
        ),
    ),
)


def dashboard_document(collected: frozenset[str]) -> dict[str, Any]:
    """Return the dashboard, without the lines whose metrics are not collected."""
    panels: list[dict[str, Any]] = []
    for panel in PANELS:
        lines = [line for line in panel.lines if line.metrics <= collected]
        if lines:
            panels.append(_panel(len(panels), panel, lines))
    return {
        "annotations": {"list": []},
        "editable": True,
        "graphTooltip": 1,
        "panels": panels,
        "refresh": "1m",
        "schemaVersion": _SCHEMA,
        "tags": ["gpu", "kubegpu.nodes"],
        "templating": {"list": _variables()},
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "",
        "title": TITLE,
        "uid": UID,
    }


def _panel(number: int, panel: Panel, lines: Sequence[Line]) -> dict[str, Any]:
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": _SOURCE,
        "gridPos": {
            "x": _WIDTH * (number % 2),
            "y": _HEIGHT * (number // 2),
            "w": _WIDTH,
            "h": _HEIGHT,
        },
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "custom": {"fillOpacity": 10}},
            "overrides": [],
        },
        "options": {
            "legend": {"displayMode": "table", "placement": "right", "calcs": ["lastNotNull"]},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": _SOURCE,
                "expr": line.expression,
                "legendFormat": line.legend.strip(),
                "range": True,
            }
            for index, line in enumerate(lines)
        ],
    }


def _variables() -> list[dict[str, Any]]:
    return [
        {
            "name": "datasource",
            "label": "Data source",
            "type": "datasource",
            "query": "prometheus",
            "current": {},
            "hide": 0,
        },
        _variable("host", "Node", "label_values(DCGM_FI_DEV_GPU_TEMP, hostname)"),
        _variable("instance", "Node without DCGM", "label_values(kubegpu_gpu_present, instance)"),
    ]


def _variable(name: str, label: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "sort": 1,
        "hide": 0,
    }
