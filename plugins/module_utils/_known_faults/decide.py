# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Let facts decide between the rules that match a text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from .._core.finding import POSSIBLE, Finding
from .predicates import Answer, Facts, holds
from .types import Rule
from .words import filled_in

_Match = tuple[Rule, "re.Match[str]"]


def decided(
    found: Sequence[_Match], facts: Facts, seen: Mapping[str, bool]
) -> Iterator[tuple[Rule, re.Match[str], list[_Match]]]:
    """Yield the rules that apply, each with the other possible causes if nothing decides."""
    answers = [(row, match, holds(row.when, facts, seen)) for row, match in found]
    told: set[str] = set()
    for row, match, answer in answers:
        if answer is False or (row.family and row.family in told):
            continue
        if not row.family:
            yield row, match, []
            continue
        told.add(row.family)
        family = [one for one in answers if one[0].family == row.family and one[2] is not False]
        yield _of_family(family)


def _of_family(
    family: Sequence[tuple[Rule, re.Match[str], Answer]],
) -> tuple[Rule, re.Match[str], list[_Match]]:
    """Return the rule that facts prove; otherwise the first, with the others."""
    proven = [one for one in family if one[2] and one[0].when] or (
        [one for one in family if one[2]] if len(family) == 1 else []
    )
    row, match, _answer = (proven or family)[0]
    others = [] if proven else [(one, its) for one, its, _known in family if one is not row]
    return row, match, others


def possible(found: Finding, others: Sequence[_Match]) -> Finding:
    """Return a finding that nothing proves, with the other possible causes and their steps."""
    causes = [filled_in(row.cause, match) for row, match in others]
    steps = [filled_in(row.next_step, match) for row, match in others]
    return replace(
        found,
        cause=" ".join([f"Possible cause: {found.cause}", *(f"Or: {one}" for one in causes)]),
        next_step=" ".join([found.next_step, *(f"Otherwise: {one}" for one in steps)]),
        # A fix of one of several causes may change nothing.
        fix="",
        confidence=POSSIBLE,
        # Rules of one code can differ by what the facts say.
        alternatives=tuple(
            dict.fromkeys(row.code for row, _match in others if row.code != found.code)
        ),
    )
