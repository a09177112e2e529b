# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the output of ``gpu_burn``. Pure.

It ends with status 0 also if a GPU is faulty, and its last lines say OK of each GPU for which it
counted no error, also of one that computed nothing (wilicc/gpu-burn#14, #124). So the progress
counts as well: it has the iterations of each GPU, -1 for one whose process ended. Progress is
written without line feeds, so that only the end of the output is kept; it has the last counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .._core.finding import Finding
from .._core.printable import printable
from .types import Judged, ProgramResult

_TESTED = re.compile(r"Tested (\d{1,5}) GPUs?:")
_GPU = re.compile(r"^[ \t]*GPU (\d{1,5}): (\S+)", re.M)
_COUNT = re.compile(r"(-?\d{1,12}) \(")
# A negative count has its sign right before it.
_BETWEEN = re.compile(r"-\s")
_NUMBER = re.compile(r"-?\d{1,12}")
_OK = "OK"
# The count of a GPU whose process ended.
_DIED = -1
_MOST = 500
_LOOK = "Check dmesg | grep -i -e NVRM -e Xid"
_WRONG_STEP = (
    "Keep work off this GPU. Check dmesg | grep -i -e NVRM -e Xid, power and cooling; a GPU "
    "that computes wrongly again is returned to its vendor (RMA)."
)
_STOPPED_STEP = (
    "Keep work off this GPU. Read what gpu_burn prints before its progress (memory, cuBLAS, "
    f"compare.ptx). {_LOOK}, then accept the node again."
)


@dataclass(frozen=True)
class _Gpu:
    """What the last line of progress says of a GPU."""

    iterations: int
    errors: str = ""

    @property
    def died(self) -> bool:
        return self.iterations == _DIED or "DIED" in self.errors

    @property
    def wrong(self) -> bool:
        """Whether wrong results were counted; a process that ended counts -1."""
        count = _NUMBER.search(self.errors)
        return not self.died and count is not None and int(count.group()) != 0


def read_burn(text: str, rc: int | None, errors: str, expected: int) -> ProgramResult:
    """Return what the progress and the last lines say of each GPU.

    :param text: the end of the standard output.
    :param rc: the exit status; None for a program that was ended.
    :param expected: how many GPUs the node has.
    """
    ends = list(_TESTED.finditer(text))
    told = _states(text[ends[-1].end() :]) if ends else {}
    # Of two runs in one output the last one counts.
    begin = ends[-2].end() if len(ends) > 1 else 0
    progress = _progress(text[begin : ends[-1].start()]) if ends else []
    said = printable((errors.strip() or text.strip())[-_MOST:])
    if not told or not progress:
        return ProgramResult(judged=(Judged(_not_run(rc, bool(told), said)),))
    judged = []
    complete = sorted(number for number in told if number < len(progress))
    for number in complete:
        judged += _of_gpu(number, told[number], progress[number], said)
    wanted = max(expected, int(ends[-1].group(1)))
    if len(complete) < wanted:
        judged.append(Judged(_incomplete(len(complete), wanted, said)))
    if rc != 0 and not judged:
        judged.append(Judged(_ended_badly(rc, said)))
    return ProgramResult(judged=tuple(judged))


def _states(text: str) -> dict[int, str]:
    """Return what the last lines say of each GPU; of two lines the one that is not OK."""
    found: dict[int, str] = {}
    for number, status in _GPU.findall(text):
        if found.get(int(number), _OK) == _OK:
            found[int(number)] = status
    return found


def _progress(text: str) -> list[_Gpu]:
    """Return the GPUs of the last line of progress."""
    for line in reversed(re.split(r"[\r\n]", text)):
        told = line.rpartition("proc'd:")[2] if "proc'd:" in line else ""
        counts, errors_key, rest = told.partition("errors:")
        if errors_key:
            errors = _BETWEEN.split(rest.partition("temps:")[0])
            return [
                _Gpu(int(count), errors[number].strip() if number < len(errors) else "")
                for number, count in enumerate(_COUNT.findall(counts))
            ]
    return []


def _of_gpu(number: int, status: str, gpu: _Gpu, said: str) -> list[Judged]:
    """Return what is wrong with a GPU; empty if it computed, and computed rightly."""
    seen = f"gpu_burn: GPU {number}: {status}, proc'd: {gpu.iterations}, errors: {gpu.errors}"
    if gpu.died:
        finding = Finding(
            "gpu_burn_died",
            f"The process of gpu_burn on GPU {number} ended before the test did.",
            printable(f"{seen}; {said}")[:_MOST],
            _STOPPED_STEP,
        )
    elif gpu.iterations == 0:
        finding = Finding(
            "gpu_burn_no_work",
            f"GPU {number} computed nothing: gpu_burn counts no iteration on it.",
            printable(f"{seen}; {said}")[:_MOST],
            _STOPPED_STEP,
        )
    elif status != _OK or gpu.wrong:
        finding = Finding(
            "gpu_burn_faulty",
            f"GPU {number} computed wrong results under load.",
            printable(seen)[:_MOST],
            _WRONG_STEP,
        )
    else:
        return []
    return [Judged(finding, subject=f"GPU {number}")]


def _not_run(rc: int | None, told: bool, said: str) -> Finding:
    how = "was ended" if rc is None else f"ended with status {rc}"
    what = "no progress of any GPU, so that none was tested," if told else "no result"
    return Finding(
        "gpu_burn_not_run",
        f"gpu_burn printed {what} and {how}.",
        said,
        "Run gpu_burn on the node: it needs the kernel compare.ptx that was built with it, and a "
        "driver for its CUDA. A burn has to be longer than the first calculation of a GPU takes.",
    )


def _incomplete(tested: int, expected: int, said: str) -> Finding:
    return Finding(
        "gpu_burn_incomplete",
        f"gpu_burn tested {tested} of {expected} GPUs.",
        said,
        f"See that CUDA_VISIBLE_DEVICES is not set for root. {_LOOK}.",
    )


def _ended_badly(rc: int | None, said: str) -> Finding:
    how = "was ended" if rc is None else f"ended with status {rc}"
    return Finding(
        "gpu_burn_ended_badly",
        f"gpu_burn said OK of each GPU, and {how} instead of status 0.",
        said,
        f"{_LOOK}, and accept the node again.",
    )
