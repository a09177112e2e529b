# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read what ``nvidia-smi -q`` and ``nvidia-smi`` print for people as elements of ``-q -x``. Pure.

The names of the report follow from those of the document, but for a few (``NAMES``). The table
without options has the address, the memory errors and what cannot be read only.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from ..rules.nvidia_smi import ERROR_TEXT, NAMES

_MOST_LINES = 100_000
_GPU = re.compile(r"GPU (?P<address>[0-9a-fA-F]{8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d)\s*\Z")
# Blanks before a name, and the length of a name.
_INDENT = range(4, 41)
_MOST_NAME = 60
_NO_NAME = re.compile(r"[^a-z0-9]+")
# Index, name, persistence mode; address, display; errors of memory that were not corrected.
_ROW = re.compile(
    r"\|\s{1,4}\d{1,3}\s{1,4}[^|\n]{1,60}\|\s{1,4}(?P<address>[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:"
    r"[0-9A-Fa-f]{2}\.\d) [^|\n]{0,12}\|\s{0,40}(?P<errors>\S{1,20})\s{0,4}\|\s*\Z"
)
# The columns of the second line that nvidia-smi replaces by a text if it cannot read them.
_COLUMNS = ("fan_speed", "temperature", "performance_state")


def from_text(text: str) -> list[Any]:
    """Return an element ``gpu`` for each GPU in the text; none if it has another form."""
    lines = [line.rstrip("\r") for line in text.split("\n", _MOST_LINES)[:_MOST_LINES]]
    return _report(lines) or _table(lines)


def _element(tag: str, value: str = "") -> Any:
    # Slow to import, and rarely needed.
    element = importlib.import_module("xml.etree.ElementTree").Element(tag)
    element.text = value
    return element


def _gpu(address: str) -> Any:
    gpu = _element("gpu")
    gpu.set("id", address)
    return gpu


def _report(lines: list[str]) -> list[Any]:
    """Return the GPUs of ``nvidia-smi -q``, whose levels are indented by four blanks each."""
    gpus: list[Any] = []
    above: list[tuple[int, str, Any]] = []
    for line in lines:
        title = _GPU.match(line)
        if title:
            gpus.append(_gpu(title["address"]))
            above = [(0, "", gpus[-1])]
            continue
        entry = line.lstrip(" ")
        indent = len(line) - len(entry)
        name, _colon, value = (part.strip() for part in entry.partition(":"))
        if not above or indent not in _INDENT or not 0 < len(name) <= _MOST_NAME:
            # Another text begins, if it is not an empty line.
            above = above if not entry.strip() else []
            continue
        while len(above) > 1 and above[-1][0] >= indent:
            above.pop()
        name = _NO_NAME.sub("_", name.lower()).strip("_")
        path = f"{above[-1][1]}/{name}".lstrip("/")
        element = _element(NAMES.get(path, path).rpartition("/")[2], value)
        above[-1][2].append(element)
        above.append((indent, path, element))
    return gpus


def _table(lines: list[str]) -> list[Any]:
    """Return the GPUs of ``nvidia-smi``, with two lines for each."""
    gpus = []
    for line, below in zip(lines, [*lines[1:], ""]):
        row = _ROW.match(line)
        if row is None:
            continue
        gpu = _gpu(row["address"])
        errors = _element("ecc_errors")
        volatile = _element("volatile")
        volatile.append(_element("dram_uncorrectable", row["errors"]))
        errors.append(volatile)
        gpu.append(errors)
        cells = below.partition("|")[2].partition("|")[0].split()
        for name, cell in zip(_COLUMNS, cells):
            if cell == ERROR_TEXT:
                gpu.append(_element(name, cell))
        gpus.append(gpu)
    return gpus
