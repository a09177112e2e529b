# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the bandwidths that ``nvbandwidth`` measured, and compare GPUs of one kind. Pure.

A pair of GPUs that is slow says nothing of which of them is: that is one without any fast pair.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from .._core.finding import ERROR, WARNING, Finding, Subject
from .._core.printable import printable
from .._known_faults.documents.nvbandwidth import (
    PASSED,
    WAIVED,
    failed,
    read_cells,
    read_document,
    reported,
    unmeasured,
)
from .._known_faults.predicates import Facts
from .causes import with_causes
from .data import BANDWIDTH_TESTS, BELOW_TWINS, FEWEST_TWINS, PAIRS
from .types import ProgramResult

_MOST = 500
_STEP = (
    "Check the width and speed of the link (gpu_node_health), the slot, NUMA and PCIe "
    "settings of the firmware (ACS, IOMMU), and at NVLink (nvidia-smi nvlink -s)."
)


def read_bandwidth(
    text: str,
    rc: int | None,
    errors: str,
    limits: Mapping[str, float],
    gpus: int = 0,
    facts: Facts | None = None,
) -> ProgramResult:
    """Return the bandwidth of each GPU, and those that are below their limits.

    :param text: standard output.
    :param rc: the exit status; None for a program that was ended.
    :param errors: standard error.
    :param limits: GB/s by the keys of ``BANDWIDTH_TESTS``; what has none is not judged.
    :param gpus: how many GPUs the node has; 0 if that is not known.
    :param facts: what of the node's facts decides between causes.
    """
    run = read_document(text, errors)
    if not run.cases:
        said = run.error or errors or text
        if run.wrong:
            return ProgramResult((run.wrong,))
        return ProgramResult(tuple(with_causes(_not_run(rc, said), text, errors, facts=facts)))
    judged = [run.wrong] if run.wrong else [reported(run.error)] if run.error else []
    values: dict[str, Mapping[str, float]] = {}
    skipped = []
    for name, test in BANDWIDTH_TESTS.items():
        case = run.cases.get(test) or {}
        status = str(case.get("status")).lower()
        if status == WAIVED:
            if name == PAIRS:
                # One GPU has no other one to copy to.
                skipped.append(test)
                judged += [_pairs_waived(gpus)] if gpus > 1 else []
            else:
                judged.append(failed(test, status, str(case.get("error") or run.error)))
            continue
        missing = unmeasured(test, case, run.error)
        judged += [missing] if missing else []
        if status == PASSED:
            cells, _bad = read_cells(case.get("bandwidth_matrix"))
            values[name] = _best(cells) if name == PAIRS else _least(cells)
            judged += [] if missing else _gaps(name, values[name], gpus)
            judged += _below(name, cells, values[name], limits.get(name))
    if rc != 0 and not judged:
        judged.append(_ended_badly(rc, errors))
    return ProgramResult(tuple(judged), values, tuple(skipped), run.version)


def _gaps(name: str, values: Mapping[str, float], gpus: int) -> list[Finding]:
    """Return which GPUs are missing in the matrix of a test that says that it passed."""
    # GPUs may have no access to each other, but each has one to the host.
    if name == PAIRS or len(values) >= gpus:
        return []
    finding = Finding(
        "bandwidth_incomplete",
        f"The test {BANDWIDTH_TESTS[name]} of nvbandwidth measured {len(values)} of {gpus} GPUs.",
        f"GPUs with a value: {', '.join(values)}",
        "See that CUDA_VISIBLE_DEVICES is not set for root, and check dmesg | grep -i -e "
        "NVRM -e Xid.",
        severity=ERROR,
    )
    return [finding]


def _pairs_waived(gpus: int) -> Finding:
    return Finding(
        "bandwidth_pairs_waived",
        f"nvbandwidth measured no pair of the {gpus} GPUs: it found none whose GPUs can copy "
        "to each other.",
        f"{BANDWIDTH_TESTS[PAIRS]}: waived",
        "See nvidia-smi topo -p2p r. GPUs without NVLink may have no access to each other; "
        "with NVLink it is a fault of the fabric or of its fabric manager.",
        severity=WARNING,
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
) -> list[Finding]:
    if limit is None or not cells or min(cells.values()) >= limit:
        return []
    test = BANDWIDTH_TESTS[name]
    slow = {f"GPU {gpu}": value for gpu, value in values.items() if value < limit}
    if not slow:
        pair = min(cells, key=lambda one: cells[one])
        # Each of both copies fast with others: what is between them is slow.
        return [_low(name, test, f"Pair of GPU {pair[0]} and GPU {pair[1]}", cells[pair], limit)]
    return [_low(name, test, gpu, value, limit) for gpu, value in slow.items()]


def _low(name: str, test: str, what: str, value: float, limit: float) -> Finding:
    return Finding(
        "bandwidth_low",
        f"{what} copies with {value:g} GB/s ({test}), and at least {limit:g} are expected.",
        f"{test}: {value:g} GB/s, {name} is at least {limit:g}",
        f"{_STEP} gpu_acceptance_thresholds.{name} changes what is expected.",
        severity=ERROR,
        subject=Subject(part=what),
    )


def _ended_badly(rc: int | None, errors: str) -> Finding:
    how = "was ended" if rc is None else f"ended with status {rc}"
    return Finding(
        "nvbandwidth_ended_badly",
        f"nvbandwidth measured all, and {how} instead of status 0.",
        printable(errors.strip())[-_MOST:],
        "Run nvbandwidth on the node, and check dmesg | grep -i -e NVRM -e Xid.",
        severity=ERROR,
    )


def _not_run(rc: int | None, said: str) -> Finding:
    how = "was ended" if rc is None else f"ended with status {rc}"
    return Finding(
        "nvbandwidth_not_run",
        f"nvbandwidth printed no result and {how}.",
        printable(said.strip())[-_MOST:],
        "Run nvbandwidth on the node: it needs a CUDA toolkit that the driver supports.",
        severity=ERROR,
    )


def compare_twins(
    measured: Mapping[str, tuple[str, Mapping[str, Mapping[str, float]]]],
) -> dict[str, list[Finding]]:
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
    found: dict[str, list[Finding]] = {}
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
                    severity=WARNING,
                    subject=Subject(part=f"GPU {gpu}"),
                )
                found.setdefault(host, []).append(finding)
    return found
