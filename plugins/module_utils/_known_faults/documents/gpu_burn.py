# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read what ``gpu_burn`` prints. Pure.

It ends with status 0 also if a GPU is faulty, and its last lines say OK of each GPU for which it
counted no error, also of one that computed nothing (wilicc/gpu-burn#14, #124). So the progress
counts as well: it has the iterations of each GPU, -1 for one whose process ended. Progress is
written without line feeds, so that only the end of the output is kept; it has the last counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..._core.finding import ERROR, Finding, Subject
from ..._core.printable import printable

_TESTED = re.compile(r"Tested (\d{1,5}) GPUs?:")
_GPU = re.compile(r"^[ \t]*GPU (\d{1,5}): (\S+)", re.M)
_COUNT = re.compile(r"(-?\d{1,12}) \(")
# A negative count has its sign right before it.
_BETWEEN = re.compile(r"-\s")
_NUMBER = re.compile(r"-?\d{1,12}")
# Errors before any progress: gpu_burn-drv.cpp, startBurn.
_REFUSED = re.compile(r"Couldn't init (?:a GPU test|CUDA): [^\n]{1,200}")
_OK = "OK"
# The count of a GPU whose process ended.
_DIED = -1
_MOST = 500
LOOK = "Check dmesg | grep -i -e NVRM -e Xid"
_WRONG_STEP = (
    "Keep work off this GPU. Check dmesg | grep -i -e NVRM -e Xid, power and cooling; a GPU "
    "that computes wrongly again is returned to its vendor (RMA)."
)
_STOPPED_STEP = (
    "Keep work off this GPU. Read what gpu_burn prints before its progress (memory, cuBLAS, "
    f"compare.ptx). {LOOK}, then accept the node again."
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


@dataclass(frozen=True)
class Burn:
    """What a run says.

    :param judged: what is wrong with its GPUs.
    :param ended: whether it printed its last lines.
    :param ran: whether it printed them and the progress of a GPU.
    :param complete: how many GPUs have progress and a result.
    :param counted: how many it tested, by its own count.
    :param said: the end of its output.
    """

    judged: tuple[Finding, ...] = ()
    ended: bool = False
    ran: bool = False
    complete: int = 0
    counted: int = 0
    said: str = ""


def read_document(text: str, errors: str = "") -> Burn:
    """Return what the progress and the last lines say of each GPU.

    :param text: the end of the standard output.
    """
    ends = list(_TESTED.finditer(text))
    told = _states(text[ends[-1].end() :]) if ends else {}
    # Of two runs in one output the last one counts.
    begin = ends[-2].end() if len(ends) > 1 else 0
    progress = _progress(text[begin : ends[-1].start()]) if ends else []
    said = _said(text[begin:], errors)
    if not told or not progress:
        return Burn(ended=bool(told), said=said)
    complete = sorted(number for number in told if number < len(progress))
    judged = [one for n in complete for one in _of_gpu(n, told[n], progress[n], said)]
    return Burn(tuple(judged), True, True, len(complete), int(ends[-1].group(1)), said)


def _said(text: str, errors: str) -> str:
    """Return why a GPU was not started, where that is said, and the end of the output."""
    end = (errors.strip() or text.strip())[-_MOST:]
    why = [one.group() for one in _REFUSED.finditer(f"{text}\n{errors}")]
    named = "; ".join(one for one in dict.fromkeys(why) if one not in end)
    return printable(f"{named[:_MOST]}; {end}" if named else end)


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


def _of_gpu(number: int, status: str, gpu: _Gpu, said: str) -> list[Finding]:
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
    return [replace(finding, severity=ERROR, subject=Subject(part=f"GPU {number}"))]


def not_run(burn: Burn, how: str = "") -> Finding:
    """Return that no GPU was tested.

    :param how: how the program ended.
    """
    what = "no progress of any GPU, so that none was tested" if burn.ended else "no result"
    return Finding(
        "gpu_burn_not_run",
        f"gpu_burn printed {what}{',' if burn.ended and how else ''}{how}.",
        burn.said,
        "Run gpu_burn on the node: it needs the kernel compare.ptx that was built with it, and a "
        "driver for its CUDA. A burn has to be longer than the first calculation of a GPU takes.",
        severity=ERROR,
    )


def findings(text: str) -> list[Finding] | None:
    """Return what a run says; None if the text is none."""
    if not _TESTED.search(text):
        return None
    burn = read_document(text)
    return list(burn.judged) if burn.ran else [not_run(burn)]
