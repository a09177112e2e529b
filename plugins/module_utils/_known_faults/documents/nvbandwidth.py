# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read what ``nvbandwidth`` prints, as JSON or as text. Pure.

Each test has a matrix of texts in GB/s: a column for each GPU, and a row for each GPU that it is
measured against, or one for the host. A pair without a value is ``N/A``.

nvbandwidth compares what it copied with a pattern. Releases differ in what they print for data that
arrived wrong: a line of the comparing kernel before the JSON, an assertion, or an error in it
(github.com/NVIDIA/nvbandwidth, memcpy.cpp and kernels.cu; read 2026-11-27).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._core.finding import ERROR, Finding
from ..._core.printable import printable
from .printed import find_object

Object = Mapping[str, Any]
#: Values by row and column.
Cells = Mapping["tuple[int, int]", float]

_ROOT = "nvbandwidth"
_MOST = 500
# Of a line, in front of what is searched in it.
_BEFORE = 100
PASSED, WAIVED = "passed", "waived"
_NO_PAIR = "n/a"
_WRONG_DATA = re.compile(r"Invalid value when checking the pattern|h_errorFlag\s*==\s*0", re.I)


@dataclass(frozen=True)
class Bandwidth:
    """What a run says.

    :param cases: its tests, by their names.
    :param error: what ended it, or a part of it.
    :param wrong: data that arrived wrong.
    """

    cases: Mapping[str, Object] = field(default_factory=dict)
    error: str = ""
    wrong: Finding | None = None
    version: str = ""


def read_document(text: str, errors: str = "") -> Bandwidth:
    """Return what a run printed.

    :param text: standard output.
    :param errors: standard error.
    """
    try:
        data = (_object(text) or {})[_ROOT]
        cases = {str(one["name"]): one for one in data["testcases"]} if data else {}
    except (KeyError, TypeError):
        data, cases = None, {}
    if not isinstance(data, Mapping):
        return Bandwidth(cases, wrong=_wrong_data(f"{text}\n{errors}", cases))
    said = str(data.get("error") or "")
    # What its JSON says is shorter than the JSON itself.
    wrong = _wrong_data(said, cases) or _wrong_data(f"{text}\n{errors}", cases)
    return Bandwidth(cases, said, wrong, printable(str(data.get("git_version") or "")))


def _object(text: str) -> Object | None:
    return find_object(text, _ROOT) if f'"{_ROOT}"' in text else None


def findings(text: str) -> list[Finding] | None:
    """Return what a run says; None if the text is none."""
    run = read_document(text)
    if not run.cases and not run.error and run.wrong is None:
        return None
    found = [run.wrong] if run.wrong else [reported(run.error)] if run.error else []
    for name, case in run.cases.items():
        judged = unmeasured(name, case, run.error)
        found += [judged] if judged else []
    return found


def unmeasured(test: str, case: Object, said: str = "") -> Finding | None:
    """Return that a test has no values; None if it has them, or was waived.

    :param said: the error of the whole run.
    """
    status = str(case.get("status") or "not run").lower()
    if status == WAIVED:
        return None
    if status != PASSED:
        return failed(test, status, str(case.get("error") or said))
    values, bad = read_cells(case.get("bandwidth_matrix"))
    if not values:
        return failed(test, "without a value", ", ".join(bad))
    if bad:
        return failed(test, f"with a value that is not a bandwidth: {bad[0][:20]}", "")
    return None


def read_cells(matrix: Any) -> tuple[dict[tuple[int, int], float], list[str]]:
    """Return the values by row and column, and what is neither a bandwidth nor ``N/A``."""
    found: dict[tuple[int, int], float] = {}
    bad = []
    rows = matrix if isinstance(matrix, Sequence) and not isinstance(matrix, str) else ()
    for row, cells in enumerate(rows):
        for column, cell in enumerate(cells if isinstance(cells, Sequence) else ()):
            try:
                value = float(cell)
            except (TypeError, ValueError):
                value = math.nan
            if math.isfinite(value) and value > 0:
                found[row, column] = value
            elif str(cell).lower() != _NO_PAIR:
                bad.append(str(cell))
    return found, bad


def _wrong_data(text: str, cases: Mapping[str, Any]) -> Finding | None:
    """Return the finding of data that arrived wrong; None if nothing says so."""
    told = "; ".join(str(one["error"]) for one in cases.values() if one.get("error"))
    text = f"{text}\n{told}"
    seen = _WRONG_DATA.search(text)
    if seen is None:
        return None
    begin = max(text.rfind("\n", 0, seen.start()) + 1, seen.start() - _BEFORE)
    running = re.findall(r"Running (\w+)\.", text[:begin])
    ended = [
        name
        for name, one in cases.items()
        if str(one.get("status")).lower() not in (PASSED, WAIVED)
    ]
    tests = ended or running[-1:]
    if tests and all("device_to_device" in one for one in tests):
        where = "between GPUs"
    elif tests and not any("device_to_device" in one for one in tests):
        where = "between the host and a GPU"
    else:
        where = "between GPUs, or between the host and a GPU"
    return Finding(
        "nvbandwidth_wrong_data",
        f"Data is corrupted in copies {where}: nvbandwidth read other data than it wrote.",
        printable("; ".join((*tests, text[begin : begin + _MOST].strip()))),
        "Keep work off this node. Check NVLink (nvidia-smi nvlink -e), at memory errors "
        "(gpu_node_health), and at direct access between GPUs over PCI Express: IOMMU and ACS "
        "can divert it (on bare metal ACS off, or iommu=pt). In a virtual machine, see that "
        "its GPUs are of one partition of the fabric. Then accept the node again.",
        severity=ERROR,
    )


def reported(said: str) -> Finding:
    """Return the error that a run reports."""
    return Finding(
        "nvbandwidth_error",
        "nvbandwidth reports an error, so that what it measured is not all.",
        printable(said)[:_MOST],
        "Run nvbandwidth on the node, and check dmesg | grep -i -e NVRM -e Xid.",
        severity=ERROR,
    )


def failed(test: str, status: str, said: str) -> Finding:
    """Return that a test ended without its values."""
    return Finding(
        "bandwidth_not_measured",
        printable(f"The test {test} of nvbandwidth ended as {status}."),
        printable(said)[:_MOST],
        "Run nvbandwidth on the node, and check dmesg | grep -i -e NVRM -e Xid.",
        severity=ERROR,
    )
