# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the output of ``gpu_burn``. Pure.

It ends with status 0 also if a GPU is faulty: its last lines tell it. While it burns it writes
progress without line feeds, so that only the end of the output is kept.
"""

from __future__ import annotations

import re

from .._core.finding import Finding
from .._core.printable import printable
from .types import Judged, ProgramResult

_TESTED = re.compile(r"Tested (\d+) GPUs?:")
_GPU = re.compile(r"^[ \t]*GPU (\d+): (\S+)", re.M)
_OK = "OK"
_MOST = 500
_STEP = (
    "Keep work off this GPU. Look at dmesg | grep -i -e NVRM -e Xid, at power and cooling; a GPU "
    "that computes wrongly again is returned to its vendor (RMA)."
)


def read_burn(text: str, rc: int | None, errors: str, expected: int) -> ProgramResult:
    """Return what the last lines say of each GPU.

    :param text: the end of the standard output.
    :param rc: the exit status; None for a program that was ended.
    :param expected: how many GPUs the node has.
    """
    matches = list(_TESTED.finditer(text))
    if not matches:
        how = "was ended" if rc is None else f"ended with status {rc}"
        return ProgramResult(
            judged=(
                Judged(
                    Finding(
                        "gpu_burn_not_run",
                        f"gpu_burn printed no result and {how}.",
                        printable((errors.strip() or text.strip())[-_MOST:]),
                        "Run gpu_burn on the node: it needs the kernel compare.ptx that was built "
                        "with it, and a driver for its CUDA.",
                    )
                ),
            )
        )
    told = _GPU.findall(text[matches[-1].end() :])
    judged = [
        Judged(
            Finding(
                "gpu_burn_faulty",
                printable(f"GPU {gpu} computed wrong results under load."),
                printable(f"gpu_burn: GPU {gpu}: {status}"),
                _STEP,
            ),
            subject=f"GPU {gpu}",
        )
        for gpu, status in told
        if status != _OK
    ]
    if len(told) < expected:
        judged.append(
            Judged(
                Finding(
                    "gpu_burn_incomplete",
                    f"gpu_burn tested {len(told)} of {expected} GPUs.",
                    printable(matches[-1].group(0)),
                    "Look at its output for DIED, and at dmesg | grep -i -e NVRM -e Xid.",
                )
            )
        )
    return ProgramResult(judged=tuple(judged))
