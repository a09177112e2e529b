# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each report of a person is answered rightly, and each rule has a report or a recorded sample."""

from __future__ import annotations

import re

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import (
    CONFIDENCES,
    SEVERITIES,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.rules.tables import (
    FAILURES,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.types import Rule

from . import page
from .corpus import FOLDER, ORIGINS, cases, judge, said_about


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_what_people_ran_into(case):
    found = said_about(case)
    wrong = judge(case, found)
    said = "\n".join(
        f"{one['severity']} {one['code']}: {one['cause']} Next step: {one['next_step']} "
        f"Fix: {one['fix']}"
        for one in found
    )

    if case.open:
        assert wrong, f"it is answered rightly now: remove open ({case.open})"
        return
    assert not wrong, f"{'; '.join(wrong)}\nsaid: {said or 'nothing'}\nright: {case.why}"


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_case_is_whole(case):
    assert not case.keys, f"unknown keys: {', '.join(case.keys)}"
    assert case.name.partition("/")[0] in ORIGINS
    assert case.text.strip() and case.situation and case.why
    assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", case.date), "a year and a month"
    assert not case.source.startswith("http"), "without https://"
    assert bool(case.codes) + case.nothing + case.quiet == 1
    assert case.severity in ("", *SEVERITIES) and case.confidence in ("", *CONFIDENCES)


def test_no_input_is_left_over():
    used = {
        line.partition("input: ")[2].strip()
        for path in (FOLDER / "cases").glob("*/*.yml")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("input: ")
    }
    there = {
        str(path.relative_to(FOLDER)) for path in (FOLDER / "inputs").rglob("*") if path.is_file()
    }

    assert there == used


def test_a_wrong_answer_is_found():
    """The judge of this file: an empty answer and a harmful one are wrong."""
    case = next(one for one in cases() if one.codes and one.never_says)
    harmful = {
        "code": case.codes[0], "severity": case.severity, "confidence": "proven", "evidence": "",
        "cause": case.never_says[0], "next_step": "", "fix": "",
    }  # fmt: skip

    assert any("is missing" in one for one in judge(case, []))
    assert any("is said" in one for one in judge(case, [harmful]))


def test_the_page_of_the_reports_is_up_to_date():
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), "python -m tests.reports.page"


def test_each_rule_has_a_case_or_a_source():
    said = {one["code"] for case in cases() for one in said_about(case)}
    own = Rule("", "", "", "", "", "").source
    assert not {row.code for row in FAILURES if row.source == own} - said
