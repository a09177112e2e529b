# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layer ``metrics`` of a host: its exporter has a sample for each GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._core.errors import KubegpuError
from .._exporter.data import (
    CONTAINER,
    CONTAINER_UNIT,
    DCGM_UNIT,
    EXPORTER_UNIT,
    PACKAGES,
    TEXTFILE,
    TEXTFILE_UNIT,
)
from .._exporter.page import dcgm_gpus, textfile_gpus
from .._hardware.vendors import passed_through
from .._host.reader import NodeReader
from .evidence import count_of, failed, shorten, untried, works
from .types import METRICS, LayerResult

#: Reads a page with HTTP; raises KubegpuError.
Fetch = Callable[[str], str]
# After this many seconds the alert KubegpuExporterDown takes the file for old.
_OLD = 300
_UNITS: Mapping[str, Sequence[str]] = {
    PACKAGES: (DCGM_UNIT, EXPORTER_UNIT),
    CONTAINER: (CONTAINER_UNIT,),
    TEXTFILE: (f"{TEXTFILE_UNIT}.timer",),
}


@dataclass(frozen=True)
class Page:
    """What was read of an exporter.

    :param text: its metrics; None if they could not be read.
    :param error: why not.
    :param age: seconds since the file of metrics was written.
    """

    text: str | None = None
    error: str = ""
    age: float = 0.0


def read_page(
    exporter: Mapping[str, Any], reader: NodeReader, fetch: Fetch, now: float
) -> Page | None:
    """Return the metrics of the exporter; None where this run does not know how to read them.

    :param exporter: the part of the fact ``gpu_node``.
    """
    path = exporter["output"]
    if path:
        times = reader.times(path)
        return Page(reader.read_text(path), "there is no such file", now - times[0] if times else 0)
    if not exporter["page"].startswith("http://"):
        return None
    try:
        return Page(fetch(exporter["page"]))
    except KubegpuError as error:
        return Page(None, error.evidence or error.cause)


def judge_metrics(node: Mapping[str, Any], page: Page | None) -> LayerResult:
    """Return the result of the layer. Pure.

    :param node: the fact ``gpu_node``.
    """
    exporter = node["exporter"]
    method = exporter["method"]
    if not method:
        return _without(exporter)
    stopped = [
        f"{unit} is {exporter['units'].get(unit) or 'missing'}"
        for unit in _UNITS[method]
        if exporter["units"].get(unit) != "active"
    ]
    if stopped:
        unit = stopped[0].split()[0]
        return failed(
            METRICS,
            "exporter_not_running",
            f"The exporter ({method}) does not run.",
            "; ".join(stopped),
            f"Check journalctl --unit {unit.replace('.timer', '.service')}, then run "
            "kubegpu.nodes.site with --tags monitoring.",
        )
    if page is None:
        return untried(
            METRICS,
            "page_not_read",
            f"The exporter ({method}) runs. Its page has TLS or a login (gpu_monitoring_web_config)"
            ", which this run does not know.",
        )
    return _judge_page(node, method, page)


def _judge_page(node: Mapping[str, Any], method: str, page: Page) -> LayerResult:
    exporter = node["exporter"]
    place = exporter["output"] or exporter["page"]
    service = _UNITS[method][-1].replace(".timer", ".service")
    if page.text is None:
        return failed(
            METRICS,
            "exporter_no_answer",
            f"The metrics of the exporter ({method}) cannot be read: {place}.",
            shorten(page.error),
            f"Check journalctl --unit {service}.",
        )
    if page.age > _OLD:
        return failed(
            METRICS,
            "metrics_old",
            f"The metrics in {place} are {page.age:.0f} seconds old.",
            "",
            f"Check journalctl --unit {service}, and compare the clock of the node.",
        )
    wanted = {gpu["address"] for gpu in node["gpus"]} | set(exporter["expected_gpus"])
    wanted -= {gpu["address"] for gpu in passed_through(node)}
    shown = textfile_gpus(page.text) if method == TEXTFILE else dcgm_gpus(page.text)
    # DCGM writes addresses in another form; its GPUs are counted.
    missing = sorted(wanted - shown) if method == TEXTFILE else []
    if missing or len(shown) < len(wanted):
        return failed(
            METRICS,
            "gpu_without_metrics",
            f"The exporter ({method}) has samples of {len(shown)} of {len(wanted)} GPUs.",
            f"missing: {', '.join(missing)}" if missing else "",
            "Compare with lspci and nvidia-smi -L: a GPU that it lacks has fallen off the bus, was "
            "taken out (gpu_monitoring_expected_gpus) or is not driven. If all are there, DCGM "
            "does not support the others.",
        )
    return works(METRICS, f"{place} has samples of {count_of(len(shown), 'GPU')}")


def _without(exporter: Mapping[str, Any]) -> LayerResult:
    others = [unit for unit, state in exporter["foreign_units"].items() if state]
    others += [EXPORTER_UNIT] if exporter["units"].get(EXPORTER_UNIT) else []
    if others:
        return untried(
            METRICS, "foreign_exporter", f"{', '.join(others)} is not of this collection."
        )
    return failed(
        METRICS,
        "exporter_missing",
        "This collection has set up no exporter on this host.",
        "",
        "Run kubegpu.nodes.site with --tags monitoring; its table says why it leaves a host out.",
    )
