# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge what ``dcgmi diag --json`` found. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.finding import Finding
from .._core.printable import printable
from .._known_faults.documents.dcgm import Diag, read_document
from .types import ProgramResult

Object = Mapping[str, Any]

# timeout ended it, or had to kill the group that it is in itself.
_TIMED_OUT = (124, 137, -9)
_MISSING = 127
# Of tests that were skipped, or that passed and warn.
_NO_FAILURES = ("dcgm_skipped", "dcgm_incomplete", "dcgm_warned")
_MOST = 500


def judge_diag(answer: Object) -> list[Finding]:
    """Return what failed, for the gate of the upgrade; empty if no test failed.

    :param answer: the result of Ansible's ``command``.
    """
    found = read_diag(
        answer,
        level=1,
        timeout="gpu_upgrade_dcgm_timeout",
        otherwise="leave dcgm out of gpu_upgrade_gate",
    )
    return [one for one in found.judged if one.code not in _NO_FAILURES]


def read_diag(
    answer: Object, *, level: int, timeout: str, otherwise: str, gpus: int = 0
) -> ProgramResult:
    """Return what the diag found.

    :param answer: ``rc``, ``stdout`` and ``stderr``; ``rc`` is None without a program.
    :param level: the level that was run.
    :param timeout: the variable with its seconds.
    :param otherwise: how to do without it.
    :param gpus: how many GPUs the node has; 0 if that is not known.
    """
    found = read_document(str(answer.get("stdout") or ""), level)
    if found is None or found.error:
        finding = _not_run(answer, found.error if found else "", timeout, otherwise)
        return ProgramResult(judged=(finding,))
    judged = list(found.judged)
    # Which tests were skipped is the last that is told.
    last = len(judged) - bool(found.ran and found.skipped)
    # Without any name of a GPU nothing says which of them were tested.
    if found.ran and found.gpus and gpus > len(found.tested):
        judged.insert(last, _incomplete(found, gpus))
    return ProgramResult(tuple(judged), skipped=tuple(found.skipped), version=found.version)


def _incomplete(seen: Diag, gpus: int) -> Finding:
    names = ", ".join(map(str, sorted(seen.tested))) or "none"
    return Finding(
        "dcgm_incomplete",
        f"dcgmi diag tested {len(seen.tested)} of {gpus} GPUs.",
        f"GPUs with a result: {names}; skipped: {seen.reasons or 'nothing'}"[:_MOST],
        "See which GPUs DCGM has (dcgmi discovery -l), and that all are of a product that it "
        "tests; a GPU that was lost is in dmesg | grep -i -e NVRM -e Xid.",
    )


def _not_run(answer: Object, error: str, timeout: str, otherwise: str) -> Finding:
    status = answer.get("rc")
    if status in _TIMED_OUT:
        cause, step = "dcgmi diag did not end in time.", f"Raise {timeout}."
    elif status in (None, _MISSING):
        cause = "dcgmi is not installed on the node."
        step = f"Install DCGM, or {otherwise}."
    else:
        cause = f"dcgmi diag printed no result (exit status {status})."
        step = (
            "See that DCGM runs (systemctl status nvidia-dcgm), and that no other diag runs on "
            "the node."
        )
    text = error or str(answer.get("stderr") or "") or str(answer.get("stdout") or "")
    return Finding("dcgm_not_run", cause, printable(text.strip())[-_MOST:], step)
