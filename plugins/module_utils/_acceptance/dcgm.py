# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the output of ``dcgmi diag --json``. Pure.

The JSON decides, not the exit status: that of a failed test is also that of a test that could
not run. DCGM 3 names a GPU in its results as ``gpu_id`` or ``gpu_ids``, DCGM 4 as an entity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .._core.finding import Finding
from .._core.printable import printable
from .data import DCGM_ERRORS, MONITOR, NEXT_STEPS, SEVERITIES, UNKNOWN
from .printed import find_object
from .types import ERROR, INFO, WARNING, Judged, ProgramResult

Object = Mapping[str, Any]

_ROOT = "DCGM"
# timeout ended it, or had to kill the group that it is in itself.
_TIMED_OUT = (124, 137, -9)
_MISSING = 127
_MOST = 500
_FAIL, _PASS, _WARN = "fail", "pass", "warn"
# Its tests look at the software only. Above the first level they are not what is asked for.
_SOFTWARE = "deployment"


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
    return [one.finding for one in found.judged if one.failed]


def read_diag(answer: Object, *, level: int, timeout: str, otherwise: str) -> ProgramResult:
    """Return what the diag found.

    :param answer: ``rc``, ``stdout`` and ``stderr``; ``rc`` is None without a program.
    :param level: the level that was run.
    :param timeout: the variable with its seconds.
    :param otherwise: how to do without it.
    """
    text = str(answer.get("stdout") or "")
    data = find_object(text, _ROOT, "runtime_error")
    try:
        error, found = "", None
        if data is not None:
            diag = _diag(data)
            # A diag that could not run has no tests.
            error = str(data.get("runtime_error") or diag.get("runtime_error") or "")
            found = None if error else _outcome(diag, data, level)
    except (KeyError, TypeError, AttributeError):
        error, found = "", None
    if found is None:
        finding = _not_run(answer, error, timeout, otherwise)
        return ProgramResult(judged=(Judged(finding),))
    return found


def _diag(data: Object) -> Object:
    """Return the part with the tests: older releases have another name for it."""
    found: Object = next((one for name, one in data.items() if str(name).startswith(_ROOT)), {})
    return found


def _outcome(diag: Object, data: Object, level: int) -> ProgramResult:
    judged: list[Judged] = []
    skipped: list[str] = []
    passed = False
    for category, test, result in _results(diag):
        status = str(result.get("status")).lower()
        counts = level == 1 or category != _SOFTWARE
        passed = passed or (counts and status in (_PASS, _FAIL, _WARN))
        if status in (_FAIL, _WARN):
            judged += _judged(test, result, status)
        elif status != _PASS:
            skipped.append(printable(test))
    if not passed:
        judged.append(
            Judged(
                Finding(
                    "dcgm_nothing_tested",
                    "dcgmi diag tested no GPU: it skipped all of its tests of them.",
                    f"skipped: {', '.join(dict.fromkeys(skipped)) or 'no test was named'}",
                    "See that DCGM supports these GPUs, that MIG is off, and that no other program "
                    "uses them.",
                ),
                failed=False,
            )
        )
    elif skipped:
        judged.append(
            Judged(
                Finding(
                    "dcgm_skipped",
                    "dcgmi diag skipped tests: it does not have them for these GPUs, or a test "
                    "before them failed.",
                    ", ".join(dict.fromkeys(skipped)),
                ),
                INFO,
                failed=False,
            )
        )
    version = (data.get("metadata") or {}).get("version") or diag.get("version") or ""
    return ProgramResult(tuple(judged), skipped=tuple(dict.fromkeys(skipped)), version=str(version))


def _results(diag: Object) -> Iterator[tuple[str, str, Object]]:
    for category in diag["test_categories"]:
        for test in category["tests"]:
            for result in test.get("results") or ():
                yield str(category.get("category")).lower(), str(test["name"]), result


def _judged(test: str, result: Object, status: str) -> list[Judged]:
    """Return a finding for each error of a result, or one for all where they have no number."""
    warnings = result.get("warnings") or ()
    if isinstance(warnings, str):
        warnings = (warnings,)
    errors: dict[int | None, list[Object]] = {}
    for one in warnings:
        entry = one if isinstance(one, Mapping) else {"warning": one}
        errors.setdefault(_number(entry.get("error_id")), []).append(entry)
    return [
        _error(test, result, status, number, entries)
        for number, entries in (errors or {None: []}).items()
    ]


def _error(
    test: str, result: Object, status: str, number: int | None, entries: Sequence[Object]
) -> Judged:
    texts = " ".join(str(one.get("warning") or "") for one in entries)
    identity = result.get("entity_id", result.get("gpu_id", result.get("gpu_ids", "")))
    subject = _subject(str(result.get("entity_group") or "GPU"), identity)
    where = f" for {subject}" if subject else ""
    name, action = DCGM_ERRORS.get(number, ("", UNKNOWN)) if number is not None else ("", UNKNOWN)
    told = next((_number(one.get("error_severity")) for one in entries), None)
    if told is not None and 0 < told < len(SEVERITIES):
        # The release that ran knows its errors better than the table.
        action = SEVERITIES[told]
    which = f": {name or 'error'} (error {number}, {action})" if number is not None else ""
    # Only what DCGM itself wants to be watched is no reason to keep a node out.
    severity = WARNING if status == _WARN or action == MONITOR else ERROR
    step = NEXT_STEPS[action]
    evidence = printable(texts)[:_MOST]
    if status == _FAIL:
        finding = Finding(
            "dcgm_failed",
            printable(f"The test {test} of DCGM failed{where}{which}."),
            evidence,
            step,
        )
    else:
        finding = Finding(
            "dcgm_warned",
            printable(f"The test {test} of DCGM warns{where}{which}."),
            evidence,
            step,
        )
    return Judged(
        finding, severity, printable(subject), number, name, action, failed=status == _FAIL
    )


def _subject(group: str, identity: Any) -> str:
    if identity in ("", None):
        return ""
    return f"{group} {identity}"


def _number(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


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
