# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What people ran into: cases with their public source, what is right, and what must never be said.

A case is a file ``cases/ORIGIN/NAME.yml``; README.md has its keys. :func:`judge` compares what the
collection says with it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._explain import explain_text
from tests.unit.fixtures.node_facts import node

FOLDER = Path(__file__).parent
ORIGINS = (
    *("nvidia_kernel", "amd_kernel", "intel_kernel", "xids", "builds", "packages"),
    *("containers", "kubernetes", "tests_of_gpus"),
)
_KEYS = {
    *("source", "date", "situation", "text", "input", "facts", "expect", "never", "why"),
    *("made", "estimated"),
}
_EXPECTED = {"codes", "severity", "confidence", "says", "nothing", "new_codes", "open"}


@dataclass(frozen=True)
class Case:
    """A report of a person.

    :param name: ``origin/name``.
    :param codes: those that must come; the first one is the root.
    :param says: what a person needs: words of cause, evidence, next step or fix.
    :param never_says: words that must not come in cause, next step or fix.
    :param made: whether the text is no copy: a document in the form of its program, with the values
        of the report.
    :param open: why it is not answered rightly yet; empty for a case that is.
    :param nothing: whether the text is of a node that works, so that no error may be found.
    :param quiet: whether nothing at all may be found.
    """

    name: str
    source: str
    date: str
    situation: str
    why: str
    text: str
    facts: Mapping[str, Any] | None = None
    codes: tuple[str, ...] = ()
    severity: str = ""
    confidence: str = ""
    says: tuple[str, ...] = ()
    never_says: tuple[str, ...] = ()
    never_codes: tuple[str, ...] = ()
    nothing: bool = False
    quiet: bool = False
    made: bool = False
    open: str = ""
    keys: frozenset[str] = field(default=frozenset(), compare=False)


@cache
def cases() -> tuple[Case, ...]:
    """Return all cases, by their names."""
    return tuple(_read(path) for path in sorted((FOLDER / "cases").glob("*/*.yml")))


def _read(path: Path) -> Case:
    said: Mapping[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    expect, never = said.get("expect") or {}, said.get("never") or {}
    text = said.get("text") or ""
    if "input" in said:
        text = (FOLDER / said["input"]).read_text(encoding="utf-8")
    facts = said.get("facts")
    return Case(
        name=f"{path.parent.name}/{path.stem}",
        source=said["source"],
        date=str(said["date"]),
        situation=said["situation"],
        why=said["why"],
        text=text,
        facts=None if facts is None else _merged(node(), facts),
        codes=tuple(expect.get("codes") or ()),
        severity=expect.get("severity") or "",
        confidence=expect.get("confidence") or "",
        says=tuple(expect.get("says") or ()),
        never_says=tuple(never.get("says") or ()),
        never_codes=tuple(never.get("codes") or ()),
        nothing=bool(expect.get("nothing")),
        quiet=expect.get("codes") == [],
        made=bool(said.get("made")),
        open=expect.get("open") or "",
        keys=frozenset(said) - _KEYS | frozenset(expect) - _EXPECTED,
    )


def _merged(base: Any, given: Any) -> Any:
    """Return facts with those of the report in place of their own, key by key."""
    if not isinstance(base, dict) or not isinstance(given, dict):
        return copy.deepcopy(given)
    return {**base, **{name: _merged(base.get(name), one) for name, one in given.items()}}


def said_about(case: Case) -> list[dict[str, Any]]:
    """Return what the collection says, as the filter ``gpu_explain`` returns it."""
    return explain_text(case.text, case.facts)


def judge(case: Case, found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with what was said; empty if it is right."""
    codes = [one["code"] for one in found]
    errors = [one["code"] for one in found if one["severity"] == "error"]
    wrong = [f"{code} is said" for code in case.never_codes if code in codes]
    if case.nothing and errors:
        wrong.append(f"errors are found: {', '.join(errors)}")
    if case.quiet and codes:
        wrong.append(f"found: {', '.join(codes)}")
    wrong += [f"{code} is missing" for code in case.codes if code not in codes]
    first = next((one for one in found if case.codes and one["code"] == case.codes[0]), None)
    if first:
        for key, value in (("severity", case.severity), ("confidence", case.confidence)):
            if value and first[key] != value:
                wrong.append(f"its {key} is {first[key]}, not {value}")
        worse = [code for code in errors if code not in case.codes]
        if worse and codes.index(case.codes[0]) > min(codes.index(code) for code in worse):
            wrong.append(f"{worse[0]} comes before it")
    advice = _words(found, "cause", "next_step", "fix")
    all_words = _words(found, "cause", "next_step", "fix", "evidence", "code")
    wrong += [f"{word!r} is not said" for word in case.says if word.lower() not in all_words]
    wrong += [f"{word!r} is said" for word in case.never_says if word.lower() in advice]
    return wrong


def _words(found: Sequence[Mapping[str, Any]], *keys: str) -> str:
    return "\n".join(" ".join(one[key].split()) for one in found for key in keys).lower()
