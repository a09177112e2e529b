# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the output of ``nvbandwidth --json``, and compare GPUs of one kind. Pure.

Each test has a matrix of texts in GB/s: a column for each GPU, and a row for each GPU that it is
measured against, or one for the host. A pair without a value is ``N/A``.

A pair of GPUs that is slow says nothing of which of them is: that is one without any fast pair.
"""

from __future__ import annotations

import math
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
_PASSED, _WAIVED = "passed", "waived"
_STEP = (
    "Look at the width and speed of the link (gpu_node_health), at the slot, at NUMA and PCIe "
    "settings of the firmware (ACS, IOMMU), and at NVLink (nvidia-smi nvlink -s)."
)


def read_bandwidth(
    text: str, rc: int | None, errors: str, limits: Mapping[str, float]
) -> ProgramResult:
    """Return the bandwidth of each GPU, and those that are below their limits.

    :param text: standard output.
    :param rc: the exit status; None for a program that was ended.
    :param errors: standard error.
    :param limits: GB/s by the keys of ``BANDWIDTH_TESTS``; what has none is not judged.
    """
    try:
        data = (find_object(text, _ROOT) or {})[_ROOT]
        cases = {str(one["name"]): one for one in data["testcases"]} if data else {}
    except (KeyError, TypeError):
        data, cases = None, {}
    said = str(data.get("error") or "") if isinstance(data, Mapping) else ""
    if not cases:
        return ProgramResult(judged=(Judged(_not_run(rc, said or errors or text)),))
    judged: list[Judged] = [_error(said)] if said else []
    values: dict[str, Mapping[str, float]] = {}
    skipped = []
    for name, test in BANDWIDTH_TESTS.items():
        case = cases.get(test)
        status = str((case or {}).get("status")).lower()
        if case is None:
            judged.append(_failed(test, "not run", said))
        elif status == _WAIVED:
            # One GPU has no other one to copy to.
            skipped.append(test)
        elif status != _PASSED:
            judged.append(_failed(test, status, said))
        else:
            cells = _cells(case.get("bandwidth_matrix"))
            values[name] = _best(cells) if name == PAIRS else _least(cells)
            if not cells:
                judged.append(_failed(test, "without a value", said))
            judged += _below(name, cells, values[name], limits.get(name))
    if not values and not judged:
        judged.append(Judged(_not_run(rc, said or "all tests were waived")))
    version = str(data.get("git_version") or "") if isinstance(data, Mapping) else ""
    return ProgramResult(tuple(judged), values, tuple(skipped), printable(version))


def _cells(matrix: Any) -> dict[tuple[int, int], float]:
    """Return the values by row and column; what is no number is left out."""
    found: dict[tuple[int, int], float] = {}
    rows = matrix if isinstance(matrix, Sequence) and not isinstance(matrix, str) else ()
    for row, cells in enumerate(rows):
        for column, cell in enumerate(cells if isinstance(cells, Sequence) else ()):
            try:
                value = float(cell)
            except (TypeError, ValueError):
                continue
            if math.isfinite(value):
                found[row, column] = value
    return found


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
            "Run nvbandwidth on the node, and look at dmesg | grep -i -e NVRM -e Xid.",
        )
    )


def _failed(test: str, status: str, said: str) -> Judged:
    return Judged(
        Finding(
            "bandwidth_not_measured",
            printable(f"The test {test} of nvbandwidth ended as {status}."),
            printable(said)[:_MOST],
            "Run nvbandwidth on the node, and look at dmesg | grep -i -e NVRM -e Xid.",
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
