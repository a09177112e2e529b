# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge what ``gpu_burn`` found. Pure."""

from __future__ import annotations

from .._core.finding import ERROR, Finding
from .._known_faults.documents.gpu_burn import LOOK, not_run, read_document
from .._known_faults.predicates import Facts
from .causes import with_causes
from .types import ProgramResult


def read_burn(
    text: str, rc: int | None, errors: str, expected: int, facts: Facts | None = None
) -> ProgramResult:
    """Return what is wrong with each GPU, and with the run.

    :param text: the end of the standard output.
    :param rc: the exit status; None for a program that was ended.
    :param expected: how many GPUs the node has.
    :param facts: what of the node's facts decides between causes.
    """
    burn = read_document(text, errors)
    if not burn.ran:
        ended = not_run(burn, f" and {_how(rc)}")
        return ProgramResult(judged=tuple(with_causes(ended, text, errors, facts=facts)))
    judged = list(burn.judged)
    wanted = max(expected, burn.counted)
    if burn.complete < wanted:
        judged.append(_incomplete(burn.complete, wanted, burn.said))
    if rc != 0 and not judged:
        judged.append(_ended_badly(rc, burn.said))
    return ProgramResult(judged=tuple(judged))


def _how(rc: int | None) -> str:
    return "was ended" if rc is None else f"ended with status {rc}"


def _incomplete(tested: int, expected: int, said: str) -> Finding:
    return Finding(
        "gpu_burn_incomplete",
        f"gpu_burn tested {tested} of {expected} GPUs.",
        said,
        f"See that CUDA_VISIBLE_DEVICES is not set for root. {LOOK}.",
        severity=ERROR,
    )


def _ended_badly(rc: int | None, said: str) -> Finding:
    return Finding(
        "gpu_burn_ended_badly",
        f"gpu_burn said OK of each GPU, and {_how(rc)} instead of status 0.",
        said,
        f"{LOOK}, and accept the node again.",
        severity=ERROR,
    )
