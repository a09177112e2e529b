# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the callback prints of a failed result."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.kubegpu.nodes.plugins.callback.tables import (
    CallbackModule,
    failure_lines,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.message import ABOVE

PARTS = {"cause": "No driver.", "evidence": "nvidia-smi: 9", "next_step": "Run site."}


@pytest.mark.parametrize(
    ("result", "lines"),
    [
        ({**PARTS, "msg": "x"}, ["No driver.", "Seen: nvidia-smi: 9", "Next step: Run site."]),
        ({"msg": "one\ntwo"}, ["one", "two"]),
        ({"msg": "MODULE FAILURE", "module_stderr": "Killed\n"}, ["Killed"]),
        ({"msg": "", "stdout": "E: broken"}, ["E: broken"]),
        (
            {"msg": "non-zero", "rc": 3, "stderr": "no space", "stdout": "x"},
            ["non-zero", "no space"],
        ),
        ({"msg": "non-zero", "rc": 3, "stderr": "", "stdout": ""}, ["non-zero"]),
        ({"censored": "the output has been hidden", "msg": "x"}, ["the output has been hidden"]),
        ({}, ["The task returned no message."]),
    ],
)
def test_a_failure_has_cause_evidence_and_next_step_or_the_text_that_there_is(result, lines):
    assert failure_lines(result) == lines


def test_a_run_without_a_host_says_what_to_try(capsys):
    CallbackModule().v2_playbook_on_stats(SimpleNamespace(processed={}, custom={}))
    first, step = capsys.readouterr().out.splitlines()
    assert first.startswith("No host: ")
    assert (
        step == "Next step: Run it in the folder of the inventory, or name the inventory with -i."
    )


def failed(host, msg, **options):
    return SimpleNamespace(
        host=SimpleNamespace(get_name=lambda: host),
        task=SimpleNamespace(get_name=lambda: "role : Apply", loop=options.get("loop"), action=""),
        result={"failed": True, "msg": msg, **options.get("result", {})},
    )


@pytest.fixture
def callback(monkeypatch):
    made = CallbackModule()
    monkeypatch.setattr(made, "host_label", lambda result: result.host.get_name(), raising=False)
    monkeypatch.setattr(made, "get_option", lambda _name: False)
    monkeypatch.setattr(made, "_handle_warnings", lambda _result: None)
    return made


def test_what_only_repeats_a_failure_of_a_host_is_not_shown_again(callback, capsys):
    again = f"a failed in the task Apply: No right. {ABOVE}"
    callback.v2_runner_on_failed(failed("a", "No right.\nNext step: add it."))
    callback.v2_runner_on_failed(failed("a", again))
    callback.v2_runner_on_failed(failed("b", again))
    assert capsys.readouterr().out.splitlines() == [
        "failed: [a] Apply", "  No right.", "  Next step: add it.", "failed: [b] Apply",
        f"  {again}",
    ]  # fmt: skip


def test_a_loop_is_shown_by_the_items_that_failed(callback, capsys):
    many = {"result": {"results": [{"failed": True}]}, "loop": "x"}
    callback.v2_runner_on_failed(failed("a", "One or more items failed", **many))
    assert capsys.readouterr().out == ""
