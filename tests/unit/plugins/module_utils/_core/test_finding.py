# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A finding keeps its parts on the way through a result."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import (
    POSSIBLE,
    WARNING,
    Finding,
    Subject,
    read_finding,
)

SUBJECT = Subject("gpu1", "0000:01:00.0", "ml/train", True, "nvidia", "a task")
WHOLE = Finding(
    "xid",
    "A cause.",
    "a line",
    "Do it on {name}.",
    {"name": "x", "empty": ""},
    WARNING,
    SUBJECT,
    "do it",
    POSSIBLE,
    ("gpu_lost",),
    ("nvml_failed",),
    "Do it on {name}.",
)


def clean(value):
    return str(value or "")


def test_a_result_has_all_parts():
    given = json.loads(json.dumps(WHOLE.as_problem()))
    assert given == {
        "code": "xid", "cause": "A cause.", "evidence": "a line", "next_step": "Do it on {name}.",
        "severity": "warning", "host": "gpu1", "gpu": "0000:01:00.0", "pod": "ml/train",
        "placed": True, "vendor": "nvidia", "subject": "a task", "fix": "do it",
        "confidence": "possible", "alternatives": ["gpu_lost"], "follows": ["nvml_failed"],
        "names": {"name": "x"}, "template": "Do it on {name}.",
    }  # fmt: skip
    found = read_finding(given, clean, SUBJECT)
    assert found == WHOLE
    assert (found.details, found.template) == ({"name": "x"}, WHOLE.template)


def test_parts_without_a_value_are_left_out():
    assert Finding("xid", "A cause.").as_problem() == {
        "code": "xid", "cause": "A cause.", "evidence": "", "next_step": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"code": None, "severity": "fatal", "names": ["x"], "follows": "gpu_lost"},
        {"severity": 3, "names": None, "follows": None, "alternatives": 7},
    ],
)
def test_a_result_of_another_form_is_a_finding_without_these_parts(given):
    found = read_finding(given, clean, Subject("gpu1"), WARNING, "unknown")
    assert found == Finding("unknown", "", severity=WARNING, subject=Subject("gpu1"))


@pytest.mark.parametrize(
    ("subject", "text", "place"),
    [
        (Subject(), "", ""),
        (Subject("gpu1"), "gpu1", ""),
        (Subject("gpu1", "0000:01:00.0"), "gpu1: GPU 0000:01:00.0", "0000:01:00.0"),
        (Subject(gpu="0000:01:00.0"), "GPU 0000:01:00.0", "0000:01:00.0"),
        (Subject("gpu1", part="GPU 1"), "gpu1: GPU 1", "GPU 1"),
        (Subject("gpu1", pod="ml/train", placed=True), "pod ml/train", "pod ml/train"),
    ],
)
def test_a_subject_is_named_with_its_host_and_without(subject, text, place):
    assert (str(subject), subject.place) == (text, place)


def test_findings_of_two_gpus_are_two():
    other = replace(WHOLE, subject=replace(SUBJECT, gpu="0000:02:00.0"))
    assert other != WHOLE and len({other, WHOLE}) == 2
