# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Draw the dashboard of the role gpu_monitoring as a picture: ``python -m tests.tools.dashboard``.

Places, titles, units and legends are those of the dashboard's JSON, with the metrics that the
exporter collects in a cluster by default. The curves are made-up values, and the picture says so:
no Grafana and no GPU took part.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from plugins.module_utils._monitoring.dashboard import (
    dashboard_document,
)
from plugins.module_utils._monitoring.metrics import DCGM
from tests.tools.environments import REPOSITORY

PICTURE = REPOSITORY / "docs" / "pictures" / "dashboard.svg"
# In pixels: a column and a row of Grafana's grid, the head of the page, and the legend's column.
COLUMN, ROW, HEAD, LEGEND = 46, 23, 64, 190
POINTS = 49
COLOURS = ("#73bf69", "#f2cc0c", "#5794f2")
NODES = (("gpu1", "0"), ("gpu1", "1"), ("gpu2", "0"))
PODS = ("ml/train-0", "ml/train-1", "notebooks/anna")
_FIELD = re.compile(r"{{(\w+)}}")
# The largest value of a panel's axis by its title; of the others it is 1.
_TOP = {"GPUs": 2.0, "Memory in use": 80e9, "Memory in use, by pod": 80e9, "Temperature": 100.0,
        "Power": 400.0, "Clock": 1.6e9, "PCI Express": 20e9}  # fmt: skip
# The curve of a panel without and with work, as shares of its axis.
_IDLE_AND_BUSY = {"Temperature": (0.34, 0.68), "Power": (0.15, 0.75), "Clock": (0.13, 0.88),
                  "PCI Express": (0.01, 0.35)}  # fmt: skip
_SCALES = ((1e9, "G"), (1e6, "M"), (1.0, ""))
_UNITS = {"bytes": "B", "Bps": "B/s", "hertz": "Hz", "celsius": " °C", "watt": " W", "none": ""}


def draw(document: Mapping[str, Any]) -> str:
    """Return the dashboard as SVG."""
    panels = document["panels"]
    wide = max(panel["gridPos"]["x"] + panel["gridPos"]["w"] for panel in panels) * COLUMN
    high = HEAD + max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels) * ROW
    variables = " · ".join(f"{one['label']}: All" for one in document["templating"]["list"][1:])
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" '
        f'height="{high}" role="img" font-family="Inter, Helvetica, Arial, sans-serif">\n'
        "<!-- Drawn by tests/tools/dashboard.py. -->\n"
        '<rect width="100%" height="100%" fill="#111217"/>\n',
        _text(12, 26, document["title"], size=17),
        _text(12, 50, variables, colour="#9fa7b3"),
        _text(
            wide - 12, 26, "Drawn from the dashboard's JSON with example values", end=True,
            colour="#f2cc0c",
        ),
        _text(wide - 12, 50, f"{document['time']['from']} to {document['time']['to']}", end=True,
              colour="#9fa7b3"),
    ]  # fmt: skip
    drawn += [_panel(panel) for panel in panels]
    return "".join([*drawn, "</svg>\n"])


def _panel(panel: Mapping[str, Any]) -> str:
    place = panel["gridPos"]
    x, y = place["x"] * COLUMN + 4, HEAD + place["y"] * ROW + 4
    wide, high = place["w"] * COLUMN - 8, place["h"] * ROW - 8
    unit, title = panel["fieldConfig"]["defaults"]["unit"], str(panel["title"])
    top = _TOP.get(title, 1.0)
    left, right, above, below = x + 58, x + wide - LEGEND, y + 34, y + high - 26
    drawn = [
        f'<rect x="{x}" y="{y}" width="{wide}" height="{high}" rx="2" fill="#181b1f" '
        'stroke="#2c3235"/>\n',
        _text(x + 10, y + 20, title, size=13),
    ]
    for share in (0.0, 0.5, 1.0):
        at = below - share * (below - above)
        drawn.append(f'<path d="M{left} {at:.0f}H{right}" stroke="#2c3235"/>\n')
        drawn.append(_text(left - 6, at + 4, _amount(share * top, unit), end=True, small=True))
    for number, hour in enumerate(("06:00", "08:00", "10:00", "12:00")):
        at = left + number * (right - left) / 3
        drawn.append(_text(at - 14, below + 17, hour, small=True))
    for number, (legend, curve) in enumerate(_series(title, panel["targets"])):
        colour = COLOURS[number % len(COLOURS)]
        values = [max(0.0, min(1.0, curve(at / (POINTS - 1)))) for at in range(POINTS)]
        points = " ".join(
            f"{left + at * (right - left) / (POINTS - 1):.0f},{below - v * (below - above):.0f}"
            for at, v in enumerate(values)
        )
        drawn.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>\n')
        line = y + 44 + 17 * number
        drawn.append(
            f'<rect x="{right + 14}" y="{line - 4}" width="10" height="3" fill="{colour}"/>\n'
        )
        drawn.append(_text(right + 29, line, legend, small=True))
        drawn.append(
            _text(x + wide - 10, line, _amount(values[-1] * top, unit), end=True, small=True)
        )
    return "".join(drawn)


def _series(
    title: str, targets: Sequence[Mapping[str, Any]]
) -> list[tuple[str, Callable[[float], float]]]:
    """Return legend and curve of each line: for each node, GPU or pod what an example has."""
    found = []
    for target in targets:
        fields = set(_FIELD.findall(target["legendFormat"]))
        examples: list[dict[str, str]] = [{"hostname": node, "gpu": gpu} for node, gpu in NODES]
        if "pod" in fields:
            examples = [
                dict(zip(("namespace", "pod"), pod.split("/"), strict=True)) for pod in PODS
            ]
        elif "gpu" not in fields:
            examples = [{"hostname": name} for name in sorted({node for node, _gpu in NODES})]
        elif "xid" in fields:
            examples = [{"hostname": "gpu2", "gpu": "0", "xid": "31"}]
        elif "clock_event" in fields:
            examples = [{"hostname": "gpu1", "gpu": "1", "clock_event": "sw_power_cap"}]
        elif len(targets) > 1:
            examples = examples[:1]
        for example in examples:
            # A label that an example does not have, such as that of MIG, leaves nothing.
            words = [
                example.get(word, "") if at % 2 else word
                for at, word in enumerate(_FIELD.split(target["legendFormat"]))
            ]
            found.append((" ".join("".join(words).split()), _curve(title, len(found))))
    return found


def _curve(title: str, number: int) -> Callable[[float], float]:
    """Return a curve between 0 and 1; a title has the same one in each run."""
    if title == "GPUs":
        return lambda _at: 1.0 if number == 0 else 0.5
    if title in ("Xids", "Reasons for slower clocks"):
        return lambda at: float(0.55 < at < 0.63)
    if title.startswith("Memory errors"):
        return lambda _at: 0.0
    idle, busy = _IDLE_AND_BUSY.get(title, (0.02, 0.86))
    share, waves = (1.0, 0.9, 0.4)[number % 3], 0.0 if title.startswith("Memory in use") else 0.05

    def curve(at: float) -> float:
        # The second GPU begins its work later, the third one has short jobs.
        if not (True, at > 0.28, (at * 4) % 1 > 0.45)[number % 3]:
            return idle
        wave = math.sin(23 * at + 2 * number) + 0.6 * math.sin(61 * at + number)
        return idle + (busy - idle) * share * (1 + waves * wave)

    return curve


def _amount(value: float, unit: str) -> str:
    if unit == "percentunit":
        return f"{100 * value:.0f}%"
    if unit in ("celsius", "watt", "none"):
        return f"{value:.3g}{_UNITS[unit]}"
    factor, letter = next(one for one in _SCALES if value >= one[0] or one[0] == 1.0)
    return f"{value / factor:.3g} {letter}{_UNITS[unit]}"


def _text(
    x: float, y: float, text: str, *, size: int = 12, colour: str = "#ccccdc",
    end: bool = False, small: bool = False,
) -> str:  # fmt: skip
    anchor = ' text-anchor="end"' if end else ""
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="{11 if small else size}" fill="{colour}"'
        f"{anchor}>{escape(text)}</text>\n"
    )


def picture() -> str:
    """Return the picture of the dashboard with what DCGM's exporter collects by default."""
    names = frozenset(metric.name for metric in DCGM)
    return draw(dashboard_document(names))


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
