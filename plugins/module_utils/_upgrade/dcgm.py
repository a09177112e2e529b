# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the output of ``dcgmi diag --json``. Pure.

The JSON decides, not the exit status: that of a failed test is also that of a test that could
not run. DCGM 3 names a GPU in its results as ``gpu_id`` or ``gpu_ids``, DCGM 4 as an entity.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .._core.finding import Finding
from .._core.printable import printable

Object = Mapping[str, Any]

_ROOT = "DCGM Diagnostic"
_TIMED_OUT = (124, 137)
_MISSING = 127
_MOST = 500


def judge_diag(answer: Object) -> list[Finding]:
    """Return what is wrong; empty if no test failed.

    :param answer: the result of Ansible's ``command``.
    """
    text = str(answer.get("stdout") or "")
    # Warnings of libraries come before it.
    begin = text.find("{")
    try:
        data = json.loads(text[begin:]) if begin >= 0 else None
        found, error = None, ""
        if data is not None:
            # A diag that could not run has no tests.
            error = str(data.get("runtime_error") or data[_ROOT].get("runtime_error") or "")
            found = [] if error else list(_failed(data[_ROOT]))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        found, error = None, ""
    if found is None or error:
        return [_not_run(answer, error)]
    return found


def _failed(diag: Object) -> Iterator[Finding]:
    """Yield a finding for each failed result of a test."""
    for category in diag["test_categories"]:
        for test in category["tests"]:
            for result in test.get("results") or ():
                if str(result.get("status")).lower() == "fail":
                    yield _finding(str(test["name"]), result)


def _finding(test: str, result: Object) -> Finding:
    warnings = result.get("warnings") or ()
    texts = [str(one.get("warning") if isinstance(one, Mapping) else one) for one in warnings]
    identity = result.get("entity_id", result.get("gpu_id", result.get("gpu_ids", "")))
    where = f" for GPU {identity}" if identity not in ("", None) else ""
    return Finding(
        "dcgm_failed",
        printable(f"The test {test} of DCGM failed{where}."),
        printable(" ".join(texts))[:_MOST],
        "See what DCGM names; run dcgmi diag on the node again after the repair.",
    )


def _not_run(answer: Object, error: str) -> Finding:
    status = answer.get("rc")
    if status in _TIMED_OUT:
        cause, step = "dcgmi diag did not end in time.", "Raise gpu_upgrade_dcgm_timeout."
    elif status in (None, _MISSING):
        cause = "dcgmi is not installed on the node."
        step = "Install DCGM, or leave dcgm out of gpu_upgrade_gate."
    else:
        cause = f"dcgmi diag printed no result (exit status {status})."
        step = "See that DCGM runs: systemctl status nvidia-dcgm."
    text = error or str(answer.get("stderr") or "") or str(answer.get("stdout") or "")
    return Finding("dcgm_not_run", cause, printable(text.strip())[-_MOST:], step)
