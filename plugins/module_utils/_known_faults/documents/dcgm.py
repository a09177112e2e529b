# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read what ``dcgmi diag`` prints, as JSON or as a table. Pure.

The document decides, not the exit status: that of a failed test is also that of a test that could
not run. DCGM 3 names a GPU in its results as ``gpu_id`` or ``gpu_ids``, DCGM 4 as an entity.

In DCGM 4, what concerns no single GPU (a library that is missing, the fabric manager, a plugin that
ended) is in the ``test_summary`` of a test only; some releases repeat the errors of GPUs there.
github.com/NVIDIA/DCGM at 72fa3fe, dcgmi/Diag.cpp, HelperJsonAddTestSummary; read 2026-11-27.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._core.finding import ERROR, INFO, WARNING, Finding, Subject
from ..._core.printable import printable
from ..rules.dcgm_errors import DCGM_ERRORS, MONITOR, NEXT_STEPS, SEVERITIES, UNKNOWN
from .printed import find_object

Object = Mapping[str, Any]

_ROOT = "DCGM"
_MOST = 500
_FAIL, _PASS, _WARN = "fail", "pass", "warn"
# Its tests read the software only. Above the first level they are not what is requested.
_SOFTWARE = "deployment"
_GPU = "gpu"
_ID = re.compile(r"\d{1,5}")


@dataclass
class Diag:
    """What a diag did, as far as it is read.

    :param error: why it could not run; it has no tests then.
    :param gpus: the GPUs with a result.
    :param tested: those with a result of a test that counts.
    :param ran: whether any test that counts has a result.
    """

    judged: list[Finding] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    gpus: set[int] = field(default_factory=set)
    tested: set[int] = field(default_factory=set)
    ran: bool = False
    version: str = ""
    error: str = ""

    @property
    def reasons(self) -> str:
        """The tests that were skipped, each with its reason where one is known."""
        return _with_reasons(self.skipped)


def read_document(text: str, level: int = 0) -> Diag | None:
    """Return what the JSON of a diag says; None if there is none.

    :param level: the level that was run; 0 if it is not known.
    """
    data = find_object(text, _ROOT, "runtime_error")
    try:
        return None if data is None else _read(data, level)
    except (KeyError, TypeError, AttributeError):
        return None


def _read(data: Object, level: int) -> Diag:
    diag = _diag(data)
    error = str(data.get("runtime_error") or diag.get("runtime_error") or "")
    return Diag(error=error) if error else read_tests(diag, data, level)


def _diag(data: Object) -> Object:
    """Return the part with the tests: older releases have another name for it."""
    found: Object = next((one for name, one in data.items() if str(name).startswith(_ROOT)), {})
    return found


def read_tests(diag: Object, data: Object, level: int) -> Diag:
    """Return what the tests of a diag found."""
    seen = Diag()
    categories = diag["test_categories"]
    # Only the first level has no other tests.
    first = level == 1 or (not level and all(map(_of_software, categories)))
    for category in categories:
        # DCGM 3 has null between its tests.
        for test in filter(None, category["tests"]):
            _read_test(seen, test, counts=first or not _of_software(category))
    if not seen.ran:
        seen.judged.append(_nothing_tested(seen))
    elif seen.skipped:
        seen.judged.append(_some_skipped(seen))
    version = (data.get("metadata") or {}).get("version") or diag.get("version") or ""
    seen.version = str(version)
    return seen


def _of_software(category: Object) -> bool:
    return str(category.get("category")).lower() == _SOFTWARE


def _nothing_tested(seen: Diag) -> Finding:
    return Finding(
        "dcgm_nothing_tested",
        "dcgmi diag tested no GPU: it skipped all of its tests of them.",
        f"skipped: {seen.reasons or 'no test was named'}",
        "See that DCGM supports these GPUs, that MIG is off, and that no other program uses them.",
        severity=ERROR,
    )


def _some_skipped(seen: Diag) -> Finding:
    return Finding(
        "dcgm_skipped",
        "dcgmi diag skipped tests: it does not have them for these GPUs, or a test before them "
        "failed.",
        seen.reasons,
        severity=INFO,
    )


def _with_reasons(skipped: Mapping[str, str]) -> str:
    texts = [f"{test} ({reason})" if reason else test for test, reason in skipped.items()]
    return ", ".join(texts)[:_MOST]


def _read_test(seen: Diag, test: Object, *, counts: bool) -> None:
    """Add what a test found, of each GPU and of none."""
    name = str(test["name"])
    summary = test.get("test_summary") or {}
    results = test.get("results") or ()
    told = {_text(one) for result in results for one in _entries(result)}
    # An error that a GPU has is not told twice.
    general = [one for one in _entries(summary) if _text(one) not in told]
    for result in results:
        status = _status(result)
        identities = _gpus(result)
        seen.gpus |= identities
        if status in (_PASS, _FAIL, _WARN):
            seen.ran = seen.ran or counts
            seen.tested |= identities if counts else set()
            entries = _entries(result)
            # Where the summary has the reason, one of these would have none.
            if entries or (status != _PASS and not general):
                seen.judged += _judged(name, result, status, entries)
        else:
            _skip(seen, name, [*_entries(result), *general])
    status, ended = _status(summary), set(map(_status, results))
    if status in (_PASS, _FAIL, _WARN):
        kind = _FAIL if _FAIL in ended else status
        # Without a result that says so, the summary alone says that the test failed.
        if general or (kind == _FAIL and not ended & {_FAIL, _WARN}):
            seen.judged += _judged(name, {}, kind, general)
    elif not results:
        _skip(seen, name, general)


def _skip(seen: Diag, test: str, entries: Iterable[Object]) -> None:
    reasons = "; ".join(filter(None, dict.fromkeys(map(_text, entries))))
    seen.skipped[printable(test)] = printable(reasons) or seen.skipped.get(printable(test), "")


def _status(result: Object) -> str:
    return str(result.get("status")).lower()


def _entries(result: Object) -> list[Object]:
    """Return the errors of a result, each with its text in ``warning``."""
    warnings = result.get("warnings") or ()
    if isinstance(warnings, (str, Mapping)):
        warnings = (warnings,)
    return [one if isinstance(one, Mapping) else {"warning": one} for one in warnings]


def _text(entry: Object) -> str:
    return str(entry.get("warning") or "")


def _gpus(result: Object) -> set[int]:
    """Return the GPUs that a result is of."""
    if str(result.get("entity_group") or _GPU).lower() != _GPU:
        return set()
    identity = result.get("entity_id", result.get("gpu_id", result.get("gpu_ids", "")))
    return {int(one) for one in _ID.findall(str(identity))}


def _judged(test: str, result: Object, status: str, entries: Sequence[Object]) -> list[Finding]:
    """Return a finding for each error of a result, or one for all where they have no number."""
    errors: dict[int | None, list[Object]] = {}
    for one in entries:
        errors.setdefault(_number(one.get("error_id")), []).append(one)
    return [
        _error(test, result, status, number, of_number)
        for number, of_number in (errors or {None: []}).items()
    ]


def _error(
    test: str, result: Object, status: str, number: int | None, entries: Sequence[Object]
) -> Finding:
    texts = " ".join(dict.fromkeys(map(_text, entries)))
    identity = result.get("entity_id", result.get("gpu_id", result.get("gpu_ids", "")))
    subject = _subject(str(result.get("entity_group") or "GPU"), identity)
    where = f" for {subject}" if subject else ""
    name, action = DCGM_ERRORS.get(number, ("", UNKNOWN)) if number is not None else ("", UNKNOWN)
    told = next((_number(one.get("error_severity")) for one in entries), None)
    if told is not None and 0 < told < len(SEVERITIES):
        # The release that ran knows its errors better than the table, which has the name of another
        # error if it has another severity.
        name, action = name if action == SEVERITIES[told] else "", SEVERITIES[told]
    named = f": {name}" if name else ""
    which = f"{named} (error {number}, {action})" if number is not None else ""
    # Only what DCGM itself wants to be watched is no reason to keep a node out. An error of no GPU
    # ended the test of all.
    watched = action == MONITOR and bool(subject)
    severity = ERROR if status == _FAIL and not watched else WARNING
    verb = {_FAIL: "failed", _PASS: "passed and warns"}.get(status, "warns")
    names = {
        "error_id": "" if number is None else str(number),
        "error": name,
        "action": action,
    }
    return Finding(
        "dcgm_failed" if status == _FAIL else "dcgm_warned",
        printable(f"The test {test} of DCGM {verb}{where}{which}."),
        printable(texts)[:_MOST],
        NEXT_STEPS[action],
        {key: value for key, value in names.items() if value},
        severity,
        Subject(part=printable(subject)),
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
