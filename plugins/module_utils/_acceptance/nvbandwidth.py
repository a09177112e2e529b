# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the output of ``nvbandwidth --json``, and compare GPUs of one kind. Pure.

Each test has a matrix of texts in GB/s: a column for each GPU, and a row for each GPU that it is
measured against, or one for the host. A pair without a value is ``N/A``.

A pair of GPUs that is slow says nothing of which of them is: that is one without any fast pair.

nvbandwidth compares what it copied with a pattern. Releases differ in what they print for data that
arrived wrong: a line of the comparing kernel before the JSON, an assertion, or an error in it
(github.com/NVIDIA/nvbandwidth, memcpy.cpp and kernels.cu; read 2026-11-27).
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from .._core.finding import Finding
from .._core.printable import printable
from .data import BANDWIDTH_TESTS, BELOW_TWINS, FEWEST_TWINS, PAIRS
from .printed import find_object
from .types import ERROR, WARNING, Judged, ProgramResult

Object = Mapping[str, Any]
_ROOT = "nvbandwidth"
_MOST = 500
# Of a line, in front of what is searched in it.
_BEFORE = 100
_PASSED, _WAIVED = "passed", "waived"
_NO_PAIR = "n/a"
_WRONG_DATA = re.compile(r"Invalid value when checking the pattern|h_errorFlag\s*==\s*0", re.I)
_STEP = (
    "Check the width and speed of the link (gpu_node_health), the slot, NUMA and PCIe "
    "settings of the firmware (ACS, IOMMU), and at NVLink (nvidia-smi nvlink -s)."
)


def read_bandwidth(
    text: str, rc: int | None, errors: str, limits: Mapping[str, float], gpus: int = 0
) -> ProgramResult:
    """Return the bandwidth of each GPU, and those that are below their limits.

    :param text: standard output.
    :param rc: the exit status; None for a program that was ended.
    :param errors: standard error.
    :param limits: GB/s by the keys of ``BANDWIDTH_TESTS``; what has none is not judged.
    :param gpus: how many GPUs the node has; 0 if that is not known.
    """
    try:
        data = (find_object(text, _ROOT) or {})[_ROOT]
        cases = {str(one["name"]): one for one in data["testcases"]} if data else {}
    except (KeyError, TypeError):
        data, cases = None, {}
    said = str(data.get("error") or "") if isinstance(data, Mapping) else ""
    # What its JSON says is shorter than the JSON itself.
    wrong = _wrong_data(said, cases) or _wrong_data(f"{text}\n{errors}", cases)
    if not cases:
        return ProgramResult(judged=(wrong or Judged(_not_run(rc, said or errors or text)),))
    judged: list[Judged] = [wrong] if wrong else [_error(said)] if said else []
    values: dict[str, Mapping[str, float]] = {}
    skipped = []
    for name, test in BANDWIDTH_TESTS.items():
        case = cases.get(test) or {}
        status = str(case.get("status") or "not run").lower()
        why = str(case.get("error") or said)
        if status == _WAIVED and name == PAIRS:
            # One GPU has no other one to copy to.
            skipped.append(test)
            judged += [_pairs_waived(gpus)] if gpus > 1 else []
        elif status != _PASSED:
            judged.append(_failed(test, status, why))
        else:
            cells, bad = _cells(case.get("bandwidth_matrix"))
            values[name] = _best(cells) if name == PAIRS else _least(cells)
            judged += _gaps(name, cells, values[name], bad, gpus)
            judged += _below(name, cells, values[name], limits.get(name))
    if rc != 0 and not judged:
        judged.append(_ended_badly(rc, errors))
    version = str(data.get("git_version") or "") if isinstance(data, Mapping) else ""
    return ProgramResult(tuple(judged), values, tuple(skipped), printable(version))


def _cells(matrix: Any) -> tuple[dict[tuple[int, int], float], list[str]]:
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


def _gaps(
    name: str,
    cells: Mapping[tuple[int, int], float],
    values: Mapping[str, float],
    bad: Sequence[str],
    gpus: int,
) -> list[Judged]:
    """Return what is missing in the matrix of a test that says that it passed."""
    test = BANDWIDTH_TESTS[name]
    if not cells:
        return [_failed(test, "without a value", ", ".join(bad))]
    if bad:
        return [_failed(test, f"with a value that is not a bandwidth: {bad[0][:20]}", "")]
    # GPUs may have no access to each other, but each has one to the host.
    if name != PAIRS and len(values) < gpus:
        finding = Finding(
            "bandwidth_incomplete",
            f"The test {test} of nvbandwidth measured {len(values)} of {gpus} GPUs.",
            f"GPUs with a value: {', '.join(values)}",
            "See that CUDA_VISIBLE_DEVICES is not set for root, and check dmesg | grep -i -e "
            "NVRM -e Xid.",
        )
        return [Judged(finding)]
    return []


def _pairs_waived(gpus: int) -> Judged:
    return Judged(
        Finding(
            "bandwidth_pairs_waived",
            f"nvbandwidth measured no pair of the {gpus} GPUs: it found none whose GPUs can copy "
            "to each other.",
            f"{BANDWIDTH_TESTS[PAIRS]}: waived",
            "See nvidia-smi topo -p2p r. GPUs without NVLink may have no access to each other; "
            "with NVLink it is a fault of the fabric or of its fabric manager.",
        ),
        WARNING,
    )


def _wrong_data(text: str, cases: Mapping[str, Any]) -> Judged | None:
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
        if str(one.get("status")).lower() not in (_PASSED, _WAIVED)
    ]
    tests = ended or running[-1:]
    if tests and all("device_to_device" in one for one in tests):
        where = "between GPUs"
    elif tests and not any("device_to_device" in one for one in tests):
        where = "between the host and a GPU"
    else:
        where = "between GPUs, or between the host and a GPU"
    return Judged(
        Finding(
            "nvbandwidth_wrong_data",
            f"Data is corrupted in copies {where}: nvbandwidth read other data than it wrote.",
            printable("; ".join((*tests, text[begin : begin + _MOST].strip()))),
            "Keep work off this node. Check NVLink (nvidia-smi nvlink -e), at memory errors "
            "(gpu_node_health), and at direct access between GPUs over PCI Express: IOMMU and ACS "
            "can divert it (on bare metal ACS off, or iommu=pt). In a virtual machine, see that "
            "its GPUs are of one partition of the fabric. Then accept the node again.",
        )
    )


def _least(cells: Mapping[tuple[int, int], float]) -> dict[str, float]:
    """Return the least value of each column."""
    found: dict[str, float] = {}
    for (_row, column), value in cells.items():
        found[str(column)] = min(value, found.get(str(column), value))
    return found


def _best(cells: Mapping[tuple[int, int], float]) -> dict[str, float]:
    """Return the best pair of each GPU."""
    found: dict[str, float] = {}
    for pair, value in cells.items():
        for gpu in map(str, pair):
            found[gpu] = max(value, found.get(gpu, value))
    return dict(sorted(found.items()))


def _below(
    name: str,
    cells: Mapping[tuple[int, int], float],
    values: Mapping[str, float],
    limit: float | None,
) -> list[Judged]:
    if limit is None or not cells or min(cells.values()) >= limit:
        return []
    test = BANDWIDTH_TESTS[name]
    slow = {f"GPU {gpu}": value for gpu, value in values.items() if value < limit}
    if not slow:
        pair = min(cells, key=lambda one: cells[one])
        # Each of both copies fast with others: what is between them is slow.
        return [_low(name, test, f"Pair of GPU {pair[0]} and GPU {pair[1]}", cells[pair], limit)]
    return [_low(name, test, gpu, value, limit) for gpu, value in slow.items()]


def _low(name: str, test: str, what: str, value: float, limit: float) -> Judged:
    return Judged(
        Finding(
            "bandwidth_low",
            f"{what} copies with {value:g} GB/s ({test}), and at least {limit:g} are expected.",
            f"{test}: {value:g} GB/s, {name} is at least {limit:g}",
            f"{_STEP} gpu_acceptance_thresholds.{name} changes what is expected.",
        ),
        ERROR,
        what,
    )


def _error(said: str) -> Judged:
    return Judged(
        Finding(
            "nvbandwidth_error",
            "nvbandwidth reports an error, so that what it measured is not all.",
            printable(said)[:_MOST],
            "Run nvbandwidth on the node, and check dmesg | grep -i -e NVRM -e Xid.",
        )
    )


def _failed(test: str, status: str, said: str) -> Judged:
    return Judged(
        Finding(
            "bandwidth_not_measured",
            printable(f"The test {test} of nvbandwidth ended as {status}."),
            printable(said)[:_MOST],
            "Run nvbandwidth on the node, and check dmesg | grep -i -e NVRM -e Xid.",
        )
    )


def _ended_badly(rc: int | None, errors: str) -> Judged:
    how = "was ended" if rc is None else f"ended with status {rc}"
    return Judged(
        Finding(
            "nvbandwidth_ended_badly",
            f"nvbandwidth measured all, and {how} instead of status 0.",
            printable(errors.strip())[-_MOST:],
            "Run nvbandwidth on the node, and check dmesg | grep -i -e NVRM -e Xid.",
        )
    )


def _not_run(rc: int | None, said: str) -> Finding:
    how = "was ended" if rc is None else f"ended with status {rc}"
    return Finding(
        "nvbandwidth_not_run",
        f"nvbandwidth printed no result and {how}.",
        printable(said.strip())[-_MOST:],
        "Run nvbandwidth on the node: it needs a CUDA toolkit that the driver supports.",
    )


def compare_twins(
    measured: Mapping[str, tuple[str, Mapping[str, Mapping[str, float]]]],
) -> dict[str, list[Judged]]:
    """Return by host the GPUs that are slower than most GPUs of their product in the run.

    What is expected of a product may not be known; GPUs of one product should be alike.

    :param measured: product and values (as in ``ProgramResult``) of each host.
    """
    kinds: dict[tuple[str, str], list[tuple[str, str, float]]] = {}
    for host, (product, values) in measured.items():
        for name, by_gpu in values.items():
            kinds.setdefault((product, name), []).extend(
                (host, gpu, value) for gpu, value in by_gpu.items()
            )
    found: dict[str, list[Judged]] = {}
    for (product, name), rows in kinds.items():
        if len(rows) < FEWEST_TWINS or not product:
            continue
        middle = statistics.median(value for _host, _gpu, value in rows)
        for host, gpu, value in rows:
            if value < middle * (1 - BELOW_TWINS):
                finding = Finding(
                    "bandwidth_below_twins",
                    f"GPU {gpu} is slower than most GPUs of its product: {value:g} GB/s "
                    f"({BANDWIDTH_TESTS[name]}), and their median is {middle:g}.",
                    f"{len(rows)} GPUs {printable(product)}",
                    _STEP,
                )
                found.setdefault(host, []).append(Judged(finding, WARNING, f"GPU {gpu}"))
    return found
