# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find known messages in a text, and fill in what is said about them. Pure.

Apart from the tables: the facts of a node need those of the kernel's drivers only, and each file
that a module imports is sent to the node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from .._core.finding import Finding, Subject
from .literals import Words, required
from .package_lines import failed_lines
from .types import PACKAGE_ERRORS, Rule
from .words import filled_in, groups

_MOST_EVIDENCE = 320
_BEFORE = 80
_MOST_QUOTED = 4
_MOST_ENDS = 100
# GPUs that have a fault of one kind, and messages in which others are looked for.
_MOST_SUBJECTS = 32
_MOST_AGAIN = 2000
_ADDRESS = re.compile(r"\b[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\b")
# More than there are rules.
_MOST_PATTERNS = 1024
_PARTS: dict[str, Callable[[str], str]] = {PACKAGE_ERRORS: failed_lines}


@lru_cache(maxsize=_MOST_PATTERNS)
def _expression(pattern: str) -> re.Pattern[str]:
    """Return a pattern, which takes capital letters for small ones; compiled when it is needed."""
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


@lru_cache(maxsize=_MOST_PATTERNS)
def _words(pattern: str) -> Words:
    return required(pattern)


class _Text:
    """A text, and the parts of it that some rules search alone."""

    def __init__(self, text: str) -> None:
        self._parts = {"": text}
        self._low = text.lower()

    def search(self, row: Rule) -> re.Match[str] | None:
        """Return the first match of a row that nothing after it makes up for."""
        words = _words(row.pattern)
        if words and not any(word in self._low for word in words):
            return None
        if row.within not in self._parts:
            self._parts[row.within] = _PARTS[row.within](self._parts[""])
        match = _expression(row.pattern).search(self._parts[row.within])
        return _not_over(row, match) if match and row.over else match


@lru_cache(maxsize=4)
def _names_several(text: str) -> bool:
    """Return whether a text has the addresses of several devices; most texts are of one GPU."""
    found = _ADDRESS.finditer(text)
    first = next(found, None)
    return first is not None and any(one[0] != first[0] for one in found)


def of_others(row: Rule, match: re.Match[str]) -> Iterator[re.Match[str]]:
    """Yield the first match of a row for each further GPU that the text names in it."""
    seen = {(groups(match).get("address") or "").lower()}
    if "address" not in match.re.groupindex or seen == {""} or not _names_several(match.string):
        return
    again = match.re.finditer(match.string, match.end())
    for other, _count in zip(again, range(_MOST_AGAIN)):
        address = (other["address"] or "").lower()
        if not address or address in seen or len(seen) >= _MOST_SUBJECTS:
            continue
        if not row.over or _end(row, other) is None:
            seen.add(address)
            yield other


def _not_over(row: Rule, match: re.Match[str] | None) -> re.Match[str] | None:
    """Return the first match after which the text does not say that it is over."""
    for _number in range(_MOST_ENDS):
        if match is None:
            return None
        end = _end(row, match)
        if end is None:
            return match
        match = _expression(row.pattern).search(match.string, end.end())
    return match


def _end(row: Rule, match: re.Match[str]) -> re.Match[str] | None:
    """Return what shows, after a match, that it is over."""
    address = match.groupdict().get("address")
    place = re.escape(address) if address else "[0-9a-f:.]{7,16}"
    return _expression(row.over.replace("ADDRESS", place)).search(match.string, match.end())


def matches(
    text: str, rules: Iterable[Rule], applies: Callable[[Rule], bool] = bool
) -> list[tuple[Rule, re.Match[str]]]:
    """Return the rows that a text has, most specific first.

    :param applies: whether a row is possible by what else is known; others cover no row.
    """
    return uncovered(all_matches(text, rules, applies))


def all_matches(
    text: str, rules: Iterable[Rule], applies: Callable[[Rule], bool] = bool
) -> list[tuple[Rule, re.Match[str]]]:
    """Return the rows that a text has, those too that others cover."""
    found = []
    searched = _Text(text)
    contexts: dict[str, bool] = {"": True}
    for row in rules:
        match = searched.search(row)
        if match and applies(row):
            if row.context not in contexts:
                contexts[row.context] = bool(re.search(row.context, text))
            if contexts[row.context]:
                found.append((row, match))
    return found


def uncovered(
    found: Sequence[tuple[Rule, re.Match[str]]],
) -> list[tuple[Rule, re.Match[str]]]:
    """Return the rows of which no other row says more."""
    left = remaining([row for row, _match in found])
    return [one for one, remains in zip(found, left) if remains]


def remaining(rows: Sequence[Rule]) -> list[bool]:
    """Return for each row whether no other row says more."""
    known = any(not row.last_resort for row in rows)
    return [
        not (known and row.last_resort)
        and not any(_covers(other, row, place < number) for place, other in enumerate(rows))
        for number, row in enumerate(rows)
    ]


def _covers(other: Rule, row: Rule, before: bool) -> bool:
    """Return whether a row leaves another one out; of two that do so, the first one counts."""
    if row.code not in other.covers or row.code == other.code:
        return False
    return before or other.code not in row.covers


def finding(row: Rule, match: re.Match[str]) -> Finding:
    """Return what a row says, with the words of the text."""
    return Finding(
        row.code,
        filled_in(row.cause, match) + _outdated(row, match),
        evidence(match),
        filled_in(row.next_step, match),
        groups(match),
        row.severity,
        Subject(gpu=(groups(match).get("address") or "").lower()),
        fix=filled_in(row.fix, match),
        confidence=row.confidence,
    )


def with_covered(
    found: Finding, row: Rule, matched: Iterable[tuple[Rule, re.Match[str]]]
) -> Finding:
    """Return a finding with the lines of the rows that it covers, where its row wants them."""
    lines = [
        evidence(match)
        for other, match in matched
        if row.quotes_covered and other.code in row.covers and other.code != row.code
    ]
    shown = list(dict.fromkeys([found.evidence, *lines]))[:_MOST_QUOTED]
    return replace(found, evidence="; ".join(shown))


def _outdated(row: Rule, match: re.Match[str]) -> str:
    """Return which releases have this message, if newer ones have another."""
    message = match.group().lower()
    return "".join(f" These are words of {who}." for words, who in row.outdated if words in message)


def evidence(match: re.Match[str]) -> str:
    """Return the matching line, or the part of a long line around the match."""
    text = match.string
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    end = len(text) if end < 0 else end
    if end - start > _MOST_EVIDENCE:
        start = max(start, match.start() - _BEFORE)
        end = min(end, max(match.end(), start + _MOST_EVIDENCE))
    return re.sub(r"\s+", " ", text[start:end]).strip()
